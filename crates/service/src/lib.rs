//! The service: accepting jobs, keeping them, having an executor carry them out, and telling of them;
//! baselines and their owners. It knows no devices: [`warpgauge_executor::Executor`] is the seam.

#![forbid(unsafe_code)]

mod artifacts;
mod baselines;
mod error;
#[cfg(test)]
mod executors_tests;
mod functions;
mod gate_jobs;
mod gate_service;
mod history;
mod jobs;
mod matrices;
mod matrix_files;
mod matrix_products;
mod matrix_uploads;
mod named_matrices;
mod readiness;
mod run_dir;
mod service;
mod shared;
mod start;
mod statistics;
mod submission;
mod sweep;
mod tensors;

pub use artifacts::{ArtifactContent, ArtifactKind, ArtifactList, ArtifactView};
pub use baselines::Baselines;
pub use error::{Problem, ServiceError, chain as error_chain};
pub use functions::FunctionService;
pub use gate_service::{GateService, HistoryQuery, MAX_HISTORY};
pub use history::stored_history;
pub use matrices::{Extents, MatrixService, Upload, WantedProduct};
pub use matrix_files::{MatrixFile, MatrixFileFormat};
pub use service::{CompileRequest, DeviceView, EvaluationService, ServiceStatus};
pub use start::{LocalService, PrepareHolders, Role, Storage, limits};
pub use submission::{
    Answer, Caller, CleanupPolicy, JobEvents, JobQuery, JobRequest, Submission, SubmittedJob,
};
pub use sweep::{SweepEvent, SweepEvents};
pub use tensors::{TensorContent, TensorOptions, TensorService, TensorSource, TensorUpload};
