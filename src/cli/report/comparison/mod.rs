//! The report of a comparison: a verdict for each candidate, then what it rests on.

use super::super::format::{device, duration_ms, percent};
use super::super::terminal::plain;
use super::page::{Page, Tone};
use super::{compile_errors, evaluation_verdict, failed_checks, ignored, measured, timings};
use warpgauge_code::listing::{CodeDiff, CodeLanguage};
use warpgauge_model::DeviceKind;
use warpgauge_report::{
    CandidateReport, CompareResponse, EvaluateResponse, KernelVerdict, RuntimeStats,
};
use warpgauge_statistics::paired::{
    PairedComparison, PairedReason, PairedVerdict, RankedCandidate, Ranking, RatioEstimate,
};
use warpgauge_statistics::{Counted, CountedComparison, CountedRank, CountedVerdict};

/// The report of a comparison.
pub(in super::super) fn comparison(response: &CompareResponse, colour: bool) -> String {
    let mut page = Page::new(colour);
    for candidate in &response.candidates {
        verdict(&mut page, response, candidate);
    }
    page.text.push('\n');
    time(&mut page, "reference", None, &response.reference);
    for candidate in &response.candidates {
        rows(&mut page, candidate);
    }
    if let Some(ranking) = &response.ranking {
        ranks(&mut page, ranking, &response.candidates);
    }
    counted_ranks(&mut page, response);
    if let Some(report) = &response.device {
        page.row("device", &device(report));
    }
    ignored(&mut page, &response.warnings);
    timings(&mut page, &response.timings);
    page.row("job", &response.job_id);
    page.text
}

fn verdict(page: &mut Page, response: &CompareResponse, candidate: &CandidateReport) {
    let name = &candidate.name;
    if let Some(comparison) = &candidate.comparison {
        let (tone, word) = match comparison.verdict {
            PairedVerdict::Faster => (Tone::Good, "FASTER"),
            PairedVerdict::Slower => (Tone::Bad, "SLOWER"),
            PairedVerdict::Same => (Tone::Good, "SAME"),
            PairedVerdict::Inconclusive => (Tone::Doubt, "INCONCLUSIVE"),
        };
        page.verdict(tone, word, &format!("{name}: {}", found(comparison)));
        return;
    }
    let evaluation = &candidate.evaluation;
    let is_timed =
        evaluation.kernel_exec_result.runtime.is_some() || evaluation.unranked().is_some();
    if !is_timed || !evaluation.kernel_verdict().is_good() {
        return evaluation_verdict(page, evaluation, Some(name));
    }
    if let Some(counted) = &candidate.counted {
        let (tone, word) = match counted.verdict {
            CountedVerdict::LessWork => (Tone::Good, "LESS WORK"),
            CountedVerdict::SameWork => (Tone::Good, "SAME WORK"),
            CountedVerdict::MoreWork => (Tone::Bad, "MORE WORK"),
            CountedVerdict::Mixed => (Tone::Doubt, "MIXED WORK"),
        };
        return page.verdict(tone, word, &format!("{name}: {}", work(counted)));
    }
    let why = candidate.not_compared.as_deref().unwrap_or("the service says no more");
    let tone = match response.device.as_ref().map(|device| device.kind) {
        Some(DeviceKind::Emulator) | None => Tone::Good,
        Some(DeviceKind::Cuda) => Tone::Doubt,
    };
    let word = match evaluation.kernel_verdict() {
        KernelVerdict::Correct => "CORRECT, NOT COMPARED",
        _ => "NOT COMPARED",
    };
    page.verdict(tone, word, &format!("{name}: {why}"));
}

/// The verdict's numbers in one line.
fn found(comparison: &PairedComparison) -> String {
    let speedup = match comparison.speedup {
        Some(speedup) => format!("{speedup:.3}× as fast as the reference"),
        None => "no block counted".to_owned(),
    };
    let interval = match (comparison.speedup_ci_low, comparison.speedup_ci_high) {
        (Some(low), Some(high)) => {
            let level = percent(comparison.confidence);
            format!(" ({level} CI {low:.3} to {high:.3})")
        }
        _ => String::new(),
    };
    let more = match comparison.verdict {
        PairedVerdict::Same => format!("; within {}", percent(comparison.equivalence)),
        PairedVerdict::Inconclusive => {
            let seen = comparison.minimum_detectable_effect;
            seen.map_or(String::new(), |effect| {
                format!("; a difference below {} could not be seen", percent(effect))
            })
        }
        PairedVerdict::Faster | PairedVerdict::Slower => String::new(),
    };
    format!("{speedup}{interval}{more}")
}

