//! A Triton that can be used, or why there is none.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::types::PartOrigin;

/// A package of Python's that is looked for.
#[derive(Debug)]
pub(in super::super) struct Package {
    /// As Python imports it, and as `toolchain install --with` has it; our own environment for it has
    /// the same name.
    pub(in super::super) name: &'static str,
    /// As people write it.
    pub(in super::super) title: &'static str,
}

/// Triton.
pub(in super::super) const TRITON: Package = Package { name: "triton", title: "Triton" };

/// Triton with the interpreter that imports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TritonInstall {
    /// The Python interpreter that imports it, absolute (not resolved through a venv's symlink).
    pub python: PathBuf,
    /// Version of the interpreter, e.g. `3.11.7`.
    pub python_version: String,
    /// Directory that holds the package `triton`; whoever starts the interpreter puts it on `sys.path`.
    pub site_packages: PathBuf,
    /// Files and directories that the interpreter itself reads and executes.
    pub roots: Vec<PathBuf>,
    /// Version of Triton, e.g. `3.6.0`.
    pub version: String,
    /// Its assembler, for architectures below 10.0 where it has two.
    pub ptxas: PathBuf,
    /// Its assembler for architectures of 10.0 and later, where that is one apart.
    pub ptxas_blackwell: Option<PathBuf>,
    /// Whether PyTorch is installed beside it.
    pub torch: bool,
    /// Where it was found.
    pub source: PartOrigin,
}

impl TritonInstall {
    /// A program of NVIDIA's that the package brings, if it does.
    pub(in super::super) fn bundled(&self, name: &str) -> Option<PathBuf> {
        let path = programs(&self.site_packages).join(name);
        path.is_file().then_some(path)
    }
}

/// Where the package keeps NVIDIA's programs.
pub(super) fn programs(site_packages: &Path) -> PathBuf {
    site_packages.join("triton/backends/nvidia/bin")
}

/// Why there is no Triton to use, and what would help.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct NoTriton {
    /// The kind of reason.
    pub code: NoTritonCode,
    /// Why, in words.
    pub reason: String,
    /// What would help.
    pub remedy: String,
}

/// Kinds of reasons why there is no Triton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoTritonCode {
    /// No place that is looked at has one.
    NotFound,
    /// The interpreter that was named has none.
    NotInstalled,
    /// It is older or newer than what is supported.
    UnsupportedVersion,
    /// The interpreter is gone, does not start, hangs, or does not answer as Python does.
    Interpreter,
    /// Parts of the package are missing.
    Incomplete,
}

/// What brings a Triton that works.
pub(super) const INSTALL: &str = "`warpgauge toolchain install --with triton` gets one";

impl NoTriton {
    pub(super) fn new(
        code: NoTritonCode,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { code, reason: reason.into(), remedy: remedy.into() }
    }

    /// No place has one.
    pub(in super::super) fn not_found() -> Self {
        Self::new(
            NoTritonCode::NotFound,
            "Triton was not found",
            format!(
                "{INSTALL}, or name a Python that has the package `triton` in compile.python \
                 (WARPGAUGE_PYTHON)"
            ),
        )
    }

    /// An interpreter that cannot be asked.
    pub(super) fn interpreter(python: &Path, what: impl std::fmt::Display) -> Self {
        Self::new(
            NoTritonCode::Interpreter,
            format!("the Python interpreter {} {what}", python.display()),
            format!("name one that works in compile.python (WARPGAUGE_PYTHON), or {INSTALL}"),
        )
    }
}
