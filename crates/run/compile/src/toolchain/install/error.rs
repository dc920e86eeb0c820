//! Why a part could not be installed, and what to do.

use std::path::{Path, PathBuf};

use super::pip::DOWNLOAD_TIMEOUT;

/// Why a part could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There are no wheels of this version.
    #[error("there is no NVRTC wheel for CUDA {major}; choose 12 or 13")]
    Version {
        /// What was asked for.
        major: u32,
    },
    /// No Python with pip.
    #[error(
        "no python3 with pip was found, which brings the toolchain; install it (Debian: `apt \
         install python3-pip`), or install a CUDA toolkit and set CUDA_HOME"
    )]
    NoPip,
    /// No Python that a package can be installed for.
    #[error(
        "{packages} needs Python {range} with pip, {found}; install one (Debian: `apt install \
         python3 python3-pip`), or name a Python that has {title} in compile.python \
         (WARPGAUGE_PYTHON)"
    )]
    NoPythonFor {
        /// The package, as people write it.
        title: &'static str,
        /// What was to be installed.
        packages: String,
        /// Versions of Python that there are wheels for.
        range: String,
        /// What was found in place of it.
        found: String,
    },
    /// The configuration names an interpreter, so what would be installed would not be used.
    #[error(
        "compile.python (WARPGAUGE_PYTHON) names {}, whose {title} is used and no other: install it \
         there (`{} -m pip install {packages}`), or leave that setting empty",
        python.display(), python.display()
    )]
    Named {
        /// The interpreter.
        python: PathBuf,
        /// The package, as people write it.
        title: &'static str,
        /// What was to be installed.
        packages: String,
    },
    /// pip failed.
    #[error("pip could not install {packages}; {remedy}; it said: {log}")]
    Pip {
        /// What it was to install.
        packages: String,
        /// What to do.
        remedy: String,
        /// End of its output.
        log: String,
    },
    /// pip took too long.
    #[error(
        "pip did not finish within {} s and was stopped; check the network, or set PIP_INDEX_URL to \
         a mirror, and install again",
        DOWNLOAD_TIMEOUT.as_secs()
    )]
    Timeout,
    /// A file operation failed.
    #[error("cannot {operation} {}", path.display())]
    Files {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What was installed does not work.
    #[error("the downloaded {part} does not work: {what}")]
    Broken {
        /// Which part.
        part: String,
        /// Why.
        what: String,
    },
}

/// Makes the error of a file operation.
pub(super) fn files<'p>(
    operation: &'static str,
    path: &'p Path,
) -> impl Fn(std::io::Error) -> InstallError + 'p {
    move |source| InstallError::Files { operation, path: path.to_owned(), source }
}
