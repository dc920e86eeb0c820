//! States of a job, and the only table of its allowed transitions.

use warpgauge_model::JobState;

/// All states, in the order of a job's life. The index of a state is also the index of its column
/// in the table of counts.
pub const STATES: [JobState; 9] = [
    JobState::Submitted,
    JobState::Queued,
    JobState::Compiling,
    JobState::Validating,
    JobState::Profiling,
    JobState::Completed,
    JobState::Failed,
    JobState::Cancelled,
    JobState::TimedOut,
];

/// Returns the name of a state, in the database and on the wire.
pub fn name(state: JobState) -> &'static str {
    match state {
        JobState::Submitted => "submitted",
        JobState::Queued => "queued",
        JobState::Compiling => "compiling",
        JobState::Validating => "validating",
        JobState::Profiling => "profiling",
        JobState::Completed => "completed",
        JobState::Failed => "failed",
        JobState::Cancelled => "cancelled",
        JobState::TimedOut => "timed_out",
    }
}

/// Returns the state with this name.
pub fn parse(text: &str) -> Option<JobState> {
    STATES.into_iter().find(|state| name(*state) == text)
}

/// Returns the index of a state in [`STATES`].
pub(super) fn index(state: JobState) -> usize {
    STATES.iter().position(|other| *other == state).unwrap_or(0)
}

/// Returns whether a job in this state has ended. Its state then never changes again.
pub fn has_ended(state: JobState) -> bool {
    use JobState::{Cancelled, Completed, Failed, TimedOut};
    matches!(state, Completed | Failed | Cancelled | TimedOut)
}

/// Returns whether a job may change from one state to another.
///
/// Work proceeds from compiling to validating and profiling, which may alternate any number of
/// times (as in a comparison). A job is `queued` whenever it needs a compiler or a device that is
/// not free. A lost lease returns every job that has not ended to `queued`. An ended job keeps its
/// state.
pub fn may_follow(from: JobState, to: JobState) -> bool {
    use JobState::{
        Cancelled, Compiling, Completed, Failed, Profiling, Queued, Submitted, TimedOut, Validating,
    };
    match (from, to) {
        (Completed | Failed | Cancelled | TimedOut, _) | (_, Submitted) => false,
        (_, Failed | Cancelled | TimedOut) => true,
        (Submitted | Compiling | Validating | Profiling, Queued) => true,
        (Queued, Queued) => false,
        (Submitted | Queued | Validating | Profiling, Compiling) => true,
        (Compiling, Compiling) => false,
        (Queued | Compiling | Profiling, Validating) => true,
        (Submitted | Validating, Validating) => false,
        (Queued | Compiling | Validating, Profiling) => true,
        (Submitted | Profiling, Profiling) => false,
        // A job that only compiles ends without a device.
        (Compiling | Validating | Profiling, Completed) => true,
        // A job that did no work has no result.
        (Submitted | Queued, Completed) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same table as a picture: rows from, columns to, both in the order of [`STATES`].
    const PICTURE: [&str; 9] = [
        // s q c v p | c f x t
        ".11000111", // submitted
        ".01110111", // queued
        ".10111111", // compiling
        ".11011111", // validating
        ".11101111", // profiling
        ".00000000", // completed
        ".00000000", // failed
        ".00000000", // cancelled
        ".00000000", // timed_out
    ];

    #[test]
    fn every_pair_is_as_drawn() {
        for (row, from) in STATES.into_iter().enumerate() {
            for (column, to) in STATES.into_iter().enumerate() {
                let drawn = PICTURE[row].as_bytes()[column] == b'1';
                assert_eq!(may_follow(from, to), drawn, "{} -> {}", name(from), name(to));
            }
        }
    }

    #[test]
    fn what_ended_stays_and_the_rest_can_end() {
        for state in STATES {
            let ways = STATES.into_iter().filter(|to| may_follow(state, *to)).count();
            assert_eq!(ways == 0, has_ended(state));
            assert_eq!(may_follow(state, JobState::Cancelled), !has_ended(state));
            assert_eq!(parse(name(state)), Some(state));
            assert_eq!(STATES[index(state)], state);
        }
        assert_eq!(parse("Completed"), None);
    }
}
