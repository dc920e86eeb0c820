//! Files that somebody else made with NVIDIA's tools, known by their content.

use std::collections::BTreeSet;

use serde::Serialize;

use super::catalogue::MetricUnit;
use super::ncu::{self, NcuCsvError, NcuReport, NcuRule};
use super::nsys::{self, NsysError, NsysReport, Timeline, timeline};
use super::sanitizer::{self, SanitizerLog};
use super::select::Selection;
use super::several::{ProfiledLaunch, several_metrics};
use super::types::{Conditions, DeviceMetrics};
use super::values::CollectedMetrics;
use warpgauge_model::Unavailable;

/// Percentages above 100 that are told of.
const MAX_ABOVE: usize = 20;
/// Compute capability of a device of which the file does not tell it.
const UNKNOWN: u32 = 0;

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Imported {
    /// A page of Nsight Compute.
    Ncu {
        /// The metrics of its kernels.
        device_metrics: Box<DeviceMetrics>,
        /// What the tool's own rules found.
        rules: Vec<KernelRule>,
        /// What was left out of the file, and what to know of the rest.
        notes: Vec<String>,
    },
    /// Tables of Nsight Systems.
    Nsys {
        /// The tables.
        #[serde(flatten)]
        report: NsysReport,
        /// Busy and idle time of each device, if the tables have a trace.
        timelines: Vec<DeviceTimeline>,
    },
    /// A log of compute-sanitizer.
    Sanitizer(SanitizerLog),
}

/// A rule's finding and its kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelRule {
    /// The kernel.
    pub kernel: String,
    /// The finding.
    #[serde(flatten)]
    pub rule: NcuRule,
}

