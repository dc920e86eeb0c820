//! Errors of an installation, with remedies.

use std::path::{Path, PathBuf};

use super::pip::DOWNLOAD_TIMEOUT;

/// Reason why a part could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No wheels exist for this version of CUDA.
    #[error("there is no NVRTC wheel for CUDA {major}; choose 12 or 13")]
    Version {
        /// The requested major version of CUDA.
        major: u32,
    },
    /// The machine has no Python with pip.
    #[error(
        "no python3 with pip was found, which is needed to install the toolchain; install it (Debian: `apt \
         install python3-pip`), or install a CUDA toolkit and set CUDA_HOME"
    )]
    NoPip,
    /// The machine has no Python for which the package can be installed.
    #[error(
        "{packages} needs Python {range} with pip, {found}; install one (Debian: `apt install \
         python3 python3-pip`), or name a Python that has {title} in compile.python \
         (WARPGAUGE_PYTHON)"
    )]
    NoPythonFor {
        /// Display name of the package.
        title: &'static str,
        /// Packages to be installed.
        packages: String,
        /// Versions of Python for which wheels exist.
        range: String,
        /// Description of the unsuitable Python that was found.
        found: String,
    },
    /// The configuration names an interpreter. A package that this program installs would therefore
    /// not be used.
    #[error(
        "compile.python (WARPGAUGE_PYTHON) names {}, so only its {title} is used: install it \
         there (`{} -m pip install {packages}`), or leave that setting empty",
        python.display(), python.display()
    )]
    Named {
        python: PathBuf,
        /// Display name of the package.
        title: &'static str,
        /// Packages to be installed.
        packages: String,
    },
    /// pip failed to install the packages.
    #[error("pip could not install {packages}; {remedy}; it said: {log}")]
    Pip {
        /// Packages to be installed.
        packages: String,
        remedy: String,
        /// Last part of pip's output.
        log: String,
    },
    /// pip exceeded its time limit.
    #[error(
        "pip did not finish within {} s and was stopped; check the network, or set PIP_INDEX_URL to \
         a mirror, and install again",
        DOWNLOAD_TIMEOUT.as_secs()
    )]
    Timeout,
    /// A file operation failed.
    #[error("cannot {operation} {}", path.display())]
    Files {
        /// The operation that failed.
        operation: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The installed part does not work.
    #[error("the downloaded {part} does not work: {what}")]
    Broken {
        /// Name of the part.
        part: String,
        what: String,
    },
}

/// Returns a function that creates the error of a file operation.
pub(super) fn files<'p>(
    operation: &'static str,
    path: &'p Path,
) -> impl Fn(std::io::Error) -> InstallError + 'p {
    move |source| InstallError::Files { operation, path: path.to_owned(), source }
}
