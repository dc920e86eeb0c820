//! Errors that callers receive.
//!
//! - `api_error`: the error itself, and the one place that gives each its HTTP status
//! - `operation`: which errors an operation declares in the documents

mod api_error;
pub(crate) mod operation;

pub(crate) use api_error::{ApiError, JSON, framework_error};
pub use api_error::{ErrorBody, ErrorStatus, ValidationError};