/// The time of a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceTimeline {
    /// As the tool names it.
    pub device: String,
    /// Its time.
    #[serde(flatten)]
    pub timeline: Timeline,
    /// Busy time, in percent of all.
    pub utilisation_pct: Option<f64>,
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ImportError {
    /// It is a report in NVIDIA's own format.
    #[error(
        "this is a report of Nsight Systems; export its tables with `nsys stats --format csv \
         --force-export=true FILE` and import those"
    )]
    NsysReport,
    /// Files of several tools, concatenated.
    #[error(
        "the file holds {first} and {second}: import each from a file of its own, since one of \
         them would be lost"
    )]
    SeveralTools {
        /// What of one tool.
        first: &'static str,
        /// What of another.
        second: &'static str,
    },
    /// It is something else.
    #[error(
        "this is neither a CSV page of Nsight Compute, nor tables of `nsys stats`, nor a log of \
         compute-sanitizer"
    )]
    UnknownContent,
    /// The tool wrote why it has nothing.
    #[error("{} ({})", .0.reason, .0.remedy)]
    Nothing(Unavailable),
    /// A page of Nsight Compute cannot be trusted.
    #[error(transparent)]
    Ncu(#[from] NcuCsvError),
    /// Tables of Nsight Systems cannot be trusted.
    #[error(transparent)]
    Nsys(#[from] NsysError),
}

/// The text of a file: UTF-8, or UTF-16 as Windows' shells write it, with lines that end as they
/// do anywhere.
pub fn decode(bytes: &[u8]) -> String {
    let wide = |rest: &[u8], of: fn([u8; 2]) -> u16| {
        let (units, _) = rest.as_chunks::<2>();
        char::decode_utf16(units.iter().copied().map(of))
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    let text: String = match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        // Without the mark, the zeros of the first letters tell.
        [first, 0, second, 0, ..] if *first > 0 && *second > 0 => wide(bytes, u16::from_le_bytes),
        [0, first, 0, second, ..] if *first > 0 && *second > 0 => wide(bytes, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    };
    match text.contains('\r') && !text.contains('\n') {
        true => text.replace('\r', "\n"),
        false => text,
    }
}

/// Whether a file is a report that only Nsight Compute itself reads.
pub fn is_ncu_report(bytes: &[u8]) -> bool {
    bytes.starts_with(b"NVR\0")
}

/// Reads a text of one of the tools; of a page of Nsight Compute, the selected metrics.
///
/// # Errors
/// See [`ImportError`].
pub fn import(text: &str, selection: &Selection) -> Result<Imported, ImportError> {
    import_file(text, "", selection)
}

/// The same for a file, whose name may say which report of Nsight Systems it is.
///
/// # Errors
/// See [`ImportError`].
pub fn import_file(text: &str, name: &str, selection: &Selection) -> Result<Imported, ImportError> {
    if text.starts_with("SQLite format 3") {
        return Err(ImportError::NsysReport);
    }
    let kinds = [
        (ncu::looks_like_page(text), "a page of Nsight Compute"),
        (sanitizer::looks_like_log(text), "a log of compute-sanitizer"),
        (nsys::looks_like_stats(text), "tables of Nsight Systems"),
    ];
    let mut found = kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind);
    if let (Some(first), Some(second)) = (found.next(), found.next()) {
        return Err(ImportError::SeveralTools { first, second });
    }
    match kinds {
        [(true, _), ..] => ncu_page(ncu::parse_csv(text)?, text, selection),
        [_, (true, _), _] => match sanitizer::cause(text) {
            Some(cause) => {
                Err(ImportError::Nothing(cause.because("compute-sanitizer checked nothing")))
            }
            None => Ok(Imported::Sanitizer(sanitizer::parse_log(text))),
        },
        [.., (true, _)] => Ok(nsys_tables(nsys::parse_stats_of(text, name)?)),
        _ => Err(nothing(text)),
    }
}

/// Why a text holds nothing of the tools.
fn nothing(text: &str) -> ImportError {
    if let Err(summary @ NcuCsvError::Summary { .. }) = ncu::parse_csv(text) {
        return summary.into();
    }
    let problems = ncu::parse_log(text).problems.into_iter();
    let problem = problems.chain(nsys::parse_stats(text).unwrap_or_default().problems).next();
    problem.map_or(ImportError::UnknownContent, ImportError::Nothing)
}

fn ncu_page(report: NcuReport, text: &str, selection: &Selection) -> Result<Imported, ImportError> {
    let unreadable = ncu::parse_log(text).unreadable;
    let conditions = Conditions::default();
    let collected: Vec<(CollectedMetrics, u32)> = report
        .kernels
        .iter()
        .map(|kernel| {
            let of = |requested: &BTreeSet<&str>| {
                kernel.collected("Nsight Compute", &conditions, requested, &unreadable)
            };
            (of(&BTreeSet::new()), kernel.capability.unwrap_or(UNKNOWN))
        })
        .collect();
    let profiled: Vec<ProfiledLaunch<'_>> = collected
        .iter()
        .map(|(collected, capability)| ProfiledLaunch {
            collected,
            capability: *capability,
            launch: None,
        })
        .collect();
    let rules = report.kernels.iter().flat_map(|kernel| {
        let of = |rule: &NcuRule| KernelRule { kernel: kernel.name.clone(), rule: rule.clone() };
        kernel.rules.iter().map(of)
    });
    let rules = rules.collect();
    // A page without kernels is an error of the parser already.
    let metrics = several_metrics(&profiled, selection).ok_or(NcuCsvError::NoHeader)?;
    let mut notes = report.notes;
    notes.extend(above_all(&metrics));
    Ok(Imported::Ncu { device_metrics: Box::new(metrics), rules, notes })
}

/// Percentages above 100: what to know of them.
fn above_all(metrics: &DeviceMetrics) -> Vec<String> {
    let of_all = metrics.metrics.iter().map(|(id, metric)| (id, metric, &metrics.kernel));
    let by_kernel = metrics.kernels.iter().flat_map(|kernel| {
        kernel.metrics.iter().map(move |(id, metric)| (id, metric, &kernel.kernel))
    });
    let percent = Some(MetricUnit::Percent.name());
    let above = of_all.chain(by_kernel).filter_map(|(id, metric, kernel)| {
        let value = metric.value.filter(|value| *value > 100.0)?;
        (metric.unit.as_deref() == percent).then(|| {
            format!(
                "{id} of {kernel} is {value:.1} %: above 100, since its parts are of different \
                 passes, or since more than its sustained peak was reached for a while"
            )
        })
    });
    above.take(MAX_ABOVE).collect()
}

fn nsys_tables(mut report: NsysReport) -> Imported {
    let devices: BTreeSet<&str> = report.trace.iter().map(|event| event.device.as_str()).collect();
    let timelines = devices.into_iter().filter_map(|device| {
        let timeline = timeline(report.trace.iter().filter(|event| event.device == device))?;
        let utilisation_pct = timeline.utilisation_pct();
        Some(DeviceTimeline { device: device.to_owned(), timeline, utilisation_pct })
    });
    let mut timelines: Vec<DeviceTimeline> = timelines.collect();
    if report.traces > 1 {
        timelines.clear();
        report.notes.push(format!(
            "{} traces: each counts its times from its own beginning, so there is no busy and idle \
             time of them together; import each from a file of its own",
            report.traces
        ));
    }
    Imported::Nsys { timelines, report }
}

#[cfg(test)]
mod tests;
