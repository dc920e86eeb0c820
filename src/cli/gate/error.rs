//! Errors of the gate. The main type is [`GateError`].

use std::path::PathBuf;

use crate::cli::CliError;
use warpgauge_gate::report::RenderError;
use warpgauge_gate::{CalibrationError, SuiteError};

/// Reason why there is no verdict. None of these errors is a regression.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The suite cannot be read or is not valid.
    #[error("{}: {source}", path.display())]
    Suite {
        path: PathBuf,
        /// Problem that was found in the suite.
        source: Box<SuiteError>,
    },
    /// The calibration cannot be used.
    #[error("{}: {source}", path.display())]
    Calibration {
        path: PathBuf,
        /// Problem that was found in the calibration.
        source: Box<CalibrationError>,
    },
    /// The device, driver or method differs from that of the baseline or the calibration.
    #[error("{} against {baseline}: {message}", suite.display())]
    Conditions {
        suite: PathBuf,
        /// Name of the baseline on the command line.
        baseline: String,
        /// Description of the difference, with a remedy.
        message: String,
    },
    /// The run passed, but its candidate could not become the baseline.
    #[error(
        "the run passed, but its candidate did not become the baseline {name}; try again with \
         `warpgauge baselines promote {name} --job {job}{at}`"
    )]
    NotPromoted {
        /// Name of the baseline that was not replaced.
        name: String,
        /// Id of the run's job.
        job: String,
        /// ` --server URL`, or an empty text if the run was on this machine.
        at: String,
        /// Reason why the baseline was not replaced.
        source: Box<CliError>,
    },
    /// A file that a case needs does not exist.
    #[error(
        "case `{case}`: {} does not exist; paths are relative to the suite file", path.display()
    )]
    NoFile {
        /// Name of the case.
        case: String,
        /// The file that does not exist.
        path: PathBuf,
    },
    /// The name of a file does not show which kind of kernel it contains.
    #[error(
        "case `{case}`: {}: expected a kernel (.cu, .py, .ptx, .cubin, .fatbin)", path.display()
    )]
    NoKernel {
        /// Name of the case.
        case: String,
        /// The file with the kernel.
        path: PathBuf,
    },
    /// The contract is not a contract for a single evaluation.
    #[error("case `{case}`: {}: has no `kernel`; a case needs a contract as for `eval`",
        path.display())]
    NoContract {
        /// Name of the case.
        case: String,
        path: PathBuf,
    },
    /// Both a directory and a git ref have this name.
    #[error(
        "--baseline {name}: both a directory and a git ref have this name; write ./{name} for the \
         directory or refs/heads/{name} for the branch"
    )]
    Ambiguous { name: String },
    /// The name refers neither to a directory nor to a git ref.
    #[error(
        "--baseline {name}: neither a directory nor a git ref of {}: {message}; fetch it first \
         (in a shallow clone: `git fetch --depth 1 origin REF`)", repository.display()
    )]
    NoBaseline {
        /// The name that was not found.
        name: String,
        /// The repository in which the git ref was searched.
        repository: PathBuf,
        /// The message that git printed.
        message: String,
    },
    /// The suite is not in a git repository.
    #[error(
        "--baseline {name}: {} is not in a git repository ({message}); name a directory instead",
        suite.display()
    )]
    NoRepository {
        /// Name of the baseline on the command line.
        name: String,
        suite: PathBuf,
        /// The message that git printed.
        message: String,
    },
    /// A git command failed.
    #[error("git {operation} failed: {message}")]
    Git {
        /// The git command that failed.
        operation: &'static str,
        /// The message that git printed.
        message: String,
    },
    /// git cannot be started.
    #[error("could not start git; install it, or name a directory as baseline")]
    NoGit(#[source] std::io::Error),
    /// The comparison uses exact counts, which need no calibration.
    #[error(
        "counts on the emulated device are exact and need no calibration; run this command on the GPU \
         on which the gate will run"
    )]
    NothingToCalibrate,
    /// A case could not be measured against itself.
    #[error("case `{case}` could not be calibrated: {message}")]
    NotCalibrated {
        /// Name of the case.
        case: String,
        /// Reason for the failure.
        message: String,
    },
    /// A report cannot be rendered because of a bug.
    #[error(transparent)]
    Render(#[from] RenderError),
}
