//! Values as JSON, with an error that names the value.

use serde::Serialize;
use serde_json::Value;

use super::CliError;

/// Returns the JSON text of a value. `what` names the value in the error.
pub(super) fn text(what: &str, value: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string(value).map_err(|error| failed(what, &error))
}

/// Returns the JSON tree of a value. `what` names the value in the error.
pub(super) fn tree(what: &str, value: &impl Serialize) -> Result<Value, CliError> {
    serde_json::to_value(value).map_err(|error| failed(what, &error))
}

fn failed(what: &str, error: &serde_json::Error) -> CliError {
    CliError::Internal(format!("{what} to JSON: {error}"))
}
