//! Creates pages of files that NVIDIA's tools wrote: kernels with their verdicts, timelines,
//! findings, and the changes between two reports.

mod changes;
mod form;
mod kernels;
mod tools;

use maud::{Markup, html};
use warpgauge_metrics::import::{Changes, Imported};

pub use form::import_form;

use crate::document::Content;
use crate::parts::{self, Section, Tone};
use crate::text;

/// Maximum number of notes that are shown.
const MAX_NOTES: usize = 50;

/// Creates the page of a file with this name.
pub(crate) fn content(imported: &Imported, file: &str) -> Content {
    let main = match imported {
        Imported::Ncu { device_metrics, verdicts, rules, notes } => {
            kernels::page(device_metrics, verdicts, rules, notes)
        }
        Imported::NcuSource(page) => tools::source(page),
        Imported::Nsys { report, timelines } => tools::timeline(report, timelines),
        Imported::Sanitizer(log) => tools::sanitizer(log),
    };
    of_file(file, main)
}

/// Creates the page of the changes from the file `before` to the file `after`.
pub(crate) fn changed(changes: &Changes, before: &str, after: &str) -> Content {
    of_file(after, changes::page(changes, before))
}

fn of_file(file: &str, main: Markup) -> Content {
    Content {
        title: format!("import: {file}"),
        about: html! { "import " span.mono { (text::name(file)) } },
        refresh: None,
        main,
    }
}

/// Creates the beginning of the page.
fn opening(tone: Tone, word: &str, heading: Markup, sentences: &[Markup]) -> Markup {
    parts::verdict(tone, word, heading, sentences)
}

/// Shows the notes of a file: missing data, and caveats.
fn notes(notes: &[String]) -> Markup {
    html! {
        @if !notes.is_empty() {
            (Section::new("notes", "Notes").open(true).tone(Tone::Doubt)
                .note(html! { (text::counted(notes.len(), "note")) })
                .with(html! {
                    ul.plain { @for note in notes.iter().take(MAX_NOTES) { li { (text::message(note)) } } }
                    (parts::more(notes.len(), MAX_NOTES, "notes"))
                }))
        }
    }
}

/// Formats a time that is given in seconds. An unknown time is `?`.
fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "?".to_owned(), |value| text::time(value * 1e3))
}

#[cfg(test)]
mod tests;
