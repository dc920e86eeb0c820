//! Estimates how long reading counters takes, from earlier measurements.

use std::collections::VecDeque;

use crate::protocol::CounterTimings;

/// Maximum number of metric sets whose times are kept.
const SETS: usize = 32;

/// Weight of a new observation in a mean.
const NEW_WEIGHT: f64 = 0.2;

/// Time of a pass, milliseconds. It was measured on an H200, by a service with a spare worker.
const PASS_MS: f64 = 10.0;

/// Extra time for throughput metrics, milliseconds. Each of them is the maximum of dozens of
/// counters, which need more set-up than other metrics.
const THROUGHPUTS_MS: f64 = 170.0;

/// Maximum `open_ms` plus `plan_ms` of a worker that had reserved the counters before,
/// milliseconds.
const OPEN_MS: f64 = 1.0;

/// Times of reading sets of metrics on a device, most recently used first.
#[derive(Debug, Default)]
pub(super) struct Costs(VecDeque<(Vec<String>, f64)>);

impl Costs {
    /// Records the time of the passes, unless the worker had to reserve the counters or to plan
    /// first.
    pub fn note(&mut self, metrics: &[String], timings: &CounterTimings) {
        if timings.open_ms + timings.plan_ms > OPEN_MS {
            return;
        }
        let known = self.0.iter().position(|(names, _)| names == metrics);
        let entry = match known.and_then(|index| self.0.remove(index)) {
            Some((names, mean)) => (names, mean + NEW_WEIGHT * (timings.passes_ms - mean)),
            None => (metrics.to_vec(), timings.passes_ms),
        };
        self.0.push_front(entry);
        self.0.truncate(SETS);
    }

    /// Returns the mean time recorded for these metrics, milliseconds.
    pub fn seen(&self, metrics: &[String]) -> Option<f64> {
        self.0.iter().find(|(names, _)| names == metrics).map(|(_, mean)| *mean)
    }
}

/// Returns a typical time to read metrics for which no time is recorded, milliseconds.
pub(super) fn usual_ms(metrics: &[String], passes: u32) -> f64 {
    let is_throughput = |name: &String| name.contains("throughput.");
    let extra = if metrics.iter().any(is_throughput) { THROUGHPUTS_MS } else { 0.0 };
    extra + PASS_MS * f64::from(passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_set_that_was_read_is_known_by_its_own_time() {
        let mut costs = Costs::default();
        let set = names(&["sm__throughput.avg.pct_of_peak_sustained_elapsed"]);
        let warm = |passes_ms| CounterTimings { passes_ms, ..CounterTimings::default() };
        costs.note(&set, &CounterTimings { open_ms: 20.0, ..warm(400.0) });
        assert_eq!(costs.seen(&set), None, "the first one takes the counters");
        costs.note(&set, &warm(260.0));
        costs.note(&set, &warm(250.0));
        assert_eq!(costs.seen(&set), Some(258.0));
        assert_eq!(costs.seen(&names(&["sm__cycles_active.avg"])), None);
        for index in 0..SETS {
            costs.note(&names(&[&index.to_string()]), &warm(1.0));
        }
        assert_eq!(costs.seen(&set), None, "a bound");
    }

    /// Medians of an H200: 9, 14 and 26 passes with throughputs, 4 without.
    #[test]
    fn what_is_usual_is_within_an_eighth_of_what_was_measured() {
        let with = names(&["dram__throughput.avg.pct_of_peak_sustained_elapsed", "a"]);
        let without = names(&["sm__cycles_active.avg.pct_of_peak_sustained_elapsed"]);
        for (metrics, passes, measured) in
            [(&with, 9, 260.4), (&with, 14, 339.6), (&with, 26, 397.0), (&without, 4, 40.4)]
        {
            let apart = usual_ms(metrics, passes) / measured - 1.0;
            assert!(apart.abs() < 0.125, "{passes}: {apart}");
        }
    }
}
