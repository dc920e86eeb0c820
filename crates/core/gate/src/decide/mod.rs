//! Decides the outcomes of cases and the verdict on a suite. The main functions are [`decide`] and
//! [`suite_verdict`].
//!
//! A case *regresses* if its time exceeds the baseline's by more than the margin τ. The evidence
//! must be strong enough that a suite of unchanged kernels has any regression with probability α at
//! most. The test uses the comparison's p-value, with Holm's correction over the suite. A second
//! comparison in fresh processes must confirm the regression. A case *passes* if a slowdown of Δ is
//! excluded. If neither can be shown, the case is inconclusive, which is not a pass. Exact counts
//! are compared directly.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ADVISORY_RATE, CaseEvidence, CasePolicy, NoBaseline, OnInconclusive, OnMissing};
use warpgauge_report::CountComparison;
use warpgauge_statistics::paired::{
    PairedComparison, PairedVerdict, benjamini_hochberg, holm_adjusted,
};

/// Outcome of a case.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum GateOutcome {
    /// A relevant slowdown is excluded.
    Pass,
    /// There is no baseline to compare with: the baseline lacks the case, or its kernel is broken.
    /// The candidate was run alone and not found wrong. The case passes.
    New,
    /// The candidate is faster by more than the margin, or does less counted work.
    Improved,
    /// The measurements show neither a regression nor a pass.
    Inconclusive,
    /// The case could not be measured.
    Error,
    /// The baseline has the case, but the candidate does not.
    Missing,
    /// The candidate is slower by more than the margin, confirmed by a second comparison, or does more counted work.
    Regression,
    /// The candidate's outputs differ from the baseline's or from the contract's expectations, or the candidate did
    /// not compile or run.
    Invalid,
}

/// Reason for the outcome of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateReason {
    /// The slowdown exceeds the margin, after the correction over the suite, and also in fresh
    /// processes.
    Confirmed,
    /// The slowdown exceeds the margin in the first comparison, but not in fresh processes, or
    /// there was no second comparison.
    NotConfirmed,
    /// Baseline and candidate have the same image and launch, so they were not timed.
    IdenticalCode,
    /// The confidence interval of the time ratio lies below a slowdown of Δ.
    WithinDelta,
    /// The candidate is faster by more than the margin.
    Faster,
    /// The confidence interval contains both passing and failing differences.
    Unresolved,
    /// The blocks of the comparison do not support a verdict. The comparison lists the reasons.
    Unsound,
    /// The candidate is correct, but its time cannot be ranked, for example because torch kernels
    /// ran on the CPU.
    OnlyRight,
    /// Counts are equal, or differ by no more than their margin.
    CountsWithin,
    /// A count is higher by more than its margin, and none is lower.
    MoreWork,
    /// A count is lower, and none is higher.
    LessWork,
    /// One count is higher and another is lower, so counts do not decide.
    TradedWork,
    /// The candidate is wrong, does not compile, crashed, or did not do the work.
    CandidateWrong,
    /// The candidate lacks the case.
    NotOnBothSides,
    /// The baseline lacks the case, so the candidate was compiled, run and checked alone.
    NewCase,
    /// The baseline's kernel does not compile, crashes or is wrong; the candidate's was not found
    /// wrong.
    BaselineBroken,
    /// The case could not be measured.
    NotMeasured,
}

/// The outcome of a case, and its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub outcome: GateOutcome,
    pub reason: GateReason,
    /// Explanation; empty if the reason and the numbers are enough.
    pub detail: String,
    /// p-value of the slowdown beyond the margin, corrected for multiple looks and for the other
    /// cases. The correction over the suite is Holm's; for advisory cases it is that of Benjamini
    /// and Hochberg.
    pub adjusted_p: Option<f64>,
}

/// A case with its evidence.
#[derive(Debug, Clone, Copy)]
pub struct JudgedCase<'a> {
    /// Policy of the case.
    pub policy: &'a CasePolicy,
    /// Evidence of its comparison.
    pub first: &'a CaseEvidence,
    /// Evidence of a second comparison in fresh processes, if there was one.
    pub confirmation: Option<&'a CaseEvidence>,
}

