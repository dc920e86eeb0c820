//! Notes about a file. The main type is [`Notes`].

use std::collections::BTreeMap;

/// Maximum number of notes that are kept.
const MAX_NOTES: usize = 100;

/// Notes in the order of their occurrence. Equal notes about several places are combined into one.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: Vec<(String, String, usize)>,
    places: BTreeMap<String, usize>,
    left_out: usize,
}

impl Notes {
    /// Adds a note about a place, or counts it if the same text was noted before.
    pub(crate) fn add(&mut self, place: String, text: String) {
        if let Some(&index) = self.places.get(&text) {
            self.notes[index].2 += 1;
        } else if self.notes.len() < MAX_NOTES {
            self.places.insert(text.clone(), self.notes.len());
            self.notes.push((place, text, 1));
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn into_texts(self) -> Vec<String> {
        let mut texts: Vec<String> = self
            .notes
            .into_iter()
            .map(|(place, text, times)| match times {
                1 => format!("{place}: {text}"),
                _ => format!("{place} and {} times more: {text}", times - 1),
            })
            .collect();
        if self.left_out > 0 {
            texts.push(format!("and {} more such remarks", self.left_out));
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_bounded_and_told_once() {
        let mut notes = Notes::default();
        for line in 1..=3 {
            notes.add(format!("line {line}"), "cut off".to_owned());
        }
        notes.add("line 9".to_owned(), "odd".to_owned());
        for index in 0..MAX_NOTES {
            notes.add("x".to_owned(), format!("{index}"));
        }
        let texts = notes.into_texts();
        assert_eq!(texts[..2], ["line 1 and 2 times more: cut off", "line 9: odd"]);
        assert_eq!(texts.len(), MAX_NOTES + 1);
        assert_eq!(texts[MAX_NOTES], "and 2 more such remarks");
    }
}
