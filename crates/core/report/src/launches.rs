//! Wire types of the steps of a program of several launches. The main type is [`StepReport`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_statistics::Counted;

/// One step of `launches`, timed on its own after the program was timed as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepReport {
    /// Path of the step in the kernel, such as `launches[1].steps[0]`.
    pub step: String,
    /// Name of the kernel that it launches, or what it does otherwise, such as `memset hist`.
    pub action: String,
    /// Number of times that one run does it.
    pub count: u32,
    /// Median time of one, milliseconds. It has no gaps between launches, which are part of
    /// the runtime. Absent unless the program was timed and the step was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Time of all of one run together, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<f64>,
    /// What all of one run do together, by exact counts: on the emulated device, where it was counted, of a kernel that
    /// no other step launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}
