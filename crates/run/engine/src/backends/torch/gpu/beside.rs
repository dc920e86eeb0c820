//! Paired timing of candidate and reference, by the judge's clock, which neither side can reach. A block has
//! four turns, in the order ABBA or BAAB. The two turns of a pair have the same inputs; if inputs vary, each
//! pair gets new ones. All calls are locked, so that no call can run before its own turn. The candidate's
//! results are verified here too.
//!
//! The time to decrypt inputs and to hash results is deducted from both sides. The uncertainty of that time
//! is the resolution of a measured time.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::batches::{Batches, Made, Quiet};
use super::expect::Expected;
use super::stage::{CallOrder, FEWEST_ROUGH};
use super::turn::{Overhead, Turn};
use crate::backends::torch::account::Phase;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::players::Seeds;
use crate::backends::torch::timing::median;
use warpgauge_statistics::paired::{
    Arm, BlockOrder, ComparePolicy, LookOutcome, PairedBlock, PairedComparison, decide_at_end,
    decide_at_look,
};

/// How to time both sides.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::backends::torch) struct SideBySide {
    pub policy: ComparePolicy,
    /// Time limit for all blocks.
    pub max_time: Duration,
}

/// Result of the paired timing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::backends::torch) struct Compared {
    pub comparison: PairedComparison,
    /// Median times of the calls, milliseconds.
    pub reference_ms: f64,
    pub candidate_ms: f64,
    /// Uncertainty of the difference of the times, milliseconds.
    pub resolution_ms: f64,
}

/// One block, with its turns in chronological order.
struct Beside {
    order: BlockOrder,
    turns: [Turn; 4],
}

/// Times the candidate beside its only reference.
pub(super) struct Pairing {
    wanted: SideBySide,
    blocks: Vec<Beside>,
}

/// Overheads of the reference's and the candidate's calls.
type Overheads = [Overhead; 2];

impl Pairing {
    pub(super) fn new(wanted: SideBySide) -> Self {
        Self { wanted, blocks: Vec::new() }
    }

    /// Time limit for all blocks.
    pub(super) fn max_time(&self) -> Duration {
        self.wanted.max_time
    }

    /// Measures blocks until the policy stops or the time is up. `calls` is the number of calls in a turn of
    /// the candidate's that is long enough. `most` is the limit on calls in a turn.
    pub(super) fn run(
        &mut self,
        batches: &mut Batches<'_, '_>,
        seeds: Seeds,
        (calls, most): (u32, u32),
    ) -> Result<(), Stop> {
        let began = Instant::now();
        let Some((a, b)) = pair(batches, seeds, calls.clamp(1, most), Arm::A)? else {
            return Ok(());
        };
        // Both sides make as many calls as the faster one needs.
        let calls = a.calls_of_next().max(b.calls_of_next()).min(most);
        // These overheads only decide when to stop. They are measured again once no runner uses the device.
        let mut rough = |results: &[u64]| batches.stage.overhead(results, FEWEST_ROUGH);
        let overheads = [rough(&a.results)?, rough(&b.results)?];
        batches.players.account.spent_on(Phase::Verifying);
        let mut look = 0;
        // No block begins that would end too late if it took as long as the previous one.
        let mut block = 2 * began.elapsed();
        while began.elapsed() + block < self.wanted.max_time {
            let begun = Instant::now();
            let order = BlockOrder::of_block(self.blocks.len());
            let [first, _, third, _] = order.arms();
            let (Some((a1, b1)), Some((a2, b2))) =
                (pair(batches, seeds, calls, first)?, pair(batches, seeds, calls, third)?)
            else {
                self.blocks.clear();
                break;
            };
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
            let policy = resolved(self.wanted.policy.clone(), overheads);
            let blocks = blocks(&self.blocks, overheads);
            if let LookOutcome::Done(_) = decide_at_look(&blocks, look, &policy) {
                break;
            }
            look += 1;
        }
        Ok(())
    }

    /// Turns of the candidate, in chronological order.
    pub(super) fn candidate_turns(&self) -> impl Iterator<Item = &Turn> {
        self.blocks.iter().flat_map(|block| block.of_arm(Arm::B))
    }

