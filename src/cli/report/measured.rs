//! Rows about the contract's weaknesses, the measurement, and reasons to doubt the times.

use super::super::format::{duration_ms, percent};
use super::page::Page;
use warpgauge_metrics::si;
use warpgauge_model::Regime;
use warpgauge_report::readable;
pub(super) use warpgauge_report::readable::word;
use warpgauge_report::{EvaluateResponse, InputsShown, MeasurementReport};
use warpgauge_statistics::{BytesFrom, FloorLimit};

/// Adds the weaknesses of the contract.
pub(super) fn weaknesses(page: &mut Page, response: &EvaluateResponse) {
    for weakness in &response.validation.weaknesses {
        page.row(
            "weak",
            &format!("{}: {} [{}]", weakness.output, weakness.message, word(&weakness.code)),
        );
    }
}

/// Adds the rates that the kernel achieves, and the parts of its time.
pub(super) fn limits(page: &mut Page, report: &MeasurementReport) {
    achieved(page, report);
    if report.at_floor {
        let floor = report
            .empty_launch_ms
            .map_or(String::new(), |ms| format!(" (an empty kernel takes {})", duration_ms(ms)));
        page.row("floor", &format!("this is the time of the launch itself{floor}"));
    }
}

/// Adds reasons to doubt the times. Without expected outputs, no launch can be verified.
pub(super) fn doubts(page: &mut Page, report: &MeasurementReport, is_checked: bool) {
    for (index, note) in readable::doubts(report, is_checked).iter().enumerate() {
        page.row(if index == 0 { "note" } else { "" }, note);
    }
}

/// Adds details of the measurement.
pub(super) fn measurement(page: &mut Page, report: &MeasurementReport) {
    let stopped = readable::stopped(report.stopped);
    let cache = readable::cache(report.cache);
    let regime = match report.regime {
        Regime::Isolated => "",
        Regime::Sustained => "; under the kernel's own steady load",
    };
    let inputs = match report.inputs {
        InputsShown::Fresh => "fresh inputs each launch",
        InputsShown::SameStateWiped => "the same inputs, state wiped",
        InputsShown::Same => "the same inputs",
    };
    let inputs = match report.input_sets {
        Some(sets) => format!("{sets} sets of inputs in a random order"),
        None => inputs.to_owned(),
    };
    let n = report.summary.as_ref().map_or(0, |summary| summary.n);
    page.row("measured", &format!("{n} launches, {stopped}; {cache}{regime}; {inputs}"));
    if let Some(summary) = &report.summary {
        precision(page, summary);
    }
    let audited = match report.audited {
        0 => "no timed launch verified".to_owned(),
        1 => "1 timed launch verified".to_owned(),
        n => format!("{n} timed launches verified"),
    };
    let clock = report.sm_clock.map_or("clock not known".to_owned(), |clock| {
        let [mean, min, max] = [clock.mean_hz, clock.min_hz, clock.max_hz].map(|hz| hz / 1e6);
        format!("clock {mean:.0} MHz ({min:.0} to {max:.0})")
    });
    page.more(&format!("{audited}{}; {clock}", sealed(report)));
    if let Some(load) = &report.load {
        let (launches, verified) = (load.launches, load.verified);
        let share = percent(load.share);
        page.more(&format!("load: {launches} launches, {verified} verified, {share} of the time"));
    }
}

/// Adds how precisely the median is known.
fn precision(page: &mut Page, summary: &warpgauge_statistics::Summary) {
    if let (Some(low), Some(high)) = (summary.median_ci_low, summary.median_ci_high)
        && summary.median > 0.0
    {
        let half = (high - low) / 2.0 / summary.median;
        let worth = summary.effective_n.map_or(String::new(), |n| {
            format!(", successive times are correlated: equivalent to {n} independent ones")
        });
        page.more(&format!("median known to ± {}{worth}", percent(half)));
    }
}

/// Adds the achieved rates, and their share of the device's peak.
fn achieved(page: &mut Page, report: &MeasurementReport) {
    let Some(rates) = &report.rates else { return };
    let bytes = rates.bytes.map(|bytes| {
        let what = match rates.bytes_from {
            Some(BytesFrom::Buffers) => "assumed: each tensor moved once",
            Some(BytesFrom::Declared) | None => "declared",
        };
        format!("{} ({what})", si(bytes, "B"))
    });
    let moved = bytes.as_ref().zip(rates.bytes_per_second);
    let moved = moved.map(|(bytes, rate)| format!("{}, of {bytes}", si(rate, "B/s")));
    let done = rates.flops.zip(rates.flops_per_second);
    let done = done.map(|(flops, rate)| {
        format!("{}, of {} (declared)", si(rate, "FLOP/s"), si(flops, "FLOP"))
    });
    let rows: Vec<String> = moved.into_iter().chain(done).collect();
    page.row("achieved", &rows.join("; "));
    if let (Some(share), Some(least)) = (rates.of_speed_of_light, rates.least_ms) {
        let what = match (rates.limit, rates.peak_bytes_per_second) {
            (Some(FloorLimit::Memory), Some(peak)) => {
                format!("those bytes at the peak of device memory, {}", si(peak, "B/s"))
            }
            _ => "those operations at the peak of the tensor cores".to_owned(),
        };
        let cached = if share > 1.0 { ": not all of them went through device memory" } else { "" };
        page.more(&format!(
            "{} of the speed of light: {what}, take {}{cached}",
            percent(share),
            duration_ms(least)
        ));
    }
}

/// Returns the text about sealed launches. It follows the number of verified launches.
fn sealed(report: &MeasurementReport) -> String {
    let Some(sealed) = report.sealed.as_ref().filter(|sealed| sealed.launches > 0) else {
        return String::new();
    };
    let n = report.samples_ms.len() as u32;
    let agree = match sealed.agree {
        Some(true) => ", their times agree",
        Some(false) => ", their times do not agree",
        None => "",
    };
    match sealed.launches {
        all if all == n => ", all sealed".to_owned(),
        some => format!(", {some} sealed{agree}"),
    }
}
