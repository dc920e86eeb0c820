//! Candidate and reference side by side, by the judge's clock, which neither of them can reach: blocks of four
//! batches, ABBA and BAAB in turn, each pair of batches with the same inputs, new for each pair. What the
//! candidate returns is verified here too.
//!
//! What handing a batch over takes is deducted from both sides; what is not known of it makes a ratio lie a
//! little nearer to one than it is. Writing inputs and copying results takes longer while three processes use
//! the device in turns than alone, by an amount that is not foreseen: what the reference's turns show of it is
//! allowed to both sides, and is the resolution of a time, since a candidate could make it so.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::batches::{Batches, Made, Quiet};
use super::expect::Expected;
use super::turn::{Alone, HandOver, Turn};
use crate::backends::torch::fault::Stop;
use crate::backends::torch::players::Seeds;
use crate::backends::torch::timing::median;
use warpgauge_statistics::paired::{
    Arm, BlockOrder, ComparePolicy, LookOutcome, PairedBlock, PairedComparison, decide_at_end,
    decide_at_look,
};

/// How both sides are timed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::backends::torch) struct SideBySide {
    pub policy: ComparePolicy,
    /// Blocks end by then.
    pub max_time: Duration,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::backends::torch) struct Compared {
    pub comparison: PairedComparison,
    /// Medians of the batches, one call, milliseconds.
    pub reference_ms: f64,
    pub candidate_ms: f64,
    /// What may be wrong with either, milliseconds.
    pub resolution_ms: f64,
}

/// How much longer writing and copying may take in a turn of the reference's than they mostly do, relative, and
/// in what handing over takes: a candidate that left work running would have the reference seem slow.
const DISTURBED: f64 = 0.5;

/// Times that writing and copying are done with nothing else on the device.
const MEASURED_ALONE: usize = 3;

/// One block: its turns in the order of time.
struct Beside {
    order: BlockOrder,
    turns: [Turn; 4],
}

/// Times the candidate beside its only reference.
pub(super) struct Pairing {
    wanted: SideBySide,
    idle: HandOver,
    blocks: Vec<Beside>,
}

impl Pairing {
    pub(super) fn new(wanted: SideBySide, idle: HandOver) -> Self {
        Self { wanted, idle, blocks: Vec::new() }
    }

    /// Measures blocks until they are enough, or the time is up. `pilot`: calls that make a batch of the candidate's
    /// long enough; `most`: as many as a batch may have.
    pub(super) fn run(
        &mut self,
        batches: &mut Batches<'_, '_>,
        seeds: Seeds,
        (pilot, most): (u32, u32),
    ) -> Result<(), Stop> {
        let began = Instant::now();
        // Both get as many calls as the one needs that is quicker.
        let (a, b) = pair(batches, seeds, pilot.clamp(1, most), Arm::A)?;
        let calls = self.idle.calls_of(&a).max(self.idle.calls_of(&b)).clamp(1, most);
        let mut look = 0;
        // No block is begun that would end too late if it took as long as the one before.
        let mut block = 2 * began.elapsed();
        while began.elapsed() + block < self.wanted.max_time {
            let begun = Instant::now();
            let order = BlockOrder::of_block(self.blocks.len());
            let [first, _, third, _] = order.arms();
            let (a1, b1) = pair(batches, seeds, calls, first)?;
            let (a2, b2) = pair(batches, seeds, calls, third)?;
            let turns = match order {
                BlockOrder::Abba => [a1, b1, b2, a2],
                BlockOrder::Baab => [b1, a1, a2, b2],
            };
            self.blocks.push(Beside { order, turns });
            block = begun.elapsed();
            let looks = &self.wanted.policy.looks;
            if looks.get(look).is_none_or(|at| self.blocks.len() < *at as usize) {
                continue;
            }
            if self.is_decided(look, calls) {
                break;
            }
            look += 1;
        }
        Ok(())
    }

    /// Whether the blocks so far are enough at a look.
    fn is_decided(&self, look: usize, calls: u32) -> bool {
        // So far the least that was seen stands for a device that nobody else uses.
        let turns = self.blocks.iter().flat_map(|block| &block.turns);
        let alone = Alone::least(turns.map(|turn| (turn.presenting, turn.copying)));
        let round = Round::of(&self.blocks, self.idle);
        let policy = round.resolved(self.wanted.policy.clone(), alone, calls);
        let blocks = blocks(&self.blocks, round);
        matches!(decide_at_look(&blocks, look, &policy), LookOutcome::Done(_))
    }

    /// The verdict, once nothing but the judge uses the device; none, where there was no time for a block.
    pub(super) fn conclude(self, quiet: &mut Quiet<'_, '_>) -> Result<Option<Compared>, Stop> {
        let Some(block) = self.blocks.first() else { return Ok(None) };
        let Turn { calls, sizes, .. } = &block.turns[0];
        let mut measured = Vec::new();
        for _ in 0..MEASURED_ALONE {
            let seeds = quiet.players.seeds_of(Seeds::Fresh, *calls);
            measured.push(quiet.alone(&seeds, sizes)?);
        }
        let alone = Alone::least(measured.into_iter());
        let round = Round::of(&self.blocks, self.idle);
        let policy = round.resolved(self.wanted.policy, alone, *calls);
        let blocks = blocks(&self.blocks, round);
        let of_arm = |arm: Arm| {
            let times = blocks.iter().flat_map(|block| block.slots(arm)).flatten();
            median(&times.copied().collect::<Vec<_>>())
        };
        Ok(Some(Compared {
            reference_ms: of_arm(Arm::A),
            candidate_ms: of_arm(Arm::B),
            resolution_ms: policy.resolution_ms,
            comparison: decide_at_end(&blocks, &policy),
        }))
    }
}

