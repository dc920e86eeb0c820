//! Wire types of a launch, and of the steps of a program of several launches. The main type is
//! [`StepReport`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_statistics::Counted;

/// Launch of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LaunchReport {
    /// Number of blocks along x, y and z.
    pub grid: [u32; 3],
    /// Number of threads per block along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, bytes.
    pub shared_bytes: u32,
    /// Number of blocks per cluster along x, y and z. Absent without clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// Whether the whole grid is resident at once (a cooperative launch).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cooperative: bool,
}

/// Step of `launches`, timed separately after the whole program was timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepReport {
    /// Path of the step in the kernel, e.g. `launches[1].steps[0]`.
    pub step: String,
    /// Name of the kernel that the step launches, or another action, e.g. `memset hist`.
    pub action: String,
    /// Number of times that one run of the program executes the step.
    pub count: u32,
    /// Median time of one execution, milliseconds. It excludes gaps between launches, which are part of the runtime.
    /// Absent unless the program was timed and the step was executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Time of all executions in one run, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<f64>,
    /// Exact counts of all executions in one run. Present only on the emulated device, if no other step launches the
    /// same kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}
