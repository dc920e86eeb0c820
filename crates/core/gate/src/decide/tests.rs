use super::*;
use warpgauge_statistics::paired::RatioEstimate;

const POLICY: CasePolicy = CasePolicy {
    margin: 0.005,
    delta: 0.02,
    alpha: 0.01,
    count_margin: 0.0,
    on_inconclusive: OnInconclusive::Fail,
    advisory: false,
};

const ADVISORY: CasePolicy = CasePolicy { advisory: true, ..POLICY };

/// Returns a comparison with this ratio, interval and p-value.
fn times(ratio: f64, half: f64, p_value: Option<f64>) -> CaseEvidence {
    let (ci_low, ci_high) = (ratio - half, ratio + half);
    let verdict = if ci_low > 1.005 {
        PairedVerdict::Slower
    } else if ci_high < 1.0 / 1.005 {
        PairedVerdict::Faster
    } else {
        PairedVerdict::Inconclusive
    };
    let time = RatioEstimate {
        ratio,
        ci_low,
        ci_high,
        hodges_lehmann: ratio,
        block_sd: 0.01,
        groups: 16,
        blocks_per_group: 1,
        lag1_autocorrelation: None,
    };
    CaseEvidence::Times(Box::new(PairedComparison {
        verdict,
        reasons: Vec::new(),
        speedup: None,
        speedup_ci_low: None,
        speedup_ci_high: None,
        confidence: 0.99,
        time: Some(time),
        cycles: None,
        clock_induced: false,
        margin: 0.005,
        equivalence: 0.02,
        minimum_detectable_effect: Some(0.012),
        p_value,
        blocks_used: 16,
        blocks_dropped: 0,
        dropped: Vec::new(),
        blocks: Vec::new(),
    }))
}

fn counts(pairs: &[(u64, u64)]) -> CaseEvidence {
    let count = |&(reference, candidate): &(u64, u64)| CountComparison {
        count: "c".to_owned(),
        reference,
        candidate,
        ratio: None,
    };
    CaseEvidence::Counts(pairs.iter().map(count).collect())
}

fn alone(why: NoBaseline) -> CaseEvidence {
    CaseEvidence::Alone { why, note: "n".to_owned(), counts: Default::default() }
}

fn slower() -> CaseEvidence {
    times(1.03, 0.005, Some(1e-6))
}

fn one(policy: &CasePolicy, first: &CaseEvidence, confirmation: Option<&CaseEvidence>) -> Verdict {
    decide(&[JudgedCase { policy, first, confirmation }]).remove(0)
}

