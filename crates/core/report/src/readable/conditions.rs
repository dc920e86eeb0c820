//! The conditions of a measurement in words.

use warpgauge_model::CacheState;
use warpgauge_statistics::StopReason;

/// Returns why the timed launches ended. `None`: they did not.
pub fn stopped(reason: Option<StopReason>) -> &'static str {
    reason.map_or("not finished", |reason| match reason {
        StopReason::Precise => "as precise as asked",
        StopReason::TrialsDone => "the trials asked for",
        StopReason::TimeBudget => "out of time",
        StopReason::MaxTrials => "the most trials there are",
    })
}

/// Returns the state of the L2 cache before each launch.
pub fn cache(state: CacheState) -> &'static str {
    match state {
        CacheState::Cold => "L2 cold",
        CacheState::Hot => "L2 hot",
    }
}
