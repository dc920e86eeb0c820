//! Timed calls of the candidate: locked calls by the judge's clock, and batches with events around
//! each call.

use std::time::{Duration, Instant};

use super::batches::{Batches, Quiet};
use super::turn::Turn;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::player::Player;
use crate::backends::torch::players::Seeds;
use crate::backends::torch::timing::{BRIEF, Clocks, Enough, Plan, Timed};
use warpgauge_statistics::{Sorted, StopReason};
use warpgauge_torch::RunnerFault;

/// Maximum number of calls of a batch that is timed with events.
const EVENTS: u32 = 32;

/// Number of large calls that are timed with events.
const EVENTS_OF_LARGE: u32 = 2;

/// Number of turns of locked calls, and number of calls in the first turn. The first turn shows how
/// many calls later turns need.
const TURNS: usize = 3;
const PILOT: u32 = 4;

/// Minimum number of timed calls if not all trials are required, and a relative half-width. Timing
/// stops when the confidence interval of the median is narrower. A call may take tens of
/// milliseconds with its inputs and its verification.
const LEAST: u32 = 12;
const PRECISE: f64 = 0.0025;

/// The same two numbers for large calls. Their further turns are those beside the reference.
const TURNS_OF_LARGE: usize = 1;
const PILOT_OF_LARGE: u32 = 1;

/// Times the candidate alone.
pub(super) struct DeviceTiming<'t> {
    timed: &'t mut Timed,
    turns: Vec<Turn>,
    began: Instant,
}

impl<'t> DeviceTiming<'t> {
    pub(super) fn new(timed: &'t mut Timed) -> Self {
        Self { timed, turns: Vec::new(), began: Instant::now() }
    }

    /// Makes the timed calls after some untimed calls. A batch has at most `most` calls.
    pub(super) fn run(
        &mut self,
        batches: &mut Batches<'_, '_>,
        plan: Plan,
        seeds: Seeds,
        most: u32,
    ) -> Result<(), Stop> {
        self.began = Instant::now();
        let flushed = batches.stage.gpu.flush_bytes();
        let large = batches.is_large();
        let (pilot, turns) = if large { (PILOT_OF_LARGE, TURNS_OF_LARGE) } else { (PILOT, TURNS) };
        let pilot = most.min(pilot);
        let mut clocks = Clocks { flushed, warmup: pilot, ..Clocks::default() };
        if !large {
            let plain = batches.players.seeds_of(seeds, pilot);
            batches.make(&plain, 0, false)?;
            clocks.warmup += pilot;
        }
        if batches.can_lock()
            && let Some(pilot) = locked(batches, seeds, pilot)?
        {
            let calls = pilot.calls_of_next().min(most);
            for done in 0..turns {
                if done > 0 && self.began.elapsed() > plan.max_time / 2 {
                    break;
                }
                self.turns.extend(locked(batches, seeds, calls)?);
            }
        }
        clocks.large = large && !self.turns.is_empty();
        let trials = if clocks.large { plan.trials.min(EVENTS_OF_LARGE) } else { plan.trials };
        self.timed.clocks = Some(clocks);
        loop {
            let done = self.timed.clocks.as_ref().map_or(0, |clocks| clocks.inside_ms.len()) as u32;
            let inside = self.timed.clocks.as_ref().map_or(&[][..], |clocks| &clocks.inside_ms);
            let seconds = inside.iter().map(|ms| f64::from(*ms) * 1e-3).collect();
            if let Some(why) = self.end(done, trials, plan, seconds) {
                self.timed.stopped = Some(why);
                return Ok(());
            }
            let calls = (trials - done).min(self.events_of(plan)).min(most);
            let inputs = batches.players.seeds_of(seeds, calls);
            batches.make(&inputs, flushed, false)?;
            self.take_events(&mut batches.players.candidate, calls)?;
        }
    }