    /// Returns the verdict, once only the judge uses the device. Returns `None` if no block was measured.
    pub(super) fn conclude(self, quiet: &mut Quiet<'_>) -> Result<Option<Compared>, Stop> {
        let Some(block) = self.blocks.first() else { return Ok(None) };
        let [a, b] = [Arm::A, Arm::B].map(|arm| block.of_arm(arm).next());
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        let overheads = [quiet.overhead(&a.results)?, quiet.overhead(&b.results)?];
        let policy = resolved(self.wanted.policy, overheads);
        let blocks = blocks(&self.blocks, overheads);
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

/// Runs one turn of each side with the same inputs, and returns the reference's and the candidate's. Returns
/// `None` if results lie on the host.
fn pair(
    batches: &mut Batches<'_, '_>,
    seeds: Seeds,
    calls: u32,
    first: Arm,
) -> Result<Option<(Turn, Turn)>, Stop> {
    let seeds = batches.players.seeds_of(seeds, calls);
    let with = (&seeds[..], batches.drawn(&seeds)?);
    let (made, expected) = match first {
        Arm::A => {
            let expected = batches.expected(with, CallOrder::Locked)?;
            (batches.candidate(with, CallOrder::Locked)?, expected)
        }
        Arm::B => {
            let made = batches.candidate(with, CallOrder::Locked)?;
            (made, batches.expected(with, CallOrder::Locked)?)
        }
    };
    let Made { turn, values } = made;
    let Expected { values: expected, mut turns } = expected;
    batches.verify(&values, &expected, &seeds, false)?;
    Ok(turns.pop().flatten().zip(turn))
}

impl Beside {
    fn of_arm(&self, arm: Arm) -> impl Iterator<Item = &Turn> {
        let turns = self.order.arms().into_iter().zip(&self.turns);
        turns.filter(move |(other, _)| *other == arm).map(|(_, turn)| turn)
    }
}

/// Twice the largest relative difference between two processes with the same kernel, in 24 problems whose
/// calls take at least 0.1 ms. Each process has its own memory, at other addresses of the device.
const BETWEEN_PROCESSES: f64 = 0.015;

/// Sets the policy's resolution to the sum of both sides' uncertainties, which may have opposite signs.
/// Raises its floor to [`BETWEEN_PROCESSES`].
fn resolved(policy: ComparePolicy, overheads: Overheads) -> ComparePolicy {
    let [a, b] = overheads.map(Overhead::resolution_ms);
    let floor = policy.floor.max(BETWEEN_PROCESSES);
    ComparePolicy { resolution_ms: a + b, floor, ..policy }
}

/// Converts turns to blocks of times without overhead.
fn blocks(beside: &[Beside], [a, b]: Overheads) -> Vec<PairedBlock> {
    let block = |block: &Beside| {
        let slots = |arm: Arm, overhead: Overhead| {
            let mut times = block.of_arm(arm).map(|turn| turn.each_ms(overhead));
            [times.next().unwrap_or_default(), times.next().unwrap_or_default()]
        };
        PairedBlock {
            order: block.order,
            a: slots(Arm::A, a),
            b: slots(Arm::B, b),
            clock_hz: [None; 4],
            throttle_reasons: 0,
        }
    };
    beside.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    #[test]
    fn each_side_s_overhead_is_deducted_from_its_calls_in_the_order_of_the_block() {
        let turn = |took| Turn { calls: vec![us(took)], results: Vec::new() };
        let overheads = [Overhead::of(vec![us(5)]), Overhead::of(vec![us(7)])];
        for order in [BlockOrder::Abba, BlockOrder::Baab] {
            let mut count = 0;
            let turns = order.arms().map(|arm| {
                count += 1;
                turn(count + if arm == Arm::A { 100 } else { 200 })
            });
            let made = blocks(&[Beside { order, turns }], overheads);
            let of_a = order.arms().map(|arm| arm == Arm::A);
            let at: Vec<f32> =
                (1..=4u8).zip(of_a).filter(|(_, is)| *is).map(|(at, _)| f32::from(at)).collect();
            let times: Vec<f32> = made[0].a.iter().flatten().map(|ms| (ms * 1e3).round()).collect();
            assert_eq!(times, [95.0 + at[0], 95.0 + at[1]]);
            assert_eq!(made[0].b.iter().flatten().count(), 2);
            assert!(made[0].b.iter().flatten().all(|ms| *ms > 0.193));
        }
        let policy = resolved(ComparePolicy::default(), overheads);
        assert_eq!(policy.resolution_ms, 0.002);
        assert_eq!(policy.margin_for(1.0), BETWEEN_PROCESSES);
    }
}
