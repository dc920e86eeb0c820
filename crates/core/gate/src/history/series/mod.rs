//! Series: points of one case under the same conditions over time, with changes of level. The main
//! type is [`Series`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HistoryPoint, SIGNIFICANCE, splits};
use crate::GateOutcome;
use warpgauge_model::DeviceKind;

/// What the points of a series have in common.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct SeriesKey {
    /// The case's name.
    pub case: String,
    /// `cuda` or `emulator`; they never share a series.
    pub kind: DeviceKind,
    /// Product name of the device.
    pub device: String,
    /// Version of the driver, where the device reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// CUDA version of the driver.
    pub cuda: String,
    /// How times are taken.
    pub method: String,
    /// Version of the method.
    pub method_version: u32,
}

/// Answer of `GET /history`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryAnswer {
    /// The series, by case, then by device, driver and method.
    pub series: Vec<Series>,
    /// Whether there are older points than these.
    pub truncated: bool,
}

/// Points of one case under the same conditions, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HistorySeries")]
pub struct Series {
    /// What the points have in common.
    pub key: SeriesKey,
    /// What is looked at: `time` (milliseconds), or the name of a count.
    pub metric: String,
    /// The points.
    pub points: Vec<TrendPoint>,
    /// Where the level changes.
    pub changes: Vec<ChangePoint>,
}

/// One value of a series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HistoryValue")]
pub struct TrendPoint {
    /// When it was measured, seconds since 1970.
    pub unix_s: f64,
    /// Median time in milliseconds, or the count.
    pub value: f64,
    /// Lower end of the median's 95 % confidence interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_low: Option<f64>,
    /// Upper end of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_high: Option<f64>,
    /// Verdict on it.
    pub verdict: GateOutcome,
    /// Commit of the code, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The job, where one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
}

/// A change of level between two points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    /// Index of the first point at the new level.
    pub at: u32,
    /// Commit of that point, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Median of the values up to it, from the change before.
    pub before: f64,
    /// Median of the values from it on, to the next change.
    pub after: f64,
    /// Probability of such a change where there is none; 0 for counts, which are exact.
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
            series.entry(at).or_default().push(value(*count as f64, [None, None]));
        }
    }
    let finished = series.into_iter().map(|((key, metric), mut points)| {
        points.sort_by(|a, b| a.unix_s.total_cmp(&b.unix_s));
        let changes = changes(&key, &points);
        Series { key, metric, points, changes }
    });
    finished.collect()
}

/// Returns the changes of level: for times those that are significant, for counts every one.
fn changes(key: &SeriesKey, points: &[TrendPoint]) -> Vec<ChangePoint> {
    let places = match key.kind {
        // The logarithm makes changes relative, whatever the kernel's time.
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
