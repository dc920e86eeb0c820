//! Metrics of the catalogue from the driver's performance monitoring of a whole GPU (GPM).
//!
//! Monitoring measures the share of a time window in which units of the GPU were in use. The kernel
//! runs back to back in that window, so the shares are those of the kernel, except for the gaps
//! between launches, which must be short. If inputs must be restored between launches, that is also
//! monitored without the kernel, and subtracted in proportion to its time: `kernel = (all · t(all)
//! − restoring · t(restoring)) / (t(all) − t(restoring))`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use super::catalogue::{MetricInfo, MetricUnit};
use super::found::{Found, Known};
use super::select::Selection;
use super::types::{CacheControl, ClockControl, Conditions, Metric, MetricSource, Replay};
use super::values::CollectedMetrics;
use warpgauge_model::{Cause, MonitorFacts, MonitorWindow, Unavailable};

/// Metrics of the catalogue that are equal to a GPM reading, each with the name of the reading.
const SAME: [(&str, &str); 10] = [
    ("sm_active_cycles", ACTIVE),
    ("achieved_occupancy", OCCUPANCY_WHILE_ACTIVE),
    ("dram_throughput", "gpm__dram_bw_util"),
    ("gpu_dram_throughput", "gpm__dram_bw_util"),
    ("tensor_pipe_active", "gpm__any_tensor_util"),
    ("tensor_half_pipe_active", "gpm__hmma_tensor_util"),
    ("tensor_integer_pipe_active", "gpm__imma_tensor_util"),
    ("tensor_double_pipe_active", "gpm__dfma_tensor_util"),
    ("fp64_pipe_active", "gpm__fp64_util"),
    ("fp16_pipe_utilization", FP16_WHILE_ACTIVE),
];

/// Readings that are not equal to any metric of the catalogue, with descriptions.
const OTHERS: [(&str, &str); 5] = [
    ("gpm__graphics_util", "time in which the GPU had any work"),
    ("gpm__sm_occupancy", "resident warps in percent of the maximum, including idle time"),
    (
        "gpm__integer_util",
        "integer operations of the multiprocessors; several pipelines execute them, so the value \
         may exceed the time in which multiprocessors were active",
    ),
    (
        "gpm__fp32_util",
        "f32 operations outside tensor cores; the FMA pipeline executes other \
                        operations, too",
    ),
    ("gpm__fp16_util", "f16 operations outside tensor cores"),
];

/// Share of the time in which multiprocessors had resident warps.
const ACTIVE: &str = "gpm__sm_util";

/// Readings relative to the time in which there were resident warps, each with the original
/// reading.
const WHILE_ACTIVE: [(&str, &str); 2] =
    [(OCCUPANCY_WHILE_ACTIVE, "gpm__sm_occupancy"), (FP16_WHILE_ACTIVE, "gpm__fp16_util")];
const OCCUPANCY_WHILE_ACTIVE: &str = "gpm__sm_occupancy/gpm__sm_util";
const FP16_WHILE_ACTIVE: &str = "gpm__fp16_util/gpm__sm_util";

/// Maximum share of the time between launches. The gap is estimated as the period of an empty
/// kernel, which exceeds the gap between longer kernels. On an H200 the readings of a kernel of 13
/// us, with a share of 0.24, agree with its counters to 3 %; those of a kernel of 4 us, with a
/// share of 0.81, do not.
const MAX_GAP: f64 = 0.3;

/// Minimum share of the time that the kernel itself must take if inputs are restored.
const MIN_PART: f64 = 0.25;

/// Minimum activity of the multiprocessors for a meaningful quotient, percent.
const MIN_ACTIVE: f64 = 1.0;

/// Returns whether GPU performance monitoring (GPM) supplies any of the selected metrics.
pub fn tells(selection: &Selection) -> bool {
    selection.metrics.iter().any(|info| reading_of(info.id).is_some())
}

/// Returns the ids of the metrics that GPU performance monitoring (GPM) supplies.
pub fn metrics() -> impl Iterator<Item = &'static str> {
    SAME.iter().map(|(id, _)| *id)
}

fn reading_of(id: &str) -> Option<&'static str> {
    SAME.iter().find(|(same, _)| *same == id).map(|(_, reading)| *reading)
}