/// Returns the cases whose regressions need a second comparison in fresh processes. Counts are
/// exact and need no second comparison.
pub fn to_confirm(cases: &[JudgedCase<'_>]) -> Vec<usize> {
    let adjusted = adjusted(cases);
    (0..cases.len())
        .filter(|&index| {
            matches!(cases[index].first, CaseEvidence::Times(_))
                && is_slower(adjusted[index], cases[index].policy)
        })
        .collect()
}

/// Returns the outcome of each case, in order. A regression without a confirmation is inconclusive.
pub fn decide(cases: &[JudgedCase<'_>]) -> Vec<Verdict> {
    cases.iter().zip(adjusted(cases)).map(|(case, p)| verdict(case, p)).collect()
}

/// Adjusts the p-values of "slower by more than the margin": with Holm's correction over the cases
/// that may fail the suite, and with that of Benjamini and Hochberg over the advisory cases. A case
/// that could not be measured still counts in its family; cases with exact counts do not.
fn adjusted(cases: &[JudgedCase<'_>]) -> Vec<Option<f64>> {
    let p_values = cases.iter().map(|case| slower_p(case.first)).collect::<Vec<_>>();
    let mut adjusted = p_values.clone();
    for (advisory, correct) in
        [(false, holm_adjusted as fn(&[f64]) -> Vec<f64>), (true, benjamini_hochberg)]
    {
        let is_one = |index: &usize| {
            let case = &cases[*index];
            case.policy.advisory == advisory && !matches!(case.first, CaseEvidence::Counts(_))
        };
        let family = (0..cases.len()).filter(is_one).collect::<Vec<_>>();
        let together = family.iter().map(|&index| p_values[index].unwrap_or(1.0));
        let together = correct(&together.collect::<Vec<_>>());
        for (&index, p) in family.iter().zip(together) {
            adjusted[index] = p_values[index].map(|_| p);
        }
    }
    adjusted
}

/// Returns the p-value of "slower by more than the margin"; `None` if the comparison has no
/// p-value.
fn slower_p(evidence: &CaseEvidence) -> Option<f64> {
    let CaseEvidence::Times(comparison) = evidence else {
        return None;
    };
    let (p, time) = comparison.p_value.zip(comparison.time)?;
    // The comparison's p-value is that of the side on which the estimate lies.
    Some(if time.ratio > 1.0 { p } else { 1.0 })
}

fn is_slower(p: Option<f64>, policy: &CasePolicy) -> bool {
    let limit = if policy.advisory { ADVISORY_RATE } else { policy.alpha };
    p.is_some_and(|p| p <= limit)
}

fn verdict(case: &JudgedCase<'_>, p: Option<f64>) -> Verdict {
    let said = |outcome, reason, detail: &str| Verdict {
        outcome,
        reason,
        detail: detail.to_owned(),
        adjusted_p: p,
    };
    match case.first {
        CaseEvidence::Missing(why) => said(GateOutcome::Missing, GateReason::NotOnBothSides, why),
        CaseEvidence::Error(why) => said(GateOutcome::Error, GateReason::NotMeasured, why),
        CaseEvidence::Invalid(why) => said(GateOutcome::Invalid, GateReason::CandidateWrong, why),
        CaseEvidence::Identical => said(GateOutcome::Pass, GateReason::IdenticalCode, ""),
        CaseEvidence::Right(why) => said(GateOutcome::Pass, GateReason::OnlyRight, why),
        CaseEvidence::Alone { why: NoBaseline::New, note, .. } => {
            said(GateOutcome::New, GateReason::NewCase, note)
        }
        CaseEvidence::Alone { why: NoBaseline::Broken, note, .. } => {
            said(GateOutcome::New, GateReason::BaselineBroken, note)
        }
        CaseEvidence::Counts(counts) => {
            let (outcome, reason) = of_counts(counts, case.policy.count_margin);
            said(outcome, reason, "")
        }
        CaseEvidence::Times(first) if is_slower(p, case.policy) => match case.confirmation {
            Some(CaseEvidence::Invalid(why)) => {
                said(GateOutcome::Invalid, GateReason::CandidateWrong, why)
            }
            Some(CaseEvidence::Times(second)) => {
                // This tests a single hypothesis, so no correction is needed.
                let again = slower_p(&CaseEvidence::Times(second.clone()));
                if again.is_some_and(|p| p <= case.policy.alpha) {
                    said(GateOutcome::Regression, GateReason::Confirmed, clock_note(first))
                } else {
                    let why = "slower at first, but not when compared again in fresh processes";
                    said(GateOutcome::Inconclusive, GateReason::NotConfirmed, why)
                }
            }
            Some(CaseEvidence::Error(why) | CaseEvidence::Missing(why)) => {
                let why = format!("slower at first; comparing again failed: {why}");
                said(GateOutcome::Error, GateReason::NotMeasured, &why)
            }
            Some(
                CaseEvidence::Counts(_)
                | CaseEvidence::Identical
                | CaseEvidence::Right(_)
                | CaseEvidence::Alone { .. },
            )
            | None => {
                let why = "slower at first, but not compared again";
                said(GateOutcome::Inconclusive, GateReason::NotConfirmed, why)
            }
        },
        CaseEvidence::Times(first) => {
            let (outcome, reason) = of_times(first);
            said(outcome, reason, clock_note(first))
        }
    }
}

/// Returns the outcome for times that are not slower.
fn of_times(comparison: &PairedComparison) -> (GateOutcome, GateReason) {
    let Some(time) = comparison.time.filter(|_| comparison.p_value.is_some()) else {
        return (GateOutcome::Inconclusive, GateReason::Unsound);
    };
    if comparison.verdict == PairedVerdict::Faster {
        (GateOutcome::Improved, GateReason::Faster)
    } else if time.ci_high < 1.0 + comparison.equivalence {
        (GateOutcome::Pass, GateReason::WithinDelta)
    } else {
        (GateOutcome::Inconclusive, GateReason::Unresolved)
    }
}

/// Returns the outcome for exact counts, in which any difference beyond the margin is relevant.
fn of_counts(counts: &[CountComparison], margin: f64) -> (GateOutcome, GateReason) {
    // f64 is exact up to 53 bits, which no count reaches. Therefore a margin of 0 compares integers
    // exactly.
    let grew = |one: &CountComparison| {
        one.candidate > one.reference
            && one.candidate as f64 > one.reference as f64 * (1.0 + margin)
    };
    let fell = |one: &CountComparison| one.candidate < one.reference;
    match (counts.iter().any(grew), counts.iter().any(fell)) {
        (true, false) => (GateOutcome::Regression, GateReason::MoreWork),
        (true, true) => (GateOutcome::Inconclusive, GateReason::TradedWork),
        // A count that grew within the margin rules out an improvement.
        (false, true) if counts.iter().all(|one| one.candidate <= one.reference) => {
            (GateOutcome::Improved, GateReason::LessWork)
        }
        (false, _) => (GateOutcome::Pass, GateReason::CountsWithin),
    }
}

fn clock_note(comparison: &PairedComparison) -> &'static str {
    if comparison.clock_induced {
        "the cycles do not confirm the difference in time: the clock caused it"
    } else {
        ""
    }
}

/// Verdict on a suite, from best to worst.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SuiteVerdict {
    /// No case fails the suite.
    Pass,
    /// Some cases are inconclusive, and their policy does not accept that.
    Inconclusive,
    /// Some cases could not be measured, or are missing.
    Error,
    /// Some cases are slower.
    Regression,
    /// Some kernels are wrong. The suite fails regardless of its times.
    Invalid,
}

impl SuiteVerdict {
    /// All verdicts, from best to worst.
    pub const ALL: [SuiteVerdict; 5] = [
        SuiteVerdict::Pass,
        SuiteVerdict::Inconclusive,
        SuiteVerdict::Error,
        SuiteVerdict::Regression,
        SuiteVerdict::Invalid,
    ];

    /// Returns the verdict with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            SuiteVerdict::Pass => "PASS",
            SuiteVerdict::Inconclusive => "INCONCLUSIVE",
            SuiteVerdict::Error => "ERROR",
            SuiteVerdict::Regression => "REGRESSION",
            SuiteVerdict::Invalid => "INVALID",
        }
    }

    /// Returns the exit code of the command.
    pub const fn exit_code(self) -> u8 {
        match self {
            SuiteVerdict::Pass => 0,
            SuiteVerdict::Error => 1,
            SuiteVerdict::Regression => 2,
            SuiteVerdict::Inconclusive => 3,
            SuiteVerdict::Invalid => 4,
        }
    }
}

/// Returns the verdict on a suite, which is that of its worst case. Advisory cases do not affect
/// it.
pub fn suite_verdict(
    outcomes: impl IntoIterator<Item = (GateOutcome, CasePolicy)>,
    on_missing: OnMissing,
) -> SuiteVerdict {
    let of_case = |(outcome, policy): (GateOutcome, CasePolicy)| match outcome {
        _ if policy.advisory => SuiteVerdict::Pass,
        GateOutcome::Pass | GateOutcome::Improved | GateOutcome::New => SuiteVerdict::Pass,
        GateOutcome::Inconclusive if policy.on_inconclusive == OnInconclusive::Fail => {
            SuiteVerdict::Inconclusive
        }
        GateOutcome::Inconclusive => SuiteVerdict::Pass,
        GateOutcome::Missing if on_missing == OnMissing::Warn => SuiteVerdict::Pass,
        GateOutcome::Missing | GateOutcome::Error => SuiteVerdict::Error,
        GateOutcome::Regression => SuiteVerdict::Regression,
        GateOutcome::Invalid => SuiteVerdict::Invalid,
    };
    outcomes.into_iter().map(of_case).max().unwrap_or(SuiteVerdict::Error)
}

#[cfg(test)]
mod tests;
