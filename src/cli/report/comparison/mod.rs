//! The text report of a comparison: a verdict for each candidate, followed by the evidence.

use super::super::format::{device, duration_ms, percent};
use super::super::terminal::{Style, plain};
use super::page::{Page, Tone};
use super::{
    compile_errors, errors, evaluation_verdict, failed_checks, ignored, interval, measured,
    reasons, timings,
};
use warpgauge_code::listing::{CodeDiff, CodeLanguage};
use warpgauge_contract::REFERENCE_NAME;
use warpgauge_model::DeviceKind;
use warpgauge_report::readable::{because, of_counts, of_times, word_of_counts, word_of_times};
use warpgauge_report::{
    CandidateReport, CompareResponse, CountComparison, EvaluateResponse, KernelVerdict,
    RuntimeStats,
};
use warpgauge_statistics::paired::{
    PairedComparison, PairedVerdict, RankedCandidate, Ranking, RatioEstimate,
};
use warpgauge_statistics::{Counted, CountedRank};

/// Information that the report of a comparison shows in addition to the response.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Beside<'a> {
    /// Name of the reference kernel.
    pub reference: &'a str,
    /// Whether to show differences between the code of the kernels.
    pub diff: bool,
}

impl Beside<'_> {
    /// Returns the value for a comparison whose kernels have no file names.
    pub(in super::super) fn unnamed() -> Self {
        Self { reference: REFERENCE_NAME, diff: false }
    }
}

pub(in super::super) fn comparison(
    response: &CompareResponse,
    beside: Beside<'_>,
    style: Style,
) -> String {
    let mut page = Page::new(style);
    let reference = beside.reference;
    for candidate in &response.candidates {
        verdict(&mut page, response, candidate, reference);
    }
    page.text.push('\n');
    time(&mut page, "reference", reference, &response.reference);
    for candidate in &response.candidates {
        rows(&mut page, candidate, beside);
    }
    if let Some(ranking) = &response.ranking {
        ranks(&mut page, ranking, &response.candidates, reference);
    }
    counted_ranks(&mut page, response, reference);
    if let Some(report) = &response.device {
        page.row("device", &device(report));
    }
    ignored(&mut page, &response.warnings);
    if style.verbose {
        timings(&mut page, &response.timings);
        page.row("job", &response.job_id);
    }
    page.text
}

fn verdict(
    page: &mut Page,
    response: &CompareResponse,
    candidate: &CandidateReport,
    reference: &str,
) {
    let name = &candidate.name;
    if let Some(comparison) = &candidate.comparison {
        let (tone, word) = word_of_times(comparison.verdict);
        page.verdict(tone, &word.to_uppercase(), &of_times(comparison, name, reference));
        return;
    }
    let evaluation = &candidate.evaluation;
    if !evaluation.is_timed() || !evaluation.kernel_verdict().is_good() {
        return evaluation_verdict(page, evaluation, Some(name));
    }
    if let Some(counted) = &candidate.counted {
        let (tone, word) = word_of_counts(counted.verdict);
        return page.verdict(tone, &word.to_uppercase(), &of_counts(counted, name, reference));
    }
    let why = candidate.not_compared.as_deref().unwrap_or("the service gives no reason");
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

fn rows(page: &mut Page, candidate: &CandidateReport, beside: Beside<'_>) {
    let evaluation = &candidate.evaluation;
    time(page, "candidate", &candidate.name, evaluation);
    if let Some(comparison) = &candidate.comparison {
        paired(page, comparison);
    }
    errors(page, evaluation, Some(&candidate.name));
    let result = &evaluation.kernel_exec_result;
    if !result.compiled {
        let diagnostics = evaluation.compile.as_ref().map_or(&[][..], |c| &c.diagnostics);
        compile_errors(page, diagnostics, result.compilation_error.as_deref());
    }
    reasons(page, evaluation);
    measured::weaknesses(page, evaluation);
    failed_checks(page, evaluation);
    if candidate.identical_code == Some(true) {
        page.row("code", "identical to the reference's machine code, apart from names");
    }
    counts(page, candidate);
    if !beside.diff {
        return;
    }
    if let Some(diff) = &candidate.code_diff {
        code(page, diff);
    }
    if let Some(why) = &candidate.no_code_diff {
        page.row("code", &format!("not compared: {why}"));
    }
}

/// Adds the differences between the code of the kernels: counts of opcodes, followed by the lines
/// that differ.
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
        page.more("the code is long: only part of it was compared");
    }
}

/// Maximum number of opcodes that are shown.
const MAX_OPCODES: usize = 12;

/// Adds the time of a kernel that was timed alone.
fn time(page: &mut Page, label: &str, name: &str, report: &EvaluateResponse) {
    let text = match &report.kernel_exec_result.runtime_stats {
        Some(stats) => median(stats),
        None if report.kernel_exec_result.compiled => {
            "no time: the kernel is not correct".to_owned()
        }
        None => "no time: the kernel does not compile".to_owned(),
    };
    let name = if name == label { String::new() } else { format!("{name}: ") };
    page.row(label, &format!("{name}{text}"));
}