/// The counts that a verdict rests on that is not one of time.
fn work(counted: &CountedComparison) -> String {
    let ratios = [
        (counted.warp_instructions, "warp instructions"),
        (counted.global_sectors, "sectors of global memory"),
    ];
    let ratios = ratios.iter().filter_map(|(ratio, what)| {
        ratio.map(|ratio| format!("{ratio:.3} of the reference's {what}"))
    });
    format!("{}; counted, not timed", ratios.collect::<Vec<_>>().join(", "))
}

fn rows(page: &mut Page, candidate: &CandidateReport) {
    let evaluation = &candidate.evaluation;
    time(page, "candidate", Some(&candidate.name), evaluation);
    let result = &evaluation.kernel_exec_result;
    if !result.compiled {
        let diagnostics = evaluation.compile.as_ref().map_or(&[][..], |c| &c.diagnostics);
        compile_errors(page, diagnostics, result.compilation_error.as_deref());
    }
    measured::reasons(page, evaluation);
    measured::weaknesses(page, evaluation);
    failed_checks(page, evaluation);
    if candidate.identical_code == Some(true) {
        page.row("code", "the same machine code as the reference's, but for names");
    }
    if let Some(comparison) = &candidate.comparison {
        paired(page, comparison);
    }
    counts(page, candidate);
    if let Some(diff) = &candidate.code_diff {
        code(page, diff);
    }
    if let Some(why) = &candidate.no_code_diff {
        page.row("code", &format!("not compared: {why}"));
    }
}

/// How the code differs: what there is more and less of, then the differences themselves.
fn code(page: &mut Page, diff: &CodeDiff) {
    let language = match diff.language {
        CodeLanguage::Sass => "SASS",
        CodeLanguage::Ptx => "PTX",
    };
    let (reference, candidate) = (diff.reference_instructions, diff.candidate_instructions);
    if diff.identical {
        page.row("code", &format!("{language}: the same {reference} instructions"));
        return;
    }
    page.row(
        "code",
        &format!(
            "{language}: {reference} instructions, the candidate has {candidate}; {} lines only \
             there, {} only in the reference",
            diff.added, diff.removed
        ),
    );
    for count in diff.opcodes.iter().take(MAX_OPCODES) {
        page.more(&format!(
            "{:<26}{:>14}{:>14}",
            plain(&count.opcode),
            count.reference,
            count.candidate
        ));
    }
    page.block(&diff.unified);
    if diff.truncated {
        page.more("the code is long: not all of it was compared");
    }
}

/// Opcodes shown.
const MAX_OPCODES: usize = 12;

/// A kernel's own time.
fn time(page: &mut Page, label: &str, name: Option<&str>, report: &EvaluateResponse) {
    let text = match &report.kernel_exec_result.runtime_stats {
        Some(stats) => median(stats),
        None if report.kernel_exec_result.compiled => "no time: it is not right".to_owned(),
        None => "no time: it does not compile".to_owned(),
    };
    let name = name.map_or(String::new(), |name| format!("{name}: "));
    page.row(label, &format!("{name}{text}"));
}

fn median(stats: &RuntimeStats) -> String {
    let interval = match (stats.median_ci_low, stats.median_ci_high) {
        (Some(low), Some(high)) => {
            format!(", 95 % CI {} to {}", duration_ms(low), duration_ms(high))
        }
        _ => String::new(),
    };
    let n = stats.samples;
    format!("on its own {} median{interval}, n = {n}", duration_ms(stats.median))
}

fn paired(page: &mut Page, comparison: &PairedComparison) {
    let ratio = |estimate: &RatioEstimate| {
        let RatioEstimate { ratio, ci_low, ci_high, .. } = *estimate;
        format!("{ratio:.4} of the reference's (CI {ci_low:.4} to {ci_high:.4})")
    };
    if let Some(estimate) = &comparison.time {
        page.row("time", &ratio(estimate));
    }
    if let Some(estimate) = &comparison.cycles {
        page.row("cycles", &ratio(estimate));
    }
    if comparison.clock_induced {
        page.more("the clock made the difference in time, not the kernel");
    }
    let drops =
        comparison.dropped.iter().map(|d| format!("{} {}", d.count, measured::word(&d.reason)));
    let drops = drops.collect::<Vec<_>>().join(", ");
    let drops = if drops.is_empty() { String::new() } else { format!(" ({drops})") };
    page.row(
        "blocks",
        &format!("{} used, {} dropped{drops}", comparison.blocks_used, comparison.blocks_dropped),
    );
    let effect = comparison.minimum_detectable_effect.map_or(String::new(), |effect| {
        format!(", least difference that would be seen {}", percent(effect))
    });
    let p = comparison.p_value.map_or(String::new(), |p| format!(", p = {p:.1e}"));
    page.more(&format!(
        "margin {}, equivalence {}{effect}{p}",
        percent(comparison.margin),
        percent(comparison.equivalence)
    ));
    for (index, reason) in comparison.reasons.iter().enumerate() {
        let label = if index == 0 { "because" } else { "" };
        page.row(label, because(*reason));
    }
}

