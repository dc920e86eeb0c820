//! Candidate and reference side by side, by the judge's clock, which neither of them can reach: blocks of four
//! batches, ABBA and BAAB in turn, each pair of batches with the same inputs, new for each pair. What the
//! candidate returns is verified here too.
//!
//! What handing a batch over takes is deducted from both sides. What is not known of it makes both seem a little
//! longer, so that a ratio lies a little nearer to one than it is.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::calls::{Made, Seeds};
use super::expect::Expected;
use super::shelf::Shelf;
use super::stage::{Alone, Stage, Turn};
use crate::torch::judge::{Judge, Stop};
use warpgauge_measure::paired::{
    Arm, BlockOrder, ComparePolicy, LookOutcome, PairedBlock, PairedComparison, decide_at_end,
    decide_at_look,
};

/// How both sides are timed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::torch) struct SideBySide {
    pub policy: ComparePolicy,
    /// Blocks end by then.
    pub max_time: Duration,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::torch) struct Compared {
    pub comparison: PairedComparison,
    /// Median of the reference's batches, one call, milliseconds.
    pub reference_ms: f64,
}

/// Share of a batch of the reference's that other work on the device may take, as writing and copying round it
/// show: a candidate that left some running would have the reference seem slow.
const DISTURBED: f64 = 0.02;

/// Times that writing and copying are done with nothing else on the device.
const MEASURED_ALONE: usize = 3;

/// One block: its turns in the order of time.
pub(super) struct Beside {
    order: BlockOrder,
    turns: [Turn; 4],
}

impl Judge {
    /// Measures blocks until they are enough, or the time is up.
    pub(super) fn side_by_side(
        &mut self,
        stage: &mut Stage<'_>,
        seeds: Seeds,
        most: u32,
    ) -> Result<(), Stop> {
        let Some(SideBySide { policy, max_time }) = self.beside.clone() else { return Ok(()) };
        if self.expectations.references.len() != 1 {
            return Ok(());
        }
        let began = Instant::now();
        // Both get as many calls as the one needs that is quicker.
        let pilot = stage.outside.first().map_or(1, |pilot| stage.calls_of(&pilot.turn));
        let (a, b) = self.pair(stage, seeds, pilot.clamp(1, most), Arm::A)?;
        let calls = stage.calls_of(&a).max(stage.calls_of(&b)).clamp(1, most);
        let policy = resolved(policy, stage.idle, calls);
        let mut look = 0;
        // No block is begun that would end too late if it took as long as the one before.
        let mut block = 2 * began.elapsed();
        while began.elapsed() + block < max_time {
            let begun = Instant::now();
            let order = BlockOrder::of_block(stage.beside.len());
            let [first, _, third, _] = order.arms();
            let (a1, b1) = self.pair(stage, seeds, calls, first)?;
            let (a2, b2) = self.pair(stage, seeds, calls, third)?;
            let turns = match order {
                BlockOrder::Abba => [a1, b1, b2, a2],
                BlockOrder::Baab => [b1, a1, a2, b2],
            };
            stage.beside.push(Beside { order, turns });
            block = begun.elapsed();
            if policy.looks.get(look).is_none_or(|at| stage.beside.len() < *at as usize) {
                continue;
            }
            // So far the least that was seen stands for a device that nobody else uses.
            let turns = stage.beside.iter().flat_map(|block| &block.turns);
            let alone = Alone::least(turns.map(|turn| (turn.presenting, turn.copying)));
            let blocks = blocks(&stage.beside, alone, stage.idle);
            if let LookOutcome::Done(_) = decide_at_look(&blocks, look, &policy) {
                break;
            }
            look += 1;
        }
        Ok(())
    }

    /// One batch of each side with the same inputs; what the reference took, and the candidate.
    fn pair(
        &mut self,
        stage: &mut Stage<'_>,
        seeds: Seeds,
        calls: u32,
        first: Arm,
    ) -> Result<(Turn, Turn), Stop> {
        let seeds = self.seeds_of(seeds, calls);
        let generator = self.drawn(stage, &seeds)?;
        let with = (&seeds[..], generator);
        let (made, expected) = match first {
            Arm::A => {
                let expected = self.expected_on(stage, with)?;
                (self.candidate_on(stage, with, 0)?, expected)
            }
            Arm::B => {
                let made = self.candidate_on(stage, with, 0)?;
                (made, self.expected_on(stage, with)?)
            }
        };
        let Made { turn, values } = made;
        let Expected { values: expected, mut turns } = expected;
        self.verify_batch(stage, (&values, &expected), &seeds, false)?;
        let reference = turns.pop();
        let reference =
            reference.ok_or_else(|| Stop::Broken("there is no reference to time".to_owned()))?;
        Ok((reference, turn))
    }

