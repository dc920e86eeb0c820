//! Shows the counters of a kernel's lines and instructions on the page of its code.

use std::collections::{BTreeSet, HashMap};

use maud::{Markup, html};
use warpgauge_code::listing::{CodeLanguage, LinkedInstruction};
use warpgauge_job_views::{CodeCounters, KernelCodeView};
use warpgauge_model::InstructionCounts;

use crate::parts::{self, Section};
use crate::text;

/// Maximum number of lines in the list of lines with the most executed instructions, and with the
/// most excess sectors or bank conflicts.
const MOST_EXECUTED: usize = 8;
const MOST_WASTED: usize = 4;
/// Maximum length of a line of source in the list, characters.
const MAX_WIDTH: usize = 60;
/// Number of threads of a warp.
const WARP: f64 = 32.0;

/// Counters by source line and by instruction.
pub(super) struct Counted<'a> {
    counters: Option<&'a CodeCounters>,
    by_line: HashMap<(&'a str, u32), &'a InstructionCounts>,
    by_index: HashMap<usize, &'a InstructionCounts>,
}

impl<'a> Counted<'a> {
    pub(super) fn new(counters: Option<&'a CodeCounters>) -> Self {
        let lines = counters.iter().flat_map(|counters| &counters.lines);
        let instructions = counters.iter().flat_map(|counters| &counters.instructions);
        Self {
            counters,
            by_line: lines.map(|one| ((one.file.as_str(), one.line), &one.counts)).collect(),
            by_index: instructions.map(|one| (one.index, &one.counts)).collect(),
        }
    }

    /// Returns whether instructions of this language were counted.
    pub(super) fn has(&self, language: CodeLanguage) -> bool {
        self.counters.is_some_and(|counters| counters.language == Some(language))
    }

