//! Errors that callers receive.
//!
//! - `api_error`: the error, and the mapping of each to its HTTP status
//! - `operation`: which errors an operation declares in the documents

mod api_error;
pub(crate) mod operation;

pub(crate) use api_error::{ApiError, JSON, framework_error};
pub use api_error::{ErrorBody, ErrorStatus, ValidationError};
