//! Converts values to JSON. An error contains the name of the value.

use serde::Serialize;
use serde_json::Value;

use super::CliError;

/// Returns a value as JSON text. In an error, the value is called `what`.
pub(super) fn text(what: &str, value: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string(value).map_err(|error| failed(what, &error))
}

/// Returns a value as a JSON tree. In an error, the value is called `what`.
pub(super) fn tree(what: &str, value: &impl Serialize) -> Result<Value, CliError> {
    serde_json::to_value(value).map_err(|error| failed(what, &error))
}

fn failed(what: &str, error: &serde_json::Error) -> CliError {
    CliError::Internal(format!("{what} to JSON: {error}"))
}
