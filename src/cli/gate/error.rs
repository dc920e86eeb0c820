//! Errors of the gate: [`GateError`].

use std::path::PathBuf;

use crate::cli::CliError;
use warpgauge_gate::report::RenderError;
use warpgauge_gate::{CalibrationError, SuiteError};

/// Reason for a missing verdict. None of these errors is a regression.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The suite cannot be read or is not valid.
    #[error("{}: {source}", path.display())]
    Suite {
        /// The file.
        path: PathBuf,
        /// Problem of the suite.
        source: Box<SuiteError>,
    },
    /// The calibration cannot be used.
    #[error("{}: {source}", path.display())]
    Calibration {
        /// The file.
        path: PathBuf,
        /// Problem of the calibration.
        source: Box<CalibrationError>,
    },
    /// The device, driver or method differs from that of the baseline or the calibration.
    #[error("{} against {baseline}: {message}", suite.display())]
    Conditions {
        /// The suite.
        suite: PathBuf,
        /// The baseline's name on the command line.
        baseline: String,
        /// Difference, and remedy.
        message: String,
    },
    /// The run passed, but its candidate could not become the baseline.
    #[error(
        "the run passed, but its candidate did not become the baseline {name}; try again with \
         `warpgauge baselines promote {name} --job {job}{at}`"
    )]
    NotPromoted {
        /// The baseline's name.
        name: String,
        /// Id of the run's job.
        job: String,
        /// ` --server URL`, or empty.
        at: String,
        /// Why not.
        source: Box<CliError>,
    },
    /// A file of a case does not exist.
    #[error(
        "case `{case}`: {} does not exist; paths are relative to the suite file", path.display()
    )]
    NoFile {
        /// The case.
        case: String,
        /// The file.
        path: PathBuf,
    },
    /// The name of a kernel file does not show its kind.
    #[error(
        "case `{case}`: {}: expected a kernel (.cu, .py, .ptx, .cubin, .fatbin)", path.display()
    )]
    NoKernel {
        /// The case.
        case: String,
        /// The file.
        path: PathBuf,
    },
    /// The contract is not that of a single evaluation.
    #[error("case `{case}`: {}: has no `kernel`; a case needs a contract as for `eval`",
        path.display())]
    NoContract {
        /// The case.
        case: String,
        /// The file.
        path: PathBuf,
    },
    /// Both a directory and a git ref have this name.
    #[error(
        "--baseline {name}: both a directory and a git ref have this name; write ./{name} for the \
         directory or refs/heads/{name} for the branch"
    )]
    Ambiguous {
        /// The name.
        name: String,
    },
    /// The name is neither a directory nor a git ref.
    #[error(
        "--baseline {name}: neither a directory nor a git ref of {}: {message}; fetch it first \
         (in a shallow clone: `git fetch --depth 1 origin REF`)", repository.display()
    )]
    NoBaseline {
        /// The name.
        name: String,
        /// The repository that git searched.
        repository: PathBuf,
        /// The message of git.
        message: String,
    },
    /// The suite is not in a git repository.
    #[error(
        "--baseline {name}: {} is not in a git repository ({message}); name a directory instead",
        suite.display()
    )]
    NoRepository {
        /// The baseline's name on the command line.
        name: String,
        /// The suite.
        suite: PathBuf,
        /// The message of git.
        message: String,
    },
    /// git failed.
    #[error("git {operation} failed: {message}")]
    Git {
        /// The git command.
        operation: &'static str,
        /// The message of git.
        message: String,
    },
    /// git cannot be started.
    #[error("could not start git; install it, or name a directory as baseline")]
    NoGit(#[source] std::io::Error),
    /// The comparison uses counts, which need no calibration.
    #[error(
        "counts on the emulated device are exact and need no calibration; run this command on the GPU \
         on which the gate will run"
    )]
    NothingToCalibrate,
    /// A case could not be measured against itself.
    #[error("case `{case}` could not be calibrated: {message}")]
    NotCalibrated {
        /// The case.
        case: String,
        /// Why not.
        message: String,
    },
    /// A report cannot be rendered because of a bug.
    #[error(transparent)]
    Render(#[from] RenderError),
}
