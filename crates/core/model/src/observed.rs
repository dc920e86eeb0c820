//! Observations of a device during launches: counts and monitoring.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::instructions::CountedInstruction;
use super::unavailable::Unavailable;

/// Counts of the emulator for one launch, or for all launches of a program of several launches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchCounts {
    /// Symbol of the kernel, or of the first kernel of several launches.
    pub kernel: String,
    /// Counts of each kernel, by symbol, for a program of several launches.
    pub kernels: BTreeMap<String, BTreeMap<String, u64>>,
    /// Version of the emulator.
    pub version: String,
    /// Counts by the emulator's names.
    pub counts: BTreeMap<String, u64>,
    /// Counts of each instruction, for all kernels together.
    #[serde(default)]
    pub instructions: Vec<CountedInstruction>,
}

/// Readings of the driver's performance monitoring of a GPU that ran a kernel repeatedly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MonitorFacts {
    /// Window in which the kernel ran.
    pub running: MonitorWindow,
    /// Window in which only the preparation of each launch ran; `None` if launches need no
    /// preparation.
    pub restoring: Option<MonitorWindow>,
    /// Time between the starts of successive launches of an empty kernel, seconds.
    pub empty_period_s: f64,
    /// Processes on the GPU that are not known to belong to this service.
    pub other_processes: Option<u32>,
    /// Reason why there are no values.
    pub unavailable: Option<Unavailable>,
}

/// Readings of a GPU over a time window in which the same work was queued repeatedly.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MonitorWindow {
    /// Percentages of the whole GPU, by the catalogue's names of the readings. All are finite.
    pub values: BTreeMap<String, f64>,
    /// Readings without a value, with the reason.
    pub missing: BTreeMap<String, String>,
    /// Length of the window, seconds.
    pub window_s: f64,
    /// Time of one repetition, seconds.
    pub period_s: f64,
    /// Number of repetitions in the window.
    pub repetitions: u64,
}
