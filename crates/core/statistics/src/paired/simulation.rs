//! Simulated comparisons: tests of the guarantees of verdicts on four kinds of machine.
//!
//! A trial takes e^x milliseconds. Here x is the sum of the effect of the arm, the placement of its
//! buffers (drawn for each block and arm), slow drift, an effect of the slot, and noise of the
//! trial. 1 % of trials are spikes. The standard deviations are assumptions, to be replaced by
//! measured ones.

use super::*;
use crate::random::RandomStream;

/// Relative standard deviations of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Regime {
    name: &'static str,
    trial: f64,
    drift: f64,
    slot: f64,
    placement: f64,
}

const QUIET: Regime =
    Regime { name: "quiet", trial: 0.003, drift: 0.005, slot: 0.001, placement: 0.001 };
pub(super) const TYPICAL: Regime =
    Regime { name: "typical", trial: 0.01, drift: 0.01, slot: 0.003, placement: 0.002 };
const SHORT: Regime =
    Regime { name: "short", trial: 0.03, drift: 0.01, slot: 0.005, placement: 0.003 };
const HOT: Regime = Regime { name: "hot", trial: 0.01, drift: 0.04, slot: 0.005, placement: 0.003 };

/// Number of slots after which drift is no longer correlated with its earlier value.
const DRIFT_SLOTS: f64 = 400.0;
const TRIALS_PER_SLOT: usize = 5;

/// Simulated machine that measures block after block.
struct Machine {
    regime: Regime,
    random: RandomStream,
    drift: f64,
    blocks: Vec<PairedBlock>,
}

impl Machine {
    fn new(regime: Regime, seed: u64) -> Self {
        let mut random = RandomStream::new(seed);
        let drift = regime.drift * random.normal();
        Self { regime, random, drift, blocks: Vec::new() }
    }

    fn slot(&mut self, centre: f64) -> Vec<f32> {
        let Regime { trial, drift, slot, .. } = self.regime;
        self.drift +=
            -self.drift / DRIFT_SLOTS + drift * (2.0 / DRIFT_SLOTS).sqrt() * self.random.normal();
        let centre = centre + self.drift + slot * self.random.normal();
        (0..TRIALS_PER_SLOT)
            .map(|_| {
                let spike = if self.random.uniform() < 0.01 { self.random.uniform() } else { 0.0 };
                (centre + trial * self.random.normal() + spike).exp() as f32
            })
            .collect()
    }

    /// Measures until there are `count` blocks. The candidate takes `effect` times as long as the
    /// reference.
    fn measure(&mut self, count: usize, effect: f64) {
        while self.blocks.len() < count {
            let order = BlockOrder::of_block(self.blocks.len());
            let a = self.regime.placement * self.random.normal();
            let b = self.regime.placement * self.random.normal() + effect.ln();
            let mut slots = order.arms().map(|arm| match arm {
                Arm::A => (Arm::A, self.slot(a)),
                Arm::B => (Arm::B, self.slot(b)),
            });
            slots.sort_by_key(|(arm, _)| *arm == Arm::B);
            let [(_, a0), (_, a1), (_, b0), (_, b1)] = slots;
            let clock_hz = [(); 4].map(|()| Some(1.98e9 * (1.0 + 0.001 * self.random.normal())));
            self.blocks.push(PairedBlock {
                order,
                a: [a0, a1],
                b: [b0, b1],
                clock_hz,
                throttle_reasons: 0,
            });
        }
    }
}

/// Runs a whole comparison.
pub(super) fn compare_with(
    regime: Regime,
    effect: f64,
    seed: u64,
    policy: &ComparePolicy,
) -> PairedComparison {
    let mut machine = Machine::new(regime, seed);
    let mut look = 0;
    loop {
        machine.measure(policy.looks[look] as usize, effect);
        match decide_at_look(&machine.blocks, look, policy) {
            LookOutcome::Continue { next_look } => {
                look += 1;
                assert_eq!(next_look, policy.looks[look]);
            }
            LookOutcome::Done(comparison) => return *comparison,
        }
    }
}

/// Runs a whole comparison under the default policy.
pub(super) fn compare(regime: Regime, effect: f64, seed: u64) -> PairedComparison {
    compare_with(regime, effect, seed, &ComparePolicy::default())
}

