//! The samples, the doubts about the times, and how the times were measured.

use maud::{Markup, html};
use warpgauge_metrics::si;
use warpgauge_model::Regime;
use warpgauge_report::readable;
use warpgauge_report::{EvaluateResponse, InputsShown, MeasurementReport, RuntimeStats};
use warpgauge_statistics::{Reading, RejectReason, SampleBatch, screen};

use crate::chart::{self, SampleSeries};
use crate::parts::{self, Scope, Tone};
use crate::text;

/// Shows reasons to doubt the times.
pub(super) fn doubts(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let Some(measurement) = &report.measurement else { return html! {} };
    let is_checked = !report.validation.outputs.is_empty();
    let notes = readable::doubts(measurement, is_checked);
    html! {
        @if !notes.is_empty() {
            (scope.section("doubts", "Doubts about the times")
                .tone(Tone::Doubt)
                .open(true)
                .note(html! { (text::counted(notes.len(), "note")) })
                .with(html! {
                    ul.plain { @for note in notes.iter().take(50) { li { (text::message(note)) } } }
                    (parts::more(notes.len(), 50, "notes"))
                }))
        }
    }
}

/// The range of the samples, relative to their median, up to which nothing in their distribution
/// needs attention.
const TINY_SPREAD: f64 = 0.01;

/// Shows the samples as a distribution and in order of time. The section is folded if their spread
/// is tiny and none was rejected.
pub(super) fn samples(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let Some(stats) = &report.kernel_exec_result.runtime_stats else { return html! {} };
    let measurement = report.measurement.as_ref();
    let samples = measurement.map_or(&[][..], |measurement| &measurement.samples_ms);
    let batches = measurement.map_or(&[][..], |measurement| &measurement.batches);
    let rejected = measurement.and_then(rejected_batches).unwrap_or_default();
    let series =
        SampleSeries { samples_ms: samples, batches, rejected: &rejected, median_ms: stats.median };
    let distribution = chart::histogram(samples, stats);
    let in_time = chart::series(series);
    let rejects = measurement.map_or(0, |it| it.rejected.iter().map(|one| one.count).sum::<u32>());
    let note = html! {
        (text::counted(stats.samples as usize, "sample"))
        @if rejects > 0 { " and " (rejects) " rejected" }
        "; " (text::time(stats.min)) " to " (text::time(stats.max))
    };
    let is_steady = rejects == 0 && stats.max - stats.min <= TINY_SPREAD * stats.median;
    let is_open = distribution.is_some() && !is_steady;
    scope.section("samples", "Samples").note(note).open(is_open).with(html! {
        @if let Some(svg) = distribution {
            (parts::figure(svg, html! {
                "Launch times; the dashed line is the median, the band its 95" "\u{202f}" "% confidence interval."
            }))
        }
        @if let Some(svg) = in_time {
            (parts::figure(svg, html! {
                "The same in order of time, including rejected samples."
                @if rejected.contains(&true) { " Shaded batches are rejected." }
                @if rejects > 0 && !rejected.contains(&true) {
                    " The report does not say which of them are rejected."
                }
            }))
        }
        (statistics(stats, measurement))
    })
}

/// Returns for each batch whether it was rejected. Returns `None` unless the clock is the only
/// reason and the rule reproduces the counts in the report.
fn rejected_batches(measurement: &MeasurementReport) -> Option<Vec<bool>> {
    let [only] = &*measurement.rejected else { return None };
    if only.reason != RejectReason::ClockDrop {
        return None;
    }
    let batches = measurement.batches.iter().map(|batch| SampleBatch {
        samples: batch.trials,
        reading: Reading { sm_clock_hz: batch.sm_clock_hz, ..Reading::default() },
    });
    let screened = screen(&batches.collect::<Vec<_>>());
    let agrees = screened.rejected.as_slice() == [*only];
    agrees.then(|| screened.batches.iter().map(Option::is_some).collect())
}

/// The minimum numbers of samples for each percentile, since some samples must lie beyond it.
const LEAST_FOR_P95: u32 = 40;
const LEAST_FOR_P99: u32 = 200;

fn statistics(stats: &RuntimeStats, measurement: Option<&MeasurementReport>) -> Markup {
    let mut rows = vec![
        ("median", html! { (text::time(stats.median)) " (" (super::median(stats)) ")" }),
        ("mean", html! { (text::time(stats.mean)) " ± " (text::time(stats.std)) }),
        ("range", html! { (text::time(stats.min)) " to " (text::time(stats.max)) }),
    ];
    if stats.samples >= LEAST_FOR_P95 {
        rows.push(("95th percentile", html! { (text::time(stats.percentile_95)) }));
    }
    if stats.samples >= LEAST_FOR_P99 {
        rows.push(("99th percentile", html! { (text::time(stats.percentile_99)) }));
    }
    let summary = measurement.and_then(|measurement| measurement.summary.as_ref());
    if let Some(n) = summary.and_then(|summary| summary.effective_n) {
        rows.push(("equivalent to", html! {
            (text::grouped(n.into())) " independent samples: successive times depend on one another"
        }));
    }
    parts::facts(rows)
}