#[test]
fn outcomes_of_one_case() {
    use GateOutcome::*;
    let error = CaseEvidence::Error("server gone".to_owned());
    let wrong = CaseEvidence::Invalid("c[3] is 1, not 2".to_owned());
    let missing = CaseEvidence::Missing("no baseline".to_owned());
    let within = times(1.001, 0.004, Some(0.9));
    for (first, confirmation, outcome, reason) in [
        (within.clone(), None, Pass, GateReason::WithinDelta),
        // A slowdown of Δ is excluded, so a smaller one does not matter.
        (times(1.01, 0.008, Some(0.4)), None, Pass, GateReason::WithinDelta),
        (times(1.0, 0.03, Some(0.9)), None, Inconclusive, GateReason::Unresolved),
        // The lower end of the interval does not matter.
        (times(0.97, 0.04, Some(0.3)), None, Pass, GateReason::WithinDelta),
        (times(0.9, 0.01, Some(1e-9)), None, Improved, GateReason::Faster),
        (times(1.0, 0.001, None), None, Inconclusive, GateReason::Unsound),
        (slower(), None, Inconclusive, GateReason::NotConfirmed),
        (slower(), Some(slower()), Regression, GateReason::Confirmed),
        (slower(), Some(within.clone()), Inconclusive, GateReason::NotConfirmed),
        (slower(), Some(times(1.03, 0.005, None)), Inconclusive, GateReason::NotConfirmed),
        // The confirmation is as certain as the first comparison, on the other side.
        (slower(), Some(times(0.9, 0.01, Some(1e-9))), Inconclusive, GateReason::NotConfirmed),
        (slower(), Some(wrong.clone()), Invalid, GateReason::CandidateWrong),
        (slower(), Some(error.clone()), Error, GateReason::NotMeasured),
        (error, None, Error, GateReason::NotMeasured),
        (wrong, None, Invalid, GateReason::CandidateWrong),
        (missing, None, Missing, GateReason::NotOnBothSides),
        (alone(NoBaseline::New), None, New, GateReason::NewCase),
        (alone(NoBaseline::Broken), None, New, GateReason::BaselineBroken),
        (CaseEvidence::Identical, None, Pass, GateReason::IdenticalCode),
        (slower(), Some(CaseEvidence::Identical), Inconclusive, GateReason::NotConfirmed),
        (counts(&[(100, 100), (7, 7)]), None, Pass, GateReason::CountsWithin),
        (counts(&[(100, 101), (7, 7)]), None, Regression, GateReason::MoreWork),
        (counts(&[(100, 99), (7, 7)]), None, Improved, GateReason::LessWork),
        (counts(&[(100, 99), (7, 8)]), None, Inconclusive, GateReason::TradedWork),
        (counts(&[(0, 1)]), None, Regression, GateReason::MoreWork),
    ] {
        let verdict = one(&POLICY, &first, confirmation.as_ref());
        let found = (verdict.outcome, verdict.reason);
        assert_eq!(found, (outcome, reason), "{first:?} {confirmation:?}");
    }
}

#[test]
fn counts_grow_within_their_margin() {
    let policy = CasePolicy { count_margin: 0.05, ..POLICY };
    for (pairs, outcome) in [
        (&[(100, 105)][..], GateOutcome::Pass),
        (&[(100, 106)], GateOutcome::Regression),
        (&[(100, 105), (50, 40)], GateOutcome::Pass),
        (&[(100, 106), (50, 40)], GateOutcome::Inconclusive),
    ] {
        assert_eq!(one(&policy, &counts(pairs), None).outcome, outcome, "{pairs:?}");
    }
}

#[test]
fn a_suite_needs_smaller_p_values_than_a_case() {
    let borderline = times(1.02, 0.01, Some(0.004));
    let fine = times(1.0, 0.005, Some(0.8));
    let confirm = |first: &[(&CasePolicy, &CaseEvidence)]| {
        let judged =
            first.iter().map(|&(policy, first)| JudgedCase { policy, first, confirmation: None });
        to_confirm(&judged.collect::<Vec<_>>())
    };
    assert_eq!(confirm(&[(&POLICY, &borderline)]), [0]);
    // Holm's adjusted p-value is 0.004 × 3.
    let [b, f] = [(&POLICY, &borderline), (&POLICY, &fine)];
    assert!(confirm(&[b, f, f]).is_empty());
    // Advisory cases are not in Holm's family, and form their own.
    let (advised, advisory) = ((&ADVISORY, &fine), (&ADVISORY, &borderline));
    assert_eq!(confirm(&[b, advised, advisory]), [0, 2]);
    // A certain regression leaves a smaller family for the next: 0.004 × 2.
    let sure = slower();
    assert_eq!(confirm(&[(&POLICY, &sure), b, f]), [0, 1]);
    // A case that could not be measured still counts, so that an error does not make other
    // regressions easier to find.
    let error = CaseEvidence::Error(String::new());
    assert!(confirm(&[b, (&POLICY, &error), (&POLICY, &error)]).is_empty());
    // Counts are exact and need no confirmation.
    assert!(confirm(&[(&POLICY, &counts(&[(1, 2)]))]).is_empty());
}

