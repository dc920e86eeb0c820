//! Simulates whole suites with the noise of an H200. The tests show how often unchanged kernels
//! fail, and how often a kernel that is 2 % slower is detected.
//!
//! The standard deviation of a block is that of ten kernels of 4 µs to 1.5 ms. Each is the median
//! over 30 comparisons of the kernel with itself, from the raw data of docs/measurement.md.

use std::collections::BTreeMap;
use std::io::Read;

use super::{
    CaseEvidence, CasePolicy, CaseSpec, GateMetric, GateOutcome, MeasuredCase, OnInconclusive,
    OnMissing, SuiteVerdict, conclude, unconfirmed,
};
use warpgauge_statistics::paired::{
    BlockOrder, ComparePolicy, LookOutcome, PairedBlock, PairedComparison, decide_at_look,
};
pub use warpgauge_statistics::random::RandomStream;

const POLICY: CasePolicy = CasePolicy {
    margin: 0.005,
    delta: 0.02,
    alpha: 0.01,
    count_margin: 0.0,
    on_inconclusive: OnInconclusive::Fail,
    advisory: false,
};

/// Returns the median of the block SDs of each kernel.
fn measured_noise() -> Vec<f64> {
    let packed = include_bytes!("../../../../docs/measurement/h200/same.jsonl.gz").as_slice();
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("gzip of text");
    let mut by_case = BTreeMap::<String, Vec<f64>>::new();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON lines");
        let case = line["case"].as_str().expect("a name").to_owned();
        by_case.entry(case).or_default().push(line["block_sd"].as_f64().expect("a number"));
    }
    let medians = by_case.into_values().map(|mut sds| {
        sds.sort_by(f64::total_cmp);
        sds[sds.len() / 2]
    });
    medians.collect()
}

fn compare(random: &mut RandomStream, sd: f64, effect: f64, alpha: f64) -> PairedComparison {
    let policy = ComparePolicy { alpha, equivalence: POLICY.delta, ..ComparePolicy::default() };
    let mut blocks = Vec::new();
    for look in 0.. {
        while blocks.len() < policy.looks[look] as usize {
            let ratio = (effect.ln() + sd * random.normal()).exp() as f32;
            blocks.push(PairedBlock {
                order: BlockOrder::of_block(blocks.len()),
                a: [vec![1.0], vec![1.0]],
                b: [vec![ratio], vec![ratio]],
                clock_hz: [Some(1.98e9); 4],
                throttle_reasons: 0,
            });
        }
        if let LookOutcome::Done(comparison) = decide_at_look(&blocks, look, &policy) {
            return *comparison;
        }
    }
    unreachable!("the last look is done")
}

/// Runs the gate once over a suite of kernels with this noise. The first kernel is slower by the
/// factor `effect`. Returns the suite's verdict and the first case's outcome.
fn suite_run(random: &mut RandomStream, noise: &[f64], effect: f64) -> (SuiteVerdict, GateOutcome) {
    let family = noise.len() as f64;
    let effect_of = |index: usize| if index == 0 { effect } else { 1.0 };
    let mut cases = Vec::new();
    for (index, sd) in noise.iter().enumerate() {
        let spec = CaseSpec {
            name: index.to_string(),
            contract: String::new(),
            source: None,
            metric: GateMetric::Time,
            policy: POLICY,
        };
        let first = compare(random, *sd, effect_of(index), POLICY.alpha / family);
        cases.push(MeasuredCase::unmeasured(spec, CaseEvidence::Times(Box::new(first))));
    }
    for index in unconfirmed(&cases) {
        let again = compare(random, noise[index], effect_of(index), POLICY.alpha);
        cases[index].confirmation = Some(CaseEvidence::Times(Box::new(again)));
    }
    let (reports, verdict) = conclude(&cases, OnMissing::Fail);
    (verdict, reports[0].outcome)
}

#[test]
fn suites_of_unchanged_kernels_do_not_fail() {
    let noise = measured_noise();
    assert!(noise.len() >= 5, "{noise:?}");
    let mut random = RandomStream::new(1);
    let mut counts = BTreeMap::<SuiteVerdict, u32>::new();
    for _ in 0..300 {
        *counts.entry(suite_run(&mut random, &noise, 1.0).0).or_default() += 1;
    }
    assert_eq!(counts.get(&SuiteVerdict::Regression), None, "{counts:?}");
    // The lack of regressions is not due to inconclusive cases: nearly all runs pass.
    assert!(counts.get(&SuiteVerdict::Pass).is_some_and(|passed| *passed >= 290), "{counts:?}");
}

#[test]
fn two_percent_is_caught_in_a_suite() {
    let noise = measured_noise();
    for slower in 0..noise.len() {
        let mut rotated = noise.clone();
        rotated.rotate_left(slower);
        let mut random = RandomStream::new(100 + slower as u64);
        let caught = (0..100)
            .filter(|_| suite_run(&mut random, &rotated, 1.02).1 == GateOutcome::Regression)
            .count();
        assert!(caught >= 95, "block SD {:.4}: {caught} of 100", rotated[0]);
    }
}

#[test]
fn a_difference_within_the_margin_passes() {
    let noise = measured_noise();
    let mut random = RandomStream::new(7);
    let regressions = (0..200)
        .filter(|_| suite_run(&mut random, &noise, 1.004).0 == SuiteVerdict::Regression)
        .count();
    assert_eq!(regressions, 0);
}
