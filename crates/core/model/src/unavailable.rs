//! Reasons for missing data or capabilities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why something could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unavailable {
    /// Stable code, e.g. `no_permission`.
    pub code: String,
    /// What happened.
    pub reason: String,
    /// What would help.
    pub remedy: String,
}
