//! The page of a comparison.

use maud::{Markup, html};
use warpgauge_code::listing::{CodeDiff, CodeLanguage};
use warpgauge_contract::REFERENCE_NAME;
use warpgauge_model::DeviceKind;
use warpgauge_report::readable::{because, of_counts, of_times, word_of_counts, word_of_times};
use warpgauge_report::{CandidateReport, CompareResponse, EvaluateResponse};
use warpgauge_statistics::paired::PairedComparison;

use crate::document::{Content, Links};
use crate::parts::{self, Scope, Section, Tone};
use crate::{built, chart, differences, evaluation, text};

/// The maximum number of rows in a list.
const MAX_ROWS: usize = 48;

/// Creates the page of a comparison with the reference of this name.
pub(crate) fn content(report: &CompareResponse, reference: &str, links: &Links) -> Content {
    let title = report.candidates.first().map_or_else(String::new, |first| {
        let (_, word, _) = outcome(first, reference);
        format!("{}: {} compared with {reference}", word.to_lowercase(), first.name)
    });
    Content {
        title,
        about: html! { "comparison " span.mono { (text::name(&report.job_id)) } },
        refresh: None,
        main: html! {
            @for (index, candidate) in report.candidates.iter().enumerate() { (headline(index, candidate, report, reference)) }
            (kernels(report, reference))
            (ranking(report, reference))
            @for (index, candidate) in report.candidates.iter().enumerate() { (details(index, candidate, report, reference)) }
            (whole(Scope("reference-"), reference, &report.reference, &links.of_kernel(REFERENCE_NAME)))
            @for (index, candidate) in report.candidates.iter().enumerate() {
                (whole(Scope(&format!("kernel-{}-", index + 1)), &candidate.name, &candidate.evaluation, &links.of_kernel(&candidate.name)))
            }
            (evaluation::stages(Scope(""), &report.timings))
            @if !report.warnings.is_empty() {
                (Section::new("warnings", "The request").with(html! { ul.plain {
                    @for one in report.warnings.iter().take(MAX_ROWS) {
                        li { (text::code(&one.path)) ": " (text::message(&one.message)) }
                    }
                } }))
            }
        },
    }
}

/// Returns the result of a candidate, as a word and a sentence.
fn outcome(candidate: &CandidateReport, reference: &str) -> (Tone, String, String) {
    let evaluation = &candidate.evaluation;
    let verdict = evaluation.kernel_verdict();
    if let Some(comparison) = &candidate.comparison {
        let (tone, word) = word_of_times(comparison.verdict);
        return (tone, word.to_owned(), of_times(comparison, &candidate.name, reference));
    }
    if !evaluation.is_timed() || !verdict.is_good() {
        let line = evaluation.verdict_line(Some(&candidate.name));
        return (Tone::of_verdict(verdict), verdict.words().to_owned(), line);
    }
    if let Some(counted) = &candidate.counted {
        let (tone, word) = word_of_counts(counted.verdict);
        return (tone, word.to_owned(), of_counts(counted, &candidate.name, reference));
    }
    let why = candidate.not_compared.as_deref().unwrap_or("the service gives no reason");
    let word = format!("{}, not compared", verdict.words().to_lowercase());
    (Tone::Doubt, word, format!("{}: {why}", candidate.name))
}

fn headline(
    index: usize,
    candidate: &CandidateReport,
    report: &CompareResponse,
    reference: &str,
) -> Markup {
    let (tone, word, sentence) = outcome(candidate, reference);
    let heading = html! { (text::code(&candidate.name)) " compared with " (text::code(reference)) };
    let clock = candidate.comparison.as_ref().is_some_and(|comparison| comparison.clock_induced);
    let clock = clock
        .then(|| html! { "The difference in time comes from the clock, not from the kernel." });
    let [of_reference, of_candidate] = [reference, &candidate.name].map(text::code);
    let options = built::different_options(
        [&report.reference, &candidate.evaluation],
        [&of_reference, &of_candidate],
    );
    let sentences = [Some(html! { (text::message(&sentence)) }), clock, options];
    let sentences = sentences.into_iter().flatten().collect::<Vec<_>>();
    match index {
        0 => parts::verdict(tone, &word, heading, &sentences),
        _ => parts::further_verdict(tone, &word, heading, &sentences),
    }
}

