//! Build requests of a Python process, and facts about that process.

use std::path::PathBuf;

use serde::Deserialize;

/// A build request. The process that sends it runs submitted code, so only known fields are
/// accepted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub enum BuildOrder {
    /// A PyTorch extension, built from C++ and CUDA C++.
    #[serde(rename = "extension")]
    Extension(ExtensionOrder),
    /// A Python module, built from C as Triton does.
    #[serde(rename = "c")]
    Module(ModuleOrder),
    /// Machine code, assembled from PTX.
    #[serde(rename = "ptxas")]
    Assembly(AssemblyOrder),
}

/// Request for an extension: sources in the form of `load_inline`, and the caller's options.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtensionOrder {
    /// Name of the extension module.
    pub name: String,
    /// Content of the file `main.cpp`.
    pub cpp: String,
    /// Content of `cuda.cu`, if there is one.
    pub cuda: Option<String>,
    /// Options of g++.
    pub cflags: Vec<String>,
    /// Options of nvcc.
    pub cuda_cflags: Vec<String>,
    /// Options of the linker.
    pub ldflags: Vec<String>,
    /// Whether CUDA's headers and libraries are needed.
    pub with_cuda: bool,
}

/// Request for a Python module that is written in C.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleOrder {
    pub name: String,
    pub source: String,
}

/// Request to assemble a PTX text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssemblyOrder {
    pub ptx: String,
    /// Options of the assembler.
    pub options: Vec<String>,
}

/// The interpreter that loads the result. It reported these facts before it read any submitted
/// code. Its PyTorch is that of the toolchain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PythonHost {
    /// Directories that contain `Python.h`.
    pub include: PathBuf,
    /// C++ standard that PyTorch's extensions require, e.g. `c++17`.
    pub standard: String,
    /// Macros that select PyTorch's binary interface.
    pub defines: Vec<String>,
    /// Version of CUDA that PyTorch is built for; `None` if it is built for the CPU.
    pub cuda: Option<String>,
    /// The interpreter's device: 10 × major + minor of its compute capability.
    pub arch: Option<u32>,
}

impl BuildOrder {
    /// Returns the kind of the build, as one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Extension(_) => "extension",
            Self::Module(_) => "c",
            Self::Assembly(_) => "ptxas",
        }
    }

    /// Returns the name of the module. It is empty for machine code.
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
