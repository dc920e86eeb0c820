//! The conditions of a measurement in words.

use warpgauge_model::CacheState;
use warpgauge_statistics::StopReason;

/// Returns the reason why the timed launches ended. `None` is a measurement without an end.
pub fn stopped(reason: Option<StopReason>) -> &'static str {
    reason.map_or("not finished", |reason| match reason {
        StopReason::Precise => "as precise as requested",
        StopReason::TrialsDone => "all requested launches",
        StopReason::TimeBudget => "out of time",
        StopReason::MaxTrials => "the maximum number of launches",
    })
}

/// Returns the state of the L2 cache before each launch.
pub fn cache(state: CacheState) -> &'static str {
    match state {
        CacheState::Cold => "L2 cold",
        CacheState::Hot => "L2 hot",
    }
}
