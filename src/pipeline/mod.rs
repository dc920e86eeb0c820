//! The one place that knows the order of the stages.

mod error;
mod service;

pub use error::{Problem, ServiceError};
pub use service::{CompileRequest, DeviceView, EvaluationService, ServiceStatus};
