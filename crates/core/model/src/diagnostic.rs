//! Messages of compilers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The compilation failed.
    Error,
    /// The compilation continued.
    Warning,
    /// A note that explains the preceding diagnostic.
    Note,
}

/// Message of a compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// File, as the compiler names it. The submitted source is `kernel.cu` or `kernel.py`. Null if the message has no
    /// file.
    #[schemars(extend("nullable" = true))]
    pub file: Option<String>,
    /// Line, from 1. Null if the message has no line.
    #[schemars(extend("nullable" = true))]
    pub line: Option<u32>,
    /// Column, from 1. Null if the message has no column.
    #[schemars(extend("nullable" = true))]
    pub column: Option<u32>,
    /// Text of the message.
    pub message: String,
}

impl Diagnostic {
    /// Returns a note without a place in the source.
    pub fn note(message: impl Into<String>) -> Self {
        let (file, line, column) = (None, None, None);
        Self { severity: Severity::Note, file, line, column, message: message.into() }
    }
}