    /// The verdict, once nothing but the judge uses the device.
    pub(super) fn compare_sides(
        &mut self,
        stage: &mut Stage<'_>,
        spare: &mut Shelf,
    ) -> Result<(), Stop> {
        let (Some(beside), Some(block)) = (self.beside.clone(), stage.beside.first()) else {
            return Ok(());
        };
        let (calls, sizes) = (block.turns[0].calls, block.turns[0].sizes.clone());
        let mut measured = Vec::new();
        for _ in 0..MEASURED_ALONE {
            let seeds = (0..calls).map(|_| Some(self.seed())).collect::<Vec<_>>();
            measured.push(self.alone(stage, spare, &seeds, &sizes)?);
        }
        let alone = Alone::least(measured.into_iter());
        let policy = resolved(beside.policy, stage.idle, calls);
        let blocks = blocks(&stage.beside, alone, stage.idle);
        let mut of_reference: Vec<f32> =
            blocks.iter().flat_map(|block| &block.a).flatten().copied().collect();
        of_reference.sort_by(f32::total_cmp);
        let reference_ms = of_reference.get(of_reference.len() / 2).copied().unwrap_or_default();
        self.judged.compared = Some(Compared {
            comparison: decide_at_end(&blocks, &policy),
            reference_ms: reference_ms.into(),
        });
        Ok(())
    }
}

/// The rule, with what is not known of handing over as the resolution of a sample.
fn resolved(policy: ComparePolicy, idle: Duration, calls: u32) -> ComparePolicy {
    let resolution_ms = idle.as_secs_f64() * 1e3 / 4.0 / f64::from(calls.max(1));
    ComparePolicy { resolution_ms, ..policy }
}

/// What the turns took. What the candidate's took longer for writing and copying counts as its own; a turn of
/// the reference's that was disturbed has no time, and its block does not count.
fn blocks(beside: &[Beside], alone: Alone, idle: Duration) -> Vec<PairedBlock> {
    let time = |turn: &Turn, arm: Arm| {
        let (running, excess) = (turn.running.saturating_sub(idle), turn.excess(alone));
        match arm {
            Arm::A if excess > idle + running.mul_f64(DISTURBED) => Vec::new(),
            Arm::A => vec![turn.each(running)],
            Arm::B => vec![turn.each(running + excess)],
        }
    };
    let block = |Beside { order, turns }: &Beside| {
        let slots = |arm: Arm| {
            let of_arm = order.arms().into_iter().zip(turns).filter(|(other, _)| *other == arm);
            let mut times = of_arm.map(|(_, turn)| time(turn, arm));
            [times.next().unwrap_or_default(), times.next().unwrap_or_default()]
        };
        PairedBlock {
            order: *order,
            a: slots(Arm::A),
            b: slots(Arm::B),
            clock_hz: [None; 4],
            throttle_reasons: 0,
        }
    };
    beside.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn turn(running: Duration, presenting: Duration) -> Turn {
        Turn { calls: 10, presenting, running, copying: ms(1), sizes: Vec::new() }
    }

    #[test]
    fn a_candidate_pays_for_what_it_leaves_running_and_a_reference_does_not() {
        let alone = Alone { presenting: ms(2), copying: ms(1) };
        let quiet = |a: u64, b: u64| Beside {
            order: BlockOrder::Abba,
            turns: [(a, 2), (b, 2), (b, 2), (a, 2)].map(|(run, write)| turn(ms(run), ms(write))),
        };
        let made = blocks(&[quiet(21, 11)], alone, ms(1));
        assert_eq!(made[0].a, [vec![2.0], vec![2.0]]);
        assert_eq!(made[0].b, [vec![1.0], vec![1.0]]);
        // Work that goes on while inputs are written: of the candidate's, and within the reference's turn.
        let mut left = quiet(21, 11);
        left.turns[1].presenting = ms(12);
        left.turns[3].presenting = ms(12);
        let made = blocks(&[left], alone, ms(1));
        assert_eq!(made[0].b, [vec![2.0], vec![1.0]]);
        assert_eq!(made[0].a, [vec![2.0], vec![]]);
    }

    #[test]
    fn what_is_not_known_of_handing_over_widens_the_margin() {
        let policy = resolved(ComparePolicy::default(), ms(1), 128);
        let resolution_ms = 0.25 / 128.0;
        assert_eq!(policy.resolution_ms, resolution_ms);
        // A call that takes 32 times as long.
        assert_eq!(policy.margin_for(32.0 * resolution_ms), 1.0 / 32.0);
    }
}