    /// Returns the counts of a source line.
    pub(super) fn line(&self, file: &str, line: u32) -> Option<&'a InstructionCounts> {
        self.by_line.get(&(file, line)).copied()
    }

    /// Returns the counts of the instruction at this index of the listing.
    pub(super) fn instruction(&self, index: usize) -> Option<&'a InstructionCounts> {
        self.by_index.get(&index).copied()
    }

    /// Returns whether lines of this file were counted.
    pub(super) fn has_lines_of(&self, file: &str) -> bool {
        self.counters.is_some_and(|counters| counters.lines.iter().any(|one| one.file == file))
    }

    /// Returns the part of the launch's executed warp instructions.
    fn share(&self, counts: &InstructionCounts) -> f64 {
        let total = self.counters.and_then(|counters| counters.total).unwrap_or_default();
        counts.warp_instructions as f64 / total.warp_instructions.max(1) as f64
    }

    /// Shows the share of a line beside its number; empty if its instructions were not counted.
    pub(super) fn beside(&self, counts: Option<&InstructionCounts>) -> Markup {
        html! {
            @if self.counters.is_some_and(|counters| counters.total.is_some()) {
                span.ran { @if let Some(counts) = counts {
                    (parts::bar(0.0, self.share(counts))) (text::percent(self.share(counts)))
                } }
            }
        }
    }

    /// Shows what is unusual about a line, behind its text: inactive threads, excess sectors and bank
    /// conflicts.
    pub(super) fn behind(&self, counts: Option<&InstructionCounts>) -> Markup {
        let remarks = counts.map(remarks).unwrap_or_default();
        html! { @if !remarks.is_empty() { span.waste { (remarks.join(", ")) } } }
    }

    /// Shows the counts of a line.
    pub(super) fn of_line(&self, counts: Option<&InstructionCounts>) -> Markup {
        let Some(counts) = counts else { return html! {} };
        let memory = |requests: u64, what: String| {
            html! { @if requests == 0 { "no access" } @else { (text::grouped(requests)) " accesses, " (what) } }
        };
        let of = |part: u64, all: u64| format!("{} of {}", text::grouped(part), text::grouped(all));
        parts::facts(vec![
            (
                "warp instructions",
                html! { (text::grouped(counts.warp_instructions)) " (" (text::percent(self.share(counts))) ")" },
            ),
            ("active threads", html! { (threads(counts)) " of 32 on average" }),
            (
                "global memory",
                memory(
                    counts.global_requests,
                    format!(
                        "{} sectors in excess",
                        of(counts.excess_sectors(), counts.global_sectors)
                    ),
                ),
            ),
            (
                "shared memory",
                memory(
                    counts.shared_requests,
                    format!(
                        "{} passes are conflicts",
                        of(counts.shared_conflicts, counts.shared_wavefronts)
                    ),
                ),
            ),
        ])
    }

    /// Shows instructions with their counts.
    pub(super) fn listed(
        &self,
        instructions: &[(usize, &LinkedInstruction)],
        width: usize,
    ) -> Markup {
        let head = [
            ("PTX", false),
            ("warps", true),
            ("threads", true),
            ("excess sectors", true),
            ("conflicts", true),
        ];
        let rows = instructions.iter().map(|(index, one)| {
            let counts = self.instruction(*index).copied().unwrap_or_default();
            html! { tr {
                th scope="row" { code { (text::shown(&one.text, width)) } }
                td.num { (text::grouped(counts.warp_instructions)) }
                td.num { (threads(&counts)) }
                td.num { (if_any(counts.global_requests, counts.excess_sectors())) }
                td.num { (if_any(counts.shared_requests, counts.shared_conflicts)) }
            } }
        });
        parts::table("PTX with counts", &head, rows)
    }

    /// Shows the counters of the launch and the lines with the most, or why there are none.
    pub(super) fn summary(&self, view: &KernelCodeView) -> Markup {
        let Some(counters) = self.counters else { return html! {} };
        let Some(total) = &counters.total else {
            let reason = counters.reason.as_deref().unwrap_or("the server has none");
            return html! { p { "There are no counters for each line: " (text::message(reason)) "." } };
        };
        let head = [
            ("line", false),
            ("share", true),
            ("", false),
            ("threads", true),
            ("excess sectors", true),
            ("conflicts", true),
            ("source", false),
        ];
        let rows = self.most().into_iter().map(|index| {
            let line = &counters.lines[index];
            let counts = &line.counts;
            let file = view.files.iter().position(|file| file.name == line.file).unwrap_or(0);
            let source = view
                .files
                .get(file)
                .and_then(|file| file.text.lines().nth(line.line.saturating_sub(1) as usize));
            html! { tr {
                th scope="row" { a href=(format!("#L{file}-{}", line.line)) {
                    @if view.files.len() > 1 { (text::name(&line.file)) ":" } (line.line)
                } }
                td.num { (text::percent(self.share(counts))) }
                td.bar-few { (parts::bar(0.0, self.share(counts))) }
                td.num { (threads(counts)) }
                td.num { (if_any(counts.global_requests, counts.excess_sectors())) }
                td.num { (if_any(counts.shared_requests, counts.shared_conflicts)) }
                td.code { code { (text::shown(source.unwrap_or_default().trim(), MAX_WIDTH)) } }
            } }
        });
        let elsewhere = counters.elsewhere.unwrap_or_default();
        let section = Section::new("counters", "Lines with the highest counts").open(true);
        section.note(html! { (text::grouped(total.warp_instructions)) " warp instructions" }).with(html! {
            p { "The counts are those of one launch on the emulated device: of the PTX, before it is optimised. "
                "The share is a line's part of the executed warp instructions. Threads are the active ones of the 32 "
                "threads of a warp, on average. "
                "Excess sectors are those beyond what adjacent addresses would touch. "
                "A conflict is a pass of shared memory beyond what the width of the access requires." }
            @if !counters.lines.is_empty() { (parts::table("Lines with the highest counts", &head, rows)) }
            @if elsewhere.warp_instructions > 0 {
                p.small.dim { (text::percent(self.share(&elsewhere))) " of the instructions belong to no line below." }
            }
        })
    }

    /// Returns the indices of the lines with the most of each count, most executed first.
    fn most(&self) -> Vec<usize> {
        let lines = self.counters.map(|counters| &counters.lines[..]).unwrap_or_default();
        let best = |most: usize, count: &dyn Fn(&InstructionCounts) -> u64| {
            let mut found: Vec<usize> =
                (0..lines.len()).filter(|index| count(&lines[*index].counts) > 0).collect();
            found.sort_by_key(|index| std::cmp::Reverse(count(&lines[*index].counts)));
            found.truncate(most);
            found
        };
        let executed = best(MOST_EXECUTED, &|counts| counts.warp_instructions);
        let sectors = best(MOST_WASTED, &|counts| counts.excess_sectors());
        let conflicts = best(MOST_WASTED, &|counts| counts.shared_conflicts);
        let all: BTreeSet<usize> = executed.into_iter().chain(sectors).chain(conflicts).collect();
        let mut all: Vec<usize> = all.into_iter().collect();
        all.sort_by_key(|index| std::cmp::Reverse(lines[*index].counts.warp_instructions));
        all
    }
}

/// Formats the average number of active threads.
fn threads(counts: &InstructionCounts) -> String {
    match counts.average_threads() {
        Some(average) => format!("{average:.1}"),
        None => String::new(),
    }
}

/// Formats a count, or nothing if there were no accesses.
fn if_any(requests: u64, count: u64) -> String {
    if requests > 0 { text::grouped(count) } else { String::new() }
}

