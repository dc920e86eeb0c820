//! `warpgauge gate run`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::args::RunArgs;
use super::baseline::Baseline;
use super::bench::Bench;
use super::progress::Steps;
use super::{GateError, cases, git, suite_file};
use crate::cli::CliError;
use crate::cli::terminal::{Terminal, plain};
use crate::config::Config;
use crate::contract::EvaluateRequest;
use crate::exit::GateExit;
use crate::gate::report::{BaselineKind, BaselineReport, FORMATS, GateReport, json, text};
use crate::gate::{
    self, CasePolicy, CaseSpec, GatePlan, Pin, PlannedCase, Sides, check_baseline_name,
};
use crate::pipeline::GateFault;

/// Before the name of a stored baseline.
const STORED: &str = "stored:";

pub(super) fn run(
    args: &RunArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<GateExit, CliError> {
    let suite = suite_file::read(&args.suite)?;
    let calibration = suite_file::calibration(&args.suite)?;
    let limit = config.server.body_limit_bytes;
    let home = args.suite.parent().unwrap_or(Path::new(""));
    // What is wrong with files is told before anything is started or measured.
    let mut cases = Vec::new();
    for spec in suite.cases {
        let contract = cases::required(&spec, home, limit)?;
        cases.push((spec, contract));
    }
    let theirs = match args.baseline.strip_prefix(STORED) {
        Some(name) => {
            check_baseline_name(name)
                .map_err(|error| CliError::Usage(format!("--baseline {STORED}{name}: {error}")))?;
            None
        }
        None => {
            let baseline = Baseline::find(&args.baseline, &args.suite)?;
            Some((Theirs::of_files(&cases, &baseline, &args.suite, limit)?, baseline))
        }
    };
    let mut bench = Bench::open(&args.target, args.patience, config, terminal)?;
    let theirs = match (&theirs, args.baseline.strip_prefix(STORED)) {
        (Some((theirs, _)), _) => theirs.clone(),
        (None, name) => Theirs::of_stored(bench.baseline(name.unwrap_or_default())?),
    };
    let plan = GatePlan {
        suite: args.suite.display().to_string(),
        preset: suite.preset,
        on_missing: suite.on_missing,
        cases: planned(cases, &theirs, suite.defaults),
        baseline: theirs.report,
        pin: theirs.pin,
        calibration: calibration.as_ref().map(|(_, calibration)| calibration.clone()),
        measure_identical: args.measure_identical,
        commit: git::described(home),
        notes: theirs.notes,
    };
    let comparisons = plan.cases.iter().filter(|case| case.sides.is_ok()).count();
    let mut steps = Steps::start(terminal, comparisons);
    let gated = bench.gate(plan, &mut steps);
    drop(steps);
    let report = gated.map_err(|fault| told(fault, args, calibration.map(|(path, _)| path)))?;
    bench.remember(&report)?;
    drop(bench);
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

/// The baseline's side of a suite.
#[derive(Clone)]
struct Theirs {
    report: BaselineReport,
    pin: Option<Pin>,
    /// Contracts by case, of cases that the suite has or not.
    contracts: BTreeMap<String, EvaluateRequest>,
    /// Cases that it has and the suite has not, and that have no contract here.
    removed: Vec<CaseSpec>,
    notes: Vec<String>,
}

impl Theirs {
    fn of_stored(stored: gate::Baseline) -> Self {
        Self {
            report: BaselineReport {
                kind: BaselineKind::Stored,
                name: stored.name,
                commit: stored.commit,
            },
            pin: Some(stored.pin),
            contracts: stored.cases,
            removed: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reads the other tree.
    fn of_files(
        cases: &[(CaseSpec, EvaluateRequest)],
        baseline: &Baseline,
        suite: &Path,
        limit: u64,
    ) -> Result<Self, CliError> {
        let mut contracts = BTreeMap::new();
        for (spec, _) in cases {
            if let Some(contract) = cases::read(spec, &baseline.directory, limit)? {
                contracts.insert(spec.name.clone(), contract);
            }
        }
        let mut theirs = Self {
            report: baseline.report.clone(),
            pin: None,
            contracts,
            removed: Vec::new(),
            notes: Vec::new(),
        };
        theirs.find_removed(cases, suite, baseline);
        Ok(theirs)
    }

    fn find_removed(
        &mut self,
        cases: &[(CaseSpec, EvaluateRequest)],
        suite: &Path,
        baseline: &Baseline,
    ) {
        let Some(name) = suite.file_name() else { return };
        let theirs = baseline.directory.join(name);
        if !theirs.exists() {
            let text = "the baseline has no suite: cases that were removed are not known";
            self.notes.push(text.to_owned());
            return;
        }
        let theirs = match suite_file::read(&theirs) {
            Ok(suite) => suite,
            Err(error) => {
                let error = error.render().replace('\n', " ");
                self.notes.push(format!(
                    "the baseline's suite cannot be read, so cases that were removed are not \
                     known: {error}"
                ));
                return;
            }
        };
        let own = cases.iter().map(|(spec, _)| spec.name.as_str()).collect::<BTreeSet<_>>();
        let removed = theirs.cases.into_iter().filter(|case| !own.contains(case.name.as_str()));
        self.removed = removed.collect();
    }
}

/// Both sides of every case; then the cases that only the baseline has: removing a case is no way to
/// pass.
fn planned(
    cases: Vec<(CaseSpec, EvaluateRequest)>,
    theirs: &Theirs,
    defaults: CasePolicy,
) -> Vec<PlannedCase> {
    let own = cases.iter().map(|(spec, _)| spec.name.clone()).collect::<BTreeSet<_>>();
    let mut planned = Vec::new();
    for (spec, candidate) in cases {
        let baseline = theirs.contracts.get(&spec.name).cloned();
        let sides = baseline.map(|baseline| Sides { baseline, candidate }).ok_or_else(|| {
            let files = spec.source.as_ref().map_or(spec.contract.clone(), |source| {
                format!("{} or no {source}", spec.contract)
            });
            let what = if theirs.pin.is_some() { "such case".to_owned() } else { files };
            format!(
                "the baseline {} has no {what}; a new case passes once it is in the baseline, or \
                 at once with `on_missing: warn`",
                theirs.report.name
            )
        });
        planned.push(PlannedCase { spec, sides });
    }
    let stored = theirs.contracts.keys().filter(|name| !own.contains(*name));
    let stored = stored.map(|name| CaseSpec::removed(name.clone(), defaults));
    for spec in theirs.removed.iter().cloned().chain(stored) {
        let why = "the baseline's suite has it, this one does not; put it back, or accept its \
                   removal with `on_missing: warn`";
        planned.push(PlannedCase { spec, sides: Err(why.to_owned()) });
    }
    planned
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
