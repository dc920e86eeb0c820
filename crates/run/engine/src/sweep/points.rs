//! Builds the response to a sweep from its evaluations. This module has no side effects.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::ExecError;
use warpgauge_contract::AxisValue;
use warpgauge_model::{DeviceKind, FailureCode, Work};
use warpgauge_report::{
    BestPoint, DeviceReport, EvaluateResponse, KernelVerdict, SweepBest, SweepPoint, SweepReason,
    SweepStatus,
};
use warpgauge_statistics::Counted;

/// Maximum length of a reason's message in a point, in bytes. The point's evaluation contains the
/// full message.
const MAX_MESSAGE_BYTES: usize = 2000;

/// Maximum number of reasons for one point.
const MAX_REASONS: usize = 8;

/// Creates a point without results.
fn blank(index: usize, values: BTreeMap<String, AxisValue>, status: SweepStatus) -> SweepPoint {
    SweepPoint {
        index,
        values,
        status,
        verdict: None,
        correctness: None,
        runtime_stats: None,
        gbps: None,
        gflops: None,
        counted: None,
        reasons: Vec::new(),
        resources: None,
        device: None,
        matrices: Vec::new(),
        tensors: Vec::new(),
        total_ms: 0.0,
        report: None,
    }
}

/// Creates a point for an evaluation that failed and has no report.
pub(crate) fn failed(
    index: usize,
    values: BTreeMap<String, AxisValue>,
    error: &ExecError,
) -> SweepPoint {
    let (status, reasons) = match error {
        ExecError::Invalid(problems) => {
            let reasons = problems.iter().take(MAX_REASONS).map(|problem| SweepReason {
                code: problem.code.clone(),
                path: Some(problem.path.clone()),
                message: shortened(&problem.message),
            });
            (SweepStatus::Invalid, reasons.collect())
        }
        other => (SweepStatus::Error, vec![reason(FailureCode::Service, &other.to_string())]),
    };
    let verdict = (status == SweepStatus::Error).then_some(KernelVerdict::Error);
    SweepPoint { verdict, reasons, ..blank(index, values, status) }
}

/// Creates a point from the report of its evaluation.
pub(crate) fn evaluated(
    index: usize,
    values: BTreeMap<String, AxisValue>,
    report: &EvaluateResponse,
    work: Option<&Work>,
) -> SweepPoint {
    let result = &report.kernel_exec_result;
    let verdict = report.kernel_verdict();
    let mut point = blank(index, values, verdict.into());
    point.verdict = Some(verdict);
    point.correctness = result.correctness;
    point.runtime_stats = result.runtime_stats;
    let device = report.device.as_ref();
    let on_gpu = device.is_some_and(|device| device.kind == DeviceKind::Cuda);
    if let (Some(stats), Some(work), true) = (&result.runtime_stats, work, on_gpu) {
        // 10⁹ per second is 10⁶ per millisecond.
        let rate = |amount: f64| amount / stats.ranked_ms() / 1e6;
        point.gbps = work.bytes.map(rate).filter(|rate| rate.is_finite());
        point.gflops = work.flops.map(rate).filter(|rate| rate.is_finite());
    }
    point.counted = report.counted;
    point.reasons = reasons(report);
    point.resources = report.compile.as_ref().and_then(|compile| compile.resources);
    point.device = device.map(|device| device.uuid.clone());
    point.total_ms = report.timings.total;
    point
}

fn reasons(report: &EvaluateResponse) -> Vec<SweepReason> {
    let failure =
        report.failure.iter().map(|failure| reason(failure.code.clone(), &failure.message));
    let found =
        report.validation.reasons.iter().map(|found| reason(found.code.failure(), &found.message));
    let weak = report.why_weak().map(|why| reason(FailureCode::WeakContract, why));
    let mut codes = BTreeSet::new();
    let all = failure.chain(found).chain(weak).filter(|reason| codes.insert(reason.code.clone()));
    all.take(MAX_REASONS).collect()
}

fn reason(code: FailureCode, message: &str) -> SweepReason {
    SweepReason { code, path: None, message: shortened(message) }
}