/// One batch of each side with the same inputs; what the reference took, and the candidate.
fn pair(
    batches: &mut Batches<'_, '_>,
    seeds: Seeds,
    calls: u32,
    first: Arm,
) -> Result<(Turn, Turn), Stop> {
    let seeds = batches.players.seeds_of(seeds, calls);
    let with = (&seeds[..], batches.drawn(&seeds)?);
    let (made, expected) = match first {
        Arm::A => {
            let expected = batches.expected(with)?;
            (batches.candidate(with, 0)?, expected)
        }
        Arm::B => {
            let made = batches.candidate(with, 0)?;
            (made, batches.expected(with)?)
        }
    };
    let Made { turn, values } = made;
    let Expected { values: expected, mut turns } = expected;
    batches.verify(&values, &expected, &seeds, false)?;
    let reference = turns.pop();
    let reference =
        reference.ok_or_else(|| Stop::Broken("there is no reference to time".to_owned()))?;
    Ok((reference, turn))
}

impl Beside {
    fn of_arm(&self, arm: Arm) -> impl Iterator<Item = &Turn> {
        let turns = self.order.arms().into_iter().zip(&self.turns);
        turns.filter(move |(other, _)| *other == arm).map(|(_, turn)| turn)
    }
}

/// What is round a batch.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// Handing it over.
    idle: HandOver,
    /// Writing its inputs and copying its results, as the reference's turns mostly show it.
    around: Duration,
}

impl Round {
    fn of(beside: &[Beside], idle: HandOver) -> Self {
        let turns = beside.iter().flat_map(|block| block.of_arm(Arm::A));
        let mut around: Vec<Duration> = turns.map(Turn::around).collect();
        around.sort();
        Self { idle, around: around.get(around.len() / 2).copied().unwrap_or_default() }
    }

    /// The rule, with what is not known of what is round a batch as the resolution of a time.
    fn resolved(&self, policy: ComparePolicy, alone: Alone, calls: u32) -> ComparePolicy {
        let unknown =
            self.idle.unsure() + self.around.saturating_sub(alone.presenting + alone.copying);
        let resolution_ms = unknown.as_secs_f64() * 1e3 / f64::from(calls.max(1));
        ComparePolicy { resolution_ms, ..policy }
    }

    /// What a turn took, one call in milliseconds. What the candidate's took longer for writing and copying than
    /// the reference's do counts as its own, and less as less; a turn of the reference's that was disturbed has
    /// no time.
    fn time(&self, turn: &Turn, arm: Arm) -> Option<f32> {
        let spent = turn.running.saturating_sub(self.idle.0);
        match arm {
            Arm::A => {
                let most = self.around + self.around.mul_f64(DISTURBED) + self.idle.0;
                (turn.around() <= most).then(|| turn.each(spent))
            }
            Arm::B => Some(turn.each((spent + turn.around()).saturating_sub(self.around))),
        }
    }
}

/// What the turns took, as blocks; one with a turn that has no time does not count.
fn blocks(beside: &[Beside], round: Round) -> Vec<PairedBlock> {
    let block = |block: &Beside| {
        let slots = |arm: Arm| {
            let mut times =
                block.of_arm(arm).map(|turn| round.time(turn, arm).into_iter().collect());
            [times.next().unwrap_or_default(), times.next().unwrap_or_default()]
        };
        PairedBlock {
            order: block.order,
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

    fn block(order: BlockOrder, a: u64, b: u64) -> Beside {
        let turns = order.arms().map(|arm| match arm {
            Arm::A => turn(ms(a), ms(3)),
            Arm::B => turn(ms(b), ms(3)),
        });
        Beside { order, turns }
    }

    #[test]
    fn a_candidate_pays_for_what_it_leaves_running_and_a_reference_does_not() {
        let round = Round::of(&[block(BlockOrder::Abba, 21, 11)], HandOver(ms(1)));
        assert_eq!(round.around, ms(4));
        for order in [BlockOrder::Abba, BlockOrder::Baab] {
            let made = blocks(&[block(order, 21, 11)], round);
            assert_eq!(made[0].a, [vec![2.0], vec![2.0]]);
            assert_eq!(made[0].b, [vec![1.0], vec![1.0]]);
        }
        // Work that goes on while inputs are written: of the candidate's, and within the reference's turn.
        let mut left = block(BlockOrder::Abba, 21, 11);
        left.turns[1].presenting = ms(13);
        left.turns[2].presenting = ms(2);
        left.turns[3].presenting = ms(13);
        let made = blocks(&[left], round);
        assert_eq!(made[0].b, [vec![2.0], vec![0.9]]);
        assert_eq!(made[0].a, [vec![2.0], vec![]]);
    }

    #[test]
    fn what_is_not_known_of_handing_over_widens_the_margin() {
        let round = Round { idle: HandOver(ms(4)), around: ms(8) };
        let alone = Alone { presenting: ms(4), copying: ms(1) };
        let policy = round.resolved(ComparePolicy::default(), alone, 64);
        assert_eq!(policy.resolution_ms, 4.0 / 64.0);
        // A call that takes 16 times as long.
        assert_eq!(policy.margin_for(1.0), 1.0 / 16.0);
    }
}
