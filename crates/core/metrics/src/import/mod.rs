//! Imports files that NVIDIA's tools wrote. The content of a file identifies the tool. The main
//! type is [`Imported`].

mod changes;
mod format;
mod large;
mod packed;
mod schema;
mod text;
mod verdict;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::catalogue::MetricUnit;
use super::ncu::{self, NcuCsvError, NcuReport, NcuRule, SourcePage};
use super::nsys::{self, NsysError, NsysReport, Timeline};
use super::sanitizer::{self, SanitizerLog};
use super::select::{Selection, select};
use super::several::{ProfiledLaunch, several_metrics};
use super::types::{Conditions, DeviceMetrics};
use super::values::CollectedMetrics;
pub use changes::{Changes, ChangesError, KernelChange, MetricChange, changes};
pub use format::{is_ncu_report, is_sqlite};
pub use packed::unpacked;
pub use text::decode;
pub use verdict::{ImportedVerdict, OccupancyLimiter, TopStall};
use warpgauge_model::{Cause, Unavailable};

/// Maximum size of a report, also unpacked, bytes.
pub const MAX_REPORT_BYTES: usize = 256 << 20;
/// Maximum number of notes about percentages above 100.
const MAX_ABOVE: usize = 20;
/// Maximum size of a page whose launches are all kept in memory, bytes. Larger raw pages are parsed
/// launch by launch.
const LARGE: usize = 8 << 20;
/// Compute capability that means "unknown". It is used if the file does not contain the value.
const UNKNOWN: u32 = 0;

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Imported {
    /// A page of Nsight Compute.
    Ncu {
        /// Metrics of the kernels in the page.
        device_metrics: Box<DeviceMetrics>,
        /// Resource that limits each kernel. The kernels with the longest time come first.
        verdicts: Vec<ImportedVerdict>,
        /// Findings of the tool's own rules.
        rules: Vec<KernelRule>,
        /// Lines that were left out, and caveats.
        notes: Vec<String>,
    },
    /// Counters of each line of code, from a source page of Nsight Compute.
    NcuSource(SourcePage),
    /// Tables or an SQLite export of Nsight Systems.
    Nsys {
        #[serde(flatten)]
        report: NsysReport,
        /// Busy and idle time of each device, if the tables include a trace.
        timelines: Vec<DeviceTimeline>,
    },
    /// A log of compute-sanitizer.
    Sanitizer(SanitizerLog),
}

/// Finding of a rule, with its kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KernelRule {
    pub kernel: String,
    #[serde(flatten)]
    pub rule: NcuRule,
    /// Number of launches with this finding.
    pub launches: u32,
}

/// Busy and idle time of a device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceTimeline {
    /// Name of the device in the tool's output.
    pub device: String,
    #[serde(flatten)]
    pub timeline: Timeline,
    /// Busy time as a percentage of the whole time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation_pct: Option<f64>,
}

