//! One text through each parser: what must hold for any text.

use warpgauge_metrics::import::{Imported, decode, import};
use warpgauge_metrics::{DeviceMetrics, Metric, ncu, nsys, sanitizer, select};
use warpgauge_model::Unavailable;

/// Longest message of an error, in bytes: messages quote the text.
const MAX_MESSAGE: usize = 70_000;

/// A value is a number, and 0 only if the text has such a digit.
fn value(value: f64, text: &str) {
    assert!(value.is_finite(), "{value}");
    assert!(value != 0.0 || text.contains('0'), "a zero out of nothing");
}

fn problem(problem: &Unavailable) {
    assert!(!problem.code.is_empty() && !problem.reason.is_empty() && !problem.remedy.is_empty());
    assert!(problem.reason.len() <= MAX_MESSAGE);
}

fn error(error: &impl std::fmt::Display) {
    let message = error.to_string();
    assert!(!message.is_empty() && message.len() <= MAX_MESSAGE, "{} bytes", message.len());
}

fn metrics(metrics: &DeviceMetrics) {
    let each = |metric: &Metric| {
        assert_ne!(metric.value.is_some(), metric.reason.is_some());
        assert_eq!(metric.value.is_some(), metric.source.is_some());
        assert!(metric.value.is_none_or(f64::is_finite));
    };
    metrics.metrics.values().for_each(each);
    metrics.kernels.iter().flat_map(|kernel| kernel.metrics.values()).for_each(each);
}

/// A page of Nsight Compute, and what becomes of it.
///
/// # Panics
/// What must hold does not.
pub fn ncu_csv(bytes: &[u8]) {
    let text = decode(bytes.to_vec());
    match ncu::parse_csv(&text) {
        Ok(report) => {
            assert!(!report.kernels.is_empty());
            for kernel in &report.kernels {
                kernel.values.values().for_each(|found| value(*found, &text));
                for (name, reason) in &kernel.missing {
                    assert!(!reason.is_empty() && !kernel.values.contains_key(name), "{name}");
                }
            }
        }
        Err(refused) => error(&refused),
    }
    match import(&text, &select(&[])) {
        Ok(Imported::Ncu { device_metrics, .. }) => metrics(&device_metrics),
        Ok(_) => {}
        Err(refused) => error(&refused),
    }
}

/// A log of Nsight Compute.
///
/// # Panics
/// What must hold does not.
pub fn ncu_log(bytes: &[u8]) {
    let text = decode(bytes.to_vec());
    let log = ncu::parse_log(&text);
    log.problems.iter().for_each(problem);
    assert_eq!(ncu::cause(&text).is_some(), !log.problems.is_empty());
    assert!(log.kernels.len() <= text.lines().count());
}

/// Tables of Nsight Systems.
///
/// # Panics
/// What must hold does not.
pub fn nsys(bytes: &[u8]) {
    let text = decode(bytes.to_vec());
    let report = match nsys::parse_stats(&text) {
        Ok(report) => report,
        Err(refused) => return error(&refused),
    };
    report.problems.iter().for_each(problem);
    let tables = [&report.kernels, &report.memory_time, &report.memory_size, &report.api];
    for row in tables.into_iter().flatten() {
        let others = [row.share_pct, row.mean, row.median, row.min, row.max, row.std_dev];
        others.into_iter().flatten().chain([row.total]).for_each(|found| value(found, &text));
    }
    if let Some(time) = nsys::timeline(report.trace.iter()) {
        assert!(time.busy <= time.span * (1.0 + 1e-9) + 1e-9, "{time:?}");
        assert!(time.kernels <= time.busy * (1.0 + 1e-9) + 1e-9, "{time:?}");
    }
    let _ = nsys::cause(&text);
}

/// A log of compute-sanitizer.
///
/// # Panics
/// What must hold does not.
pub fn sanitizer(bytes: &[u8]) {
    let text = decode(bytes.to_vec());
    let log = sanitizer::parse_log(&text);
    assert!(log.findings.len() <= sanitizer::MAX_FINDINGS);
    for finding in &log.findings {
        assert!(!finding.message.is_empty() && finding.message.len() <= 4_000);
        let first = finding.message.split([' ', ':']).next().unwrap_or_default();
        assert!(text.contains(first), "a finding out of nothing: {first}");
    }
    let _ = sanitizer::cause(&text);
}
