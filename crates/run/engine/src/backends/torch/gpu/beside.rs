//! Paired timing of candidate and reference, by the judge's clock, which neither side can
//! manipulate. A block has four turns, in the order ABBA or BAAB. The two turns of a pair have the
//! same inputs; if inputs vary, each pair gets new ones. All calls are locked, so that no call can
//! run before its turn. The candidate's results are verified here, too.
//!
//! The time to decrypt inputs and to hash results is deducted from both sides. The uncertainty of
//! that time limits the resolution of a measured time. If both sides return results of the same
//! sizes, they have the same overhead and this uncertainty cancels.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::batches::{Batches, Made, Quiet};
use super::expect::Expected;
use super::stage::{CallOrder, FEWEST_ROUGH};
use super::turn::{Overhead, Turn, WATCHING};
use crate::backends::torch::account::Phase;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::players::Seeds;
use crate::backends::torch::timing::median;
use warpgauge_statistics::paired::{
    Arm, BlockOrder, ComparePolicy, LookOutcome, MIN_BLOCKS_HOPELESS, PairedBlock,
    PairedComparison, PairedReason, PairedVerdict, decide_at_end, decide_at_look, is_hopeless,
};

/// Plan for timing candidate and reference in turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::backends::torch) struct SideBySide {
    pub policy: ComparePolicy,
    /// Time limit for all blocks.
    pub max_time: Duration,
    /// Whether candidate and reference allocate their memory anew before each block. A difference
    /// that depends on the location of memory then varies between blocks.
    pub relocates: bool,
}

/// Result of timing candidate and reference in turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::backends::torch) struct Compared {
    pub comparison: PairedComparison,
    /// Median times of the reference's and the candidate's calls, milliseconds.
    pub reference_ms: f64,
    pub candidate_ms: f64,
    /// Uncertainty of the difference of the times, milliseconds.
    pub resolution_ms: f64,
    /// Median time of the reference's calls in the same process after the candidate's process has
    /// ended, milliseconds.
    pub alone_ms: f64,
    /// Whether only one side's calls themselves wait for the device, so that only that side's times
    /// include work on the host.
    pub waits_differ: bool,
}

/// Number of turns of the reference after the candidate's process has ended.
const TURNS_ALONE: usize = 3;

/// One block, with its turns in chronological order.
struct Beside {
    order: BlockOrder,
    turns: [Turn; 4],
}

/// Times the candidate beside its only reference.
pub(super) struct Pairing {
    wanted: SideBySide,
    blocks: Vec<Beside>,
    /// Turns of the reference after the candidate's process has ended.
    alone: Vec<Turn>,
    /// Whether measuring stopped because more blocks could not have changed the verdict.
    hopeless: bool,
}

/// Overheads of the reference's and the candidate's calls.
#[derive(Debug, Clone, Copy)]
struct Overheads {
    of_arms: [Overhead; 2],
    /// Whether both sides return results of the same sizes, so that the overhead is the same.
    are_alike: bool,
}

impl Pairing {
    pub(super) fn new(wanted: SideBySide) -> Self {
        Self { wanted, blocks: Vec::new(), alone: Vec::new(), hopeless: false }
    }

    /// Returns the time limit for all blocks together.
    pub(super) fn max_time(&self) -> Duration {
        self.wanted.max_time
    }

    /// Measures blocks until the policy ends the comparison or the time limit is reached. `calls`
    /// is the number of calls that make a turn of the candidate long enough, and `most` the maximum
    /// number of calls in a turn.
    pub(super) fn run(
        &mut self,
        batches: &mut Batches<'_, '_>,
        seeds: Seeds,
        (calls, most): (u32, u32),
    ) -> Result<(), Stop> {
        let began = Instant::now();
        let mut calls = calls.clamp(1, most);
        // No block begins that would end too late if it took as long as the previous block.
        let mut block = Duration::ZERO;
        if !batches.is_large() {
            let Some((a, b)) = pair(batches, seeds, calls, Arm::A)? else { return Ok(()) };
            // Both sides make as many calls as the faster side needs.
            calls = a.calls_of_next().max(b.calls_of_next()).min(most);
            block = 2 * began.elapsed();
        }
        let mut overheads = None;
        let mut look = 0;
        while began.elapsed() + block < self.wanted.max_time {
            let begun = Instant::now();
            if self.wanted.relocates {
                batches.relocate(seeds, calls)?;
            }
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
            let is_look = looks.get(look).is_some_and(|at| self.blocks.len() >= *at as usize);
            if !is_look && self.blocks.len() != MIN_BLOCKS_HOPELESS {
                continue;
            }
            let overheads = match overheads {
                Some(overheads) => overheads,
                None => *overheads.insert(rough_overheads(batches, &self.blocks)?),
            };
            let policy = resolved(self.wanted.policy.clone(), overheads);
            let blocks = blocks(&self.blocks, overheads);
            if is_look && matches!(decide_at_look(&blocks, look, &policy), LookOutcome::Done(_)) {
                break;
            }
            self.hopeless = is_hopeless(&blocks, self.attainable(began.elapsed()), &policy);
            if self.hopeless {
                break;
            }
            look += usize::from(is_look);
        }
        Ok(())
    }

    /// Returns the number of blocks that the policy and the time allow, if further blocks take as
    /// long as those in `elapsed`.
    fn attainable(&self, elapsed: Duration) -> usize {
        let measured = self.blocks.len();
        let in_time =
            measured as f64 * self.wanted.max_time.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        let most = self.wanted.policy.looks.last().map_or(measured, |last| *last as usize);
        (in_time as usize).clamp(measured, most.max(measured))
    }

