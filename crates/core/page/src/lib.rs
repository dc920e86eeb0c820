//! Reports as HTML. The main functions are [`file`] and [`job`].
//!
//! A page is readable without a script and without any request beside its style sheet. All texts come from kernels
//! and their users: `maud` escapes every text, and [`text`] bounds its length and replaces characters that would
//! steer the writing direction. Drawings are those of `warpgauge-svg`, whose elements escape their texts as well.
//! Equal calls give equal bytes. The crate does no I/O.
//!
//! - `style`: the style sheet, with all sizes and colours
//! - `document`: what every page has around its content
//! - `parts`: pieces that several pages consist of
//! - `chart`: drawings
//! - `code`: the source of a kernel beside its PTX and SASS
//! - `differences`: two evaluations beside each other
//! - `evaluation`, `comparison`, `sweep`, `gate`: one kind of report each
//! - `jobs`: the state of a job, the list of jobs, and pages without a report

#![forbid(unsafe_code)]

mod chart;
mod code;
mod comparison;
mod differences;
mod document;
mod evaluation;
mod gate;
mod jobs;
mod parts;
pub mod style;
mod sweep;
mod text;

#[cfg(test)]
mod tests;

use warpgauge_job_views::JobView;
use warpgauge_report::{CompareResponse, EvaluateResponse, SweepResponse};

pub use code::code;
pub use document::{ArtifactLink, Links};
pub use jobs::{Listed, Notice, job, list, notice};

/// A report that [`file`] writes.
#[derive(Debug, Clone, Copy)]
pub enum PageOf<'a> {
    /// An evaluation, with or without device metrics.
    Evaluation(&'a EvaluateResponse),
    /// A comparison, with the name of its reference.
    Comparison(&'a CompareResponse, &'a str),
    /// A sweep.
    Sweep(&'a SweepResponse),
    /// A job: its report, or where it stands.
    Job(&'a JobView),
}

/// Writes a report as one HTML file, with its style sheet in it: it loads nothing, and can be mailed.
pub fn file(page: PageOf<'_>) -> String {
    let links = Links::none();
    let content = match page {
        PageOf::Evaluation(report) => evaluation::content(report, &links),
        PageOf::Comparison(report, reference) => comparison::content(report, reference, &links),
        PageOf::Sweep(report) => sweep::content(report),
        PageOf::Job(view) => jobs::content(view, &links),
    };
    content.whole(&links)
}

/// Writes what differs between the evaluations of two jobs. `None`: one of them has no report of an evaluation.
pub fn differences(jobs: [&JobView; 2], links: &Links) -> Option<String> {
    differences::content(jobs, links).map(|content| content.whole(links))
}
