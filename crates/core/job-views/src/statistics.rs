//! Wire types of what the service has done so far.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the service has done since it started; of jobs, also what it remembers from before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceStatistics {
    /// Jobs that are kept.
    pub jobs: JobCounts,
    /// Compilations, those of reference kernels and of the service included.
    pub compilation: CompilationStatistics,
    /// Runs on devices.
    pub profiling: ProfilingStatistics,
    /// Devices.
    pub devices: DeviceStatistics,
    /// Jobs of this process.
    pub throughput: ThroughputStatistics,
}

/// Jobs that are kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobCounts {
    /// All of them.
    pub total: u64,
    /// By state.
    pub by_state: BTreeMap<String, u64>,
}

/// How long something took that happened more than once, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Durations {
    /// How often it happened.
    pub count: u64,
    /// Together.
    pub total_s: f64,
    /// Shortest; 0 if it never happened.
    pub min_s: f64,
    /// Longest.
    pub max_s: f64,
}

impl Durations {
    /// Mean, seconds; 0 if it never happened.
    pub fn mean_s(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total_s / self.count as f64 }
    }
}

/// Compilations, those of reference kernels and of the service included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompilationStatistics {
    /// Kernels that compiled, or were taken from the cache.
    pub successful: u64,
    /// Kernels that did not.
    pub failed: u64,
    /// Images that were found in the cache.
    pub cache_hits: u64,
    /// Images that were not.
    pub cache_misses: u64,
    /// How long they took.
    pub time: Durations,
}

/// Runs on devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilingStatistics {
    /// Runs that came to their end.
    pub successful: u64,
    /// Runs that did not: faults, and timeouts.
    pub failed: u64,
    /// Runs whose outputs were right.
    pub correct: u64,
    /// Runs whose outputs were wrong.
    pub wrong: u64,
    /// How long they took.
    pub time: Durations,
}

/// Devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceStatistics {
    /// Leases handed out.
    pub acquisitions: u64,
    /// Leases given back.
    pub releases: u64,
    /// How long jobs waited for a device.
    pub wait: Durations,
    /// Each device.
    pub devices: Vec<DeviceUse>,
}

/// How much a device was used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// CUDA ordinal.
    pub device: u32,
    /// Seconds for which jobs held it, or it was cleaned up after them; up to now.
    pub held_s: f64,
    /// Seconds of runs on it that have ended.
    pub run_s: f64,
    /// Whether a job holds it now.
    pub held_now: bool,
    /// `held_s` as a part of the time since the service started.
    pub utilization: f64,
}

/// Jobs of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputStatistics {
    /// Seconds since the service started.
    pub uptime_s: f64,
    /// Jobs accepted.
    pub total: u64,
    /// Jobs that came to a report.
    pub completed: u64,
    /// Jobs that ended otherwise.
    pub failed: u64,
    /// Jobs accepted in the last five minutes.
    pub recent: u64,
    /// From acceptance to the end.
    pub end_to_end: Durations,
}

/// What a clean-up removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupReport {
    /// Ended jobs removed, with their reports and artifacts.
    pub jobs: u64,
    /// Bytes of reports and artifacts removed.
    pub bytes: u64,
}
