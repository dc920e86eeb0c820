//! Reasons why the server cannot evaluate anything.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why the server cannot evaluate anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unready {
    /// Stable code: `no_compiler`, `no_device`, `disk_full`, `read_only`, `files_unusable`, `database_gone`,
    /// `database_damaged`, `database_unreachable`, `database_busy`, `database_failed`, `checks_hang` or
    /// `shutting_down`.
    pub code: String,
    /// Description of the problem, with its place and a remedy.
    pub message: String,
}

impl Unready {
    /// Returns a reason with this stable code.
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }

    /// Returns the reason of a server that is shutting down.
    pub fn shutting_down() -> Self {
        Self::new(
            "shutting_down",
            "the server is shutting down; use another server, or try again \
                                    after the restart",
        )
    }
}
