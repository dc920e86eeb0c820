//! Accounting of an order's time. Every moment belongs to one phase.

use std::time::{Duration, Instant};

use warpgauge_report::Timings;

/// Phase of an order in the judge process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Reading the order, taking over its runners, and loading the judge's kernels.
    Starting,
    /// Running sources, creating modules, and giving both sides the same parameters.
    Loading,
    /// Generating inputs, and writing them to the memory from which the calls read.
    Presenting,
    /// Calls of the candidate, from the start message to the answer.
    Executing,
    /// The reference's calls, and all comparisons of results.
    Verifying,
    /// Observing calls with a tool.
    Profiling,
    /// Building the report, including the encoding of outputs.
    Reporting,
}

const PHASES: usize = Phase::Reporting as usize + 1;

/// Time spent in each phase of an order so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    since: Instant,
    spent: [Duration; PHASES],
}

impl Account {
    /// Starts the accounting at the current time.
    pub(super) fn begun() -> Self {
        Self { since: Instant::now(), spent: [Duration::ZERO; PHASES] }
    }

    /// Attributes the time since the last call of this function to a phase.
    pub(super) fn spent_on(&mut self, phase: Phase) {
        let now = Instant::now();
        self.spent[phase as usize] += now - self.since;
        self.since = now;
    }

    /// Returns the phases as entries of a report, in milliseconds.
    pub(super) fn timings(&self) -> Timings {
        let of = |phase: Phase| self.spent[phase as usize].as_secs_f64() * 1e3;
        Timings {
            start: of(Phase::Starting),
            load: of(Phase::Loading),
            h2d: of(Phase::Presenting),
            execute: of(Phase::Executing),
            verify: of(Phase::Verifying),
            profile: of(Phase::Profiling),
            report: of(Phase::Reporting),
            ..Timings::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_belongs_to_one_phase() {
        let began = Instant::now();
        let mut account = Account::begun();
        for phase in [Phase::Starting, Phase::Verifying, Phase::Executing, Phase::Verifying] {
            account.spent_on(phase);
        }
        let timings = account.timings();
        let most = began.elapsed().as_secs_f64() * 1e3;
        assert!(timings.named() <= most, "{timings:?}");
        let whole: Duration = account.spent.iter().sum();
        assert!((timings.named() - whole.as_secs_f64() * 1e3).abs() < 1e-9);
        assert_eq!(timings.load, 0.0);
    }
}
