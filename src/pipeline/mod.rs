//! The one place that knows the order of the stages.

mod assemble;
mod compare;
mod compile_only;
mod decision;
mod error;
mod jobs;
mod linted;
mod measured;
mod prepare;
mod profiled;
mod run;
mod sanitized;
mod service;
mod start;
mod sweep;
mod swept;

pub use error::{Problem, ServiceError, chain as error_chain};
pub use service::{CompileRequest, DeviceView, EvaluationService, ServiceStatus};
pub use start::{Pipeline, program, toolchain_search};
pub use sweep::{SweepEvent, SweepEvents};
