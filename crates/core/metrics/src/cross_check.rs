//! Compares the cycles of the profiled launch with those of the timed launches.
//!
//! Profilers flush caches, lock clocks and run a kernel again and again, so the profiled time is
//! not the kernel's time. If it is far off, rates and percentages describe another situation than
//! the timed one. The report then says so, with the likely reason. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Timed, Values};
use super::roofline::profiled_clock;
use super::types::{CacheControl, ClockControl, Conditions};
use warpgauge_model::DeviceKind;

/// Largest relative difference that counts as agreement. Medians repeat within a percent. The rest
/// is the difference of a single launch from a median, and the profiler's own start and end.
const AGREES_WITHIN: f64 = 0.1;

/// Relative difference of clocks that explains a difference in time.
const CLOCKS_DIFFER: f64 = 0.03;

/// Comparison of the profiled launch with the timed ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrossCheck {
    /// Duration of the profiled launch, seconds.
    pub profiled_seconds: f64,
    /// Clock of the profiled launch, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiled_clock_hz: Option<f64>,
    /// Median time of the timed launches, seconds.
    pub unprofiled_seconds: f64,
    /// Clock of the timed launches, measured on the device, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprofiled_clock_hz: Option<f64>,
    /// Profiled time divided by unprofiled time.
    pub time_ratio: f64,
    /// Profiled cycles divided by unprofiled cycles. Absent if a clock is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle_ratio: Option<f64>,
    /// Largest relative difference that counts as agreement: 0.1, plus the empty launch's share of the unprofiled time.
    pub bound: f64,
    /// Whether times or cycles differ by at most `bound`.
    pub agrees: bool,
    /// Possible explanations of a disagreement, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<String>,
}

/// Compares the profiled launch with the timed ones. `None` if one of the times is unknown or
/// meaningless.
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
    // Events include the launch itself, which the profiler's duration does not.
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
            "the profiler flushes caches before each pass, the timed launches found them warm \
             (measure.cache: hot)"
                .to_owned(),
        ),
        (Some(CacheControl::None), true) => found.push(
            "the profiler leaves caches warm between passes, the timed launches had L2 flushed \
             (measure.cache: cold)"
                .to_owned(),
        ),
        _ => {}
    }
    if let Some(ratio) = clock_ratio.filter(|ratio| (ratio - 1.0).abs() > CLOCKS_DIFFER) {
        let why = match conditions.and_then(|conditions| conditions.clock_control) {
            Some(ClockControl::Base) => "the profiler locks clocks to their base",
            Some(ClockControl::Boost) => "the profiler locks clocks to their boost",
            Some(ClockControl::None) | None => {
                "between passes the GPU waits for the host, and clocks change"
            }
        };
        found.push(format!("the profiled clock is {ratio:.2} of the timed one: {why}"));
    }
    if let Some(passes) = conditions.and_then(|conditions| conditions.passes).filter(|n| *n > 1) {
        found.push(format!(
            "the kernel was run {passes} times to read all counters, and its memory restored in \
             between: the duration is that of one pass"
        ));
    }
    if time_ratio > 1.0 {
        found.push("counters slow a kernel down, instrumented instructions most".to_owned());
    }
    if found.is_empty() {
        found.push("nothing that is known of how they were taken explains it".to_owned());
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
        for part in ["measure.cache: hot", "0.89 of the timed one", "9 times", "slow a kernel"] {
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