    /// Completes the times of large calls, first with the candidate's turns beside the reference,
    /// and then with further turns.
    pub(super) fn complete<'b>(
        &mut self,
        batches: &mut Batches<'_, '_>,
        plan: Plan,
        seeds: Seeds,
        beside: impl Iterator<Item = &'b Turn>,
    ) -> Result<(), Stop> {
        if !self.timed.clocks.as_ref().is_some_and(|clocks| clocks.large) {
            return Ok(());
        }
        let calls = self.calls().unwrap_or(1);
        let mut beside = beside.cloned();
        loop {
            let done = self.turns.iter().map(|turn| turn.calls.len() as u32).sum();
            if done < plan.trials
                && let Some(turn) = beside.next()
            {
                self.turns.push(turn);
                continue;
            }
            let calls_so_far = self.turns.iter().flat_map(|turn| &turn.calls);
            let seconds = calls_so_far.map(Duration::as_secs_f64).collect();
            if let Some(why) = self.end(done, plan.trials, plan, seconds) {
                self.timed.stopped = Some(why);
                return Ok(());
            }
            let Some(turn) = locked(batches, seeds, calls.min(plan.trials - done))? else {
                // Results are now in host memory, so no further call can be locked.
                self.timed.stopped = Some(StopReason::MaxTrials);
                return Ok(());
            };
            self.turns.push(turn);
        }
    }

    /// Returns the number of calls of a batch that is timed with events. In a comparison, these
    /// calls take at most about [`BRIEF`].
    fn events_of(&self, plan: Plan) -> u32 {
        let longest = self.turns.iter().flat_map(|turn| &turn.calls).max();
        let fit = longest.map_or(EVENTS, |one| (BRIEF.as_nanos() / one.as_nanos().max(1)) as u32);
        if plan.enough == Enough::Brief { fit.clamp(LEAST, EVENTS) } else { EVENTS }
    }

    /// Returns the reason why timing ends after `done` of `trials` calls, which took `seconds`, or
    /// `None` if timing continues.
    fn end(&self, done: u32, trials: u32, plan: Plan, seconds: Vec<f64>) -> Option<StopReason> {
        let suffice = plan.enough != Enough::All && done >= LEAST;
        let most = if suffice && plan.enough == Enough::Brief { BRIEF } else { plan.max_time };
        if done >= trials {
            Some(StopReason::TrialsDone)
        } else if suffice && is_precise(&seconds) {
            Some(StopReason::Precise)
        } else {
            let is_late = done > 0 && self.began.elapsed() > most.min(plan.max_time);
            is_late.then_some(StopReason::TimeBudget)
        }
    }

    /// Reads the times from events from the runner. An implausible time counts as a fault of the
    /// runner.
    fn take_events(&mut self, candidate: &mut Player, count: u32) -> Result<(), Stop> {
        let times = candidate.session.times();
        let times = times.map_err(|fault| candidate.stopped(false, fault))?;
        let usable = times.iter().all(|ms| ms.is_finite() && *ms > 0.0 && *ms < 1e7);
        if !usable || times.len() != count as usize {
            let fault =
                RunnerFault::Forged(format!("its process reports impossible times: {times:?}"));
            return Err(candidate.stopped(false, fault));
        }
        if let Some(clocks) = &mut self.timed.clocks {
            clocks.inside_ms.extend(times.iter().map(|ms| *ms as f32));
        }
        Ok(())
    }

    /// Returns the number of calls in a turn of the candidate, or `None` if its calls cannot be
    /// locked.
    pub(super) fn calls(&self) -> Option<u32> {
        self.turns.first().map(|turn| turn.calls.len() as u32)
    }

    /// Computes the times by the judge's clock, after the candidate has stopped using the device.
    pub(super) fn conclude(self, quiet: &mut Quiet<'_>) -> Result<(), Stop> {
        let Some(clocks) = &mut self.timed.clocks else { return Ok(()) };
        clocks.waits = quiet.waits();
        if let Some(turn) = self.turns.first() {
            let overhead = quiet.overhead(&turn.results)?;
            clocks.calls = turn.calls.len() as u32;
            clocks.overhead_ms = overhead.median.as_secs_f64() * 1e3;
            clocks.resolution_ms = overhead.resolution_ms();
            clocks.outside_ms = self.turns.iter().flat_map(|turn| turn.each_ms(overhead)).collect();
        }
        self.timed.samples_ms = clocks.samples().to_vec();
        Ok(())
    }
}

/// Returns whether times determine their median precisely enough.
fn is_precise(times: &[f64]) -> bool {
    Sorted::new(times).is_some_and(|sorted| {
        let interval = sorted.median_ci95();
        interval.is_some_and(|(low, high)| high - low <= 2.0 * PRECISE * sorted.median())
    })
}

/// Runs and verifies a turn of locked calls. Returns `None` if results are on the host.
fn locked(batches: &mut Batches<'_, '_>, seeds: Seeds, calls: u32) -> Result<Option<Turn>, Stop> {
    let seeds = batches.players.seeds_of(seeds, calls);
    batches.make_locked(&seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(enough: Enough) -> Plan {
        Plan { trials: 100, max_time: Duration::from_secs(60), fresh: true, enough }
    }

    #[test]
    fn calls_end_where_they_show_the_median_or_in_a_comparison_where_they_take_long() {
        let mut timed = Timed::default();
        let mut timing = DeviceTiming::new(&mut timed);
        let alike = vec![1.0; 32];
        let varied = (0..32).map(|at| 1.0 + f64::from(at % 7)).collect::<Vec<_>>();
        let end = |timing: &DeviceTiming<'_>, enough, times: &[f64]| {
            timing.end(times.len() as u32, 100, plan(enough), times.to_vec())
        };
        assert_eq!(end(&timing, Enough::All, &alike), None);
        assert_eq!(end(&timing, Enough::Precise, &alike), Some(StopReason::Precise));
        assert_eq!(end(&timing, Enough::Precise, &alike[..11]), None);
        assert_eq!(end(&timing, Enough::Brief, &varied), None);
        timing.began = Instant::now().checked_sub(2 * BRIEF).expect("the machine started before");
        assert_eq!(end(&timing, Enough::Precise, &varied), None);
        assert_eq!(end(&timing, Enough::Brief, &varied), Some(StopReason::TimeBudget));
        assert_eq!(end(&timing, Enough::Brief, &varied[..11]), None);
        assert_eq!(end(&timing, Enough::Brief, &[1.0; 100]), Some(StopReason::TrialsDone));
    }

    #[test]
    fn a_batch_of_a_comparison_takes_no_longer_than_its_calls_may() {
        let mut timed = Timed::default();
        let mut timing = DeviceTiming::new(&mut timed);
        assert_eq!(timing.events_of(plan(Enough::Brief)), EVENTS);
        for (ms, calls) in [(1, EVENTS), (25, 20), (70, LEAST)] {
            let calls_of = Turn { calls: vec![Duration::from_millis(ms); 3], results: Vec::new() };
            timing.turns = vec![calls_of];
            assert_eq!(timing.events_of(plan(Enough::Brief)), calls, "{ms} ms");
            assert_eq!(timing.events_of(plan(Enough::All)), EVENTS);
        }
    }
}