/// Reasons why a file cannot be imported.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ImportError {
    /// The file has a known format that is not supported. `help` contains a remedy.
    #[error("this is {what}; {help}")]
    OtherFormat { what: &'static str, help: &'static str },
    /// The file contains concatenated output of several tools.
    #[error(
        "the file contains {first} and {second}: import each from a separate file, because one of \
         them would be ignored"
    )]
    SeveralTools { first: &'static str, second: &'static str },
    /// The format of the file is not known.
    #[error(
        "this is neither a page of Nsight Compute, nor tables of `nsys stats`, nor a log of \
         compute-sanitizer; export with `ncu --import FILE --csv --page raw --print-units base`, \
         or `nsys stats --format csv FILE`"
    )]
    UnknownContent,
    /// A gzip file is damaged or truncated.
    #[error("the gzip file cannot be unpacked: {0}; check it with `gunzip --test FILE`")]
    Packed(String),
    /// The unpacked content of a gzip file is too large.
    #[error("the gzip file is longer than {mib} MiB when it is unpacked; export fewer kernels")]
    TooLongUnpacked { mib: usize },
    /// The text contains only progress messages of Nsight Compute. The values are in a report.
    #[error(
        "this is the progress of Nsight Compute, which profiled {kernels} launches and wrote their \
         values to {report}; export it with `ncu --import FILE --csv --page raw --print-units base`"
    )]
    Progress {
        /// Number of launches that were profiled.
        kernels: usize,
        /// Name of the report in the log.
        report: String,
    },
    /// The tool reported why there are no data.
    #[error("{} ({})", .0.reason, .0.remedy)]
    Nothing(Unavailable),
    /// A page of Nsight Compute is malformed.
    #[error(transparent)]
    Ncu(#[from] NcuCsvError),
    /// Tables of Nsight Systems are malformed.
    #[error(transparent)]
    Nsys(#[from] NsysError),
}

/// Parses a file. The content identifies the tool. For tables of Nsight Systems, the file's name
/// may identify the report.
///
/// # Errors
/// See [`ImportError`].
pub fn import_bytes(
    bytes: Vec<u8>,
    name: &str,
    selection: &Selection,
) -> Result<Imported, ImportError> {
    if let Some((what, help)) = format::of_bytes(&bytes, name) {
        return Err(ImportError::OtherFormat { what, help });
    }
    let text = text::without_prefixes(decode(bytes));
    import_file(&text, name, selection)
}

/// Parses the output of one of the tools. For a page of Nsight Compute, the result contains the
/// selected metrics.
///
/// # Errors
/// See [`ImportError`].
pub fn import(text: &str, selection: &Selection) -> Result<Imported, ImportError> {
    import_file(text, "", selection)
}

/// Parses the content of a file as [`import`] does. For tables of Nsight Systems, the file's name
/// may identify the report.
///
/// # Errors
/// See [`ImportError`].
pub fn import_file(text: &str, name: &str, selection: &Selection) -> Result<Imported, ImportError> {
    let page = ncu::looks_like_page(text);
    let kinds = [
        (page, "a page of Nsight Compute"),
        (!page && ncu::looks_like_source(text), "a source page of Nsight Compute"),
        (!page && ncu::looks_like_console(text), "console output of Nsight Compute"),
        (sanitizer::looks_like_log(text), "a log of compute-sanitizer"),
        (nsys::looks_like_stats(text), "tables of Nsight Systems"),
    ];
    let mut found = kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| *kind);
    if let (Some(first), Some(second)) = (found.next(), found.next()) {
        return Err(ImportError::SeveralTools { first, second });
    }
    match kinds.iter().position(|(is, _)| *is) {
        Some(0) => page_of(text, selection),
        Some(1) => Ok(Imported::NcuSource(ncu::parse_source(text)?)),
        Some(2) => ncu_page(ncu::parse_console(text)?, text, selection),
        Some(3) => match sanitizer::nothing(text) {
            Some(why) => Err(ImportError::Nothing(why)),
            None => Ok(Imported::Sanitizer(sanitizer::parse_log(text))),
        },
        Some(_) => Ok(nsys_tables(nsys::parse_stats_of(text, name)?)),
        None => Err(nothing(text)),
    }
}

fn page_of(text: &str, selection: &Selection) -> Result<Imported, ImportError> {
    let is_large = text.len() > LARGE;
    if is_large {
        match large::ncu_page(text, selection) {
            // With this error, `large::ncu_page` rejects details pages and texts that contain
            // several pages.
            Err(ImportError::Ncu(NcuCsvError::TooManyCells { .. })) => {}
            imported => return imported,
        }
    }
    match ncu::parse_csv(text) {
        Err(NcuCsvError::TooManyCells { .. }) if !is_large => large::ncu_page(text, selection),
        report => ncu_page(report?, text, selection),
    }
}