    /// Ends the candidate's process, and times the reference once more. Work that the candidate
    /// left running on the device can no longer slow the reference down.
    pub(super) fn run_alone(
        &mut self,
        batches: &mut Batches<'_, '_>,
        seeds: Seeds,
    ) -> Result<(), Stop> {
        let Some(block) = self.blocks.first() else { return Ok(()) };
        let calls = block.of_arm(Arm::A).map(|turn| turn.calls.len()).max().unwrap_or(1) as u32;
        batches.players.candidate.session.stop_for_good();
        for _ in 0..TURNS_ALONE {
            let seeds = batches.players.seeds_of(seeds, calls);
            let with = (&seeds[..], batches.drawn(&seeds)?);
            let Expected { mut turns, .. } = batches.expected(with, CallOrder::Locked)?;
            self.alone.extend(turns.pop().flatten());
        }
        Ok(())
    }

    /// Returns the turns of the candidate, in chronological order.
    pub(super) fn candidate_turns(&self) -> impl Iterator<Item = &Turn> {
        self.blocks.iter().flat_map(|block| block.of_arm(Arm::B))
    }

    /// Returns the verdict. The candidate must have stopped using the device. Returns `None` if no
    /// block was measured.
    pub(super) fn conclude(self, quiet: &mut Quiet<'_>) -> Result<Option<Compared>, Stop> {
        let Some(block) = self.blocks.first() else { return Ok(None) };
        let [a, b] = block.results();
        let of_arms = [quiet.overhead(a)?, quiet.overhead(b)?];
        let overheads = Overheads { of_arms, are_alike: a == b };
        let policy = resolved(self.wanted.policy, overheads);
        let blocks = blocks(&self.blocks, overheads);
        let alone = self.alone.iter().flat_map(|turn| turn.each_ms(overheads.of_arms[0]));
        let alone_ms = median(&alone.collect::<Vec<_>>());
        let of_arm = |arm: Arm| {
            let times = blocks.iter().flat_map(|block| block.slots(arm)).flatten();
            median(&times.copied().collect::<Vec<_>>())
        };
        let mut comparison = decide_at_end(&blocks, &policy);
        let is_open = comparison.verdict == PairedVerdict::Inconclusive;
        if self.hopeless && is_open {
            let follows = [PairedReason::EndedEarly, PairedReason::TooFewBlocks];
            comparison.reasons.retain(|reason| !follows.contains(reason));
            comparison.reasons.push(PairedReason::SpreadTooWide);
        }
        Ok(Some(Compared {
            reference_ms: of_arm(Arm::A),
            candidate_ms: of_arm(Arm::B),
            resolution_ms: policy.resolution_ms,
            alone_ms,
            waits_differ: quiet.waits_differ(),
            comparison,
        }))
    }
}

/// Measures the overheads of both sides' calls while runners also use the device. These values are
/// only used to decide when to stop.
fn rough_overheads(batches: &mut Batches<'_, '_>, measured: &[Beside]) -> Result<Overheads, Stop> {
    let [a, b] = measured.first().map_or([&[][..], &[]], Beside::results);
    let of_reference = batches.stage.overhead(a, FEWEST_ROUGH)?;
    let are_alike = a == b;
    let of_candidate =
        if are_alike { of_reference } else { batches.stage.overhead(b, FEWEST_ROUGH)? };
    batches.players.account.spent_on(Phase::Verifying);
    Ok(Overheads { of_arms: [of_reference, of_candidate], are_alike })
}

/// Runs one turn of each side with the same inputs. Returns the reference's turn, then the
/// candidate's. Returns `None` if results are on the host.
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
    /// Returns the sizes of the results of the reference's and the candidate's calls, in bytes.
    fn results(&self) -> [&[u64]; 2] {
        let of = |arm| self.of_arm(arm).next().map_or(&[][..], |turn| &turn.results);
        [of(Arm::A), of(Arm::B)]
    }

    fn of_arm(&self, arm: Arm) -> impl Iterator<Item = &Turn> {
        let turns = self.order.arms().into_iter().zip(&self.turns);
        turns.filter(move |(other, _)| *other == arm).map(|(_, turn)| turn)
    }
}

/// Minimum difference that a comparison reports, relative: twice the largest difference between two
/// processes with the same kernel. It was measured on 24 problems whose calls take at least 0.1 ms.
/// Each process has separate memory, at other addresses of the device.
const BETWEEN_PROCESSES: f64 = 0.015;

/// Sets the policy's resolution to the sum of both sides' uncertainties, because their errors may
/// have opposite signs. If the overheads are alike, their error is the same on both sides, and only
/// the polling time counts. Raises the policy's floor to [`BETWEEN_PROCESSES`].
fn resolved(policy: ComparePolicy, overheads: Overheads) -> ComparePolicy {
    let resolution_ms = match overheads.are_alike {
        true => WATCHING.as_secs_f64() * 1e3,
        false => overheads.of_arms.map(Overhead::resolution_ms).iter().sum(),
    };
    let floor = policy.floor.max(BETWEEN_PROCESSES);
    ComparePolicy { resolution_ms, floor, ..policy }
}

/// Converts turns to blocks of times without overhead.
fn blocks(beside: &[Beside], overheads: Overheads) -> Vec<PairedBlock> {
    let [a, b] = overheads.of_arms;
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
        let of_arms = [Overhead::of(vec![us(5)]), Overhead::of(vec![us(7)])];
        let overheads = Overheads { of_arms, are_alike: false };
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
        let alike = Overheads { are_alike: true, ..overheads };
        assert_eq!(resolved(ComparePolicy::default(), alike).resolution_ms, 0.001);
    }
}
