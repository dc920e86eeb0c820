//! From the evidence of a suite to outcomes.
//!
//! A case *regresses* if its time exceeds the baseline's by more than the margin τ, surely enough
//! that a suite of unchanged kernels calls anything with probability α at most (the comparison's own
//! p-value, corrected over the suite after Holm), and if a second comparison in fresh processes
//! says so too. It *passes* if a slowdown of Δ is excluded. Where neither can be shown it is
//! inconclusive, which is an outcome and not a pass. Exact counts are compared as they are.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ADVISORY_RATE, CasePolicy, Evidence, NoBaseline, OnInconclusive, OnMissing};
use warpgauge_report::CountComparison;
use warpgauge_statistics::paired::{
    PairedComparison, PairedVerdict, benjamini_hochberg, holm_adjusted,
};

/// What the gate says of one case.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "GateOutcome")]
pub enum Outcome {
    /// A slowdown that matters is excluded.
    Pass,
    /// The baseline has nothing to compare with; on its own the candidate is right. It passes.
    New,
    /// Faster by more than the margin, or less of what is counted.
    Improved,
    /// Neither a regression nor a pass could be shown.
    Inconclusive,
    /// It could not be measured.
    Error,
    /// The baseline has it, the candidate does not.
    Missing,
    /// Slower by more than the margin, confirmed; or more of what is counted.
    Regression,
    /// The candidate does not do what the baseline does, or what its contract expects.
    Invalid,
}

/// Why a case has its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "GateReason")]
pub enum Reason {
    /// The interval lies above the margin, after Holm's correction, and did again in fresh processes.
    Confirmed,
    /// It did the first time, and not in fresh processes.
    NotConfirmed,
    /// Both sides are one image with one launch, to the last byte: not measured.
    IdenticalCode,
    /// The interval lies below a slowdown of Δ.
    WithinDelta,
    /// The interval lies below the margin on the fast side.
    Faster,
    /// The interval reaches from what passes to what does not.
    Unresolved,
    /// The blocks bear no interval; the comparison's own reasons say why.
    Unsound,
    /// It is right, and nothing ranks times of torch kernels.
    OnlyRight,
    /// Counts are equal, or within their margin.
    CountsWithin,
    /// A count grew beyond its margin, and none fell.
    MoreWork,
    /// A count fell, and none grew.
    LessWork,
    /// One count grew and another fell: counts do not decide.
    TradedWork,
    /// The candidate is wrong, does not compile, crashed, or did not do the work.
    CandidateWrong,
    /// The candidate lacks the case.
    NotOnBothSides,
    /// The baseline lacks the case: it was compiled, run and checked on its own.
    NewCase,
    /// The baseline's kernel does not compile, crashes or is wrong, and the candidate's does not.
    BaselineBroken,
    /// It could not be measured.
    NotMeasured,
}

/// The outcome of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// Why, in words; empty where the reason and the numbers say all.
    pub detail: String,
    /// p-value of the slowdown beyond the margin, corrected for the looks and over the suite after
    /// Holm; of an advisory case over those after Benjamini and Hochberg.
    pub adjusted_p: Option<f64>,
}

/// A case with its evidence.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// What it lets pass.
    pub policy: &'a CasePolicy,
    /// What its comparison showed.
    pub first: &'a Evidence,
    /// What a second one in fresh processes showed, where one was asked for.
    pub confirmation: Option<&'a Evidence>,
}

