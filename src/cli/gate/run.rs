//! `warpgauge gate run`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::args::RunArgs;
use super::baseline::Baseline;
use super::bench::Bench;
use super::progress::Steps;
use super::{GateError, cases, git, suite_file};
use crate::cli::CliError;
use crate::cli::terminal::{Terminal, plain};
use crate::config::Config;
use crate::exit::GateExit;
use crate::gate::report::{FORMATS, GateReport, json, text};
use crate::gate::{Calibration, GatePlan, PlannedCase, Sides, Suite};
use crate::pipeline::GateFault;

pub(super) fn run(
    args: &RunArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<GateExit, CliError> {
    let suite = suite_file::read(&args.suite)?;
    let calibration = suite_file::calibration(&args.suite)?;
    let baseline = Baseline::find(&args.baseline, &args.suite)?;
    let plan = plan(args, suite, calibration.as_ref(), &baseline, config)?;
    let mut bench = Bench::open(&args.target, args.patience, config, terminal)?;
    let comparisons = plan.cases.iter().filter(|case| case.sides.is_ok()).count();
    let mut steps = Steps::start(terminal, comparisons);
    let gated = bench.gate(plan, &mut steps);
    drop(steps);
    drop(bench);
    let report = gated.map_err(|fault| told(fault, args, calibration.map(|(path, _)| path)))?;
    if let Some(directory) = &args.report {
        write(&report, directory)?;
    }
    if args.json {
        terminal.print(&json(&report).map_err(GateError::from)?)?;
    } else {
        terminal.print(&plain(&text(&report)))?;
    }
    Ok(GateExit::of_verdict(report.verdict))
}

/// Reads every file of both trees: what is wrong with them is told before anything is measured.
fn plan(
    args: &RunArgs,
    suite: Suite,
    calibration: Option<&(PathBuf, Calibration)>,
    baseline: &Baseline,
    config: &Config,
) -> Result<GatePlan, CliError> {
    let limit = config.server.body_limit_bytes;
    let home = args.suite.parent().unwrap_or(Path::new(""));
    let mut plan = GatePlan {
        suite: args.suite.display().to_string(),
        preset: suite.preset,
        on_missing: suite.on_missing,
        cases: Vec::new(),
        baseline: baseline.report.clone(),
        pin: None,
        calibration: calibration.map(|(_, calibration)| calibration.clone()),
        measure_identical: args.measure_identical,
        commit: git::described(home),
        notes: Vec::new(),
    };
    for spec in suite.cases {
        let candidate = cases::required(&spec, home, limit)?;
        let theirs = cases::read(&spec, &baseline.directory, limit)?;
        let sides = theirs.map(|baseline| Sides { baseline, candidate }).ok_or_else(|| {
            format!(
                "the baseline {} has no {}; a new case passes once it is in the baseline, or at \
                 once with `on_missing: warn`",
                baseline.report.name,
                spec.source.as_ref().map_or(spec.contract.clone(), |source| format!(
                    "{} or no {source}",
                    spec.contract
                ))
            )
        });
        plan.cases.push(PlannedCase { spec, sides });
    }
    find_removed(&mut plan, &args.suite, baseline);
    Ok(plan)
}

/// Cases that the baseline's suite has and this one has not: removing a case is no way to pass.
fn find_removed(plan: &mut GatePlan, suite: &Path, baseline: &Baseline) {
    let Some(name) = suite.file_name() else { return };
    let theirs = baseline.directory.join(name);
    if !theirs.exists() {
        let text = "the baseline has no suite: cases that were removed are not known";
        plan.notes.push(text.to_owned());
        return;
    }
    let theirs = match suite_file::read(&theirs) {
        Ok(suite) => suite,
        Err(error) => {
            let error = error.render().replace('\n', " ");
            plan.notes.push(format!(
                "the baseline's suite cannot be read, so cases that were removed are not known: \
                 {error}"
            ));
            return;
        }
    };
    let own = plan.cases.iter().map(|case| case.spec.name.clone()).collect::<BTreeSet<_>>();
    for spec in theirs.cases.into_iter().filter(|case| !own.contains(&case.name)) {
        let why = "the baseline's suite has it, this one does not; put it back, or accept its \
                   removal with `on_missing: warn`";
        plan.cases.push(PlannedCase { spec, sides: Err(why.to_owned()) });
    }
}

/// Why there is no report, with the files that it is about.
fn told(fault: GateFault<CliError>, args: &RunArgs, calibration: Option<PathBuf>) -> CliError {
    match fault {
        GateFault::Bench(error) => error,
        GateFault::Calibration(source) => {
            let path = calibration.unwrap_or_else(|| args.suite.clone());
            GateError::Calibration { path, source }.into()
        }
        GateFault::Pin(source) => GateError::Pin { name: args.baseline.clone(), source }.into(),
        devices @ GateFault::Devices { .. } => CliError::Usage(devices.to_string()),
    }
}

/// Writes every format; what is there of an earlier run is replaced.
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
