//! What a device tells of launches while it runs them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::unavailable::Unavailable;

/// What the emulator counted in one launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchCounts {
    /// Symbol of the kernel.
    pub kernel: String,
    /// Version of the emulator.
    pub version: String,
    /// Counts by the emulator's names.
    pub counts: BTreeMap<String, u64>,
}

/// What the driver's monitoring told of a GPU on which a kernel ran again and again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MonitorFacts {
    /// The time in which the kernel ran.
    pub running: MonitorWindow,
    /// The time in which only that was done which must be done before each launch; `None`: nothing
    /// must be.
    pub restoring: Option<MonitorWindow>,
    /// From one launch to the next of a kernel that does nothing, seconds.
    pub empty_period_s: f64,
    /// Processes on the GPU that are not known to be this service's.
    pub other_processes: Option<u32>,
    /// Why there are no values at all.
    pub unavailable: Option<Unavailable>,
}

/// What a GPU did between two readings while the same was queued again and again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MonitorWindow {
    /// Percentages of the whole GPU, by the catalogue's names of the readings; finite.
    pub values: BTreeMap<String, f64>,
    /// Those without a value, and why.
    pub missing: BTreeMap<String, String>,
    /// Between the readings, seconds.
    pub window_s: f64,
    /// From one repetition to the next, seconds.
    pub period_s: f64,
    /// Repetitions that the time is the mean of.
    pub repetitions: u64,
}
