//! Messages of compilers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Compilation failed.
    Error,
    /// It went on.
    Warning,
    /// Explains the one before.
    Note,
}

/// One message of a compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// File as the compiler named it; the submitted source is `kernel.cu`, or `kernel.py`.
    #[schemars(extend("nullable" = true))]
    pub file: Option<String>,
    /// Line, from 1.
    #[schemars(extend("nullable" = true))]
    pub line: Option<u32>,
    /// Column, from 1.
    #[schemars(extend("nullable" = true))]
    pub column: Option<u32>,
    /// What it says.
    pub message: String,
}

impl Diagnostic {
    /// Returns a note without a place in the source.
    pub fn note(message: impl Into<String>) -> Self {
        let (file, line, column) = (None, None, None);
        Self { severity: Severity::Note, file, line, column, message: message.into() }
    }
}
