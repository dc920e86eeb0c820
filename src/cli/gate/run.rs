//! `warpgauge gate run`: compares the working tree with a baseline.

use std::path::Path;

use super::args::RunArgs;
use super::progress::Steps;
use super::{GateError, kernel_places, request};
use crate::cli::CliError;
use crate::cli::place::{self, Place};
use crate::cli::terminal::{Terminal, plain};
use crate::exit::GateExit;
use warpgauge_config::Config;
use warpgauge_gate::SuiteVerdict;
use warpgauge_gate::report::{FORMATS, GateReport, json, text};
use warpgauge_service::{ExecError, ServiceError};

pub(super) fn run(
    args: &RunArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<GateExit, CliError> {
    if let Some(name) = &args.promote {
        request::check_name("--promote", name)?;
    }
    let request = request::request(args, config.server.body_limit_bytes)?;
    let mut place = place::open(&args.target, args.patience, config, terminal)?;
    let names = request.cases.iter().map(|case| case.name.clone()).collect();
    let mut steps = Steps::start(terminal, names);
    let outcome = place.gate(request, &mut |event| steps.show(event));
    if outcome.is_ok() {
        steps.all();
    }
    drop(steps);
    let mut report = outcome.map_err(|error| told(error, args))?;
    kernel_places::mark(&mut report, &args.suite, config.server.body_limit_bytes);
    if let Some(directory) = &args.report {
        write(&report, directory)?;
    }
    if args.json {
        terminal.print(&json(&report).map_err(GateError::from)?)?;
    } else {
        terminal.print(&plain(&text(&report)))?;
    }
    if let Some(name) = &args.promote {
        promote(name, &report, args, place.as_mut(), terminal)?;
    }
    Ok(GateExit::of_verdict(report.verdict))
}

/// If the run passed, makes the candidate the baseline. Prints the outcome.
fn promote(
    name: &str,
    report: &GateReport,
    args: &RunArgs,
    place: &mut dyn Place,
    terminal: Terminal,
) -> Result<(), CliError> {
    let job = report.job_id.clone().unwrap_or_default();
    let said = match report.verdict {
        SuiteVerdict::Pass => {
            place.promote(name, &job).map_err(|source| GateError::NotPromoted {
                name: name.to_owned(),
                job,
                at: place.flag(),
                source: Box::new(source),
            })?;
            format!("promoted: the candidate is now the baseline {name}")
        }
        other => format!(
            "not promoted: the verdict is {}, not PASS; the baseline {name} is unchanged",
            other.name()
        ),
    };
    if args.json {
        terminal.note(&format!("warpgauge: {said}"));
        Ok(())
    } else {
        terminal.print_line(&said)
    }
}

/// Adds the suite and the baseline to an error that reports different conditions.
fn told(error: CliError, args: &RunArgs) -> CliError {
    match error {
        CliError::Service(ServiceError::Exec(ExecError::ConditionsDiffer(message))) => {
            let (suite, baseline) = (args.suite.clone(), args.baseline.clone());
            GateError::Conditions { suite, baseline, message }.into()
        }
        other => other,
    }
}

/// Writes the report in every format. Files of an earlier run are replaced.
fn write(report: &GateReport, directory: &Path) -> Result<(), CliError> {
    let failed = |path: &Path, source| CliError::Write { path: path.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(|source| failed(directory, source))?;
    for format in FORMATS {
        let path = directory.join(format.file);
        let text = (format.render)(report).map_err(GateError::from)?;
        std::fs::write(&path, text).map_err(|source| failed(&path, source))?;
    }
    Ok(())
}
