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

    /// Adds later notes, whose texts are others.
    pub(crate) fn append(&mut self, later: Notes) {
        for (place, text, times) in later.notes {
            if self.notes.len() < MAX_NOTES {
                self.places.insert(text.clone(), self.notes.len());
                self.notes.push((place, text, times));
            } else {
                self.left_out += times;
            }
        }
        self.left_out += later.left_out;
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

    #[test]
    fn appended_notes_are_as_notes_that_were_added() {
        for (first, second) in [(0, 3), (3, 0), (60, 40), (60, 41), (130, 5), (5, 130), (100, 1)] {
            let (mut both, mut earlier, mut later) =
                (Notes::default(), Notes::default(), Notes::default());
            for (part, count, kind) in [(&mut earlier, first, "a"), (&mut later, second, "b")] {
                for line in (0..count).chain(0..count) {
                    part.add(format!("line {line}"), format!("{kind} {line}"));
                    both.add(format!("line {line}"), format!("{kind} {line}"));
                }
            }
            earlier.append(later);
            assert_eq!(earlier.into_texts(), both.into_texts(), "{first} {second}");
        }
    }
}
