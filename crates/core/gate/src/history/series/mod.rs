//! Series: points of one case under the same conditions over time, with changes of level. The main
//! type is [`Series`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HistoryPoint, SIGNIFICANCE, splits};
use crate::GateOutcome;
use warpgauge_model::DeviceKind;

/// Conditions that all points of a series share.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct SeriesKey {
    /// Name of the case.
    pub case: String,
    /// Kind of the device, `cuda` or `emulator`.
    pub kind: DeviceKind,
    /// Product name of the device.
    pub device: String,
    /// Version of the driver. Absent if the device does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// CUDA version of the driver.
    pub cuda: String,
    /// Method of timing.
    pub method: String,
    /// Version of the method of timing.
    pub method_version: u32,
}

/// Series of `GET /history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryAnswer {
    /// Series, in the order of case, device, driver and method.
    pub series: Vec<Series>,
    /// Whether older points exist beyond the limit.
    pub truncated: bool,
}

/// Points of one case under the same conditions, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HistorySeries")]
pub struct Series {
    /// Conditions that all points share.
    pub key: SeriesKey,
    /// Quantity of the points: `time` (milliseconds), or the name of a count.
    pub metric: String,
    /// Points of the series, oldest first.
    pub points: Vec<TrendPoint>,
    /// Changes of the level.
    pub changes: Vec<ChangePoint>,
}

/// Point of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HistoryValue")]
pub struct TrendPoint {
    /// Time of the measurement, seconds since the Unix epoch.
    pub unix_s: f64,
    /// Value of the metric: a time in milliseconds, or a count.
    pub value: f64,
    /// Lower end of the median's 95 % confidence interval, milliseconds. Absent for counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_low: Option<f64>,
    /// Upper end of the median's 95 % confidence interval, milliseconds. Absent for counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_high: Option<f64>,
    /// Outcome of the run.
    pub verdict: GateOutcome,
    /// Branch of the code. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Commit of the code. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Id of the job. Absent if no job is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
}

/// Change of the level between two points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// Index of the first point at the new level.
    pub at: u32,
    /// Commit of the first point at the new level. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Median of the values from the previous change to this one.
    pub before: f64,
    /// Median of the values from this change to the next one.
    pub after: f64,
    /// Probability that a series without changes shows such a change; 0 for counts, which are
    /// exact.
    pub p_value: f64,
}

/// Groups points into series.
pub fn group(points: Vec<HistoryPoint>) -> Vec<Series> {
    let mut series = BTreeMap::<(SeriesKey, String), Vec<TrendPoint>>::new();
    for point in points {
        let value = |value: f64, ci: [Option<f64>; 2]| TrendPoint {
            unix_s: point.unix_s,
            value,
            ci_low: ci[0],
            ci_high: ci[1],
            verdict: point.verdict,
            branch: point.branch.clone(),
            commit: point.commit.clone(),
            job_id: point.job_id.clone(),
        };
        let times = point.median_ms.filter(|ms| ms.is_finite() && *ms > 0.0);
        if let (Some(ms), DeviceKind::Cuda) = (times, point.key.kind) {
            let at = (point.key.clone(), "time".to_owned());
            let value = value(ms, [point.ci_low_ms, point.ci_high_ms]);
            series.entry(at).or_default().push(value);
        }
        for (name, count) in &point.counts {
            let at = (point.key.clone(), name.clone());
            let verdict = point.count_verdicts.get(name).copied().unwrap_or(point.verdict);
            let value = TrendPoint { verdict, ..value(*count as f64, [None, None]) };
            series.entry(at).or_default().push(value);
        }
    }
    let finished = series.into_iter().map(|((key, metric), mut points)| {
        points.sort_by(|a, b| a.unix_s.total_cmp(&b.unix_s));
        let changes = changes(&key, &points);
        Series { key, metric, points, changes }
    });
    finished.collect()
}

/// Returns the changes of level: significant changes of times, and all changes of counts.
fn changes(key: &SeriesKey, points: &[TrendPoint]) -> Vec<ChangePoint> {
    let places = match key.kind {
        // The logarithm makes changes relative to the kernel's time.
        DeviceKind::Cuda => {
            let logs = points.iter().map(|point| point.value.ln()).collect::<Vec<_>>();
            splits(&logs).into_iter().map(|split| (split.at, split.p_value)).collect::<Vec<_>>()
        }
        DeviceKind::Emulator => (1..points.len())
            .filter(|at| points[*at].value != points[*at - 1].value)
            .map(|at| (at, 0.0))
            .collect(),
    };
    debug_assert!(places.iter().all(|(_, p)| *p < SIGNIFICANCE));
    let starts = std::iter::once(0).chain(places.iter().map(|(at, _)| *at)).collect::<Vec<_>>();
    let ends = places.iter().map(|(at, _)| *at).skip(1).chain([points.len()]);
    places
        .iter()
        .zip(&starts)
        .zip(ends)
        .map(|((&(at, p_value), &start), end)| ChangePoint {
            at: u32::try_from(at).unwrap_or(u32::MAX),
            commit: points[at].commit.clone(),
            before: median(&points[start..at]),
            after: median(&points[at..end]),
            p_value,
        })
        .collect()
}

fn median(points: &[TrendPoint]) -> f64 {
    let mut values = points.iter().map(|point| point.value).collect::<Vec<_>>();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

#[cfg(test)]
mod tests;
