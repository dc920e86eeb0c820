//! The calls of the candidate that are timed: batches that events are round, and batches that the judge's clock is
//! round.

use std::time::{Duration, Instant};

use super::batches::{Batches, Quiet};
use super::turn::{Alone, HandOver, Turn};
use crate::backends::torch::fault::Stop;
use crate::backends::torch::player::Player;
use crate::backends::torch::players::Seeds;
use crate::backends::torch::timing::{Clocks, Plan, Timed};
use warpgauge_statistics::StopReason;
use warpgauge_torch::RunnerFault;

/// Calls of a batch that events are round.
const EVENTS: u32 = 32;

/// Batches that the judge's clock is round, and the calls of the first, which says how many the others need.
const BATCHES: usize = 3;
const PILOT: u32 = 8;

/// Fewest calls of them, where there is memory for their inputs: how long a call takes is the submission's
/// to say in the first.
const FEWEST: u32 = 16;

/// A batch that counts for the judge's clock.
struct Outside {
    turn: Turn,
    seeds: Vec<Option<u64>>,
}

/// Times the candidate by itself.
pub(super) struct DeviceTiming<'t> {
    timed: &'t mut Timed,
    idle: HandOver,
    /// Batches that count for the judge's clock.
    outside: Vec<Outside>,
}

impl<'t> DeviceTiming<'t> {
    pub(super) fn new(timed: &'t mut Timed, idle: HandOver) -> Self {
        Self { timed, idle, outside: Vec::new() }
    }

    /// Makes the calls that are timed, at most `most` in a batch, after some that are not.
    pub(super) fn run(
        &mut self,
        batches: &mut Batches<'_, '_>,
        plan: Plan,
        seeds: Seeds,
        most: u32,
    ) -> Result<(), Stop> {
        let began = Instant::now();
        let flushed = batches.stage.gpu.flush_bytes();
        self.timed.clocks = Some(Clocks {
            hand_over_ms: self.idle.0.as_secs_f64() * 1e3,
            flushed,
            warmup: 2 * most.min(PILOT),
            ..Clocks::default()
        });
        let plain = batches.players.seeds_of(seeds, most.min(PILOT));
        batches.make(&plain, 0, false)?;
        let pilot = outside(batches, seeds, most.min(PILOT))?;
        let calls = self.idle.calls_of(&pilot.turn).max(FEWEST).min(most);
        for done in 0..BATCHES {
            if done > 0 && began.elapsed() > plan.max_time / 2 {
                break;
            }
            self.outside.push(outside(batches, seeds, calls)?);
        }
        loop {
            let done = self.timed.clocks.as_ref().map_or(0, |clocks| clocks.inside_ms.len()) as u32;
            let all = done >= plan.trials;
            if all || done > 0 && began.elapsed() > plan.max_time {
                let why = if all { StopReason::TrialsDone } else { StopReason::TimeBudget };
                self.timed.stopped = Some(why);
                return Ok(());
            }
            let calls = (plan.trials - done).min(EVENTS).min(most);
            let inputs = batches.players.seeds_of(seeds, calls);
            let turn = batches.make(&inputs, flushed, false)?;
            self.take_events(&mut batches.players.candidate, turn.calls)?;
        }
    }

    /// What events say; values that cannot be are no times.
    fn take_events(&mut self, candidate: &mut Player, count: u32) -> Result<(), Stop> {
        let times = candidate.session.times();
        let times = times.map_err(|fault| candidate.stopped(false, fault))?;
        let usable = times.iter().all(|ms| ms.is_finite() && *ms > 0.0 && *ms < 1e7);
        if !usable || times.len() != count as usize {
            let fault = RunnerFault::Forged(format!("it tells of times that cannot be: {times:?}"));
            return Err(candidate.stopped(false, fault));
        }
        if let Some(clocks) = &mut self.timed.clocks {
            clocks.inside_ms.extend(times.iter().map(|ms| *ms as f32));
        }
        Ok(())
    }

    /// Calls of another batch that make it long enough.
    pub(super) fn long_enough(&self) -> u32 {
        self.outside.first().map_or(1, |batch| self.idle.calls_of(&batch.turn))
    }

    /// Whether anything was timed.
    pub(super) fn has_batches(&self) -> bool {
        !self.outside.is_empty()
    }

    /// What the judge's clock says: presenting inputs and copying results is deducted as long as it takes now, so
    /// that what it took longer is counted.
    pub(super) fn conclude(self, quiet: &mut Quiet<'_, '_>) -> Result<(), Stop> {
        let mut measured = Vec::new();
        for batch in &self.outside {
            measured.push(quiet.alone(&batch.seeds, &batch.turn.sizes)?);
        }
        let outside_ms = self.outside_ms(Alone::least(measured.into_iter()));
        if let (Some(clocks), Some(batch)) = (&mut self.timed.clocks, self.outside.first()) {
            clocks.batch = batch.turn.calls;
            clocks.outside_ms = outside_ms;
            self.timed.samples_ms = clocks.samples().to_vec();
        }
        Ok(())
    }

    fn outside_ms(&self, alone: Alone) -> Vec<f32> {
        let outside_ms = self.outside.iter().map(|Outside { turn, .. }| {
            let spent: Duration = turn.running + turn.excess(alone);
            // No kernel is to appear faster than it is.
            turn.each(spent.saturating_sub(self.idle.sure()))
        });
        outside_ms.collect()
    }
}

/// A batch for the judge's clock.
fn outside(batches: &mut Batches<'_, '_>, seeds: Seeds, calls: u32) -> Result<Outside, Stop> {
    let seeds = batches.players.seeds_of(seeds, calls);
    let turn = batches.make(&seeds, 0, false)?;
    Ok(Outside { turn, seeds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_left_running_beside_writing_and_copying_is_counted_as_the_calls_own() {
        let ms = Duration::from_millis;
        let turn = |presenting| Turn {
            calls: 10,
            presenting,
            running: ms(24),
            copying: ms(2),
            sizes: Vec::new(),
        };
        let outside = [ms(3), ms(13)]
            .map(|presenting| Outside { turn: turn(presenting), seeds: vec![None; 10] });
        let mut timed = Timed::default();
        let mut timing = DeviceTiming::new(&mut timed, HandOver(ms(4)));
        timing.outside.extend(outside);
        let alone = Alone { presenting: ms(3), copying: ms(2) };
        // Three quarters of handing over are sure.
        assert_eq!(timing.outside_ms(alone), [2.1, 3.1]);
    }
}
