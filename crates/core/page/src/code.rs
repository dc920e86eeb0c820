//! Creates the page of a kernel's code: each line of the source with the instructions that the
//! compiler generated from it.
//!
//! Each line expands to show its PTX and SASS side by side, without a script. `counters` shows how
//! often they were executed.

use std::collections::BTreeMap;

use maud::{Markup, html};
use warpgauge_code::listing::{CodeLanguage, LinkedInstruction};
use warpgauge_job_views::{CodeListing, KernelCodeView, SourceText};
use warpgauge_model::InstructionCounts;

use crate::counters::Counted;
use crate::document::{Content, Links};
use crate::parts::{self, Section};
use crate::text;

/// Maximum number of lines of a file, of files, and of instructions below a line.
const MAX_LINES: usize = 5_000;
const MAX_FILES: usize = 32;
const MAX_BELOW: usize = 200;
/// Maximum number of instructions on the page, over all lines.
const MAX_INSTRUCTIONS: usize = 8_000;
/// Maximum length of a line of source or of an instruction, characters.
const MAX_WIDTH: usize = 300;

/// Instructions of each language, by the source file and line from which they were generated.
type ByLine<'a> = BTreeMap<(&'a str, u32), Made<'a>>;

/// Instructions of each language that were generated from a line, with their indices in the listing.
type Made<'a> = [Vec<(usize, &'a LinkedInstruction)>; 2];

/// The languages in the order of [`Made`].
const LANGUAGES: [CodeLanguage; 2] = [CodeLanguage::Ptx, CodeLanguage::Sass];

/// Index of a language in [`ByLine`].
fn side(language: CodeLanguage) -> usize {
    match language {
        CodeLanguage::Ptx => 0,
        CodeLanguage::Sass => 1,
    }
}

fn name(side: usize) -> &'static str {
    ["PTX", "SASS"][side]
}

/// Writes the page of a kernel's code.
pub fn code(view: &KernelCodeView, links: &Links) -> String {
    let mut by_line = ByLine::new();
    let mut others = BTreeMap::<&str, [usize; 2]>::new();
    let mut room = MAX_INSTRUCTIONS;
    for listing in &view.listings {
        for (index, one) in listing.instructions.iter().enumerate() {
            let file = one.file.as_deref().unwrap_or_default();
            let is_submitted = view.files.iter().any(|known| known.name == file);
            match one.line.filter(|_| is_submitted && room > 0) {
                Some(line) => {
                    by_line.entry((file, line)).or_default()[side(listing.language)]
                        .push((index, one));
                    room -= 1;
                }
                None => others.entry(file).or_default()[side(listing.language)] += 1,
            }
        }
    }
    let counted = Counted::new(view.counters.as_ref());
    let job = links.to(&format!("jobs/{}", view.job_id));
    let content = Content {
        title: format!("code: {}", view.kernel),
        about: html! { "code of job " a.mono href=(job) { (text::name(&view.job_id)) } },
        refresh: None,
        main: html! {
            h1.page { "Source, PTX and SASS of " (text::code(&view.kernel)) }
            p.say { "Each line shows how many instructions were generated from it. Select a line with instructions to show them." }
            (facts(&view.listings))
            (counted.summary(view))
            @for (index, file) in view.files.iter().take(MAX_FILES).enumerate() {
                (source(index, file, &by_line, &counted))
            }
            (parts::more(view.files.len(), MAX_FILES, "files"))
            (elsewhere(&others, room == 0))
        },
    };
    content.whole(links)
}

/// Shows the number of instructions in each language, or the reason why there are none.
fn facts(listings: &[CodeListing]) -> Markup {
    let row = |listing: &CodeListing| {
        let value = html! {
            @match &listing.reason {
                Some(reason) => (text::message(reason)),
                None => {
                    (text::counted(listing.instructions.len(), "instruction"))
                    @if listing.truncated { "; more are not listed" }
                }
            }
        };
        (name(side(listing.language)), value)
    };
    parts::facts(listings.iter().map(row).collect())
}

/// Shows a file with its lines.
fn source(index: usize, file: &SourceText, by_line: &ByLine<'_>, counted: &Counted<'_>) -> Markup {
    let lines = file.text.lines().count();
    let title = text::shown(&file.name, text::NAME);
    let section = Section::new(format!("file-{index}"), &title);
    // Links to counted lines lead into their file.
    let section = section.open(index == 0 || counted.has_lines_of(&file.name));
    section.note(html! { (text::counted(lines, "line")) }).with(html! {
        ol.code {
            @for (number, line) in (1_u32..).zip(file.text.lines().take(MAX_LINES)) {
                (source_line((index, number), line, by_line.get(&(file.name.as_str(), number)), (counted, counted.line(&file.name, number))))
            }
        }
        (parts::more(lines, MAX_LINES, "lines"))
    })
}

