//! Mistakes in a contract that could be parsed. The main type is [`ContractError`].

use std::fmt;

use serde::Serialize;

use warpgauge_model::FailureCode;

/// One mistake in a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContractError {
    /// Path of the field, e.g. `kernel.io.args[0].tensor_spec.dtype`.
    pub path: String,
    /// Stable code, e.g. `out_of_range`, `unsupported_kernel_type`, `size_mismatch`.
    pub code: FailureCode,
    /// The expected and the actual value, and a remedy.
    pub message: String,
}

impl fmt::Display for ContractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl std::error::Error for ContractError {}

/// Longest quotation of the caller's text in a message, characters.
const MAX_QUOTE: usize = 80;

/// Returns the caller's text for a message: truncated, and without control characters.
pub(super) fn quoted(text: &str) -> String {
    let mut short: String = text
        .chars()
        .take(MAX_QUOTE)
        .map(|c| if warpgauge_model::is_hidden(c) { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(MAX_QUOTE).is_some() {
        short.push('…');
    }
    short
}

/// Collects mistakes up to a limit.
#[derive(Debug)]
pub(super) struct Mistakes {
    found: Vec<ContractError>,
    limit: usize,
}

impl Mistakes {
    pub(super) fn new(limit: usize) -> Self {
        Self { found: Vec::new(), limit: limit.max(1) }
    }

    /// Returns whether the limit is reached, so that no more checks are necessary.
    pub(super) fn full(&self) -> bool {
        self.found.len() >= self.limit
    }

    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    pub(super) fn any(&self) -> bool {
        !self.found.is_empty()
    }

    pub(super) fn add(
        &mut self,
        path: impl Into<String>,
        code: FailureCode,
        message: impl Into<String>,
    ) {
        if !self.full() {
            let (path, message) = (path.into(), message.into());
            self.found.push(ContractError { path, code, message });
        }
    }

    /// Adds a mistake unless `fine` is true.
    pub(super) fn require(
        &mut self,
        fine: bool,
        path: impl Into<String>,
        code: FailureCode,
        message: impl FnOnce() -> String,
    ) {
        if !fine {
            self.add(path, code, message());
        }
    }

    pub(super) fn into_result(self) -> Result<(), Vec<ContractError>> {
        if self.found.is_empty() { Ok(()) } else { Err(self.found) }
    }
}