/// Returns why a text contains no output of a supported tool.
fn nothing(text: &str) -> ImportError {
    if let Some((what, help)) = format::of_text(text) {
        return ImportError::OtherFormat { what, help };
    }
    // Parsing a text with millions of lines takes far longer than this search.
    if text.contains("Metric Name")
        && let Err(summary @ NcuCsvError::Summary { .. }) = ncu::parse_csv(text)
    {
        return summary.into();
    }
    let log = ncu::parse_log(text);
    let failed = text.lines().any(|line| line.starts_with("==ERROR=="));
    if !log.kernels.is_empty() && !failed {
        let report = log.reports.last();
        let report = report.map_or_else(|| "a report".to_owned(), |path| format!("`{path}`"));
        return ImportError::Progress { kernels: log.kernels.len(), report };
    }
    let problems = log.problems.into_iter();
    let problem = problems.chain(nsys::parse_stats(text).unwrap_or_default().problems).next();
    match problem {
        Some(problem) => ImportError::Nothing(problem),
        None if text.lines().any(|line| line.starts_with("==PROF== Connected to process")) => {
            let why = "Nsight Compute connected to the program, but profiled no launch";
            ImportError::Nothing(Cause::NoKernel.because(why))
        }
        None => ImportError::UnknownContent,
    }
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
    // The parser has already rejected pages without kernels.
    let mut metrics = several_metrics(&profiled, selection).ok_or(NcuCsvError::NoHeader)?;
    // Verdicts are based on all metrics, whether or not they are selected.
    let all = (!selection.is_all()).then(|| several_metrics(&profiled, &select(&[]))).flatten();
    let verdicts = verdict::verdicts(all.as_ref().unwrap_or(&metrics), &report.kernels);
    if let [only] = verdicts.as_slice() {
        metrics.roofline.clone_from(&only.roofline);
        metrics.advice.clone_from(&only.advice);
    }
    let rules = verdict::rules(&report.kernels);
    let mut notes = report.notes;
    notes.extend(not_listed(&metrics, report.kernels.len() as u64));
    notes.extend(above_all(&metrics));
    Ok(Imported::Ncu { device_metrics: Box::new(metrics), verdicts, rules, notes })
}

/// Returns a note about the kernels that are not listed, if there are any. `launches` is the number
/// of launches of all kernels.
fn not_listed(metrics: &DeviceMetrics, launches: u64) -> Option<String> {
    let kernels = metrics.kernels_left_out?;
    let listed: u64 = metrics.kernels.iter().map(|kernel| u64::from(kernel.launches)).sum();
    Some(format!(
        "{kernels} kernels with {} launches are not listed, because their total times are shorter; \
         the metrics of all kernels include them",
        launches.saturating_sub(listed)
    ))
}

/// Returns notes about percentages above 100.
fn above_all(metrics: &DeviceMetrics) -> Vec<String> {
    let of_all = metrics.metrics.iter().map(|(id, metric)| (id, metric, &metrics.kernel));
    let by_kernel = metrics.kernels.iter().flat_map(|kernel| {
        kernel.metrics.iter().map(move |(id, metric)| (id, metric, &kernel.kernel))
    });
    let percent = Some(MetricUnit::Percent.name());
    let above = of_all.chain(by_kernel).filter_map(|(id, metric, kernel)| {
        let value = metric.value.filter(|value| *value > 100.0)?;
        let shown = format!("{value:.1}");
        // The tool rounds its values, so that `100.0` may be 100.
        (metric.unit.as_deref() == percent && shown != "100.0").then(|| {
            format!(
                "{id} of {kernel} is {shown} %, above 100: its counters are from different \
                 passes, or the rate exceeded the sustained peak for a short time"
            )
        })
    });
    above.take(MAX_ABOVE).collect()
}

/// Returns the content of an SQLite export of Nsight Systems. `report` contains its rows.
pub fn nsys_export(report: NsysReport) -> Imported {
    nsys_tables(report)
}

fn nsys_tables(mut report: NsysReport) -> Imported {
    let timelines = std::mem::take(&mut report.timelines).into_iter();
    let timelines = timelines.map(|(device, timeline)| {
        let utilisation_pct = timeline.utilisation_pct();
        DeviceTimeline { device, timeline, utilisation_pct }
    });
    let mut timelines: Vec<DeviceTimeline> = timelines.collect();
    if let Some(left_out) = report.trace_left_out {
        report.notes.push(format!(
            "{left_out} activities are not listed, because there are too many; the times include \
             them"
        ));
    }
    if report.traces > 1 {
        timelines.clear();
        report.notes.push(format!(
            "{} traces: the times in each are relative to its own beginning, so their busy and \
             idle times cannot be combined; import each from a separate file",
            report.traces
        ));
    }
    Imported::Nsys { timelines, report }
}

#[cfg(test)]
mod tests;
