//! `warpgauge gate calibrate`: measures each case against itself.

use std::collections::BTreeMap;
use std::path::Path;

use super::args::CalibrateArgs;
use super::progress::Steps;
use super::{GateError, cases, suite_file};
use crate::cli::place::{self, Place};
use crate::cli::terminal::{Terminal, plain};
use crate::cli::{CliError, json};
use crate::exit::GateExit;
use warpgauge_config::Config;
use warpgauge_contract::{DecisionSpec, EvaluateRequest};
use warpgauge_gate::{
    CalibratedCase, Calibration, CalibrationConditions, CaseEvidence, CasePair, CaseSpec,
    ComparisonSettings, GateMetric, PlannedTest, RunEnvironment, Suite, calibrated,
    idle_multiprocessors,
};
use warpgauge_report::{CompareResponse, VerdictBy};
use warpgauge_statistics::Preset;

pub(super) fn run(
    args: &CalibrateArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<GateExit, CliError> {
    let suite = suite_file::read(&args.suite)?;
    let home = args.suite.parent().unwrap_or(Path::new(""));
    let limit = config.server.body_limit_bytes;
    let timed =
        suite.cases.iter().filter(|case| case.metric == GateMetric::Time).collect::<Vec<_>>();
    let contracts = timed.iter().map(|case| cases::required(case, home, limit));
    let contracts = contracts.collect::<Result<Vec<_>, _>>()?;
    let mut place = place::open(&args.target, args.patience, config, terminal)?;
    let runs = |case: &&CaseSpec| {
        let name = case.name.clone();
        (1..=args.runs).map(move |run| format!("{name}, run {run} of {}", args.runs))
    };
    let mut steps = Steps::start(terminal, timed.iter().flat_map(runs).collect());
    let mut judged = BTreeMap::new();
    let mut first = None;
    for (case, contract) in timed.iter().zip(contracts) {
        let answers = against_itself(args, &suite, case, contract, place.as_mut(), &mut steps)?;
        let result = judge(&suite, case, &answers)?;
        judged.insert(case.name.clone(), result);
        first = first.or_else(|| answers.into_iter().next());
    }
    drop(steps);
    let Some(first) = first else {
        return Err(CliError::Usage(
            "no case of this suite uses the metric `time`; counts are exact and need no calibration"
                .to_owned(),
        ));
    };
    let Some(seen) = RunEnvironment::of_comparison(&first) else {
        let what = "the kernels ran on the CPU, whose times are not comparable";
        return Err(CliError::Usage(what.to_owned()));
    };
    let conditions = CalibrationConditions::of(&seen, suite.preset);
    let path = suite_file::calibration_path(&args.suite);
    let shown = plain(&table(&judged));
    let calibration = Calibration::new(conditions, args.blocks, args.runs, judged);
    if args.json {
        terminal.print_line(&json::text("calibration", &calibration)?)?;
    } else {
        terminal.print(&shown)?;
    }
    write(&calibration, &path)?;
    terminal.note(&format!("wrote {}", path.display()));
    Ok(GateExit::Pass)
}

/// Returns comparisons of a case with itself. Each runs in fresh processes.
fn against_itself(
    args: &CalibrateArgs,
    suite: &Suite,
    case: &CaseSpec,
    contract: EvaluateRequest,
    place: &mut dyn Place,
    steps: &mut Steps,
) -> Result<Vec<CompareResponse>, CliError> {
    let decision = DecisionSpec {
        margin: Some(case.policy.margin),
        equivalence: Some(case.policy.delta),
        alpha: Some(case.policy.alpha),
        blocks: Some(args.blocks),
    };
    let manner = ComparisonSettings {
        preset: suite.preset,
        decision,
        fresh: true,
        counted: false,
        measure_identical: true,
    };
    let request = CasePair::itself(contract).comparison(&manner);
    let mut answers = Vec::new();
    for _ in 1..=args.runs {
        steps.begin();
        let response = place.compare_unwatched(request.clone())?;
        if response.verdict_by == VerdictBy::Counts {
            return Err(GateError::NothingToCalibrate.into());
        }
        answers.push(response);
        steps.end();
    }
    Ok(answers)
}

fn judge(
    suite: &Suite,
    case: &CaseSpec,
    answers: &[CompareResponse],
) -> Result<CalibratedCase, CliError> {
    let mut runs = Vec::new();
    for answer in answers {
        match CaseEvidence::of(answer, case.metric) {
            CaseEvidence::Times(comparison) => runs.push(*comparison),
            CaseEvidence::Error(message)
            | CaseEvidence::Invalid(message)
            | CaseEvidence::Missing(message) => {
                let case = case.name.clone();
                return Err(GateError::NotCalibrated { case, message }.into());
            }
            CaseEvidence::Counts(_)
            | CaseEvidence::Identical
            | CaseEvidence::Right(_)
            | CaseEvidence::Alone { .. } => {
                return Err(GateError::NothingToCalibrate.into());
            }
        }
    }
    let looks = &Preset::builtin(suite.preset).compare.looks;
    let family = suite.cases.iter().filter(|case| !case.policy.advisory).count().max(1);
    let planned = PlannedTest {
        margin: case.policy.margin,
        delta: case.policy.delta,
        alpha: case.policy.alpha / (family * looks.len().max(1)) as f64,
        blocks: looks.last().copied().unwrap_or(16),
    };
    let cache = answers.iter().find_map(|answer| answer.reference.measurement.as_ref());
    let cache = cache.map(|measurement| measurement.cache).unwrap_or_default();
    Ok(calibrated(cache, &runs, &planned, hindrances(answers)))
}

/// Returns the properties of a kernel that make it unsuitable for a gate, other than noise.
fn hindrances(answers: &[CompareResponse]) -> Vec<String> {
    let mut found = Vec::new();
    let two = |answer: &&CompareResponse| {
        let summary = answer.reference.measurement.as_ref().and_then(|it| it.summary.as_ref());
        summary.is_some_and(|summary| summary.modes.is_some())
    };
    let modes = answers.iter().filter(two).count();
    if 2 * modes > answers.len() {
        found.push("its times have two modes".to_owned());
    }
    found.extend(answers.iter().find_map(idle_multiprocessors));
    found
}

fn table(cases: &BTreeMap<String, CalibratedCase>) -> String {
    let width = cases.keys().map(|name| name.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!("{:<width$}  floor %  block SD %  finds %\n", "case");
    for (name, case) in cases {
        text.push_str(&format!(
            "{name:<width$}  {:>7.3}  {:>10.3}  {:>7.3}  {}\n",
            100.0 * case.floor,
            100.0 * case.block_sd,
            100.0 * case.minimum_detectable_effect,
            if case.advisory.is_empty() {
                "suitable for the gate".to_owned()
            } else {
                format!("advisory: {}", case.advisory.join("; "))
            }
        ));
    }
    text
}

fn write(calibration: &Calibration, path: &Path) -> Result<(), CliError> {
    let mut text = serde_json::to_string_pretty(calibration)
        .map_err(|error| CliError::Internal(format!("the calibration to JSON: {error}")))?;
    text.push('\n');
    std::fs::write(path, text).map_err(|source| CliError::Write { path: path.to_owned(), source })
}
