//! Checks comments for forbidden words. docs/contributing/style.md lists alternatives.

use super::rules::has_word;
use super::{Source, Violation};

/// Words that do not name the component that acts, or that a standard term can replace.
const WORDS: [&str; 10] = [
    "tell", "tells", "told", "whoever", "whom", "nobody", "somebody", "someone", "leavings", "news",
];

/// Folders in which comments must not contain these words.
const CLEAN: [&str; 3] = ["crates/", "src/", "xtask/src/"];

/// Checks the comments of a file.
pub fn check(source: &Source, violations: &mut Vec<Violation>) {
    if !CLEAN.iter().any(|folder| source.path.starts_with(folder)) {
        return;
    }
    for (index, line) in source.text.lines().enumerate() {
        let Some(text) = comment(line) else { continue };
        if let Some(word) = WORDS.iter().find(|word| has_word(&text, word)) {
            violations.push(Violation {
                path: source.path.clone(),
                line: index + 1,
                message: format!(
                    "`{word}` in a comment: docs/contributing/style.md lists alternatives"
                ),
            });
        }
    }
}

/// If a line is a comment, returns its text in lower case, without code in backquotes.
fn comment(line: &str) -> Option<String> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let mut violations = Vec::new();
        check(&source, &mut violations);
        violations.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn words_are_found_in_comments_and_not_in_code() {
        let text = "/// Told by whoever.\nlet told = 1; // why\n// The field `told`.\n//! Nobody.\n// Retold.\n";
        assert_eq!(lines("crates/core/model/src/a.rs", text), [1, 4]);
        assert_eq!(lines("tests/it/a.rs", text), [0usize; 0]);
    }
}
