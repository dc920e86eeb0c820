//! Properties of the standard streams, and functions that write to them.

use std::io::{ErrorKind, IsTerminal, Write};

use super::CliError;

#[derive(Debug, Clone, Copy)]
pub(super) struct Terminal {
    /// Whether only results and errors are printed.
    pub quiet: bool,
    /// Whether standard output shows colours.
    pub colour: bool,
    /// Whether standard error is a terminal, on which progress overwrites itself.
    pub interactive: bool,
    /// Whether reports include all details.
    pub verbose: bool,
}

/// Style of a report.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Style {
    pub colour: bool,
    /// Whether reports include all details.
    pub verbose: bool,
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
        }
    }

    pub(super) fn style(&self) -> Style {
        Style { colour: self.colour, verbose: self.verbose }
    }

    /// Writes a result to standard output. A stream that its reader closed is not an error.
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

/// Writes a line to standard error. A failure to write is ignored.
pub(super) fn write_error_stream(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Returns the text without control characters that could control the terminal. Line breaks and
/// tabs remain.
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

/// Returns the text on one line, without control characters: a file name may contain line breaks.
pub(super) fn plain_line(text: &str) -> String {
    text.chars().map(|c| if warpgauge_model::is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_cannot_steer_the_terminal() {
        assert_eq!(plain("a\x1b[2Jb\r\n\tc\u{9b}d"), "a\u{fffd}[2Jb\n\tc\u{fffd}d");
        assert_eq!(plain_line("a\nb\x1bc"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(plain("fast\u{202e}wols"), "fast\u{fffd}wols");
    }
}
