//! Returns the number of passes that metrics need on a chip; CUPTI knows it without a GPU.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use crate::protocol::PlanReport;
use warpgauge_device::cupti::{CounterPlan, Cupti, CuptiError};

/// Maximum length of the list of metrics, bytes of JSON.
const MAX_INPUT_BYTES: u64 = 1 << 20;

/// Reads NVIDIA's metric names from standard input, as a JSON list, and prints the plan for the
/// chip as JSON.
pub(crate) fn main(libraries: &[PathBuf], chip: &str) -> ExitCode {
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_INPUT_BYTES).read_to_string(&mut text);
    let metrics = read.map_err(|error| error.to_string()).and_then(|_| {
        serde_json::from_str::<Vec<String>>(&text).map_err(|error| error.to_string())
    });
    let metrics = match metrics {
        Ok(metrics) => metrics,
        Err(error) => {
            eprintln!("cannot read the list of metrics: {error}");
            return ExitCode::from(2);
        }
    };
    let report = plan(libraries, chip, &metrics).unwrap_or_else(|error| PlanReport {
        unavailable: Some(error.cause.because(error.to_string())),
        ..PlanReport::default()
    });
    let written = serde_json::to_string(&report)
        .map_err(std::io::Error::from)
        .and_then(|line| writeln!(std::io::stdout(), "{line}"));
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn plan(libraries: &[PathBuf], chip: &str, metrics: &[String]) -> Result<PlanReport, CuptiError> {
    let cupti = Cupti::open_for_planning(libraries)?;
    let plan = CounterPlan::new(cupti, chip, None, metrics)?;
    Ok(PlanReport {
        tool: cupti.name(),
        passes: u32::try_from(plan.passes).unwrap_or(u32::MAX),
        refused: plan.refused.clone(),
        unavailable: None,
    })
}
