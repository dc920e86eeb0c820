//! A usable installation of Triton, or the reason why there is none.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::types::PartOrigin;

/// A Python package to search for.
#[derive(Debug)]
pub(in super::super) struct Package {
    /// Name for Python's import statement and for `toolchain install --with`. It is also the name
    /// of the directory into which this program installs the package.
    pub(in super::super) name: &'static str,
    /// Name of the package in messages.
    pub(in super::super) title: &'static str,
}

pub(in super::super) const TRITON: Package = Package { name: "triton", title: "Triton" };

/// An installation of Triton, with the interpreter that imports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TritonInstall {
    /// Absolute path of the Python interpreter that imports Triton. The symbolic link of a virtual
    /// environment is not resolved.
    pub python: PathBuf,
    /// Version of the interpreter, e.g. `3.11.7`.
    pub python_version: String,
    /// Directory that contains the package `triton`. The process that starts the interpreter adds
    /// the directory to `sys.path`.
    pub site_packages: PathBuf,
    /// Files and directories that the interpreter itself reads and executes.
    pub roots: Vec<PathBuf>,
    /// Version of Triton, e.g. `3.6.0`.
    pub version: String,
    /// Path of the assembler for compute capabilities below 10.0, or for all if there is only one.
    pub ptxas: PathBuf,
    /// Path of the assembler for compute capability 10.0 and later, if it is a separate program.
    pub ptxas_blackwell: Option<PathBuf>,
    /// Whether PyTorch is installed beside Triton.
    pub torch: bool,
    /// Where Triton was found.
    pub source: PartOrigin,
}

impl TritonInstall {
    /// Returns the path of an NVIDIA program in the package, or `None` if the package does not
    /// contain it.
    pub(in super::super) fn bundled(&self, name: &str) -> Option<PathBuf> {
        let path = programs(&self.site_packages).join(name);
        path.is_file().then_some(path)
    }
}

/// Returns the directory of NVIDIA's programs in the package.
pub(super) fn programs(site_packages: &Path) -> PathBuf {
    site_packages.join("triton/backends/nvidia/bin")
}

/// Reason why there is no usable Triton, and a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct NoTriton {
    pub code: NoTritonCode,
    pub reason: String,
    pub remedy: String,
}

/// Kinds of reasons why there is no usable Triton.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoTritonCode {
    /// Triton was not found anywhere.
    NotFound,
    /// The configured interpreter has no Triton.
    NotInstalled,
    /// The version is older or newer than the supported ones.
    UnsupportedVersion,
    /// The interpreter does not exist, does not start, hangs, or does not answer like Python.
    Interpreter,
    /// Parts of the package are missing.
    Incomplete,
}

/// Remedy that installs a usable Triton.
pub(super) const INSTALL: &str = "`warpgauge toolchain install --with triton` installs one";

impl NoTriton {
    pub(super) fn new(
        code: NoTritonCode,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { code, reason: reason.into(), remedy: remedy.into() }
    }

    /// Returns the error for the case that Triton was found nowhere.
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

    /// Returns the error for an interpreter that cannot be queried.
    pub(super) fn interpreter(python: &Path, what: impl std::fmt::Display) -> Self {
        Self::new(
            NoTritonCode::Interpreter,
            format!("the Python interpreter {} {what}", python.display()),
            format!("name one that works in compile.python (WARPGAUGE_PYTHON), or {INSTALL}"),
        )
    }
}
