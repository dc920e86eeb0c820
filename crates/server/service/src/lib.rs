//! The service: accepts jobs, stores them, runs them through an executor, and returns their
//! reports. It also stores baselines. The service does not depend on devices:
//! [`warpgauge_executor::Executor`] is the interface to them.

#![forbid(unsafe_code)]

mod admission;
mod artifacts;
mod compile;
mod error;
mod functions;
mod gate;
mod imports;
mod inputs;
mod jobs;
mod machine;
mod matrices;
mod readiness;
mod records;
mod run_dir;
mod services;
mod settings;
mod start;
mod statistics;
mod submission;
mod suites;
mod tensors;
mod turns;
pub mod webhook;

pub use artifacts::{ArtifactContent, ArtifactKind, ArtifactList, ArtifactService, ArtifactView};
pub use compile::CompileService;
pub use error::{ExecError, Problem, ServiceError, chain as error_chain};
pub use functions::FunctionService;
pub use gate::GateService;
pub use imports::{
    COMMAND as IMPORT_COMMAND, EARLIER_FIELD, ImportForm, ImportOrder, ImportRefusal,
    ImportService, NamedReport, REFUSED as IMPORT_REFUSED, REPORT_FIELD,
};
pub use jobs::{EvaluationService, JobService, stored_jobs};
pub use machine::{DeviceView, MachineService, ServiceStatus};
pub use matrices::{Extents, MatrixFile, MatrixFileFormat, MatrixService, Upload, WantedProduct};
pub use services::Services;
pub use settings::{ProcessRole, limits};
pub use start::{LocalService, Storage};
pub use submission::{
    Caller, CleanupPolicy, JobEvents, JobQuery, JobRequest, JobSubmission, ServiceFuture,
    SubmittedJob, SweepEvents,
};
pub use suites::{GateBaselines, HistoryQuery, MAX_HISTORY, stored_history};
pub use tensors::{
    PrepareHolders, TensorContent, TensorOptions, TensorService, TensorSource, TensorUpload,
};