/// Shows a line, and the instructions below it.
fn source_line(
    (file, number): (usize, u32),
    line: &str,
    made: Option<&Made<'_>>,
    (counted, counts): (&Counted<'_>, Option<&InstructionCounts>),
) -> Markup {
    let text = text::shown(line, MAX_WIDTH);
    let head = |numbers: [usize; 2]| {
        html! {
            span.at { (number) }
            @for (side, count) in numbers.into_iter().enumerate() {
                span.made { @if count > 0 { (count) span.unit { " " (name(side)) } } }
            }
            (counted.beside(counts))
            code { (text) }
            (counted.behind(counts))
        }
    };
    html! {
        li id=(format!("L{file}-{number}")) {
            @match made {
                Some(made) => {
                    details {
                        summary { (head([made[0].len(), made[1].len()])) }
                        div.beside {
                            (counted.of_line(counts))
                            @for (side, instructions) in made.iter().enumerate() {
                                @if !instructions.is_empty() { (listed(side, instructions, counted)) }
                            }
                        }
                    }
                }
                None => { div.bare { (head([0, 0])) } }
            }
        }
    }
}

fn listed(
    side: usize,
    instructions: &[(usize, &LinkedInstruction)],
    counted: &Counted<'_>,
) -> Markup {
    let language = name(side);
    let shown = &instructions[..instructions.len().min(MAX_BELOW)];
    html! {
        div role="group" aria-label=(language) {
            h3 { (language) }
            @if counted.has(LANGUAGES[side]) { (counted.listed(shown, MAX_WIDTH)) }
            @else {
                pre tabindex="0" { @for (_, one) in shown { (text::shown(&one.text, MAX_WIDTH)) "\n" } }
            }
            (parts::more(instructions.len(), MAX_BELOW, "instructions"))
        }
    }
}

/// Shows the number of instructions from files that were not submitted, such as the compiler's
/// headers.
fn elsewhere(others: &BTreeMap<&str, [usize; 2]>, is_cut: bool) -> Markup {
    let head = [("file", false), ("PTX", true), ("SASS", true)];
    let rows = others.iter().take(MAX_FILES).map(|(file, counts)| {
        html! { tr {
            td { @if file.is_empty() { "no line of a source" } @else { (text::code(file)) } }
            @for count in counts { td.num { (text::grouped(*count as u64)) } }
        } }
    });
    html! {
        @if !others.is_empty() {
            (Section::new("elsewhere", "Instructions from elsewhere").with(html! {
                p { "These instructions belong to no line above: to headers, or to a file that was not submitted."
                    @if is_cut { " The page shows at most " (text::grouped(MAX_INSTRUCTIONS as u64)) " instructions." }
                }
                (parts::table("Instructions by file", &head, rows))
                (parts::more(others.len(), MAX_FILES, "files"))
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(instructions: usize) -> KernelCodeView {
        let text = "<img src=x onerror=alert(1)>\u{202e}";
        let many: Vec<_> = (0..instructions)
            .map(|n| {
                let line = 1 + n % 2;
                json!({"text": format!("add {n}; {text}"), "symbol": "k", "file": text, "line": line})
            })
            .collect();
        let view = json!({
            "job_id": "7", "kernel": text,
            "files": [{"name": text, "text": format!("{text}\nsecond\nthird")}],
            "listings": [
                {"language": "ptx", "instructions": many, "truncated": true},
                {"language": "sass", "reason": "nvdisasm was not found"},
                {"language": "sass", "instructions": [{"text": "EXIT", "symbol": "k"}]},
            ],
        });
        serde_json::from_value(view).unwrap()
    }

    #[test]
    fn a_line_folds_out_into_its_instructions() {
        let html = code(&view(6), &Links { root: Some("../../"), ..Links::none() });
        assert!(!html.contains("<img") && !html.contains('\u{202e}'), "{html}");
        assert_eq!(html.matches("<summary><span class=\"at\">").count(), 2);
        assert_eq!(html.matches("<div class=\"bare\">").count(), 1);
        for text in ["nvdisasm was not found", "no line of a source", "href=\"../../jobs/7\""] {
            assert!(html.contains(text), "{text}: {html}");
        }
        assert!(html.contains("3<span class=\"unit\"> PTX</span>"), "{html}");
    }

    #[test]
    fn a_page_of_much_code_has_a_bounded_size() {
        let html = code(&view(100_000), &Links::none());
        assert!(html.len() < 200_000, "{}", html.len());
        assert!(html.contains("The page shows at most 8\u{202f}000 instructions."));
    }
}
