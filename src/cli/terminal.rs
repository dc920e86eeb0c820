//! Properties of the standard streams, and functions that write to the streams.

use std::io::{ErrorKind, IsTerminal, Write};

use super::CliError;

#[derive(Debug, Clone, Copy)]
pub(super) struct Terminal {
    /// Whether only results and errors are printed.
    pub quiet: bool,
    /// Whether standard output can show colours.
    pub colour: bool,
    /// Whether standard error is a terminal, on which progress lines replace each other.
    pub interactive: bool,
    /// Whether reports include all details.
    pub verbose: bool,
    /// Number of columns of standard output, if it is known.
    pub width: Option<usize>,
}

/// How a report is formatted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Style {
    pub colour: bool,
    /// Whether reports include all details.
    pub verbose: bool,
    /// Number of columns that lines may have; `None` for lines of any length.
    pub width: Option<usize>,
}

/// Minimum number of columns to which lines are broken.
const MIN_WIDTH: usize = 20;

/// Number of columns below which further lines begin at [`NARROW_INDENT`], and not below the content.
const NARROW: usize = 60;

const NARROW_INDENT: usize = 4;

impl Style {
    /// Returns whether a text fits behind an indentation.
    pub(super) fn fits(&self, indent: usize, text: &str) -> bool {
        self.width.is_none_or(|width| indent + textwrap::core::display_width(text) <= width)
    }

    /// Returns `first` and the content, broken between words into lines that fit, and a line break at the end.
    /// Further lines begin in the column `indent`. A word that is longer than a line stays whole, so that paths and
    /// commands can be copied.
    pub(super) fn filled(&self, first: &str, indent: usize, content: &str) -> String {
        let whole = || format!("{first}{content}\n");
        let Some(width) = self.width else { return whole() };
        // Several lines have a layout, such as a mark below a column.
        if content.contains('\n') || self.fits(textwrap::core::display_width(first), content) {
            return whole();
        }
        let indent = if width < NARROW { indent.min(NARROW_INDENT) } else { indent };
        let indent = " ".repeat(indent);
        // A first word that does not fit behind the label begins the next line.
        let word = content.split(' ').next().unwrap_or_default();
        let label = textwrap::core::display_width(first);
        let (above, first) = match self.fits(label, word) || label <= indent.len() {
            true => (String::new(), first),
            false => (format!("{}\n", first.trim_end()), indent.as_str()),
        };
        let options = textwrap::Options::new(width.max(MIN_WIDTH))
            .initial_indent(first)
            .subsequent_indent(&indent)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        format!("{above}{}\n", textwrap::fill(content, options))
    }
}

/// Returns the number of columns of standard output: that of the variable COLUMNS, or that of the terminal.
fn columns() -> Option<usize> {
    let given = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
    given.filter(|columns| *columns > 0).or_else(|| {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(usize::from(width.0)).filter(|columns| *columns > 0)
    })
}

impl Terminal {
    /// Detects the properties of the streams. NO_COLOR applies if it is set and not empty
    /// (<https://no-color.org>).
    pub(super) fn detect(quiet: bool, verbose: bool) -> Self {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self {
            quiet,
            colour: std::io::stdout().is_terminal() && !no_colour && !dumb,
            interactive: std::io::stderr().is_terminal() && !dumb,
            verbose,
            width: columns(),
        }
    }

    pub(super) fn style(&self) -> Style {
        Style { colour: self.colour, verbose: self.verbose, width: self.width }
    }

    /// Writes a result to standard output. If the reader has closed the stream, this is not an
    /// error.
    pub(super) fn print(&self, text: &str) -> Result<(), CliError> {
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(CliError::System { operation: "write to standard output", source: error })
            }
            _ => Ok(()),
        }
    }

    /// Writes a result with exactly one line break at the end.
    pub(super) fn print_line(&self, text: &str) -> Result<(), CliError> {
        self.print(&format!("{}\n", text.trim_end()))
    }

    /// Writes a note to standard error, unless `--quiet` is set.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            write_error_stream(text);
        }
    }
}

/// Writes a line to standard error. If this fails, the failure is ignored.
pub(super) fn write_error_stream(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Returns the text without characters that could control the terminal. Line breaks and tabs
/// remain.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .filter(|c| *c != '\r')
        .map(
            |c| {
                if warpgauge_model::is_hidden(c) && c != '\n' && c != '\t' { '\u{fffd}' } else { c }
            },
        )
        .collect()
}

/// Returns the text as one line without control characters, because a file name may contain line
/// breaks.
pub(super) fn plain_line(text: &str) -> String {
    text.chars().map(|c| if warpgauge_model::is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words_where_the_width_is_known() {
        let style = |width| Style { width, ..Style::default() };
        let text = "12.40 µs median (95 % CI 12.31 µs to 12.52 µs)";
        let first = "  runtime   ";
        assert_eq!(style(None).filled(first, 12, text), format!("{first}{text}\n"));
        assert_eq!(style(Some(100)).filled(first, 12, text), format!("{first}{text}\n"));
        let first_part = "12.40 µs median (95 % CI 12.31 µs to 12.52";
        assert_eq!(
            style(Some(70)).filled("            ", 12, text),
            format!("            {text}\n")
        );
        let broken = format!("{first}{first_part}\n    µs)\n");
        assert_eq!(style(Some(55)).filled(first, 12, text), broken);
        let narrow = "  runtime   12.40 µs median (95 % CI\n    12.31 µs to 12.52 µs)\n";
        assert_eq!(style(Some(40)).filled(first, 12, text), narrow);
        // A path stays whole, and lines with a layout stay as they are.
        let path = "a/very/long/path/that/does/not/fit/in/a/line.cu";
        assert!(style(Some(40)).filled("  ", 4, path).contains(path));
        let marked = "error: x is not known here at all, nowhere\n    x\n    ^";
        assert_eq!(style(Some(20)).filled("  ", 4, marked), format!("  {marked}\n"));
        let label = style(Some(40)).filled("ok  directory   ", 16, "/tmp/a/directory/of/data");
        assert_eq!(label, "ok  directory   /tmp/a/directory/of/data\n");
        let label = style(Some(39)).filled("ok  directory   ", 16, "/tmp/a/directory/of/data");
        assert_eq!(label, "ok  directory\n    /tmp/a/directory/of/data\n");
        // Colours take no columns.
        let painted = "\x1b[1;32mCORRECT\x1b[0m";
        assert!(style(Some(30)).fits(0, painted));
    }

    #[test]
    fn text_of_others_cannot_steer_the_terminal() {
        assert_eq!(plain("a\x1b[2Jb\r\n\tc\u{9b}d"), "a\u{fffd}[2Jb\n\tc\u{fffd}d");
        assert_eq!(plain_line("a\nb\x1bc"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(plain("fast\u{202e}wols"), "fast\u{fffd}wols");
    }
}
