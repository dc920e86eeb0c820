//! The one place that knows the order of the stages.

mod analysed;
mod artifacts;
mod assemble;
mod baselines;
mod capabilities;
mod code_diffs;
mod compare;
mod compile_only;
mod decision;
mod error;
mod gate;
mod gate_service;
mod gated;
mod jobs;
mod linted;
mod measured;
mod monitored;
mod nested;
mod nsight;
mod prepare;
mod profile_plan;
mod profiled;
mod readiness;
mod recorded;
mod remembered;
mod room;
mod run;
mod run_dir;
mod sanitized;
mod service;
mod start;
mod statistics;
mod submission;
mod sweep;
mod swept;
mod timeline;
mod watched;

pub use artifacts::{ArtifactContent, ArtifactKind, ArtifactList, ArtifactView};
pub use baselines::Baselines;
pub use error::{Problem, ServiceError, chain as error_chain};
pub use gate_service::{GateService, HistoryQuery, MAX_HISTORY};
pub use readiness::Unready;
pub use remembered::stored_history;
pub use service::{CompileRequest, DeviceView, EvaluationService, ServiceStatus};
pub use start::{Pipeline, Role, program, toolchain_search};
pub use submission::{
    Answer, Caller, CleanupPolicy, JobEvents, JobQuery, JobRequest, Submission, SubmittedJob,
};
pub use sweep::{SweepEvent, SweepEvents};
