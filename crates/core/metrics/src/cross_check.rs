//! Compares the cycles of the profiled launch with those of the timed launches.
//!
//! Profilers flush caches, lock clocks and run a kernel repeatedly, so the profiled time may differ
//! from the measured one. If the difference is large, the profiler's rates and percentages do not
//! describe the timed launches. The cross-check reports this with possible explanations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Timed, Values};
use super::roofline::profiled_clock;
use super::types::{CacheControl, ClockControl, Conditions};
use warpgauge_model::DeviceKind;

/// Maximum relative difference that counts as agreement. Medians are reproducible to a percent. The
/// rest allows for the difference between a single launch and a median, and for the overhead of the
/// profiler at the start and the end.
const AGREES_WITHIN: f64 = 0.1;

/// Minimum relative difference of the clocks that is given as an explanation.
const CLOCKS_DIFFER: f64 = 0.03;

/// Comparison of the profiled launch with the timed ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossCheck {
    /// Duration of the profiled launch, seconds.
    pub profiled_seconds: f64,
    /// Clock of the multiprocessors during the profiled launch, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiled_clock_hz: Option<f64>,
    /// Median time of the timed launches, seconds.
    pub unprofiled_seconds: f64,
    /// Clock of the timed launches, measured on the device, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprofiled_clock_hz: Option<f64>,
    /// Profiled time divided by unprofiled time.
    pub time_ratio: f64,
    /// Profiled cycles divided by unprofiled cycles. Absent if one of the clocks is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_ratio: Option<f64>,
    /// Maximum relative difference that counts as agreement: 0.1, plus the time of an empty launch divided by the
    /// unprofiled time.
    pub bound: f64,
    /// Whether times or cycles differ by at most `bound`.
    pub agrees: bool,
    /// Possible explanations of a disagreement, the most likely first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<String>,
}

/// Compares the profiled launch with the timed ones. Returns `None` if one of the times is unknown,
/// or on the emulated device.
pub fn cross_check(
    values: Values<'_>,
    facts: &Facts<'_>,
    conditions: Option<&Conditions>,
) -> Option<CrossCheck> {
    if facts.device.kind == DeviceKind::Emulator {
        return None;
    }
    let timed = facts.timed;
    let profiled_seconds = values.get("duration").filter(|seconds| *seconds > 0.0)?;
    let unprofiled_seconds = timed.median_s.filter(|seconds| *seconds > 0.0)?;
    let profiled_clock_hz = profiled_clock(values);
    let unprofiled_clock_hz = timed.clock_hz.filter(|clock| *clock > 0.0);
    let time_ratio = profiled_seconds / unprofiled_seconds;
    let clock_ratio =
        profiled_clock_hz.zip(unprofiled_clock_hz).map(|(profiled, timed)| profiled / timed);
    let cycle_ratio = clock_ratio.map(|clocks| time_ratio * clocks);
    // Times between events include the overhead of the launch, and the profiler's duration does
    // not.
    let launch = timed.empty_launch_s.unwrap_or(0.0).max(0.0);
    let bound = AGREES_WITHIN + launch / unprofiled_seconds;
    let near = |ratio: f64| (ratio - 1.0).abs() <= bound;
    let agrees = near(time_ratio) || cycle_ratio.is_some_and(near);
    let mut explanations = Vec::new();
    if !agrees {
        explanations = explain(&timed, conditions, time_ratio, clock_ratio);
    }
    Some(CrossCheck {
        profiled_seconds,
        profiled_clock_hz,
        unprofiled_seconds,
        unprofiled_clock_hz,
        time_ratio,
        cycle_ratio,
        bound,
        agrees,
        explanations,
    })
}