/// Returns the table of all kernels with their times, and the speed-ups of those that were compared
/// by time.
fn kernels(report: &CompareResponse, reference: &str) -> Markup {
    let compared = report.candidates.iter().any(|one| one.comparison.is_some());
    let own = [("kernel", false), ("verdict", false), ("median", true), ("95\u{202f}% CI", true)];
    let beside = [("speed-up", true), ("confidence interval", true)];
    let head = own.into_iter().chain(beside.into_iter().filter(|_| compared)).collect::<Vec<_>>();
    let first = (reference, &report.reference, None);
    let others = report.candidates.iter();
    let others = others.map(|one| (one.name.as_str(), &one.evaluation, one.comparison.as_ref()));
    let rows = [first].into_iter().chain(others).map(|(name, evaluation, comparison)| {
        let verdict = evaluation.kernel_verdict();
        let stats = evaluation.kernel_exec_result.runtime_stats.as_ref();
        let interval = stats.and_then(|stats| stats.median_ci_low.zip(stats.median_ci_high));
        let speedup = comparison.and_then(|comparison| comparison.speedup);
        let spread = comparison.and_then(|one| one.speedup_ci_low.zip(one.speedup_ci_high));
        html! { tr {
            td.wide { (text::code(name)) }
            td { (parts::tag(Tone::of_verdict(verdict), &verdict.words().to_lowercase())) }
            td.num { @if let Some(stats) = stats { (text::time(stats.median)) } @else { "no time" } }
            td.num { @if let Some((low, high)) = interval { (text::time(low)) " to " (text::time(high)) } }
            @if compared {
                td.num { @if let Some(speedup) = speedup { (format!("{speedup:.3}\u{202f}×")) } }
                td.num { @if let Some((low, high)) = spread { (format!("{low:.3} to {high:.3}")) } }
            }
        } }
    });
    let device = report.device.as_ref().map(|device| device.kind);
    let emulated = device == Some(DeviceKind::Emulator);
    Section::new("kernels", "Kernels").open(true).with(html! {
        (parts::table("Kernels", &head, rows))
        @if emulated { p.small.dim { "These are the times of the emulation. They are not compared." } }
    })
}

fn ranking(report: &CompareResponse, reference: &str) -> Markup {
    let Some(ranking) = &report.ranking else { return html! {} };
    let name = |index: u32| match index {
        0 => reference,
        index => report.candidates.get(index as usize - 1).map_or("?", |one| one.name.as_str()),
    };
    let head = [("rank", true), ("kernel", false), ("time relative to the reference", true)];
    let rows = ranking.candidates.iter().map(|one| {
        html! { tr {
            td.num { (one.rank) }
            td.wide { (text::code(name(one.index))) }
            td.num { @if let Some(relative) = one.relative_time { (format!("{relative:.3}")) } }
        } }
    });
    Section::new("ranking", "Ranking").open(true).with(html! {
        (parts::table("Ranking", &head, rows))
        p.small.dim { "Kernels whose order could not be determined share a rank." }
    })
}

/// Returns what a verdict is based on: blocks, counts, and the difference in the code.
fn details(
    index: usize,
    candidate: &CandidateReport,
    report: &CompareResponse,
    reference: &str,
) -> Markup {
    let single = report.candidates.len() == 1;
    let number = index + 1;
    let of = if single {
        html! {}
    } else {
        html! { (text::code(&candidate.name)) }
    };
    html! {
        @if let Some(comparison) = &candidate.comparison {
            @let names = [reference, &candidate.name];
            (Section::new(format!("blocks-{number}"), "Side by side").open(single).note(html! {
                (of) " " (text::counted(comparison.blocks_used as usize, "block")) " count"
                @if comparison.blocks_dropped > 0 { ", " (comparison.blocks_dropped) " do not" }
            }).with(blocks(comparison, names)))
        }
        @if !candidate.counts.is_empty() { (counts(number, candidate, reference, &of)) }
        (differences::built_side_by_side(
            &format!("build-{number}"),
            [&report.reference, &candidate.evaluation],
            [reference, &candidate.name],
            &of,
        ))
        @if let Some(diff) = &candidate.code_diff { (code(number, diff, [reference, &candidate.name], &of)) }
        @if let Some(why) = &candidate.no_code_diff {
            (Section::new(format!("code-{number}"), "Code").note(html! { (of) " not compared" })
                .with(html! { p { (text::message(why)) } }))
        }
    }
}

