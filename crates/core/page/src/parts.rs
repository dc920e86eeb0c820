//! Elements that several pages share.

use maud::{Markup, PreEscaped, html};
pub(crate) use warpgauge_report::readable::Tone;

/// Returns the class of elements with this tone. A tone is always shown with a word and a sign,
/// since many readers cannot rely on colours alone.
pub(crate) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Doubt => "doubt",
        Tone::Bad => "bad",
        Tone::Plain => "plain",
    }
}

/// Returns the path of the sign in a box of 20 by 20: a tick, an exclamation mark, a cross or a
/// dot.
fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "M5 10.5l3.5 3.5L15 6.5",
        Tone::Doubt => "M10 5v6.5M10 15v.1",
        Tone::Bad => "M6 6l8 8M14 6l-8 8",
        Tone::Plain => "M10 10v.1",
    }
}

/// Creates the beginning of a page: a verdict in a word, its subject, and sentences.
pub(crate) fn verdict(tone: Tone, word: &str, heading: Markup, sentences: &[Markup]) -> Markup {
    verdict_with(tone, word, html! { h1 { (heading) } }, sentences)
}

/// Creates an additional verdict on the same page. Its heading is not the heading of the page.
pub(crate) fn further_verdict(
    tone: Tone,
    word: &str,
    heading: Markup,
    sentences: &[Markup],
) -> Markup {
    verdict_with(tone, word, html! { h2.name { (heading) } }, sentences)
}

fn verdict_with(tone: Tone, word: &str, heading: Markup, sentences: &[Markup]) -> Markup {
    html! {
        section.verdict.(class(tone)) {
            p.word {
                svg viewBox="0 0 20 20" aria-hidden="true" {
                    circle cx="10" cy="10" r="9" fill="none" stroke="currentColor" stroke-width="1.75" {}
                    path d=(sign(tone)) fill="none" stroke="currentColor" stroke-width="2"
                        stroke-linecap="round" stroke-linejoin="round" {}
                }
                span { (word) }
            }
            (heading)
            @for sentence in sentences { p { (sentence) } }
        }
    }
}

/// Creates a verdict within a table or a list.
pub(crate) fn tag(tone: Tone, word: &str) -> Markup {
    html! { span.tag.(class(tone)) { (word) } }
}

/// A key figure at the top of a page.
pub(crate) struct Figure {
    pub title: &'static str,
    /// A number in large letters, or a phrase.
    pub value: Value,
    pub below: Markup,
}

pub(crate) enum Value {
    Number(String),
    Words(String),
}

/// Shows the figures, side by side if there is enough room.
pub(crate) fn figures(figures: &[Figure]) -> Markup {
    html! {
        div.figures {
            @for figure in figures {
                section.figure {
                    h2 { (figure.title) }
                    @match &figure.value {
                        Value::Number(number) => p.value { (number) },
                        Value::Words(words) => p.words.say { (words) },
                    }
                    (figure.below)
                }
            }
        }
    }
}

/// A prefix for the ids of the sections of one report, since a page may contain several reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a>(pub &'a str);

impl Scope<'_> {
    /// Returns the id of an element.
    pub(crate) fn id(self, id: &str) -> String {
        format!("{}{id}", self.0)
    }

    /// Begins a section.
    pub(crate) fn section<'t>(self, id: &str, title: &'t str) -> Section<'t> {
        Section::new(self.id(id), title)
    }
}

/// A section of a report that can be collapsed.
pub(crate) struct Section<'a> {
    /// The id within the page, for links to the section.
    pub id: String,
    pub title: &'a str,
    /// The text that is shown when the section is collapsed.
    pub note: Markup,
    pub is_open: bool,
    pub tone: Tone,
}

impl<'a> Section<'a> {
    pub(crate) fn new(id: impl Into<String>, title: &'a str) -> Self {
        Self { id: id.into(), title, note: html! {}, is_open: false, tone: Tone::Plain }
    }

    pub(crate) fn note(self, note: Markup) -> Self {
        Self { note, ..self }
    }

    pub(crate) fn open(self, is_open: bool) -> Self {
        Self { is_open, ..self }
    }

    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    pub(crate) fn with(self, body: Markup) -> Markup {
        html! {
            details.section.(class(self.tone)) id=(self.id) open[self.is_open] {
                summary { h2 { (self.title) } " " span.note { (self.note) } }
                div.body { (body) }
            }
        }
    }
}

/// Shows names with values.
pub(crate) fn facts(rows: Vec<(&str, Markup)>) -> Markup {
    html! {
        @if !rows.is_empty() {
            dl.facts {
                @for (name, value) in rows { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// Creates a table that scrolls within the page if it is too wide. `head` contains the names of the
/// columns, and whether each contains numbers.
pub(crate) fn table(
    label: &str,
    head: &[(&str, bool)],
    rows: impl Iterator<Item = Markup>,
) -> Markup {
    html! {
        div.scroll role="group" aria-label=(label) tabindex="0" {
            table {
                thead { tr {
                    @for (name, is_number) in head {
                        // A column of bars needs no name, because the numbers are next to it.
                        @if name.is_empty() { td {} } @else { th.num[*is_number] scope="col" { (name) } }
                    }
                } }
                tbody { @for row in rows { (row) } }
            }
        }
    }
}

/// Says how many entries a list omits.
pub(crate) fn more(all: usize, shown: usize, what: &str) -> Markup {
    html! {
        @if all > shown {
            p.small.dim { (crate::text::grouped((all - shown) as u64)) " more " (what) " are in the JSON report." }
        }
    }
}

/// Shows a drawing with a caption.
pub(crate) fn figure(svg: String, caption: Markup) -> Markup {
    html! {
        figure.chart tabindex="0" {
            // Elements of the drawing library escape their texts.
            (PreEscaped(svg))
            figcaption { (caption) }
        }
    }
}

/// Creates a bar that starts at `from` and has the length `part`. Both are fractions of the whole
/// width and are limited to the range from 0 to 1. The number is shown next to the bar as text.
pub(crate) fn bar(from: f64, part: f64) -> Markup {
    let cut = |share: f64| if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let (from, part) = (cut(from), cut(part));
    let x = format!("{:.2}", 100.0 * from);
    let width = format!("{:.2}", 100.0 * part.min(1.0 - from));
    html! {
        svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect x=(x) y="0" width=(width) height="8" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_never_leaves_its_box() {
        for (from, part) in [(0.0, 2.0), (0.5, 0.9), (f64::NAN, 0.5), (-1.0, f64::INFINITY)] {
            let html = bar(from, part).into_string();
            let value = |name: &str| {
                let (_, rest) = html.split_once(&format!(" {name}=\"")).unwrap();
                rest.split('"').next().unwrap().parse::<f64>().unwrap()
            };
            assert!(value("x") >= 0.0 && value("x") + value("width") <= 100.0, "{html}");
        }
    }
}