fn median(stats: &RuntimeStats) -> String {
    let interval = interval(stats).map_or(String::new(), |interval| format!(" ({interval})"));
    let n = stats.samples;
    format!("{} median{interval}, n = {n}", duration_ms(stats.median))
}

/// Adds the ratio of the times with its interval, and the reasons for the verdict.
fn paired(page: &mut Page, comparison: &PairedComparison) {
    if let (Some(speedup), Some(low), Some(high)) =
        (comparison.speedup, comparison.speedup_ci_low, comparison.speedup_ci_high)
    {
        let level = percent(comparison.confidence);
        page.row("speed-up", &format!("{speedup:.3} ({level} CI {low:.3} to {high:.3})"));
    }
    if comparison.clock_induced {
        page.more("the difference in time is due to the clock, not to the kernel");
    }
    let is_decided = matches!(comparison.verdict, PairedVerdict::Faster | PairedVerdict::Slower);
    if page.style.verbose || !is_decided {
        for (index, reason) in comparison.reasons.iter().enumerate() {
            page.row(if index == 0 { "because" } else { "" }, because(*reason));
        }
    }
    if page.style.verbose {
        blocks(page, comparison);
    }
}

/// Adds details of how the ratio was measured.
fn blocks(page: &mut Page, comparison: &PairedComparison) {
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
    let drops =
        comparison.dropped.iter().map(|d| format!("{} {}", d.count, measured::word(&d.reason)));
    let drops = drops.collect::<Vec<_>>().join(", ");
    let drops = if drops.is_empty() { String::new() } else { format!(" ({drops})") };
    page.row(
        "blocks",
        &format!("{} used, {} dropped{drops}", comparison.blocks_used, comparison.blocks_dropped),
    );
    let effect = comparison.minimum_detectable_effect.map_or(String::new(), |effect| {
        format!(", smallest detectable difference {}", percent(effect))
    });
    let p = comparison.p_value.map_or(String::new(), |p| format!(", p = {p:.1e}"));
    page.more(&format!(
        "margin {}, equivalence {}{effect}{p}",
        percent(comparison.margin),
        percent(comparison.equivalence)
    ));
}

/// Adds the counts of one launch, together with those of the reference. Counts that differ come
/// first. Without `--verbose`, equal counts are omitted.
fn counts(page: &mut Page, candidate: &CandidateReport) {
    if candidate.counts.is_empty() {
        return;
    }
    let differs = |one: &&CountComparison| one.reference != one.candidate;
    let same = |one: &&CountComparison| one.reference == one.candidate && one.reference > 0;
    let mut shown = candidate.counts.iter().filter(differs).collect::<Vec<_>>();
    let others = candidate.counts.iter().filter(same).collect::<Vec<_>>();
    let is_all = page.style.verbose || others.is_empty();
    let left_out = if is_all { 0 } else { others.len() };
    if page.style.verbose {
        shown.extend(others);
    }
    let alike = match left_out {
        0 => String::new(),
        1 => "; 1 more is the same".to_owned(),
        n => format!("; {n} more are the same"),
    };
    match shown.is_empty() {
        true => return page.row("counts", "of one launch: all are the same"),
        false => {
            page.row("counts", &format!("of one launch: reference, candidate, ratio{alike}"));
        }
    }
    for count in shown {
        let ratio = count.ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.3}"));
        let name = plain(&count.count);
        page.more(&format!("{name:<26}{:>14}{:>14}{ratio:>9}", count.reference, count.candidate));
    }
}

fn ranks(page: &mut Page, ranking: &Ranking, candidates: &[CandidateReport], reference: &str) {
    for (position, RankedCandidate { index, rank, relative_time }) in
        ranking.candidates.iter().enumerate()
    {
        let name = name_of(*index, candidates, reference);
        let time = relative_time
            .map_or(String::new(), |time| format!(", {time:.4} of the reference's time"));
        let time = if *index == 0 { String::new() } else { time };
        let label = if position == 0 { "ranking" } else { "" };
        page.row(label, &format!("{rank}. {name}{time}"));
    }
}

/// Adds the ranking by counts, with a label.
fn counted_ranks(page: &mut Page, response: &CompareResponse, reference: &str) {
    for (position, CountedRank { index, rank, counted }) in
        response.counted_ranking.iter().enumerate()
    {
        let name = name_of(*index, &response.candidates, reference);
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

/// Returns the name of the kernel that has this index in a ranking.
fn name_of<'a>(index: u32, candidates: &'a [CandidateReport], reference: &'a str) -> &'a str {
    match index {
        0 => reference,
        index => candidates.get(index as usize - 1).map_or("?", |one| one.name.as_str()),
    }
}

#[cfg(test)]
mod tests;
