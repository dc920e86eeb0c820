//! Files that somebody else made with NVIDIA's tools, known by their content.

use std::collections::BTreeSet;

use serde::Serialize;

use super::ncu::{self, NcuCsvError, NcuReport, NcuRule};
use super::nsys::{self, NsysError, NsysReport, Timeline, timeline};
use super::sanitizer::{self, SanitizerLog};
use super::select::Selection;
use super::several::{Profiled, several_metrics};
use super::types::{Conditions, DeviceMetrics, Unavailable};
use super::values::Collected;

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

/// The text of a file: UTF-8, or UTF-16 as Windows' shells write it.
pub fn decode(bytes: &[u8]) -> String {
    let wide = |rest: &[u8], of: fn([u8; 2]) -> u16| {
        let (units, _) = rest.as_chunks::<2>();
        char::decode_utf16(units.iter().copied().map(of))
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => String::from_utf8_lossy(bytes).into_owned(),
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
    if text.starts_with("SQLite format 3") {
        return Err(ImportError::NsysReport);
    }
    if ncu::looks_like_page(text) {
        return ncu_page(ncu::parse_csv(text)?, text, selection);
    }
    if sanitizer::looks_like_log(text) {
        return match sanitizer::cause(text) {
            Some(cause) => {
                Err(ImportError::Nothing(cause.because("compute-sanitizer checked nothing")))
            }
            None => Ok(Imported::Sanitizer(sanitizer::parse_log(text))),
        };
    }
    if nsys::looks_like_stats(text) {
        return Ok(nsys_tables(nsys::parse_stats(text)?));
    }
    let problems = ncu::parse_log(text).problems.into_iter();
    let problem = problems.chain(nsys::parse_stats(text).unwrap_or_default().problems).next();
    Err(problem.map_or(ImportError::UnknownContent, ImportError::Nothing))
}

fn ncu_page(report: NcuReport, text: &str, selection: &Selection) -> Result<Imported, ImportError> {
    let unreadable = ncu::parse_log(text).unreadable;
    let conditions = Conditions::default();
    let collected: Vec<(Collected, u32)> = report
        .kernels
        .iter()
        .map(|kernel| {
            let of = |requested: &BTreeSet<&str>| {
                kernel.collected("Nsight Compute", &conditions, requested, &unreadable)
            };
            (of(&BTreeSet::new()), kernel.capability.unwrap_or(UNKNOWN))
        })
        .collect();
    let profiled: Vec<Profiled<'_>> = collected
        .iter()
        .map(|(collected, capability)| Profiled {
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
    Ok(Imported::Ncu { device_metrics: Box::new(metrics), rules })
}

fn nsys_tables(report: NsysReport) -> Imported {
    let devices: BTreeSet<&str> = report.trace.iter().map(|event| event.device.as_str()).collect();
    let timelines = devices.into_iter().filter_map(|device| {
        let timeline = timeline(report.trace.iter().filter(|event| event.device == device))?;
        let utilisation_pct = timeline.utilisation_pct();
        Some(DeviceTimeline { device: device.to_owned(), timeline, utilisation_pct })
    });
    Imported::Nsys { timelines: timelines.collect(), report }
}

#[cfg(test)]
mod tests;
