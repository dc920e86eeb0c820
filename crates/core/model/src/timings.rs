//! Where a device worker's time went.

use serde::{Deserialize, Serialize};

/// Where a worker's time went, milliseconds of wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerTimings {
    /// Loading modules.
    pub load_ms: f64,
    /// Allocating and filling buffers.
    pub h2d_ms: f64,
    /// Launches: warm-up, trials, flushes, verification runs.
    pub execute_ms: f64,
    /// Part of `execute_ms` between events around every batch. The device waits in it for the host
    /// where a launch must not begin before it is queued.
    pub device_busy_ms: f64,
    /// Copying outputs back and hashing them.
    pub d2h_ms: f64,
    /// Verifying: guard bands, inputs, reference kernels, comparisons.
    pub verify_ms: f64,
    /// Asking the management library how the GPU is.
    pub monitor_ms: f64,
    /// Scrubbing that the answer waited for: none, it happens after the answer was sent.
    pub scrub_ms: f64,
}