fn shortened(text: &str) -> String {
    let end = (0..=MAX_MESSAGE_BYTES.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    let end = end.unwrap_or(0);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

/// Counts the points by status.
pub(crate) fn counts(points: &[SweepPoint]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for point in points {
        *counts.entry(point.status.name().to_owned()).or_insert(0) += 1;
    }
    counts
}

/// Returns the best point by each measure. Times on the emulated device or on different kinds of
/// GPU are not ranked; points on the emulated device are ranked by counts.
pub(crate) fn best(points: &[SweepPoint], devices: &[DeviceReport]) -> SweepBest {
    let not_ranked =
        |why: &str| SweepBest { not_ranked: Some(why.to_owned()), ..SweepBest::default() };
    let emulated = devices.iter().filter(|device| device.kind == DeviceKind::Emulator).count();
    if emulated > 0 && emulated == devices.len() {
        let counted = |count: fn(Counted) -> u64| {
            lowest(points, &move |point| point.counted.map(|counted| count(counted) as f64))
        };
        return SweepBest {
            warp_instructions: counted(|counted| counted.warp_instructions),
            global_sectors: counted(|counted| counted.global_sectors),
            ..not_ranked(
                "the points ran on the emulator, whose times say nothing about a GPU; they are \
                 ranked by counts of one launch instead",
            )
        };
    }
    if emulated > 0 || devices.iter().map(|device| &device.name).collect::<BTreeSet<_>>().len() > 1
    {
        return not_ranked(
            "the points ran on different kinds of device; run the sweep on one of them",
        );
    }
    let highest = |measure: fn(&SweepPoint) -> Option<f64>| {
        let best = lowest(points, &move |point| measure(point).map(|value| -value))?;
        Some(BestPoint { value: -best.value, ..best })
    };
    let best = SweepBest {
        median_ms: lowest(points, &|point| Some(point.runtime_stats.as_ref()?.ranked_ms())),
        gbps: highest(|point| point.gbps),
        gflops: highest(|point| point.gflops),
        ..SweepBest::default()
    };
    if best.median_ms.is_none() {
        return not_ranked("no point is known to be correct and has a time");
    }
    best
}

/// Returns the correct point with the lowest measure. Among equal points, returns the first.
fn lowest(
    points: &[SweepPoint],
    measure: &dyn Fn(&SweepPoint) -> Option<f64>,
) -> Option<BestPoint> {
    let correct = points.iter().filter(|point| point.status == SweepStatus::Correct);
    let measured = correct.filter_map(|point| Some((point, measure(point)?)));
    let (point, value) = measured.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some(BestPoint { index: point.index, values: point.values.clone(), value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_report::{SweepTable, SweepView};

    fn report() -> EvaluateResponse {
        serde_json::from_str(include_str!("../../../../../openapi/examples/report.json")).unwrap()
    }

    fn values(n: i64) -> BTreeMap<String, AxisValue> {
        BTreeMap::from([("n".to_owned(), AxisValue::Int(n))])
    }

    fn timed(n: i64, median_ms: f64, correct: Option<bool>) -> (SweepPoint, DeviceReport) {
        let mut report = report();
        let device = report.device.as_mut().unwrap();
        device.kind = DeviceKind::Cuda;
        let device = device.clone();
        report.verdict = None;
        let result = &mut report.kernel_exec_result;
        result.correctness = correct;
        result.runtime_stats.as_mut().unwrap().median = median_ms;
        let work = Work { bytes: Some(n as f64 * 1e6), flops: None };
        (evaluated(n as usize, values(n), &report, Some(&work)), device)
    }

    #[test]
    fn throughput_is_work_over_the_median() {
        let (point, device) = timed(4, 2.0, Some(true));
        assert_eq!(point.gbps, Some(2.0));
        assert_eq!(point.gflops, None);
        assert_eq!(point.status, SweepStatus::Correct);
        assert_eq!(point.device, Some(device.uuid));
    }

    #[test]
    fn only_correct_points_are_ranked() {
        let device = timed(1, 1.0, None).1;
        let points = [
            timed(1, 4.0, Some(true)).0,
            timed(9, 5.0, Some(true)).0,
            timed(3, 0.5, Some(false)).0,
            timed(4, 0.5, None).0,
        ];
        let best = best(&points, std::slice::from_ref(&device));
        let shortest = best.median_ms.unwrap();
        assert_eq!((shortest.index, shortest.value), (1, 4.0));
        assert_eq!(best.gbps.unwrap().index, 9);
        assert_eq!((best.gflops, best.not_ranked), (None, None));
        assert_eq!(
            counts(&points),
            BTreeMap::from([("correct".into(), 2), ("not_checked".into(), 1), ("wrong".into(), 1)])
        );
    }

    #[test]
    fn what_cannot_be_compared_is_not_ranked() {
        let (point, device) = timed(1, 1.0, Some(true));
        let other = DeviceReport { name: "another".to_owned(), ..device.clone() };
        let emulated = DeviceReport { kind: DeviceKind::Emulator, ..device.clone() };
        for (devices, part) in [
            (vec![device.clone(), other], "different kinds"),
            (vec![device.clone(), emulated.clone()], "different kinds"),
            (vec![emulated], "emulator"),
        ] {
            let best = best(std::slice::from_ref(&point), &devices);
            assert!(best.not_ranked.unwrap().contains(part));
            assert_eq!(best.median_ms, None);
        }
        let unchecked = timed(1, 1.0, None).0;
        assert!(best(&[unchecked], &[device]).not_ranked.unwrap().contains("no point"));
    }

    #[test]
    fn on_the_emulator_counts_are_ranked() {
        let (point, device) = timed(1, 1.0, Some(true));
        let emulated = DeviceReport { kind: DeviceKind::Emulator, ..device };
        let counted = |n: i64, warp_instructions, global_sectors, status| SweepPoint {
            counted: Some(Counted { warp_instructions, global_sectors }),
            status,
            ..SweepPoint { index: n as usize, values: values(n), ..point.clone() }
        };
        let points = [
            counted(0, 50, 9, SweepStatus::Correct),
            counted(1, 40, 10, SweepStatus::Correct),
            counted(2, 40, 9, SweepStatus::Correct),
            counted(3, 1, 1, SweepStatus::Wrong),
        ];
        let best = best(&points, &[emulated]);
        let index = |best: Option<BestPoint>| best.map(|best| (best.index, best.value));
        assert_eq!(index(best.warp_instructions), Some((1, 40.0)));
        assert_eq!(index(best.global_sectors), Some((0, 9.0)));
        assert_eq!((best.median_ms, best.gbps), (None, None));
        let axes = [warpgauge_contract::SweepAxis { name: "n".to_owned(), values: Vec::new() }];
        let table = SweepTable::of(&axes, &points);
        assert_eq!(table.columns[7..], ["reason", "warp_instructions", "global_sectors"]);
        assert_eq!(table.rows[1][8..], [40, 10]);
    }

    #[test]
    fn emulated_times_give_no_throughput() {
        let mut report = report();
        report.device.as_mut().unwrap().kind = DeviceKind::Emulator;
        let work = Work { bytes: Some(1.0), flops: Some(1.0) };
        let point = evaluated(0, values(1), &report, Some(&work));
        assert_eq!((point.gbps, point.gflops), (None, None));
        assert!(point.runtime_stats.is_some());
    }

    #[test]
    fn tables_have_a_row_for_every_point() {
        let error = ExecError::Unavailable("no \"nvcc\", here".to_owned());
        let points = [timed(4, 2.0, Some(true)).0, failed(5, values(5), &error)];
        let axes = [warpgauge_contract::SweepAxis {
            name: "n".to_owned(),
            values: vec![AxisValue::Int(4), AxisValue::Int(5)],
        }];
        let table = SweepTable::of(&axes, &points);
        let csv = table.to_csv().unwrap();
        let mut lines = csv.lines();
        assert_eq!(
            lines.next(),
            Some("n,status,median_ms,ci_low_ms,ci_high_ms,gbps,gflops,reason")
        );
        assert!(lines.next().unwrap().starts_with("4,correct,2.0,"));
        assert_eq!(lines.next(), Some("5,error,,,,,,\"no \"\"nvcc\"\", here\""));
        let view = SweepView { points: 2, points_done: 1, result: None };
        assert!(serde_json::to_value(view).unwrap().get("result").is_none());
    }
}
