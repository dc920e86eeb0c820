//! Wire types of statistics about the service.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statistics of the service since its start. The counts of stored jobs include earlier jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceStatistics {
    /// Stored jobs.
    pub jobs: JobCounts,
    /// Compilations, including those of reference kernels and of the service's own kernels.
    pub compilation: CompilationStatistics,
    /// Runs on devices.
    pub profiling: ProfilingStatistics,
    /// Use of the devices.
    pub devices: DeviceStatistics,
    /// Jobs that this process accepted.
    pub throughput: ThroughputStatistics,
}

/// Numbers of stored jobs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobCounts {
    /// Number of all stored jobs.
    pub total: u64,
    /// Number of stored jobs by state.
    pub by_state: BTreeMap<String, u64>,
}

/// Durations of one kind of event, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Durations {
    /// Number of events.
    pub count: u64,
    /// Sum of the durations.
    pub total_s: f64,
    /// Shortest duration; 0 if there were no events.
    pub min_s: f64,
    /// Longest duration; 0 if there were no events.
    pub max_s: f64,
}

impl Durations {
    /// Returns the mean in seconds, or 0 if `count` is 0.
    pub fn mean_s(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total_s / self.count as f64 }
    }
}

/// Compilations, including those of reference kernels and of the service's own kernels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompilationStatistics {
    /// Number of kernels that compiled or came from the cache.
    pub successful: u64,
    /// Number of kernels that did not compile.
    pub failed: u64,
    /// Number of images that came from the cache.
    pub cache_hits: u64,
    /// Number of images that were not in the cache.
    pub cache_misses: u64,
    /// Durations of compilations.
    pub time: Durations,
}

/// Runs on devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProfilingStatistics {
    /// Number of runs that reached their end.
    pub successful: u64,
    /// Number of runs that ended with a fault or a timeout.
    pub failed: u64,
    /// Number of runs whose outputs were correct.
    pub correct: u64,
    /// Number of runs whose outputs were wrong.
    pub wrong: u64,
    /// Durations of runs.
    pub time: Durations,
}

/// Use of the devices.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceStatistics {
    /// Number of device leases that began.
    pub acquisitions: u64,
    /// Number of device leases that ended.
    pub releases: u64,
    /// Durations of jobs' waits for a device.
    pub wait: Durations,
    /// Use of each device.
    pub devices: Vec<DeviceUse>,
}

/// Use of one device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceUse {
    /// CUDA ordinal.
    pub device: u32,
    /// Time in which jobs held the device, including the clean-up after them and the current lease, seconds.
    pub held_s: f64,
    /// Total time of the runs that have ended on the device, seconds.
    pub run_s: f64,
    /// Whether a job holds the device now.
    pub held_now: bool,
    /// `held_s` divided by the uptime, 0–1.
    pub utilization: f64,
}

/// Jobs that this process accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputStatistics {
    /// Time since the start of the service, seconds.
    pub uptime_s: f64,
    /// Number of accepted jobs.
    pub total: u64,
    /// Number of jobs that ended with a report.
    pub completed: u64,
    /// Number of jobs that ended without a report.
    pub failed: u64,
    /// Number of jobs accepted in the last five minutes.
    pub recent: u64,
    /// Durations from acceptance to the end.
    pub end_to_end: Durations,
}

/// Result of a clean-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupReport {
    /// Number of removed jobs, with their reports and artifacts.
    pub jobs: u64,
    /// Size of removed reports and artifacts, bytes.
    pub bytes: u64,
}
