//! Times of a device worker's phases.

use serde::{Deserialize, Serialize};

/// Times of a worker's phases, milliseconds of wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerTimings {
    /// Time of loading modules.
    pub load_ms: f64,
    /// Time of allocating and filling buffers.
    pub h2d_ms: f64,
    /// Time of launches: warm-up, trials, flushes, verification runs.
    pub execute_ms: f64,
    /// Part of `execute_ms` between events around every batch. It includes the time in which the
    /// device waits for the host to queue a launch.
    pub device_busy_ms: f64,
    /// Time of copying outputs back and hashing them.
    pub d2h_ms: f64,
    /// Time of checks: guard bands, inputs, reference kernels, comparisons.
    pub verify_ms: f64,
    /// Time of querying the management library for the state of the GPU.
    pub monitor_ms: f64,
    /// Time of scrubbing that delayed the answer. Always zero, because scrubbing follows the
    /// answer.
    pub scrub_ms: f64,
}
