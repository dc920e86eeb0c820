//! Errors that callers receive.
//!
//! - `api_error`: the error type, and the HTTP status of each error
//! - `operation`: the errors that each operation declares in the documents

mod api_error;
pub(crate) mod operation;

pub(crate) use api_error::{ApiError, JSON, framework_error};
pub use api_error::{ErrorBody, ErrorStatus, ValidationError};
