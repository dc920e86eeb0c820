//! Answers about reports, of bounded length. The main types are [`Draft`] and [`Reading`].

use serde_json::{Map, Value, json};

use crate::answer::plain;
use warpgauge_report::readable::duration_ms;

/// Maximum length of the text, and of the structured content, bytes.
pub(super) const MAX_TEXT: usize = 4 << 10;
pub(super) const MAX_STRUCTURED: usize = 16 << 10;

/// Number of bytes of the text that are kept for its last line.
const LAST_LINE: usize = 128;

/// Maximum length of the summary, and of a line, bytes.
const SUMMARY_BYTES: usize = 480;
const LINE_BYTES: usize = 640;

/// Maximum length of a name and of a message in the structured content, bytes.
const NAME_BYTES: usize = 160;
const MESSAGE_BYTES: usize = 320;

/// Maximum number of notes in the text and in the structured content.
const TEXT_NOTES: usize = 2;
const NOTES: usize = 6;

/// Answer about a report.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The answer in words, most useful facts first.
    pub(crate) text: String,
    /// The answer for programs: `structuredContent`.
    pub(crate) structured: Value,
}

/// An answer that is being written.
pub(super) struct Draft {
    text: String,
    lines_left_out: usize,
    fields: Map<String, Value>,
    /// Number of entries of each list that are not in `fields`.
    left_out: Map<String, Value>,
}

impl Draft {
    /// Begins an answer. `kind` is the kind of the report, and `words` its name in the text.
    pub(super) fn new(kind: &str, words: &str, summary: &str) -> Self {
        let summary = plain(summary, SUMMARY_BYTES);
        let mut fields = Map::new();
        fields.insert("kind".to_owned(), kind.into());
        fields.insert("summary".to_owned(), summary.as_str().into());
        let text = format!("{words}: {summary}\n");
        Self { text, lines_left_out: 0, fields, left_out: Map::new() }
    }

    /// Adds a fact to the text.
    pub(super) fn fact(&mut self, text: &str) {
        self.line("- ", text);
    }

    /// Adds a detail of the fact before to the text.
    pub(super) fn detail(&mut self, text: &str) {
        self.line("  ", text);
    }

    fn line(&mut self, begin: &str, text: &str) {
        let line = format!("{begin}{}\n", plain(text, LINE_BYTES));
        // A detail must not follow the wrong fact, so that nothing follows a line that did not fit.
        if self.lines_left_out > 0 || self.text.len() + line.len() > MAX_TEXT - LAST_LINE {
            self.lines_left_out += 1;
        } else {
            self.text.push_str(&line);
        }
    }

    /// Sets a field of the structured content.
    pub(super) fn set(&mut self, field: &str, value: Value) {
        self.fields.insert(field.to_owned(), value);
    }

    /// Sets a list of the structured content to at most `most` of the items.
    pub(super) fn list<T>(
        &mut self,
        field: &str,
        items: &[T],
        most: usize,
        entry: impl FnMut(&T) -> Value,
    ) {
        if items.is_empty() {
            return;
        }
        let entries: Vec<Value> = items.iter().take(most).map(entry).collect();
        self.omit(field, items.len() - entries.len());
        self.set(field, entries.into());
    }

    /// Counts entries that are left out of a list.
    fn omit(&mut self, field: &str, count: usize) {
        if count > 0 {
            let before = self.left_out.get(field).and_then(Value::as_u64).unwrap_or(0);
            self.left_out.insert(field.to_owned(), json!(before + count as u64));
        }
    }

    /// Adds the notes of the parser.
    pub(super) fn notes(&mut self, notes: &[String]) {
        for note in notes.iter().take(TEXT_NOTES) {
            self.fact(&format!("note: {note}"));
        }
        self.list("notes", notes, NOTES, |note| message(note).into());
    }

    /// Returns the answer.
    pub(super) fn finish(mut self) -> Reading {
        if self.lines_left_out > 0 {
            self.text.push_str(&format!(
                "- {} more lines are left out; structuredContent has more\n",
                self.lines_left_out
            ));
        }
        loop {
            let mut fields = self.fields.clone();
            if !self.left_out.is_empty() {
                fields.insert("left_out".to_owned(), Value::Object(self.left_out.clone()));
            }
            let structured = Value::Object(fields);
            if size(&structured) <= MAX_STRUCTURED || !self.shorten() {
                return Reading { text: self.text, structured };
            }
        }
    }

    /// Removes the last entry of the longest list. Returns false if there is none.
    fn shorten(&mut self) -> bool {
        let lists = self.fields.iter_mut().filter(|(_, value)| value.is_array());
        let longest = lists.max_by_key(|(_, value)| size(value));
        let Some((field, Value::Array(entries))) = longest else { return false };
        let field = field.clone();
        let removed = entries.pop().is_some();
        self.omit(&field, usize::from(removed));
        removed
    }
}

/// Returns the length of a value as JSON, bytes.
fn size(value: &Value) -> usize {
    serde_json::to_vec(value).map_or(0, |bytes| bytes.len())
}

/// Bounds a name from a report.
pub(super) fn name(text: &str) -> String {
    plain(text, NAME_BYTES)
}

/// Bounds a message.
pub(super) fn message(text: &str) -> String {
    plain(text, MESSAGE_BYTES)
}

/// Formats a time in seconds.
pub(super) fn seconds(value: Option<f64>) -> String {
    value.map_or_else(|| "unknown time".to_owned(), |value| duration_ms(value * 1e3))
}

/// Formats a number of things: `1 kernel`, `2 kernels`.
pub(super) fn counted(count: u64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_short_whatever_is_added() {
        let mut draft = Draft::new("nsys", "NSIGHT SYSTEMS", &"\\\"\u{1b}\n".repeat(10_000));
        let long = "\"\u{202e}\\ä".repeat(10_000);
        for _ in 0..100 {
            draft.fact(&long);
            draft.detail(&long);
        }
        draft.list("kernels", &vec![long.as_str(); 300], 200, |text| name(text).into());
        draft.notes(&vec![long.clone(); 9]);
        let Reading { text, structured } = draft.finish();
        assert!(text.len() <= MAX_TEXT, "{}", text.len());
        assert!(text.ends_with("more lines are left out; structuredContent has more\n"), "{text}");
        assert!(size(&structured) <= MAX_STRUCTURED, "{}", size(&structured));
        let shown = structured["kernels"].as_array().expect("a list").len();
        assert!(shown > 10 && structured["left_out"]["kernels"] == 300 - shown, "{structured}");
        let all = text.replace('\n', "") + &structured["summary"].to_string();
        assert!(!all.contains(warpgauge_model::is_hidden), "{all:?}");
    }
}
