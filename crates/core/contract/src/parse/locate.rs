//! Finds the position of a value in a JSON text. It runs only when there is an error to report, so
//! that parsing need not track positions.

use std::borrow::Cow;

use warpgauge_document::PathSegment;

/// Part of the last field of a path to locate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Value,
    Key,
    /// The key of the second field with the same name.
    SecondKey,
}

/// Returns the line and column (in bytes) of the value at a path, from 1. If the path does not
/// exist, returns the position of the last value along it. The text must have been parsed as JSON.
pub(super) fn locate(text: &[u8], path: &[PathSegment], part: Part) -> (u64, u64) {
    let position = Scanner { text, position: 0 }.find(path, part);
    let before = &text[..position.min(text.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count();
    let column = before.iter().rev().take_while(|&&byte| byte != b'\n').count();
    (line as u64 + 1, column as u64 + 1)
}

struct Scanner<'a> {
    text: &'a [u8],
    position: usize,
}

impl Scanner<'_> {
    fn find(mut self, path: &[PathSegment], part: Part) -> usize {
        self.space();
        for (index, segment) in path.iter().enumerate() {
            let start = self.position;
            let part = if index + 1 == path.len() { part } else { Part::Value };
            let found = match segment {
                PathSegment::Field(name) => self.field(name, usize::from(part == Part::SecondKey)),
                PathSegment::Element(index) => self.element(*index).then_some(self.position),
                PathSegment::Unnamed => None,
            };
            match found {
                None => return start,
                Some(key) if part != Part::Value => return key,
                Some(_) => {}
            }
        }
        self.position
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.position).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.position += 1;
        }
    }

    /// Moves to the value of the field after `others` fields of the same name. Returns the position
    /// of its name.
    fn field(&mut self, wanted: &str, mut others: usize) -> Option<usize> {
        self.enter(b'{')?;
        while self.peek()? == b'"' {
            let start = self.position;
            self.position = super::json::end_of_string(self.text, start + 1);
            let name = serde_json::from_slice::<Cow<'_, str>>(&self.text[start..self.position]);
            self.space();
            // This skips the colon.
            self.position += 1;
            self.space();
            if name.is_ok_and(|name| name == wanted) {
                match others.checked_sub(1) {
                    None => return Some(start),
                    Some(left) => others = left,
                }
            }
            self.skip_with_comma();
        }
        None
    }

    /// Moves to an element of a list.
    fn element(&mut self, index: usize) -> bool {
        if self.enter(b'[').is_none() {
            return false;
        }
        for _ in 0..index {
            self.skip_with_comma();
        }
        self.peek().is_some_and(|byte| byte != b']')
    }

    fn enter(&mut self, bracket: u8) -> Option<()> {
        if self.peek()? != bracket {
            return None;
        }
        self.position += 1;
        self.space();
        Some(())
    }

    /// Moves past a value and its separator.
    fn skip_with_comma(&mut self) {
        let mut depth = 0_u32;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.position = super::json::end_of_string(self.text, self.position + 1);
                    continue;
                }
                b'[' | b'{' => depth += 1,
                b']' | b'}' if depth == 0 => return,
                b']' | b'}' => depth -= 1,
                b',' if depth == 0 => {
                    self.position += 1;
                    self.space();
                    return;
                }
                _ => {}
            }
            self.position += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{ \"a,]\" : [1, {\"x\": \"}\\\"\", \"y\": [ ]},\n  [[2], 3]],\n \"\\u0062\": {\"c\": null}}";

    fn at(path: &[PathSegment], part: Part) -> (u64, u64) {
        locate(TEXT.as_bytes(), path, part)
    }

    fn field(name: &str) -> PathSegment {
        PathSegment::Field(name.to_owned())
    }

    #[test]
    fn values_and_keys_are_found() {
        let element = PathSegment::Element;
        assert_eq!(at(&[], Part::Value), (1, 1));
        assert_eq!(at(&[field("a,]")], Part::Value), (1, 11));
        assert_eq!(at(&[field("a,]")], Part::Key), (1, 3));
        assert_eq!(at(&[field("a,]"), element(1), field("y")], Part::Value), (1, 33));
        assert_eq!(at(&[field("a,]"), element(2), element(0), element(0)], Part::Value), (2, 5));
        assert_eq!(at(&[field("a,]"), element(2), element(1)], Part::Value), (2, 9));
        assert_eq!(at(&[field("b"), field("c")], Part::Value), (3, 18));
        let twice = locate(br#"{"a": 1, "b": 2, "a": 3}"#, &[field("a")], Part::SecondKey);
        assert_eq!(twice, (1, 18));
    }

    #[test]
    fn a_path_that_leads_nowhere_ends_at_the_last_value_on_it() {
        assert_eq!(at(&[field("b"), field("lost")], Part::Key), (3, 12));
        assert_eq!(at(&[field("a,]"), PathSegment::Element(9)], Part::Value), (1, 11));
        assert_eq!(at(&[PathSegment::Element(0)], Part::Value), (1, 1));
        for end in 0..TEXT.len() {
            locate(&TEXT.as_bytes()[..end], &[field("b"), field("c")], Part::Value);
        }
    }
}
