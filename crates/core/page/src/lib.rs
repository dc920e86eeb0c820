//! Writes reports as HTML. The main functions are [`file`] and [`job`].
//!
//! A page is readable without scripts. It loads nothing except its style sheet and, at a server, the
//! script that updates the list of jobs or the page of a job that has not ended. All texts come
//! from kernels and their users. `maud` escapes every text, and [`text`] limits its length and
//! replaces characters that change the writing direction. `warpgauge-svg` makes the drawings and
//! also escapes their texts. Equal calls produce equal bytes. The crate does no I/O.
//!
//! - `style`: the style sheet, with all sizes and colours
//! - `document`: the parts of a page that surround its content
//! - `parts`: elements that several pages share
//! - `chart`: drawings
//! - `built`: how a kernel was built and launched
//! - `code`: the source of a kernel side by side with its PTX and SASS
//! - `counters`: the counters of its lines and instructions
//! - `differences`: the differences between two evaluations
//! - `evaluation`, `comparison`, `sweep`, `gate`: one kind of report each
//! - `imported`: reports of NVIDIA's tools
//! - `submit`: the form for kernels
//! - `jobs`: the state of a job, the list of jobs, and pages without a report
//! - `live`: the progress of a job that has not ended
//! - `script`: the scripts that update pages
//! - `job_filter`: the filter of the list
//! - `devices`: the devices of a server, and what it can do
//! - `clocks`: clocks, power and temperature of a device
//! - `history`: results of cases over time

#![forbid(unsafe_code)]

mod built;
mod chart;
mod clocks;
mod code;
mod comparison;
mod counters;
mod devices;
mod differences;
mod document;
mod evaluation;
mod gate;
mod history;
mod imported;
mod job_filter;
mod jobs;
mod live;
mod parts;
mod script;
pub mod style;
mod submit;
mod sweep;
mod text;

#[cfg(test)]
mod tests;

use warpgauge_job_views::JobView;
use warpgauge_metrics::import::{Changes, Imported};
use warpgauge_report::{CompareResponse, EvaluateResponse, SweepResponse};

pub use code::code;
pub use devices::{DeviceOverview, MachineOverview, devices};
pub use document::{ArtifactLink, Links};
pub use history::{HistoryShown, history};
pub use imported::import_form;
pub use job_filter::ListFilter;
pub use jobs::{Listed, Notice, job, list, notice};
pub use script::PageScript;
pub use submit::{LANGUAGES, Submission, submit};

/// A report for [`file`].
#[derive(Debug, Clone, Copy)]
pub enum PageOf<'a> {
    /// An evaluation, with or without device metrics.
    Evaluation(&'a EvaluateResponse),
    /// A comparison, with the name of its reference.
    Comparison(&'a CompareResponse, &'a str),
    /// A sweep.
    Sweep(&'a SweepResponse),
    /// A file of NVIDIA's tools, with its name.
    Imported(&'a Imported, &'a str),
    /// The changes between two files of NVIDIA's tools, with the names of the earlier and the later
    /// file.
    Changes(&'a Changes, [&'a str; 2]),
    /// A job: its report, or its state.
    Job(&'a JobView),
}

/// Writes a report as a single HTML file. It contains its style sheet and loads nothing, so it can
/// be sent by email.
pub fn file(page: PageOf<'_>) -> String {
    self::page(page, &Links::none())
}

/// Writes a report as a page with these links.
pub fn page(page: PageOf<'_>, links: &Links) -> String {
    let content = match page {
        PageOf::Evaluation(report) => evaluation::content(report, links),
        PageOf::Comparison(report, reference) => comparison::content(report, reference, links),
        PageOf::Sweep(report) => sweep::content(report),
        PageOf::Imported(imported, name) => imported::content(imported, name),
        PageOf::Changes(changes, [before, after]) => imported::changed(changes, before, after),
        PageOf::Job(view) => jobs::content(view, None, links),
    };
    content.whole(links)
}

/// Writes the differences between the evaluations of two jobs. Returns `None` if one of them has no
/// evaluation report.
pub fn differences(jobs: [&JobView; 2], links: &Links) -> Option<String> {
    differences::content(jobs, links).map(|content| content.whole(links))
}
