//! Writes a stored report (JSON of an evaluation) as a page: `render FILE > page.html`.
//! `cargo xtask pictures` uses it for the pictures of the documents.

use std::error::Error;
use std::io::Write;

use warpgauge_page::PageOf;
use warpgauge_report::EvaluateResponse;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("expected the path of a report")?;
    let report: EvaluateResponse = serde_json::from_slice(&std::fs::read(path)?)?;
    let page = warpgauge_page::file(PageOf::Evaluation(&report));
    std::io::stdout().write_all(page.as_bytes())?;
    Ok(())
}