fn explain(
    timed: &Timed,
    conditions: Option<&Conditions>,
    time_ratio: f64,
    clock_ratio: Option<f64>,
) -> Vec<String> {
    let mut found = Vec::new();
    let cache = conditions.and_then(|conditions| conditions.cache_control);
    match (cache, timed.cold) {
        (Some(CacheControl::All), false) => found.push(
            "the profiler flushes caches before each pass, and the timed launches ran with warm \
             caches (measure.cache: hot)"
                .to_owned(),
        ),
        (Some(CacheControl::None), true) => found.push(
            "the profiler leaves caches warm between passes, and L2 was flushed before each timed \
             launch (measure.cache: cold)"
                .to_owned(),
        ),
        _ => {}
    }
    if let Some(ratio) = clock_ratio.filter(|ratio| (ratio - 1.0).abs() > CLOCKS_DIFFER) {
        let why = match conditions.and_then(|conditions| conditions.clock_control) {
            Some(ClockControl::Base) => "the profiler locks the clocks to their base",
            Some(ClockControl::Boost) => "the profiler locks the clocks to their boost",
            Some(ClockControl::None) | None => {
                "the GPU waits for the host between passes, and its clocks change"
            }
        };
        found.push(format!(
            "the profiled clock is {ratio:.2} times that of the timed launches: \
                            {why}"
        ));
    }
    if let Some(passes) = conditions.and_then(|conditions| conditions.passes).filter(|n| *n > 1) {
        found.push(format!(
            "the kernel was run {passes} times to read all counters, and its memory was restored \
             in between: the duration is that of one pass"
        ));
    }
    if time_ratio > 1.0 {
        found.push(
            "profiling slows a kernel down, in particular if it instruments instructions"
                .to_owned(),
        );
    }
    if found.is_empty() {
        found.push(
            "none of the known conditions of the measurements explains the difference".to_owned(),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::testing::{emulated_h200, h200, metrics};
    use super::*;

    fn timed(median_s: f64, cold: bool) -> Timed {
        let clock_hz = Some(1.98e9);
        Timed { median_s: Some(median_s), clock_hz, empty_launch_s: Some(2.66e-6), cold }
    }

    fn check(
        values: &[(&str, f64)],
        timed: Timed,
        conditions: Option<&Conditions>,
    ) -> Option<CrossCheck> {
        let device = h200();
        let facts = Facts { device: &device, resources: None, inputs: &[], timed };
        cross_check(Values::new(&metrics(values)), &facts, conditions)
    }

    #[test]
    fn equal_cycles_agree_at_other_clocks() {
        let base = Conditions { clock_control: Some(ClockControl::Base), ..Conditions::default() };
        let values = [("duration", 132e-6), ("sm_clock", 1.5e9)];
        let found = check(&values, timed(100e-6, true), Some(&base)).unwrap();
        assert!(found.agrees && found.explanations.is_empty(), "{found:?}");
        assert!((found.cycle_ratio.unwrap() - 1.0).abs() < 1e-3);
        assert!((found.time_ratio - 1.32).abs() < 1e-9);
    }

    /// The numbers are those of a 16 M-element addition on an H200: 52 µs timed, 91 µs under CUPTI.
    #[test]
    fn a_disagreement_is_explained() {
        let conditions = Conditions {
            cache_control: Some(CacheControl::All),
            passes: Some(9),
            ..Conditions::default()
        };
        let values = [("duration", 91e-6), ("elapsed_cycles", 91e-6 * 1.755e9)];
        let found = check(&values, timed(52e-6, false), Some(&conditions)).unwrap();
        assert!(!found.agrees, "{found:?}");
        let text = found.explanations.join("\n");
        for part in ["measure.cache: hot", "0.89 times that", "9 times", "slows a kernel"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn short_kernels_may_differ_by_their_launch() {
        let found = check(&[("duration", 2e-6)], timed(4e-6, true), None).unwrap();
        assert!(found.agrees && found.cycle_ratio.is_none(), "{found:?}");
        let long = check(&[("duration", 200e-6)], timed(400e-6, true), None).unwrap();
        assert!(!long.agrees && !long.explanations.is_empty());
    }

    #[test]
    fn without_both_times_there_is_nothing_to_check() {
        assert_eq!(check(&[], timed(1e-3, true), None), None);
        assert_eq!(check(&[("duration", 1.0)], Timed::default(), None), None);
        let device = emulated_h200();
        let facts =
            Facts { device: &device, resources: None, inputs: &[], timed: timed(1.0, true) };
        let values: BTreeMap<_, _> = metrics(&[("duration", 1.0)]);
        assert_eq!(cross_check(Values::new(&values), &facts, None), None);
    }
}