/// Which cases have to be compared again, in fresh processes, before anything is said of them.
/// Counts are exact: they need no second look.
pub fn to_confirm(cases: &[Judged<'_>]) -> Vec<usize> {
    let adjusted = adjusted(cases);
    (0..cases.len())
        .filter(|&index| {
            matches!(cases[index].first, Evidence::Times(_))
                && is_slower(adjusted[index], cases[index].policy)
        })
        .collect()
}

/// The outcome of each case, in order. One whose regression was not compared again has none.
pub fn decide(cases: &[Judged<'_>]) -> Vec<Verdict> {
    cases.iter().zip(adjusted(cases)).map(|(case, p)| verdict(case, p)).collect()
}

/// p-values of "slower beyond the margin": Holm's over the cases that may fail the suite, Benjamini
/// and Hochberg's over those that only inform. All of them count for the others, whether they could
/// be measured or not; only counts are exact.
fn adjusted(cases: &[Judged<'_>]) -> Vec<Option<f64>> {
    let p_values = cases.iter().map(|case| slower_p(case.first)).collect::<Vec<_>>();
    let mut adjusted = p_values.clone();
    for (advisory, correct) in
        [(false, holm_adjusted as fn(&[f64]) -> Vec<f64>), (true, benjamini_hochberg)]
    {
        let is_one = |index: &usize| {
            let case = &cases[*index];
            case.policy.advisory == advisory && !matches!(case.first, Evidence::Counts(_))
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

/// p-value of "slower beyond the margin"; `None` where the blocks bear none.
fn slower_p(evidence: &Evidence) -> Option<f64> {
    let Evidence::Times(comparison) = evidence else {
        return None;
    };
    let (p, time) = comparison.p_value.zip(comparison.time)?;
    // The comparison's p-value is of the side on which the estimate lies.
    Some(if time.ratio > 1.0 { p } else { 1.0 })
}

fn is_slower(p: Option<f64>, policy: &CasePolicy) -> bool {
    let limit = if policy.advisory { ADVISORY_RATE } else { policy.alpha };
    p.is_some_and(|p| p <= limit)
}

fn verdict(case: &Judged<'_>, p: Option<f64>) -> Verdict {
    let said = |outcome, reason, detail: &str| Verdict {
        outcome,
        reason,
        detail: detail.to_owned(),
        adjusted_p: p,
    };
    match case.first {
        Evidence::Missing(why) => said(Outcome::Missing, Reason::NotOnBothSides, why),
        Evidence::Error(why) => said(Outcome::Error, Reason::NotMeasured, why),
        Evidence::Invalid(why) => said(Outcome::Invalid, Reason::CandidateWrong, why),
        Evidence::Identical => said(Outcome::Pass, Reason::IdenticalCode, ""),
        Evidence::Right(why) => said(Outcome::Pass, Reason::OnlyRight, why),
        Evidence::Alone { why: NoBaseline::New, note, .. } => {
            said(Outcome::New, Reason::NewCase, note)
        }
        Evidence::Alone { why: NoBaseline::Broken, note, .. } => {
            said(Outcome::New, Reason::BaselineBroken, note)
        }
        Evidence::Counts(counts) => {
            let (outcome, reason) = of_counts(counts, case.policy.count_margin);
            said(outcome, reason, "")
        }
        Evidence::Times(first) if is_slower(p, case.policy) => match case.confirmation {
            Some(Evidence::Invalid(why)) => said(Outcome::Invalid, Reason::CandidateWrong, why),
            Some(Evidence::Times(second)) => {
                // One test of one hypothesis: nothing to correct for.
                let again = slower_p(&Evidence::Times(second.clone()));
                if again.is_some_and(|p| p <= case.policy.alpha) {
                    said(Outcome::Regression, Reason::Confirmed, clock_note(first))
                } else {
                    let why = "slower at first, and not when compared again in fresh processes";
                    said(Outcome::Inconclusive, Reason::NotConfirmed, why)
                }
            }
            Some(Evidence::Error(why) | Evidence::Missing(why)) => {
                let why = format!("slower at first; comparing again failed: {why}");
                said(Outcome::Error, Reason::NotMeasured, &why)
            }
            Some(
                Evidence::Counts(_)
                | Evidence::Identical
                | Evidence::Right(_)
                | Evidence::Alone { .. },
            )
            | None => {
                let why = "slower at first, and not compared again";
                said(Outcome::Inconclusive, Reason::NotConfirmed, why)
            }
        },
        Evidence::Times(first) => {
            let (outcome, reason) = of_times(first);
            said(outcome, reason, clock_note(first))
        }
    }
}

/// Of times that are not slower.
fn of_times(comparison: &PairedComparison) -> (Outcome, Reason) {
    let Some(time) = comparison.time.filter(|_| comparison.p_value.is_some()) else {
        return (Outcome::Inconclusive, Reason::Unsound);
    };
    if comparison.verdict == PairedVerdict::Faster {
        (Outcome::Improved, Reason::Faster)
    } else if time.ci_high < 1.0 + comparison.equivalence {
        (Outcome::Pass, Reason::WithinDelta)
    } else {
        (Outcome::Inconclusive, Reason::Unresolved)
    }
}

/// Of exact counts: a difference of one is a difference, beyond the margin.
fn of_counts(counts: &[CountComparison], margin: f64) -> (Outcome, Reason) {
    // In f64, whose 53 bits no count comes near; at a margin of 0 the comparison is of integers.
    let grew = |one: &CountComparison| {
        one.candidate > one.reference
            && one.candidate as f64 > one.reference as f64 * (1.0 + margin)
    };
    let fell = |one: &CountComparison| one.candidate < one.reference;
    match (counts.iter().any(grew), counts.iter().any(fell)) {
        (true, false) => (Outcome::Regression, Reason::MoreWork),
        (true, true) => (Outcome::Inconclusive, Reason::TradedWork),
        // Growth within the margin beside a fall is no improvement to speak of.
        (false, true) if counts.iter().all(|one| one.candidate <= one.reference) => {
            (Outcome::Improved, Reason::LessWork)
        }
        (false, _) => (Outcome::Pass, Reason::CountsWithin),
    }
}

fn clock_note(comparison: &PairedComparison) -> &'static str {
    if comparison.clock_induced {
        "the times differ and the cycles do not: the clock made the difference"
    } else {
        ""
    }
}

/// What the gate says of the suite, worst last.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SuiteVerdict {
    /// No case stands against it.
    Pass,
    /// Of some cases nothing could be shown, and the policy does not let that pass.
    Inconclusive,
    /// Some cases could not be measured, or are missing.
    Error,
    /// Some cases got slower.
    Regression,
    /// Some kernels are wrong: times of such a suite say nothing.
    Invalid,
}

impl SuiteVerdict {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            SuiteVerdict::Pass => "PASS",
            SuiteVerdict::Inconclusive => "INCONCLUSIVE",
            SuiteVerdict::Error => "ERROR",
            SuiteVerdict::Regression => "REGRESSION",
            SuiteVerdict::Invalid => "INVALID",
        }
    }

    /// The exit code that stands for it.
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

/// The verdict on a suite: that of its worst case. Advisory cases never make it worse.
pub fn suite_verdict(
    outcomes: impl IntoIterator<Item = (Outcome, CasePolicy)>,
    on_missing: OnMissing,
) -> SuiteVerdict {
    let of_case = |(outcome, policy): (Outcome, CasePolicy)| match outcome {
        _ if policy.advisory => SuiteVerdict::Pass,
        Outcome::Pass | Outcome::Improved | Outcome::New => SuiteVerdict::Pass,
        Outcome::Inconclusive if policy.on_inconclusive == OnInconclusive::Fail => {
            SuiteVerdict::Inconclusive
        }
        Outcome::Inconclusive => SuiteVerdict::Pass,
        Outcome::Missing if on_missing == OnMissing::Warn => SuiteVerdict::Pass,
        Outcome::Missing | Outcome::Error => SuiteVerdict::Error,
        Outcome::Regression => SuiteVerdict::Regression,
        Outcome::Invalid => SuiteVerdict::Invalid,
    };
    outcomes.into_iter().map(of_case).max().unwrap_or(SuiteVerdict::Error)
}

#[cfg(test)]
mod tests;
