//! The report of the gate in eight formats for files, and as text. All are pure functions of a
//! [`GateReport`].

mod annotations;
mod bmf;
mod csv;
mod html;
mod junit;
mod markdown;
mod plot;
mod schema;
mod text;
mod types;
mod words;
mod worst;

pub use plot::{Intervals, intervals};
pub use schema::schema_json;
pub use text::text;
pub use types::{
    BaselineKind, BaselineReport, CalibrationReport, CaseReport, GateReport, MethodReport, Totals,
};
pub use words::{measured as case_change, outcome, why as case_reason};
pub use worst::WorstCase;

/// A format of the report, with the name of its file.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    pub file: &'static str,
    /// Renders the report as text.
    pub render: fn(&GateReport) -> Result<String, RenderError>,
}

/// Every format that `--report` writes.
pub const FORMATS: [Format; 8] = [
    Format { file: "gate.json", render: json },
    Format { file: "junit.xml", render: |report| Ok(junit::junit(report)) },
    Format { file: "comment.md", render: |report| Ok(markdown::markdown(report)) },
    Format { file: "annotations.txt", render: |report| Ok(annotations::annotations(report)) },
    Format { file: "bmf.json", render: bmf::bmf },
    Format { file: "benchmark.json", render: bmf::smaller_is_better },
    Format { file: "gate.csv", render: csv::csv },
    Format { file: "gate.html", render: |report| Ok(html::html(report)) },
];

/// A report could not be written in a format. This is a bug.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    #[error("could not write the report as JSON")]
    Json(#[from] serde_json::Error),
    #[error("could not write the report as CSV")]
    Csv(#[from] ::csv::Error),
    /// The CSV writer could not flush its buffer.
    #[error("could not finish the report as CSV")]
    Flush(#[from] std::io::Error),
}

/// Formats the whole report as JSON, according to its schema.
pub fn json(report: &GateReport) -> Result<String, RenderError> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests;
