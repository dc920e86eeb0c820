//! Converts the report of a comparison to an answer.

use super::{CandidateLine, Outcome, SUMMARY_BYTES, Verdict, evaluation, plain};
use warpgauge_report::readable::percent;
use warpgauge_report::{CandidateReport, CompareResponse, EvaluateResponse};
use warpgauge_service::ArtifactKind;
use warpgauge_statistics::CountedComparison;
use warpgauge_statistics::paired::{PairedComparison, PairedVerdict};

/// Returns the answer about a comparison: the verdict on its first candidate, and a line for each
/// candidate.
pub(super) fn answer(response: &CompareResponse) -> Outcome {
    let candidates: Vec<CandidateLine> = response.candidates.iter().map(line).collect();
    let (verdict, summary) = candidates.first().map_or_else(
        || (Verdict::NotCompared, "there is no candidate".to_owned()),
        |first| (first.verdict, format!("{}: {}", first.name, first.summary)),
    );
    let mut outcome = Outcome::new(verdict, summary).on(response.device.as_ref());
    evaluation::read_so(&mut outcome, &response.warnings);
    if let [only] = response.candidates.as_slice() {
        facts(&mut outcome, verdict, response, only);
    } else if let Some(order) = order(response) {
        outcome.fact(order);
    }
    outcome.status = Some(response.status);
    outcome.kernel_exec_result = Some(evaluation::short(&response.kernel_exec_result));
    outcome.ref_runtime = response.ref_runtime;
    outcome.candidates = candidates;
    outcome.of_job(&response.job_id, &[ArtifactKind::Ptx, ArtifactKind::Sass])
}

fn line(candidate: &CandidateReport) -> CandidateLine {
    let (verdict, summary) = verdict(candidate);
    let paired = candidate.comparison.as_ref();
    CandidateLine {
        name: plain(&candidate.name, 64),
        verdict,
        summary: plain(&summary, SUMMARY_BYTES),
        speedup: paired.and_then(|paired| paired.speedup),
        speedup_ci_low: paired.and_then(|paired| paired.speedup_ci_low),
        speedup_ci_high: paired.and_then(|paired| paired.speedup_ci_high),
    }
}

fn verdict(candidate: &CandidateReport) -> (Verdict, String) {
    if let Some(paired) = &candidate.comparison {
        return (paired.verdict.into(), found(paired));
    }
    let evaluation = &candidate.evaluation;
    if !evaluation.is_timed() || !evaluation.kernel_verdict().is_good() {
        return evaluation::verdict(evaluation, None);
    }
    if let Some(counted) = &candidate.counted {
        return (counted.verdict.into(), work(counted));
    }
    let why = candidate.not_compared.as_deref().unwrap_or("the service gives no reason");
    (Verdict::NotCompared, format!("its outputs are correct; {why}"))
}

/// Formats the numbers behind a verdict that is based on times.
fn found(paired: &PairedComparison) -> String {
    let Some(speedup) = paired.speedup else { return "no block was valid".to_owned() };
    let mut text = format!("{speedup:.3}× as fast as the reference");
    if let (Some(low), Some(high)) = (paired.speedup_ci_low, paired.speedup_ci_high) {
        let level = percent(paired.confidence);
        text.push_str(&format!(" ({level} CI {low:.3} to {high:.3})"));
    }
    match (paired.verdict, paired.minimum_detectable_effect) {
        (PairedVerdict::Same, _) => {
            text.push_str(&format!("; within {}", percent(paired.equivalence)));
        }
        (PairedVerdict::Inconclusive, Some(effect)) => {
            text.push_str(&format!(
                "; differences below {} could not be detected",
                percent(effect)
            ));
        }
        _ => {}
    }
    if paired.clock_induced {
        text.push_str("; the difference is due to the clock, not to the kernel");
    }
    text
}

/// Formats the counts behind a verdict that is based on work.
fn work(counted: &CountedComparison) -> String {
    let ratios = [
        (counted.warp_instructions, "warp instructions"),
        (counted.global_sectors, "sectors of global memory"),
    ];
    let ratios = ratios.iter().filter_map(|(ratio, what)| {
        ratio.map(|ratio| format!("{ratio:.3} of the reference's {what}"))
    });
    let ratios: Vec<String> = ratios.collect();
    format!("{}; correct; counted on the emulated device, not timed", ratios.join(", "))
}

/// Adds the facts about a single candidate.
fn facts(
    outcome: &mut Outcome,
    verdict: Verdict,
    response: &CompareResponse,
    candidate: &CandidateReport,
) {
    match verdict {
        Verdict::NotCompiled => evaluation::compiler(outcome, &candidate.evaluation),
        Verdict::Wrong | Verdict::Failed => evaluation::against(outcome, &candidate.evaluation),
        _ => {}
    }
    let alone = |name: &str, report: &EvaluateResponse| {
        let stats = report.kernel_exec_result.runtime_stats.as_ref()?;
        Some(format!("{name} alone: {}", evaluation::time(report, stats)))
    };
    let times =
        [alone(&candidate.name, &candidate.evaluation), alone("reference", &response.reference)];
    times.into_iter().flatten().for_each(|time| outcome.fact(time));
    if candidate.identical_code == Some(true) {
        outcome.fact("the machine code is identical to the reference's, apart from names");
    }
    if let Some(diff) = &candidate.code_diff {
        let (reference, own) = (diff.reference_instructions, diff.candidate_instructions);
        outcome.fact(format!("{own} instructions; the reference has {reference}"));
    }
}

/// Formats the ranking of several candidates.
fn order(response: &CompareResponse) -> Option<String> {
    let name = |index: u32| match index {
        0 => "reference".to_owned(),
        index => {
            let candidate = response.candidates.get(index as usize - 1);
            candidate.map_or_else(|| "?".to_owned(), |one| plain(&one.name, 64))
        }
    };
    let (by, ranks): (&str, Vec<(u32, u32)>) = match &response.ranking {
        Some(ranking) => {
            let ranks = ranking.candidates.iter().map(|one| (one.rank, one.index));
            ("time", ranks.collect())
        }
        None => {
            let ranks = response.counted_ranking.iter().map(|one| (one.rank, one.index));
            ("counts", ranks.collect())
        }
    };
    let ranks: Vec<String> =
        ranks.into_iter().map(|(rank, index)| format!("{rank}. {}", name(index))).collect();
    (!ranks.is_empty()).then(|| format!("ranking by {by}: {}", ranks.join(", ")))
}