/// Returns the shares of the verdicts faster, slower, same and inconclusive.
fn shares(regime: Regime, effect: f64, runs: u64, policy: &ComparePolicy) -> [f64; 4] {
    let mut counts = [0.0; 4];
    for seed in 0..runs {
        let verdict = compare_with(regime, effect, seed * 4 + 1, policy).verdict;
        counts[verdict as usize] += 1.0 / runs as f64;
    }
    counts
}

#[test]
fn a_kernel_against_itself_is_the_same() {
    for regime in [QUIET, TYPICAL, SHORT, HOT] {
        let [faster, slower, same, _] = shares(regime, 1.0, 300, &ComparePolicy::default());
        assert!(faster + slower <= 0.01, "{}: {faster} {slower}", regime.name);
        assert!(same >= 0.95, "{}: {same}", regime.name);
    }
}

#[test]
fn an_early_look_calls_no_kernel_that_is_the_same() {
    let early = ComparePolicy::default().with_early_look();
    for regime in [QUIET, TYPICAL, SHORT, HOT] {
        let [faster, slower, same, _] = shares(regime, 1.0, 600, &early);
        assert!(faster + slower <= 0.01, "{}: {faster} {slower}", regime.name);
        assert!(same >= 0.95, "{}: {same}", regime.name);
        let [_, slower, ..] = shares(regime, 1.02, 200, &early);
        assert!(slower >= 0.95, "{}: slower {slower}", regime.name);
        let [_, slower, ..] = shares(regime, 1.005, 400, &early);
        assert!(slower <= 0.025, "{}: {slower}", regime.name);
    }
}

#[test]
fn two_percent_is_caught_by_the_last_look() {
    for regime in [QUIET, TYPICAL, SHORT, HOT] {
        let [_, slower, ..] = shares(regime, 1.02, 200, &ComparePolicy::default());
        assert!(slower >= 0.95, "{}: slower {slower}", regime.name);
        let [faster, ..] = shares(regime, 1.0 / 1.02, 100, &ComparePolicy::default());
        assert!(faster >= 0.95, "{}: faster {faster}", regime.name);
    }
}

#[test]
fn five_percent_is_caught_at_the_first_look() {
    let first = ComparePolicy { looks: vec![16], alpha: 0.0025, ..ComparePolicy::default() };
    for regime in [QUIET, TYPICAL, SHORT, HOT] {
        let [_, slower, ..] = shares(regime, 1.05, 200, &first);
        assert!(slower >= 0.95, "{}: {slower}", regime.name);
    }
}

#[test]
fn without_the_margin_the_level_is_kept() {
    // The hypothesis is true at its boundary. An effect of exactly the margin is reported at most
    // as often as α says, even with few blocks, and with rejection and merging of blocks.
    for regime in [TYPICAL, SHORT] {
        let [_, slower, ..] = shares(regime, 1.005, 400, &ComparePolicy::default());
        // The limit is 1 % plus three standard deviations of 400 runs.
        assert!(slower <= 0.025, "{}: {slower}", regime.name);
    }
}

#[test]
fn exchanging_the_arms_exchanges_the_verdict() {
    for (seed, effect) in [(1, 1.05), (2, 1.0), (3, 0.95)] {
        let mut machine = Machine::new(TYPICAL, seed);
        machine.measure(32, effect);
        let mirrored: Vec<PairedBlock> = machine
            .blocks
            .iter()
            .map(|block| PairedBlock {
                order: match block.order {
                    BlockOrder::Abba => BlockOrder::Baab,
                    BlockOrder::Baab => BlockOrder::Abba,
                },
                a: block.b.clone(),
                b: block.a.clone(),
                ..block.clone()
            })
            .collect();
        let policy = ComparePolicy::default();
        let (one, other) = (conclude(&machine.blocks, &policy), conclude(&mirrored, &policy));
        let swapped = match one.verdict {
            PairedVerdict::Faster => PairedVerdict::Slower,
            PairedVerdict::Slower => PairedVerdict::Faster,
            verdict => verdict,
        };
        assert_eq!((other.verdict, other.dropped), (swapped, one.dropped));
        assert!((one.speedup.unwrap() * other.speedup.unwrap() - 1.0).abs() < 1e-9);
    }
}