/// Converts the monitored readings of a kernel. `driver` is the driver's version.
///
/// # Errors There are no readings, or the kernel's part of them cannot be separated.
pub fn collected(
    facts: &MonitorFacts,
    kernel: &str,
    driver: Option<&str>,
) -> Result<CollectedMetrics, Unavailable> {
    if let Some(unavailable) = &facts.unavailable {
        return Err(unavailable.clone());
    }
    let MonitorWindow { mut values, mut missing, period_s, .. } = alone(facts)?;
    let gap = (facts.empty_period_s / period_s).min(1.0);
    let active = values.get(ACTIVE).copied().filter(|active| *active >= MIN_ACTIVE);
    for (name, of) in WHILE_ACTIVE {
        match active.zip(values.get(of).copied()) {
            Some((active, part)) => {
                let share = (100.0 * part / active).clamp(0.0, 100.0);
                values.insert(name.to_owned(), share);
            }
            None => {
                let reason = "the multiprocessors were hardly active, or a reading is missing";
                missing.insert(name.to_owned(), reason.to_owned());
            }
        }
    }
    if gap > MAX_GAP {
        let reason = format!(
            "the kernel is too short: up to {:.0} % of the time is between launches, {:.1} us apart",
            100.0 * gap,
            1e6 * period_s
        );
        values.clear();
        let names = SAME.iter().map(|(_, name)| *name).chain(OTHERS.map(|(name, _)| name));
        missing.extend(names.map(|name| (name.to_owned(), reason.clone())));
    }
    let version = driver.map(|version| format!(", driver {version}"));
    Ok(CollectedMetrics {
        source: MetricSource::Gpm,
        tool: format!("NVML GPM{}", version.unwrap_or_default()),
        kernel: kernel.to_owned(),
        values,
        missing,
        conditions: conditions(&facts.running),
        note: Some(note(facts, period_s, gap)),
    })
}

fn conditions(running: &MonitorWindow) -> Conditions {
    let launches = running.window_s / running.period_s;
    Conditions {
        clock_control: Some(ClockControl::None),
        cache_control: Some(CacheControl::None),
        replay: Some(Replay::BackToBack),
        passes: None,
        window_ms: Some((1e3 * running.window_s).round() as u32),
        launches: Some(launches.round() as u32),
    }
}

fn note(facts: &MonitorFacts, period_s: f64, gap: f64) -> String {
    let mut text = format!(
        "mean over the whole GPU in {:.0} ms of launches back to back, {:.1} us apart, each with \
         the caches as the previous launch left them; up to {:.0} % of the time is between \
         launches",
        1e3 * facts.running.window_s,
        1e6 * period_s,
        100.0 * gap
    );
    if let Some(restoring) = &facts.restoring {
        let us = 1e6 * restoring.period_s;
        let _ = write!(text, "; {us:.1} us for restoring inputs before each launch are subtracted");
    }
    if let Some(others @ 1..) = facts.other_processes {
        let _ = write!(text, "; {others} other processes used the GPU, and are included");
    }
    text
}

/// Subtracts the share of restoring the inputs from the readings.
fn alone(facts: &MonitorFacts) -> Result<MonitorWindow, Unavailable> {
    let running = &facts.running;
    let whole = running.period_s;
    if !(whole > 0.0 && whole.is_finite()) {
        return Err(Cause::NoData.because("no launch ended while the GPU was monitored"));
    }
    let Some(restoring) = &facts.restoring else { return Ok(running.clone()) };
    let (part, period_s) = (restoring.period_s, whole - restoring.period_s);
    if period_s.is_nan() || period_s < MIN_PART * whole {
        let text = format!(
            "of the {:.1} us from launch to launch, restoring the inputs takes {:.1}: monitoring \
             cannot separate the kernel from it",
            1e6 * whole,
            1e6 * part
        );
        return Err(Cause::NoData.because(text));
    }
    let mut own = MonitorWindow { period_s, values: BTreeMap::new(), ..running.clone() };
    own.missing.extend(restoring.missing.clone());
    for (name, all) in &running.values {
        if let Some(other) = restoring.values.get(name) {
            let value = (all * whole - other * part) / period_s;
            own.values.insert(name.clone(), value.clamp(0.0, 100.0));
        }
    }
    Ok(own)
}

/// Returns the value of a metric of the catalogue, or the reason why no reading gives it.
pub(super) fn told(collected: &CollectedMetrics, info: &MetricInfo) -> Found {
    match reading_of(info.id) {
        Some(name) => reading(collected, name),
        None => Err("monitoring (GPM) does not measure it: it measures shares of the time of the \
                 whole GPU, and no counts"
            .into()),
    }
}

fn reading(collected: &CollectedMetrics, name: &str) -> Found {
    match collected.values.get(name) {
        Some(value) => {
            let note = collected.note.clone().map(Cow::Owned);
            Ok(Known { note, ..Known::plain(*value, collected.source) })
        }
        None => {
            let reason = collected.missing.get(name).map_or("it was not read", String::as_str);
            Err(format!("{name}: {reason}").into())
        }
    }
}

/// Adds the readings that are not equal to any metric of the catalogue, under their own names.
pub(super) fn add_others(metrics: &mut BTreeMap<String, Metric>, collected: &CollectedMetrics) {
    for (name, what) in OTHERS {
        let found = reading(collected, name);
        let note = |note: &str| format!("{what}; {note}");
        let metric = match found {
            Ok(known) => Metric {
                value: Some(known.value),
                unit: Some(MetricUnit::Percent.name().to_owned()),
                source: Some(known.source),
                note: known.note.as_deref().map(note),
                reason: None,
            },
            Err(reason) => Metric {
                value: None,
                unit: Some(MetricUnit::Percent.name().to_owned()),
                source: None,
                note: None,
                reason: Some(reason.into_owned()),
            },
        };
        metrics.insert(name.to_owned(), metric);
    }
}

#[cfg(test)]
mod tests;
