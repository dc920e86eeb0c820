//! Layout of a text report: a verdict, followed by labelled rows.

use super::super::terminal::{Style, plain};
pub(super) use warpgauge_report::readable::Tone;

/// Maximum number of shown lines of text that a kernel or a compiler printed.
const MAX_TEXT_LINES: usize = 40;

/// A page that consists of labelled rows. All text from other programs passes through [`plain`].
pub(super) struct Page {
    pub text: String,
    pub style: Style,
}

/// Width of the labels, characters.
const LABEL: usize = 10;

/// Column in which further lines of a text without a label begin.
const INDENT: usize = 4;

impl Page {
    pub(super) fn new(style: Style) -> Self {
        Self { text: String::new(), style }
    }

    pub(super) fn paint(&self, tone: Tone, word: &str) -> String {
        let code = match tone {
            Tone::Good => 32,
            Tone::Bad => 31,
            Tone::Doubt => 33,
            Tone::Plain => return word.to_owned(),
        };
        if self.style.colour { format!("\x1b[1;{code}m{word}\x1b[0m") } else { word.to_owned() }
    }

    pub(super) fn verdict(&mut self, tone: Tone, word: &str, rest: &str) {
        let word = self.paint(tone, word);
        let gap = if rest.is_empty() { "" } else { "  " };
        self.text.push_str(&self.style.filled(&format!("{word}{gap}"), INDENT, &plain(rest)));
    }

    pub(super) fn row(&mut self, label: &str, content: &str) {
        let content = plain(content);
        self.row_painted(label, &content);
    }

    /// Adds a row whose content may contain colour codes. It must contain no control characters
    /// from other programs.
    pub(super) fn row_painted(&mut self, label: &str, content: &str) {
        self.text.push_str(&self.style.filled(&format!("  {label:<LABEL$}"), 2 + LABEL, content));
    }

    /// Adds a row that is not wrapped, so that a terminal recognises its URL.
    pub(super) fn row_unwrapped(&mut self, label: &str, content: &str) {
        self.text.push_str(&format!("  {label:<LABEL$}{}\n", plain(content)));
    }

    pub(super) fn more(&mut self, content: &str) {
        self.row("", content);
    }

    pub(super) fn line(&mut self, content: &str) {
        self.text.push_str(&self.style.filled("  ", INDENT, &plain(content)));
    }

    /// Returns whether a row of this content needs one line.
    pub(super) fn fits(&self, content: &str) -> bool {
        self.style.fits(2 + LABEL, content)
    }

    pub(super) fn block(&mut self, content: &str) {
        let lines = content.lines().count();
        for line in content.lines().take(MAX_TEXT_LINES) {
            self.text.push_str(&format!("    {}\n", plain(line)));
        }
        if lines > MAX_TEXT_LINES {
            let more = lines - MAX_TEXT_LINES;
            self.text.push_str(&format!("    … and {more} more lines (all with --json)\n"));
        }
    }
}