/// Shows how the times were measured.
pub(super) fn method(scope: Scope<'_>, report: &EvaluateResponse) -> Markup {
    let Some(measurement) = &report.measurement else { return html! {} };
    let cache = readable::cache(measurement.cache);
    let regime = match measurement.regime {
        Regime::Isolated => "one launch at a time",
        Regime::Sustained => "under the kernel's own steady load",
    };
    let inputs = match measurement.inputs {
        InputsShown::Fresh => "fresh inputs each launch",
        InputsShown::SameStateWiped => "the same inputs, state wiped in between",
        InputsShown::Same => "the same inputs each time",
    };
    let stopped = readable::stopped(measurement.stopped);
    let mut rows = vec![
        (
            "method",
            html! { code { (text::name(&measurement.method)) } ", version " (measurement.method_version) },
        ),
        ("conditions", html! { (cache) "; " (regime) "; " (inputs) }),
        (
            "warm-up",
            html! {
                (text::counted(measurement.warmup_launches as usize, "launch"))
                @if measurement.warmup_stable { ", until times were stable" } @else { ", until its time limit" }
            },
        ),
        ("ended", html! { (stopped) }),
        (
            "verified",
            html! { (text::grouped(measurement.audited.into())) " timed launches" (sealed(measurement)) },
        ),
    ];
    if let Some(clock) = measurement.sm_clock {
        let [mean, min, max] =
            [clock.mean_hz, clock.min_hz, clock.max_hz].map(|hz| text::tight(&si(hz, "Hz")));
        rows.push(("clock", html! { (mean) " (" (min) " to " (max) ")" }));
    }
    rows.extend(state(measurement));
    scope
        .section("method", "How it was measured")
        .note(html! { (cache) "; " (inputs) })
        .with(parts::facts(rows))
}

fn sealed(measurement: &MeasurementReport) -> Markup {
    let sealed = measurement.sealed.as_ref().filter(|sealed| sealed.launches > 0);
    html! {
        @if let Some(sealed) = sealed {
            ", " (sealed.launches) " of them sealed"
            @match sealed.agree {
                Some(true) => "; their times agree with the others",
                Some(false) => "; their times do not agree with the others, so only they count",
                None => {}
            }
        }
    }
}

/// Returns the load, and the state of the GPU during the measurement.
fn state(measurement: &MeasurementReport) -> Vec<(&'static str, Markup)> {
    let mut rows = Vec::new();
    if let Some(load) = &measurement.load {
        rows.push((
            "load",
            html! {
                (text::grouped(load.launches)) " launches, " (load.verified) " verified, "
                (text::percent(load.share)) " of the time"
            },
        ));
    }
    let Some(gpu) = &measurement.gpu else { return rows };
    if let Some(driver) = &gpu.driver {
        rows.push(("driver", text::name(driver)));
    }
    let joined = |values: Vec<String>| values.join(" before, ") + " after";
    if let [_, _] = *gpu.power_w {
        let watts = gpu.power_w.iter().map(|watts| format!("{watts:.0}\u{202f}W")).collect();
        rows.push(("power", html! { (joined(watts)) }));
    }
    if let [_, _] = *gpu.temperature_c {
        let degrees =
            gpu.temperature_c.iter().map(|degrees| format!("{degrees}\u{202f}°C")).collect();
        rows.push(("temperature", html! { (joined(degrees)) }));
    }
    if !gpu.throttle_reasons.is_empty() {
        let reasons = gpu.throttle_reasons.iter().map(text::word).collect::<Vec<_>>().join(", ");
        rows.push(("clock throttling", html! { (reasons) }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn steady_samples_are_folded() {
        let is_open = |max: f64, rejected: u32| {
            let mut report = crate::tests::measured(40);
            let stats = &mut report["kernel_exec_result"]["runtime_stats"];
            (stats["min"], stats["median"], stats["max"]) =
                (json!(0.0071), json!(0.0071), json!(max));
            report["measurement"]["rejected"] = match rejected {
                0 => json!([]),
                count => json!([{"reason": "clock_drop", "count": count}]),
            };
            let html = samples(Scope(""), &serde_json::from_value(report).unwrap()).into_string();
            assert!(html.contains("id=\"samples\""), "{html}");
            html.contains("id=\"samples\" open")
        };
        assert!(!is_open(0.00715, 0));
        assert!(is_open(0.00715, 1), "a sample was rejected");
        assert!(is_open(0.0074, 0), "they are spread");
    }
}
