//! Builds the request for a gate run from the suite, its calibration and the contracts of both
//! sides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::args::RunArgs;
use super::baseline::Baseline;
use super::{cases, git, suite_file};
use crate::cli::CliError;
use crate::cli::terminal::plain;
use warpgauge_contract::EvaluateRequest;
use warpgauge_gate::{
    BaselineOrigin, CaseSpec, GateCase, GateRequest, RemovedCase, SuiteError, check_baseline_name,
};

/// Prefix of names that refer to stored baselines.
const STORED: &str = "stored:";

/// Maximum length of a note, characters.
const MAX_NOTE: usize = 1_000;

/// Maximum number of cases that get a separate note. A request may contain 16 notes.
const MAX_NAMED: usize = 5;

/// Reads the suite, its calibration, and the contracts of both sides. `limit` is the maximum size
/// of each contract, bytes.
///
/// # Errors
///
/// A file cannot be read or is not valid. Nothing has been started yet.
pub(super) fn request(args: &RunArgs, limit: u64) -> Result<GateRequest, CliError> {
    let suite = suite_file::read(&args.suite)?;
    let calibration = suite_file::calibration(&args.suite)?;
    let home = args.suite.parent().unwrap_or(Path::new(""));
    let mut cases = Vec::new();
    for spec in suite.cases {
        let contract = cases::required(&spec, home, limit)?;
        cases.push((spec, contract));
    }
    let stored = args.baseline.strip_prefix(STORED);
    let mut theirs = match stored {
        Some(name) => {
            check_name(&format!("--baseline {STORED}{name}"), name)?;
            Theirs::default()
        }
        None => Theirs::of_files(&cases, args, limit)?,
    };
    let case = |(spec, contract): (CaseSpec, EvaluateRequest)| GateCase {
        baseline: theirs.contracts.remove(&spec.name),
        name: spec.name,
        metric: Some(spec.metric.to_string()),
        policy: spec.policy.into(),
        contract,
    };
    let cases = cases.into_iter().map(case).collect();
    let request = GateRequest {
        suite: args.suite.display().to_string(),
        preset: Some(suite.preset),
        on_missing: suite.on_missing,
        defaults: suite.defaults.into(),
        cases,
        baseline: stored.map(str::to_owned),
        baseline_origin: theirs.origin,
        removed: theirs.removed,
        calibration: calibration.map(|(_, calibration)| calibration),
        measure_identical: args.measure_identical,
        commit: git::described(home),
        branch: git::branch(home),
        notes: theirs.notes,
    };
    match request.check() {
        Ok(_) => Ok(request),
        Err(error) => Err(CliError::Usage(format!("{}: {error}", args.suite.display()))),
    }
}

/// Checks that a baseline may have this name. The error names the option `flag`.
pub(super) fn check_name(flag: &str, name: &str) -> Result<(), CliError> {
    check_baseline_name(name)
        .map_err(|error: SuiteError| CliError::Usage(format!("{flag}: {error}")))
}

/// The side of a suite that the baseline provides.
#[derive(Default)]
struct Theirs {
    origin: Option<BaselineOrigin>,
    /// The contract of each case, by the name of the case.
    contracts: BTreeMap<String, EvaluateRequest>,
    /// Cases that the baseline contains and the suite does not.
    removed: Vec<RemovedCase>,
    notes: Vec<String>,
}

impl Theirs {
    /// Reads the contracts from the baseline's tree. Afterwards the tree may be removed.
    fn of_files(
        cases: &[(CaseSpec, EvaluateRequest)],
        args: &RunArgs,
        limit: u64,
    ) -> Result<Self, CliError> {
        let baseline = Baseline::find(&args.baseline, &args.suite)?;
        let mut theirs = Self { origin: Some(baseline.origin.clone()), ..Self::default() };
        let mut unreadable = Vec::new();
        for (spec, _) in cases {
            match cases::read(spec, &baseline.directory, limit) {
                Ok(Some(contract)) => {
                    theirs.contracts.insert(spec.name.clone(), contract);
                }
                Ok(None) => {}
                Err(error @ CliError::System { .. }) => return Err(error),
                // An invalid contract in the baseline's tree must not block a change that corrects
                // it.
                Err(error) => unreadable.push((spec.name.as_str(), error)),
            }
        }
        theirs.note_unreadable(&unreadable);
        theirs.find_removed(cases, &args.suite, &baseline);
        Ok(theirs)
    }

    fn note_unreadable(&mut self, cases: &[(&str, CliError)]) {
        for (name, error) in cases.iter().take(MAX_NAMED) {
            let error = one_line(error);
            self.notes.push(format!(
                "case `{name}` counts as new, because the baseline's contract or kernel \
                 cannot be read: {error}"
            ));
        }
        if let Some(more) = cases.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
            self.notes.push(format!("the same holds for {more} more cases"));
        }
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
            let text = "the baseline has no suite, so removed cases are not known";
            self.notes.push(text.to_owned());
            return;
        }
        let theirs = match suite_file::read(&theirs) {
            Ok(suite) => suite,
            Err(error) => {
                let error = one_line(&error);
                self.notes.push(format!(
                    "the baseline's suite cannot be read, so removed cases are not \
                     known: {error}"
                ));
                return;
            }
        };
        let own = cases.iter().map(|(spec, _)| spec.name.as_str()).collect::<BTreeSet<_>>();
        let known = theirs.cases.iter().map(|case| case.name.clone()).collect::<BTreeSet<_>>();
        let mut renamed = BTreeSet::new();
        for case in theirs.cases {
            if own.contains(case.name.as_str()) {
                continue;
            }
            // A renamed case is compared, because both sides contain its files.
            let same = |spec: &&CaseSpec| {
                (&spec.contract, &spec.source, spec.metric)
                    == (&case.contract, &case.source, case.metric)
                    && !known.contains(&spec.name)
                    && !renamed.contains(&spec.name)
            };
            match cases.iter().map(|(spec, _)| spec).find(same) {
                Some(spec) => {
                    renamed.insert(spec.name.clone());
                    if renamed.len() <= MAX_NAMED {
                        let (new, old) = (&spec.name, &case.name);
                        self.notes
                            .push(format!("case `{new}` is `{old}` of the baseline, renamed"));
                    }
                }
                None => self.removed.push(RemovedCase {
                    metric: Some(case.metric.to_string()),
                    policy: case.policy.into(),
                    name: case.name,
                }),
            }
        }
    }
}

/// Returns the text of an error as one line, for use in a note.
fn one_line(error: &CliError) -> String {
    let error = plain(&error.render()).replace(['\n', '\t'], " ");
    error.chars().take(MAX_NOTE).collect()
}