/// A reason in words.
fn because(reason: PairedReason) -> &'static str {
    match reason {
        PairedReason::BeyondMargin => "the whole interval lies beyond the margin",
        PairedReason::WithinEquivalence => "the whole interval lies within the equivalence limit",
        PairedReason::DifferenceUnresolved => {
            "the interval reaches from what matters to what does not: try --preset ci or deep, \
             or a quieter device"
        }
        PairedReason::AllBlocksDropped => "every block was dropped",
        PairedReason::TooManyDropped => "too many blocks were dropped: the device is not quiet",
        PairedReason::SlotsApart => {
            "many blocks were dropped, but no disturbance was as large as the difference"
        }
        PairedReason::TooFewBlocks => {
            "fewer than 8 blocks are left: give `measure.max_time` more, or --preset ci"
        }
        PairedReason::DependentBlocks => "successive blocks depended on one another",
        PairedReason::MeansCompared => {
            "means are compared: some launches of one kernel may bear the work of others"
        }
        PairedReason::RatioDrifts => {
            "the ratio changed while it was measured, and its last third does not show the difference"
        }
        PairedReason::BlocksMerged => "successive blocks depended on one another and were merged",
        PairedReason::EstimatorsDisagree => "a few blocks move the mean out of the interval",
        PairedReason::EndedEarly => "the time was up before the last look",
        PairedReason::SpreadTooWide => {
            "the times vary so much that more blocks would not have decided it in the time: quieten the machine, or \
             raise `measure.max_time`"
        }
        PairedReason::MarginFromResolution => "the margin is one tick of the clock",
        PairedReason::MarginFromFloor => "the margin is what the case showed against itself",
        PairedReason::ClockInduced => "times and cycles disagree: the clock made the difference",
        PairedReason::ClockMasked => "the cycles differ and the clock made up for it",
        PairedReason::ClockUnknown => "the clock was not known throughout: cycles not compared",
    }
}

/// Counts of one launch beside the reference's; what neither kernel does is left out.
fn counts(page: &mut Page, candidate: &CandidateReport) {
    if candidate.counts.is_empty() {
        return;
    }
    page.row("counts", "of one launch: reference, candidate, ratio");
    for count in candidate.counts.iter().filter(|one| one.reference > 0 || one.candidate > 0) {
        let ratio = count.ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
        let name = plain(&count.count);
        page.more(&format!("{name:<26}{:>14}{:>14}{ratio:>9}", count.reference, count.candidate));
    }
}

fn ranks(page: &mut Page, ranking: &Ranking, candidates: &[CandidateReport]) {
    for (position, RankedCandidate { index, rank, relative_time }) in
        ranking.candidates.iter().enumerate()
    {
        let name = name_of(*index, candidates);
        let time = relative_time
            .map_or(String::new(), |time| format!(", {time:.4} of the reference's time"));
        let time = if *index == 0 { String::new() } else { time };
        let label = if position == 0 { "ranking" } else { "" };
        page.row(label, &format!("{rank}. {name}{time}"));
    }
}

/// The order by counts, which says that it is one.
fn counted_ranks(page: &mut Page, response: &CompareResponse) {
    for (position, CountedRank { index, rank, counted }) in
        response.counted_ranking.iter().enumerate()
    {
        let name = name_of(*index, &response.candidates);
        let label = if position == 0 { "by counts" } else { "" };
        let Counted { warp_instructions, global_sectors } = counted;
        page.row(
            label,
            &format!(
                "{rank}. {name}, {warp_instructions} warp instructions, {global_sectors} sectors"
            ),
        );
    }
}

/// Name of a kernel by its index in a ranking.
fn name_of(index: u32, candidates: &[CandidateReport]) -> &str {
    match index {
        0 => "reference",
        index => candidates.get(index as usize - 1).map_or("?", |one| one.name.as_str()),
    }
}

#[cfg(test)]
mod tests;
