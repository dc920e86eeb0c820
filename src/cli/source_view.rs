//! Adds the name and the lines of the user's file to compiler messages.

use std::path::{Path, PathBuf};

use super::terminal::plain_line;
use warpgauge_model::{Diagnostic, Severity};

/// Names under which compiler messages refer to the submitted source.
const SUBMITTED: [&str; 2] = ["kernel.cu", "kernel.py"];

/// Maximum length of a source line that is shown below a message, characters.
const MAX_LINE: usize = 160;

/// The file that contains a kernel's source.
#[derive(Debug, Clone)]
pub(super) struct SourceView {
    path: PathBuf,
    text: String,
}

impl SourceView {
    pub(super) fn new(path: &Path, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Puts the name of the file into messages about the source. Errors also get the source line,
    /// with a mark below the column.
    pub(super) fn explain(&self, diagnostics: &mut [Diagnostic]) {
        let is_own = |one: &&mut Diagnostic| {
            one.file.as_deref().is_some_and(|file| SUBMITTED.contains(&file))
        };
        for diagnostic in diagnostics.iter_mut().filter(is_own) {
            diagnostic.file = Some(plain_line(&self.path.display().to_string()));
            if diagnostic.severity == Severity::Error
                && let Some(snippet) = self.snippet(diagnostic)
            {
                diagnostic.message = format!("{}\n{snippet}", diagnostic.message.trim_end());
            }
        }
    }

    /// In a position such as `kernel.cu:3`, replaces the submitted name by the name of the file.
    pub(super) fn place(&self, place: &mut Option<String>) {
        let own = place.as_deref().and_then(|text| text.split_once(':'));
        let Some((_, line)) = own.filter(|(file, _)| SUBMITTED.contains(file)) else { return };
        *place = Some(format!("{}:{line}", plain_line(&self.path.display().to_string())));
    }

    fn snippet(&self, diagnostic: &Diagnostic) -> Option<String> {
        let line = usize::try_from(diagnostic.line?).ok()?.checked_sub(1)?;
        let text = self.text.lines().nth(line)?.trim_end().replace('\t', " ");
        let indent = text.len() - text.trim_start().len();
        let text = plain_line(text.trim_start());
        if text.is_empty() || text.chars().count() > MAX_LINE {
            return None;
        }
        let column = diagnostic.column.and_then(|column| usize::try_from(column).ok());
        let mark = column.and_then(|column| column.checked_sub(indent + 1));
        let mark = mark.filter(|at| *at <= text.chars().count());
        let mark = mark.map(|at| format!("\n    {}^", " ".repeat(at))).unwrap_or_default();
        Some(format!("    {text}{mark}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_the_users_file() {
        let view = SourceView::new(Path::new("src/own.cu"), "");
        for (place, expected) in [
            (Some("kernel.cu:3"), Some("src/own.cu:3")),
            (Some("header.h:3"), Some("header.h:3")),
            (Some("kernel.cu"), Some("kernel.cu")),
            (None, None),
        ] {
            let mut place = place.map(str::to_owned);
            view.place(&mut place);
            assert_eq!(place.as_deref(), expected);
        }
    }

    #[test]
    fn errors_have_the_file_and_its_line() {
        let view = SourceView::new(Path::new("src/a.cu"), "int a;\n\tx = y;\n");
        let diagnostic = |file: &str, severity, line, column| Diagnostic {
            severity,
            file: Some(file.to_owned()),
            line: Some(line),
            column: Some(column),
            message: "wrong".to_owned(),
        };
        let mut all = [
            diagnostic("kernel.cu", Severity::Error, 2, 6),
            diagnostic("kernel.cu", Severity::Warning, 2, 6),
            diagnostic("other.h", Severity::Error, 2, 6),
            diagnostic("kernel.cu", Severity::Error, 9, 1),
            diagnostic("kernel.cu", Severity::Error, 2, 900),
        ];
        view.explain(&mut all);
        assert_eq!(all[0].message, "wrong\n    x = y;\n        ^");
        assert_eq!(all[0].file.as_deref(), Some("src/a.cu"));
        assert_eq!((all[1].message.as_str(), all[3].message.as_str()), ("wrong", "wrong"));
        assert_eq!(all[2].file.as_deref(), Some("other.h"));
        assert_eq!(all[4].message, "wrong\n    x = y;");
    }
}