#[test]
fn p_values_are_reported_as_they_were_judged() {
    let (a, b) = (times(1.02, 0.01, Some(0.004)), times(1.001, 0.01, Some(0.5)));
    let judged = |policy, first| JudgedCase { policy, first, confirmation: None };
    let found = decide(&[judged(&POLICY, &a), judged(&ADVISORY, &a), judged(&POLICY, &b)]);
    let p = found.iter().map(|verdict| verdict.adjusted_p.unwrap()).collect::<Vec<_>>();
    assert_eq!(p, [0.008, 0.004, 0.5]);
}

#[test]
fn the_suite_is_as_bad_as_its_worst_case() {
    use GateOutcome::*;
    let of = |outcomes: &[(GateOutcome, CasePolicy)], missing| {
        suite_verdict(outcomes.iter().copied(), missing)
    };
    let lenient = CasePolicy { on_inconclusive: OnInconclusive::Warn, ..POLICY };
    let silent = CasePolicy { on_inconclusive: OnInconclusive::Pass, ..POLICY };
    let fail = OnMissing::Fail;
    for (outcomes, verdict) in [
        (&[(Pass, POLICY), (Improved, POLICY)][..], SuiteVerdict::Pass),
        (&[(Pass, POLICY), (Inconclusive, POLICY)], SuiteVerdict::Inconclusive),
        (&[(Inconclusive, lenient), (Inconclusive, silent)], SuiteVerdict::Pass),
        (&[(Inconclusive, POLICY), (Error, POLICY)], SuiteVerdict::Error),
        (&[(Missing, POLICY), (Pass, POLICY)], SuiteVerdict::Error),
        (&[(New, POLICY)], SuiteVerdict::Pass),
        (&[(New, POLICY), (Inconclusive, POLICY)], SuiteVerdict::Inconclusive),
        (&[(Error, POLICY), (Regression, POLICY)], SuiteVerdict::Regression),
        (&[(Regression, POLICY), (Invalid, POLICY)], SuiteVerdict::Invalid),
        // An advisory case never fails the suite.
        (&[(Regression, ADVISORY), (Pass, POLICY)], SuiteVerdict::Pass),
        (&[(Invalid, ADVISORY), (Error, ADVISORY)], SuiteVerdict::Pass),
        (&[(Invalid, ADVISORY), (Inconclusive, POLICY)], SuiteVerdict::Inconclusive),
        // Without cases nothing was gated.
        (&[], SuiteVerdict::Error),
    ] {
        assert_eq!(of(outcomes, fail), verdict, "{outcomes:?}");
    }
    assert_eq!(of(&[(Missing, POLICY)], OnMissing::Warn), SuiteVerdict::Pass);
}

#[test]
fn advisory_cases_bear_a_share_of_wrong_calls() {
    let p = |p| times(1.02, 0.01, Some(p));
    let found = |values: &[f64]| {
        let evidence = values.iter().map(|value| p(*value)).collect::<Vec<_>>();
        let judged = evidence
            .iter()
            .map(|first| JudgedCase { policy: &ADVISORY, first, confirmation: None })
            .collect::<Vec<_>>();
        to_confirm(&judged)
    };
    // Holm's correction at 5 % would find none of them: 0.02 × 3.
    assert_eq!(found(&[0.02, 0.03, 0.04]), [0, 1, 2]);
    assert_eq!(found(&[0.012, 0.2, 0.3]), [0]);
    assert!(found(&[0.02, 0.2, 0.3]).is_empty());
    // A confirmation is tested at α alone.
    let (first, again) = (p(0.03), p(0.03));
    assert_eq!(one(&ADVISORY, &first, Some(&again)).reason, GateReason::NotConfirmed);
    let again = p(0.01);
    assert_eq!(one(&ADVISORY, &first, Some(&again)).reason, GateReason::Confirmed);
}

#[test]
fn looks_share_the_error_among_their_kind() {
    let alphas = crate::first_alphas(&[POLICY, ADVISORY, POLICY, ADVISORY, ADVISORY]);
    assert_eq!(alphas, [0.005, 0.05 / 3.0, 0.005, 0.05 / 3.0, 0.05 / 3.0]);
}
