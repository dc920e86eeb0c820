//! Formats the verdicts on the candidates as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use super::corpus::{Class, Problem};

/// Minimum share of honest candidates that must be `correct`.
const HONEST_SHARE: f64 = 0.99;

/// The verdict on a candidate.
pub struct Outcome {
    /// Name of the problem.
    pub problem: String,
    /// Name of the candidate in the problem.
    pub candidate: String,
    class: Class,
    /// Whether the contract is weak.
    weak: bool,
    verdict: String,
    reason: String,
    finding: Option<String>,
    /// Tolerance of each output.
    tolerances: Value,
}

impl Outcome {
    /// Reads a report, or the error that was returned in its place.
    pub fn of(problem: &Problem, class: Class, candidate: &str, report: &Value) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let verdict = text(&report["verdict"]).unwrap_or_else(|| "error".to_owned());
        let reasons = report["validation"]["reasons"].as_array();
        let reason = reasons
            .and_then(|reasons| text(&reasons.first()?["message"]))
            .or_else(|| {
                let weaknesses = report["validation"]["weaknesses"].as_array()?;
                text(&weaknesses.iter().find(|one| one["blocks"] == true)?["message"])
            })
            .or_else(|| text(&report["failure"]["message"]))
            .or_else(|| text(&report["kernel_exec_result"]["compile_error"]))
            .or_else(|| text(&report["error"]))
            .unwrap_or_default();
        let outputs = report["validation"]["outputs"].as_object();
        let tolerances = outputs.into_iter().flatten();
        let tolerances: Map<_, _> =
            tolerances.map(|(name, output)| (name.clone(), output["tolerance"].clone())).collect();
        let finding = problem.findings.iter().find(|(name, _)| name == candidate);
        Self {
            problem: problem.name.clone(),
            candidate: candidate.to_owned(),
            class,
            weak: problem.weak.is_some(),
            verdict,
            reason,
            finding: finding.map(|(_, why)| why.clone()),
            tolerances: tolerances.into(),
        }
    }

    /// Returns whether the verdict is as the candidate's class requires.
    pub fn is_right(&self) -> bool {
        match self.class {
            Class::Honest if self.weak => self.verdict == "weak",
            Class::Honest => self.verdict == "correct",
            Class::Useless => self.verdict == "wrong" || self.verdict == "weak",
        }
    }

    /// Returns whether the candidate ran. If so, its outputs were judged.
    fn is_judged(&self) -> bool {
        ["correct", "wrong", "weak"].contains(&self.verdict.as_str())
    }
}

/// Returns all verdicts.
pub fn json(outcomes: &[Outcome]) -> Value {
    let of = |outcome: &Outcome| {
        json!({
            "problem": outcome.problem,
            "candidate": outcome.candidate,
            "class": if outcome.class == Class::Honest { "honest" } else { "useless" },
            "verdict": outcome.verdict,
            "reason": outcome.reason,
            "finding": outcome.finding,
            "tolerances": outcome.tolerances,
        })
    };
    json!({"candidates": outcomes.iter().map(of).collect::<Vec<_>>()})
}

#[derive(Default, Clone, Copy)]
struct Row {
    problems: usize,
    useless: usize,
    useless_correct: usize,
    honest: usize,
    honest_correct: usize,
}

/// Counts for each group of problems, and all unexpected verdicts.
pub struct Tally<'a> {
    rows: BTreeMap<&'a str, Row>,
    /// Number of problems with a weak contract, and number of honest candidates of these problems.
    /// The rows of the table do not count these candidates.
    weak: (usize, usize),
    exceptions: Vec<&'a Outcome>,
}

impl<'a> Tally<'a> {
    pub fn of(problems: &'a [Problem], outcomes: &'a [Outcome]) -> Self {
        let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
        for problem in problems {
            let row = rows.entry(&problem.kind).or_default();
            row.problems += 1;
            for outcome in outcomes.iter().filter(|outcome| outcome.problem == problem.name) {
                let correct = usize::from(outcome.verdict == "correct");
                match outcome.class {
                    Class::Useless => {
                        row.useless += 1;
                        row.useless_correct += correct;
                    }
                    Class::Honest if outcome.weak => {}
                    Class::Honest => {
                        row.honest += 1;
                        row.honest_correct += correct;
                    }
                }
            }
        }
        let weak = problems.iter().filter(|problem| problem.weak.is_some()).count();
        let honest =
            outcomes.iter().filter(|outcome| outcome.weak && outcome.class == Class::Honest);
        let weak = (weak, honest.count());
        Self {
            rows,
            weak,
            exceptions: outcomes.iter().filter(|outcome| !outcome.is_right()).collect(),
        }
    }

    fn sum(&self) -> Row {
        self.rows.values().fold(Row::default(), |a, b| Row {
            problems: a.problems + b.problems,
            useless: a.useless + b.useless,
            useless_correct: a.useless_correct + b.useless_correct,
            honest: a.honest + b.honest,
            honest_correct: a.honest_correct + b.honest_correct,
        })
    }

    /// Returns the table, followed by a line for each unexpected verdict.
    pub fn markdown(&self) -> String {
        let mut text = String::from(
            "| kind | problems | useless | of them `correct` | honest | of them `correct` |\n\
             | --- | ---: | ---: | ---: | ---: | ---: |\n",
        );
        let sum = self.sum();
        for (kind, row) in self.rows.iter().map(|(kind, row)| (*kind, *row)).chain([("all", sum)]) {
            let _ = writeln!(
                text,
                "| {kind} | {} | {} | {} | {} | {} |",
                row.problems, row.useless, row.useless_correct, row.honest, row.honest_correct
            );
        }
        let (weak, honest) = self.weak;
        let _ = writeln!(
            text,
            "\n{weak} problems have a weak contract. Their {honest} honest candidates, which the table omits, \
             must be `weak`."
        );
        let known = self.exceptions.iter().filter(|outcome| outcome.finding.is_some()).count();
        let _ = writeln!(text, "\n{} exceptions, {known} of them known.", self.exceptions.len());
        for outcome in &self.exceptions {
            let class = match outcome.class {
                _ if !outcome.is_judged() => "not judged",
                Class::Honest => "honest",
                Class::Useless => "useless",
            };
            let Outcome { problem, candidate, verdict, .. } = outcome;
            let _ = write!(text, "\n- {class}: `{problem}`, `{candidate}`: {verdict}.");
            for part in [outcome.reason.lines().next(), outcome.finding.as_deref()] {
                if let Some(part) = part.filter(|part| !part.is_empty()) {
                    let _ = write!(text, " {part}.");
                }
            }
        }
        text
    }

    /// Fails if a candidate was not judged or if the verdicts are not as required.
    pub fn check(&self) -> Result<()> {
        let sum = self.sum();
        let not_judged = self.exceptions.iter().filter(|outcome| !outcome.is_judged()).count();
        if not_judged > 0 {
            bail!(
                "{not_judged} candidates did not run, so their results were not judged: correct the corpus"
            );
        }
        if sum.useless_correct > 0 {
            bail!("{} useless candidates have the verdict `correct`", sum.useless_correct);
        }
        if (sum.honest_correct as f64) < HONEST_SHARE * sum.honest as f64 {
            bail!(
                "only {} of {} honest candidates have the verdict `correct`",
                sum.honest_correct,
                sum.honest
            );
        }
        Ok(())
    }
}
