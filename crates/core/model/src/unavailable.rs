//! Reasons for missing data or capabilities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why something is not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unavailable {
    /// Stable code, e.g. `no_permission`.
    pub code: String,
    /// Description of the reason.
    pub reason: String,
    /// Remedy.
    pub remedy: String,
}