fn remarks(counts: &InstructionCounts) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(average) = counts.average_threads().filter(|average| *average < WARP) {
        remarks.push(format!("{average:.1} of 32 threads"));
    }
    if counts.excess_sectors() > 0 {
        remarks.push(text::counted(counts.excess_sectors() as usize, "excess sector"));
    }
    if counts.shared_conflicts > 0 {
        remarks.push(text::counted(counts.shared_conflicts as usize, "bank conflict"));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Links;
    use crate::tests::{HOSTILE, Parsed};
    use serde_json::json;

    fn view(lines: u32, counters: serde_json::Value) -> KernelCodeView {
        let instructions: Vec<_> = (1..=lines)
            .map(|line| {
                json!({"text": format!("add {HOSTILE}"), "symbol": "k", "file": HOSTILE, "line": line})
            })
            .collect();
        let text = format!("int x; {HOSTILE}\n").repeat(lines as usize);
        let view = json!({
            "job_id": "7", "kernel": "kernel", "files": [{"name": HOSTILE, "text": text}],
            "listings": [{"language": "ptx", "instructions": instructions},
                {"language": "sass", "instructions": [
                    {"text": "EXIT", "symbol": "k", "file": HOSTILE, "line": 1}]}],
            "counters": counters,
        });
        serde_json::from_value(view).unwrap()
    }

    fn counted(lines: u64) -> serde_json::Value {
        let counts = |line: u64| {
            let many = if line == 1 { 1_000 * lines } else { 1_000 };
            json!({
                "warp_instructions": many, "active_threads": many * 16, "thread_instructions": many,
                "global_requests": 100, "global_sectors": 3_200, "global_ideal_sectors": 400 * (line % 9),
                "shared_requests": 10, "shared_wavefronts": 20, "shared_conflicts": line % 7,
            })
        };
        let of_lines: Vec<_> = (1..=lines)
            .map(|line| json!({"file": HOSTILE, "line": line, "counts": counts(line)}))
            .collect();
        let instructions: Vec<_> =
            (1..=lines).map(|line| json!({"index": line - 1, "counts": counts(line)})).collect();
        let all = |number: u64| json!({"warp_instructions": number, "active_threads": 0, "thread_instructions": 0});
        json!({
            "language": "ptx", "total": all(2_000 * lines), "lines": of_lines,
            "elsewhere": all(1_000), "instructions": instructions,
        })
    }

    #[test]
    fn each_line_shows_its_share_and_what_is_wasted() {
        let html = crate::code(&view(4, counted(4)), &Links::none());
        let page = Parsed::of(&html);
        for text in [
            "50\u{202f}%",
            "16.0 of 32 threads",
            "2\u{202f}800 excess sectors, 1 bank conflict",
            "4\u{202f}000 (50\u{202f}%)",
            "12.5\u{202f}% of the instructions belong to no line below.",
        ] {
            assert!(page.text.contains(text), "{text}: {}", page.text);
        }
        assert!(!html.contains("<img"), "{html}");
        let attribute = |name: &str, of: &str| {
            let elements = page.elements.iter().filter(move |(element, _)| element == of);
            let values = elements.filter_map(|(_, attributes)| {
                attributes.iter().find(|(attribute, _)| attribute == name)
            });
            values.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        // Each link to a line has its target.
        let targets = attribute("id", "li");
        let links: Vec<_> = attribute("href", "a")
            .into_iter()
            .filter_map(|href| href.strip_prefix("#L").map(|rest| format!("L{rest}")))
            .collect();
        assert_eq!(links, ["L0-1", "L0-2", "L0-3", "L0-4"]);
        assert!(links.iter().all(|link| targets.contains(link)), "{targets:?}");
        // Counts are in tables with headers. SASS was not counted.
        let scopes = attribute("scope", "th");
        assert_eq!(scopes.iter().filter(|scope| *scope == "row").count(), 4 + 4);
        assert!(page.text.contains("EXIT\n"), "{}", page.text);
    }

    #[test]
    fn the_list_has_the_lines_with_the_most_of_each_count() {
        let view = view(60, counted(60));
        let counted = Counted::new(view.counters.as_ref());
        let most = counted.most();
        // Line 1 has the most instructions, lines 9, 18, 27 and 36 the most excess sectors, and
        // lines 6, 13, 20 and 27 the most conflicts.
        assert_eq!(most[0], 0);
        for line in [9, 18, 27, 36, 6, 13, 20] {
            assert!(most.contains(&(line - 1)), "{line}: {most:?}");
        }
        assert!(most.len() <= MOST_EXECUTED + 2 * MOST_WASTED);
    }

    #[test]
    fn without_counters_the_page_gives_the_reason() {
        let html = crate::code(&view(2, json!({"reason": "do `this`"})), &Links::none());
        Parsed::of(&html);
        assert!(
            html.contains("There are no counters for each line: <bdi>do <code>this</code></bdi>.")
        );
        assert!(!html.contains("class=\"ran\"") && !html.contains("Lines with the highest counts"));
    }

    #[test]
    fn a_page_of_an_ordinary_kernel_is_small() {
        let html = crate::code(&view(300, counted(300)), &Links::none());
        assert!(crate::tests::zipped(&html) < crate::tests::FIRST_VIEW, "{}", html.len());
    }
}
