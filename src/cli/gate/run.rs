//! `warpgauge gate run`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::args::RunArgs;
use super::baseline::Baseline;
use super::bench::{Bench, is_fatal};
use super::calibrate::conditions;
use super::cases::{Manner, Side};
use super::progress::Steps;
use super::{GateError, suite_file};
use crate::cli::CliError;
use crate::cli::terminal::Terminal;
use crate::config::Config;
use crate::contract::DecisionSpec;
use crate::exit::GateExit;
use crate::gate::report::{FORMATS, GateReport, MethodReport, Totals, json, text};
use crate::gate::{
    Calibration, CasePolicy, Evidence, MeasuredCase, Suite, conclude, unconfirmed, with_calibration,
};
use crate::report::{CompareResponse, VerdictBy};

/// Version of the report's format.
const SCHEMA_VERSION: u32 = 1;

pub(super) fn run(
    args: &RunArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<GateExit, CliError> {
    let began = Instant::now();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let suite = suite_file::read(&args.suite)?;
    let calibration = suite_file::calibration(&args.suite)?;
    let baseline = Baseline::find(&args.baseline, &args.suite)?;
    let mut run = Run::prepare(&args.suite, suite, calibration, &baseline, config)?;
    let mut bench = Bench::open(&args.target, config)?;
    run.counts = bench.counts()?;
    let mut steps = Steps::start(terminal, run.planned());
    run.first_looks(&mut bench, &mut steps)?;
    run.confirm(&mut bench, &mut steps)?;
    drop(steps);
    drop(bench);
    let report = run.report(args, &baseline, started, began);
    if let Some(directory) = &args.report {
        write(&report, directory)?;
    }
    if args.json {
        terminal.print(&json(&report).map_err(GateError::from)?)?;
    } else {
        terminal.print(&crate::cli::terminal::plain(&text(&report)))?;
    }
    Ok(GateExit::of_verdict(report.verdict))
}

/// A suite on its way to a verdict.
struct Run {
    suite: Suite,
    calibration: Option<(PathBuf, Calibration)>,
    cases: Vec<Case>,
    notes: Vec<String>,
    /// The device and the method of the first comparison that succeeded.
    seen: Option<CompareResponse>,
    /// Whether it is known before that exact counts decide.
    counts: bool,
}

/// A case, and the two sides of it, where both have it.
struct Case {
    measured: MeasuredCase,
    sides: Option<Sides>,
}

struct Sides {
    baseline: Side,
    candidate: Side,
}

impl Run {
    /// Reads every file of both trees: what is wrong with them is told before anything is measured.
    fn prepare(
        path: &Path,
        suite: Suite,
        calibration: Option<(PathBuf, Calibration)>,
        baseline: &Baseline,
        config: &Config,
    ) -> Result<Self, CliError> {
        let limit = config.server.body_limit_bytes;
        let home = path.parent().unwrap_or(Path::new(""));
        let mut run = Self {
            suite,
            calibration,
            cases: Vec::new(),
            notes: Vec::new(),
            seen: None,
            counts: false,
        };
        for spec in run.suite.cases.clone() {
            let candidate = Side::required(&spec, home, limit)?;
            for note in &candidate.notes {
                run.notes.push(format!("case `{}`: {note}", spec.name));
            }
            let theirs = Side::read(&spec, &baseline.directory, limit)?;
            let why = format!(
                "the baseline {} has no {}; a new case passes once it is in the baseline, or at \
                 once with `on_missing: warn`",
                baseline.report.name,
                spec.source.as_ref().map_or(spec.contract.clone(), |source| format!(
                    "{} or no {source}",
                    spec.contract
                ))
            );
            let calibrated =
                run.calibration.as_ref().and_then(|(_, all)| all.cases.get(&spec.name));
            let calibrated = calibrated.cloned();
            let mut measured = MeasuredCase::unmeasured(spec, Evidence::Missing(why));
            measured.policy = with_calibration(measured.policy, calibrated.as_ref());
            measured.calibrated = calibrated;
            let sides = theirs.map(|baseline| Sides { baseline, candidate });
            run.cases.push(Case { measured, sides });
        }
        run.find_removed(path, baseline);
        Ok(run)
    }

    /// Cases that the baseline's suite has and this one has not: removing a case is no way to pass.
    fn find_removed(&mut self, path: &Path, baseline: &Baseline) {
        let Some(name) = path.file_name() else { return };
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
        let own = self.suite.cases.iter().map(|case| case.name.clone()).collect::<BTreeSet<_>>();
        for spec in theirs.cases.into_iter().filter(|case| !own.contains(&case.name)) {
            let why = "the baseline's suite has it, this one does not; put it back, or accept its \
                       removal with `on_missing: warn`";
            let measured = MeasuredCase::unmeasured(spec, Evidence::Missing(why.to_owned()));
            self.cases.push(Case { measured, sides: None });
        }
    }

    /// Comparisons to make.
    fn planned(&self) -> usize {
        self.cases.iter().filter(|case| case.sides.is_some()).count()
    }

    /// Cases that share the suite's error probability.
    fn family(&self) -> usize {
        self.cases.iter().filter(|case| !case.measured.policy.advisory).count()
    }

    fn manner(&self, policy: &CasePolicy, alpha: f64, fresh: bool) -> Manner {
        let decision = DecisionSpec {
            margin: Some(policy.margin),
            equivalence: Some(policy.delta),
            alpha: Some(alpha),
            blocks: None,
        };
        let by = self.seen.as_ref().map(|seen| seen.verdict_by);
        let counted = self.counts || by == Some(VerdictBy::Counts);
        Manner { preset: self.suite.preset, decision, fresh, counted }
    }

    fn first_looks(&mut self, bench: &mut Bench<'_>, steps: &mut Steps) -> Result<(), CliError> {
        let family = self.family().max(1) as f64;
        let mut gone: Option<String> = None;
        for index in 0..self.cases.len() {
            let case = &self.cases[index];
            let Some(sides) = &case.sides else { continue };
            if let Some(why) = &gone {
                let why = format!("not measured, because of an earlier case's error: {why}");
                self.cases[index].measured.first = Evidence::Error(why);
                continue;
            }
            let policy = case.measured.policy;
            let alpha = if policy.advisory { policy.alpha } else { policy.alpha / family };
            let manner = self.manner(&policy, alpha, false);
            let request = sides.candidate.against(&sides.baseline, &manner);
            let request = request.map_err(|error| in_case(&case.measured.spec.name, error))?;
            steps.begin(&case.measured.spec.name);
            let began = Instant::now();
            match bench.compare(&request) {
                Ok(response) => {
                    self.look_at_conditions(&response)?;
                    let measured = &mut self.cases[index].measured;
                    measured.set_first(&response);
                    measured.duration_s = began.elapsed().as_secs_f64();
                }
                Err(CliError::Interrupted) => return Err(CliError::Interrupted),
                // Nothing was measured yet: the error says more than a report of errors.
                Err(error) if is_fatal(&error) && self.seen.is_none() => return Err(error),
                Err(error) => {
                    let why = error.render();
                    gone = is_fatal(&error).then(|| why.clone());
                    self.cases[index].measured.first = Evidence::Error(why);
                }
            }
            steps.end();
        }
        Ok(())
    }

    /// Compares again, in fresh processes, what seems slower.
    fn confirm(&mut self, bench: &mut Bench<'_>, steps: &mut Steps) -> Result<(), CliError> {
        let measured = self.cases.iter().map(|case| case.measured.clone()).collect::<Vec<_>>();
        let unconfirmed = unconfirmed(&measured);
        steps.extend(unconfirmed.len());
        for index in unconfirmed {
            let case = &self.cases[index];
            let Some(sides) = &case.sides else { continue };
            let policy = case.measured.policy;
            let manner = self.manner(&policy, policy.alpha, true);
            let request = sides.candidate.against(&sides.baseline, &manner);
            let request = request.map_err(|error| in_case(&case.measured.spec.name, error))?;
            steps.begin(&format!("{}, again in fresh processes", case.measured.spec.name));
            let began = Instant::now();
            let outcome = bench.compare(&request);
            let measured = &mut self.cases[index].measured;
            measured.confirmation = Some(match outcome {
                Ok(response) => Evidence::of(&response, measured.spec.metric),
                Err(CliError::Interrupted) => return Err(CliError::Interrupted),
                Err(error) => Evidence::Error(error.render()),
            });
            measured.duration_s += began.elapsed().as_secs_f64();
            steps.end();
        }
        Ok(())
    }

    /// A calibration of another device, driver or method says nothing here: better no verdict.
    fn look_at_conditions(&mut self, response: &CompareResponse) -> Result<(), CliError> {
        if let Some(seen) = &self.seen {
            if seen.device.kind == response.device.kind && seen.device.name == response.device.name
            {
                return Ok(());
            }
            return Err(CliError::Usage(format!(
                "the suite was begun on {} and went on on {}: its cases are not comparable; give \
                 the server devices of one kind",
                seen.device.name, response.device.name
            )));
        }
        if let (VerdictBy::Times, Some((path, calibration))) =
            (response.verdict_by, &self.calibration)
        {
            let now = conditions(response, self.suite.preset);
            let checked = calibration.check(&now);
            checked.map_err(|source| GateError::Calibration {
                path: path.clone(),
                source: Box::new(source),
            })?;
        }
        self.seen = Some(response.clone());
        Ok(())
    }

    fn report(
        mut self,
        args: &RunArgs,
        baseline: &Baseline,
        started: u64,
        began: Instant,
    ) -> GateReport {
        let measured = self.cases.drain(..).map(|case| case.measured).collect::<Vec<_>>();
        let (cases, verdict) = conclude(&measured, self.suite.on_missing);
        let verdict_by = self.seen.as_ref().map(|seen| seen.verdict_by);
        match (verdict_by, &self.calibration) {
            (Some(VerdictBy::Times), None) => self.notes.push(
                "the suite is not calibrated: `warpgauge gate calibrate` finds cases that cannot \
                 carry the gate"
                    .to_owned(),
            ),
            (Some(VerdictBy::Counts), Some(_)) => {
                self.notes.push("counts are exact: the calibration is not used".to_owned());
            }
            _ => {}
        }
        GateReport {
            schema_version: SCHEMA_VERSION,
            warpgauge_version: env!("CARGO_PKG_VERSION").to_owned(),
            suite: args.suite.display().to_string(),
            baseline: baseline.report.clone(),
            started_unix_s: started,
            duration_s: began.elapsed().as_secs_f64(),
            verdict,
            exit_code: GateExit::of_verdict(verdict).code(),
            statement: statement(verdict_by).to_owned(),
            verdict_by,
            device: self.seen.as_ref().map(|seen| seen.device.clone()),
            method: self.seen.as_ref().and_then(method),
            totals: Totals::of(&cases),
            notes: self.notes,
            cases,
        }
    }
}

/// An error with the case that it is about.
fn in_case(case: &str, error: CliError) -> CliError {
    match error {
        CliError::Usage(message) => CliError::Usage(format!("case `{case}`: {message}")),
        other => other,
    }
}

fn statement(by: Option<VerdictBy>) -> &'static str {
    match by {
        Some(VerdictBy::Times) => {
            "Times of both sides, interleaved on one device; a regression was slower by more than \
             its margin twice, the second time in fresh processes."
        }
        Some(VerdictBy::Counts) => {
            "Exact counts of one launch on the emulated device, where a difference of one is a \
             difference. They say nothing of times."
        }
        None => "Nothing was measured.",
    }
}

fn method(seen: &CompareResponse) -> Option<MethodReport> {
    let measurement = seen.reference.measurement.as_ref()?;
    Some(MethodReport {
        method: measurement.method.clone(),
        method_version: measurement.method_version,
        driver: measurement.gpu.as_ref().and_then(|gpu| gpu.driver.clone()),
    })
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