fn blocks(comparison: &PairedComparison, [reference, candidate]: [&str; 2]) -> Markup {
    let mut rows = Vec::new();
    for (name, estimate) in [("time", comparison.time), ("cycles", comparison.cycles)] {
        if let Some(one) = estimate {
            let (low, high) = (one.ci_low, one.ci_high);
            let ratio = format!("{:.4} ({low:.4} to {high:.4})", one.ratio);
            rows.push((
                name,
                html! { span.num { (ratio) } " relative to " (text::code(reference)) },
            ));
        }
    }
    rows.push(("confidence level", html! { (text::percent(comparison.confidence)) }));
    rows.push((
        "margin",
        html! { (text::percent(comparison.margin)) "; smaller differences do not count" },
    ));
    if let Some(effect) = comparison.minimum_detectable_effect {
        rows.push(("detectable", html! { "a difference of at least " (text::percent(effect)) }));
    }
    for drop in &comparison.dropped {
        rows.push((
            "dropped",
            html! { (text::counted(drop.count as usize, "block")) ": " (text::word(&drop.reason)) },
        ));
    }
    html! {
        @if let Some(svg) = chart::ratios(comparison) {
            (parts::figure(svg, html! {
                "Time of " (text::code(candidate)) " divided by the time of " (text::code(reference))
                ", by block; below the line " (text::code(candidate)) " is faster. "
                "The grey band is the margin, the coloured band the confidence interval."
            }))
        }
        @if !comparison.reasons.is_empty() {
            ul.plain { @for reason in &comparison.reasons { li { (because(*reason)) } } }
        }
        (parts::facts(rows))
    }
}

fn counts(number: usize, candidate: &CandidateReport, reference: &str, of: &Markup) -> Markup {
    let [first, second] = [reference, &candidate.name].map(text::label);
    let head = [("count of one launch", false), (&*first, true), (&*second, true), ("ratio", true)];
    let rows = candidate.counts.iter().take(MAX_ROWS).map(|one| {
        html! { tr {
            td.wide { (text::code(&one.count)) }
            td.num { (text::grouped(one.reference)) }
            td.num { (text::grouped(one.candidate)) }
            td.num { @if let Some(ratio) = one.ratio { (format!("{ratio:.4}")) } }
        } }
    });
    Section::new(format!("counts-{number}"), "Counts")
        .note(html! { (of) " exact counts, not times" })
        .with(html! {
            (parts::table("Counts", &head, rows))
            (parts::more(candidate.counts.len(), MAX_ROWS, "counts"))
        })
}

fn code(number: usize, diff: &CodeDiff, names: [&str; 2], of: &Markup) -> Markup {
    let language = match diff.language {
        CodeLanguage::Sass => "SASS",
        CodeLanguage::Ptx => "PTX",
    };
    let note = html! {
        (of) " " (language) ": "
        @if diff.identical { "the same instructions" } @else {
            "+" (text::grouped(diff.added)) " −" (text::grouped(diff.removed)) " lines, "
            (text::grouped(diff.reference_instructions)) " and " (text::grouped(diff.candidate_instructions))
            " instructions"
        }
    };
    let [first, second] = names.map(text::label);
    let head = [("opcode", false), (&*first, true), (&*second, true), ("difference", true)];
    let rows = diff.opcodes.iter().take(MAX_ROWS).map(|one| {
        html! { tr {
            td { (text::code(&one.opcode)) }
            td.num { (text::grouped(one.reference)) }
            td.num { (text::grouped(one.candidate)) }
            td.num {
                @if one.candidate > one.reference { "+" } @else { "−" }
                (text::grouped(one.candidate.abs_diff(one.reference)))
            }
        } }
    });
    Section::new(format!("code-{number}"), "Code difference").note(note).with(html! {
        @if !diff.opcodes.is_empty() { (parts::table("Opcodes", &head, rows)) }
        @if !diff.unified.is_empty() { (unified(&diff.unified)) }
        @if diff.truncated { p.small.dim { "The code is long: not all of it was compared." } }
    })
}

/// Shows a unified difference line by line. The sign at the start of a line has the same meaning as
/// its colour.
fn unified(diff: &str) -> Markup {
    let text = text::shown(diff, text::LOG);
    html! {
        pre tabindex="0" {
            @for line in text.lines() {
                @let class = match line.as_bytes().first() {
                    Some(b'+') if !line.starts_with("+++") => "line add",
                    Some(b'-') if !line.starts_with("---") => "line cut",
                    _ => "line",
                };
                span class=(class) { (line) "\n" }
            }
        }
    }
}

/// Shows the complete evaluation of a kernel. It is expanded if the kernel's verdict is not good.
fn whole(scope: Scope<'_>, name: &str, report: &EvaluateResponse, links: &Links) -> Markup {
    let verdict = report.kernel_verdict();
    let note = html! {
        (verdict.words().to_lowercase())
        @if let Some(stats) = &report.kernel_exec_result.runtime_stats { ", " (text::time(stats.median)) " median" }
    };
    let heading = format!("Evaluation of {}", text::label(name));
    scope
        .section("whole", &heading)
        .note(note)
        .open(!verdict.is_good())
        .tone(match verdict.is_good() {
            true => Tone::Plain,
            false => Tone::of_verdict(verdict),
        })
        .with(html! {
            p { (text::message(&evaluation::headline_sentence(report))) }
            (evaluation::sections(scope, report, links))
        })
}
