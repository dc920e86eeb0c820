//! What a Python process may have built, and what is known of that process.

use std::path::PathBuf;

use serde::Deserialize;

/// What is to be built. Who asks is a stranger: nothing is read that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub enum BuildOrder {
    /// A module of PyTorch's, from C++ and CUDA C++.
    #[serde(rename = "extension")]
    Extension(ExtensionOrder),
    /// A module of Python's, from C, as Triton has some.
    #[serde(rename = "c")]
    Module(ModuleOrder),
    /// Machine code, from PTX.
    #[serde(rename = "ptxas")]
    Assembly(AssemblyOrder),
}

/// Sources as `load_inline` puts them together, and the caller's options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtensionOrder {
    /// Name of the module.
    pub name: String,
    /// `main.cpp`.
    pub cpp: String,
    /// `cuda.cu`, if there is one.
    pub cuda: Option<String>,
    /// Options of g++.
    pub cflags: Vec<String>,
    /// Options of nvcc.
    pub cuda_cflags: Vec<String>,
    /// Libraries.
    pub ldflags: Vec<String>,
    /// Whether CUDA's headers and libraries are wanted.
    pub with_cuda: bool,
}

/// C source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleOrder {
    /// Name of the module.
    pub name: String,
    /// Its source.
    pub source: String,
}

/// PTX.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssemblyOrder {
    /// The text.
    pub ptx: String,
    /// Options of the assembler.
    pub options: Vec<String>,
}

/// The interpreter that loads what is built, as a process of it told before it knew a stranger's code; its
/// PyTorch is the toolchain's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonHost {
    /// Directories of `Python.h`.
    pub include: PathBuf,
    /// The standard that PyTorch's extensions are compiled by, e.g. `c++17`.
    pub standard: String,
    /// Macros that decide which interface PyTorch has.
    pub defines: Vec<String>,
    /// Version of CUDA that PyTorch is built for; `None`: for none.
    pub cuda: Option<String>,
    /// The device that it has: 10 × major + minor of its compute capability.
    pub arch: Option<u32>,
}

impl BuildOrder {
    /// What it makes, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Extension(_) => "extension",
            Self::Module(_) => "c",
            Self::Assembly(_) => "ptxas",
        }
    }

    /// Its name, as far as it has one.
    pub fn name(&self) -> &str {
        match self {
            Self::Extension(order) => &order.name,
            Self::Module(order) => &order.name,
            Self::Assembly(_) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_strictly() {
        let read = |text: &str| serde_json::from_str::<BuildOrder>(text).ok();
        let good = read(r#"{"ptxas": {"ptx": ".version 8.0", "options": []}}"#);
        assert!(matches!(good, Some(BuildOrder::Assembly(_))));
        for rubbish in [
            "[1]",
            r#"{"shell": {"command": "id"}}"#,
            r#"{"c": {"name": "x", "source": "", "flags": []}}"#,
        ] {
            assert_eq!(read(rubbish), None, "{rubbish}");
        }
    }
}
