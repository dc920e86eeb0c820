//! Changes to a tree before a type is read from it.

use std::borrow::Cow;

use crate::document::{Document, Value};

impl<'de> Document<'de> {
    /// Creates a map with these entries.
    pub fn map<const N: usize>(entries: [(&'static str, Document<'de>); N]) -> Self {
        let entry = |(name, value)| (Self::new(Value::Text(Cow::Borrowed(name))), value);
        Self::new(Value::Map(entries.into_iter().map(entry).collect()))
    }

    /// Returns whether the value is null.
    pub fn is_null(&self) -> bool {
        match &self.value {
            Value::Null => true,
            Value::Scalar(scalar) => scalar.value == Value::Null,
            _ => false,
        }
    }

    /// Returns whether the value is `true`.
    pub fn is_true(&self) -> bool {
        match &self.value {
            Value::Bool(value) => *value,
            Value::Scalar(scalar) => scalar.value == Value::Bool(true),
            _ => false,
        }
    }

    /// Returns whether the value is a map.
    pub fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    /// Returns the names of the entries of a map. Names that are not text are omitted.
    pub fn names(&self) -> Vec<String> {
        let Value::Map(entries) = &self.value else { return Vec::new() };
        entries.iter().filter_map(|(name, _)| name.text()).map(Cow::into_owned).collect()
    }

    /// Returns the value of the first entry of a map with this name, unless the value is null.
    pub fn entry(&self, name: &str) -> Option<&Document<'de>> {
        let Value::Map(entries) = &self.value else { return None };
        let found = entries.iter().find(|(key, _)| is_named(key, name));
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// Returns a mutable reference like [`Self::entry`].
    pub fn entry_mut(&mut self, name: &str) -> Option<&mut Document<'de>> {
        let Value::Map(entries) = &mut self.value else { return None };
        let found = entries.iter_mut().find(|(key, _)| is_named(key, name));
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    /// Removes all entries with this name from a map and returns the value of the first.
    pub fn remove(&mut self, name: &str) -> Option<Document<'de>> {
        let Value::Map(entries) = &mut self.value else { return None };
        let mut removed = entries.extract_if(.., |(key, _)| is_named(key, name));
        let first = removed.next().map(|(_, value)| value);
        removed.for_each(drop);
        first
    }

    /// Adds an entry to a map. Null entries with the same name are removed.
    pub fn insert(&mut self, name: &'static str, value: impl Into<Document<'de>>) {
        if let Value::Map(entries) = &mut self.value {
            entries.retain(|(key, value)| !is_named(key, name) || !value.is_null());
            entries.push((Self::new(Value::Text(Cow::Borrowed(name))), value.into()));
        }
    }

    /// Returns the elements of a list, or nothing for other values.
    pub fn elements_mut(&mut self) -> &mut [Document<'de>] {
        match &mut self.value {
            Value::List(elements) => elements,
            _ => &mut [],
        }
    }

    /// Removes the elements of a list for which `is_removed` returns true, and returns their
    /// indices.
    pub fn remove_elements(
        &mut self,
        mut is_removed: impl FnMut(&Document<'de>) -> bool,
    ) -> Vec<usize> {
        let Value::List(elements) = &mut self.value else { return Vec::new() };
        let (mut removed, mut index) = (Vec::new(), 0);
        elements.retain(|element| {
            let is_kept = !is_removed(element);
            if !is_kept {
                removed.push(index);
            }
            index += 1;
            is_kept
        });
        removed
    }

    /// Converts text that contains a number to that number, and a whole number written as a
    /// fraction, such as `5.0`, to an integer.
    pub fn settle_number(&mut self) {
        const EXACT: f64 = (1u64 << 53) as f64;
        let number = match &self.value {
            Value::Text(text) => {
                let text = text.trim();
                let whole = text.parse().map(Value::Unsigned);
                let whole = whole.or_else(|_| text.parse().map(Value::Signed));
                let is_decimal = text.bytes().any(|byte| byte.is_ascii_digit());
                match whole {
                    Ok(whole) => whole,
                    Err(_) => match text.parse().ok().filter(|_| is_decimal) {
                        Some(number) => Value::Float(number),
                        None => return,
                    },
                }
            }
            Value::Float(number) => Value::Float(*number),
            _ => return,
        };
        self.value = match number {
            Value::Float(number) if number.fract() == 0.0 && (0.0..EXACT).contains(&number) => {
                Value::Unsigned(number as u64)
            }
            number => number,
        };
    }
}

fn is_named(key: &Document<'_>, name: &str) -> bool {
    key.text().is_some_and(|text| text == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_are_found_removed_and_set() {
        let mut document = Document::from(json!({"a": null, "b": [1, 2], "c": 3}));
        assert!(document.entry("a").is_none() && document.entry("d").is_none());
        assert_eq!(document.entry_mut("b").unwrap().elements_mut().len(), 2);
        assert_eq!(document.remove("c"), Some(Document::from(json!(3))));
        document.insert("a", json!(4));
        assert_eq!(document.names(), ["b", "a"]);
        assert_eq!(document, Document::from(json!({"b": [1, 2], "a": 4})).reversed());
    }

    impl Document<'_> {
        /// Objects of `serde_json` are sorted by name.
        fn reversed(mut self) -> Self {
            if let Value::Map(entries) = &mut self.value {
                entries.reverse();
            }
            self
        }
    }

    #[test]
    fn texts_of_numbers_and_whole_fractions_are_numbers() {
        for (given, settled) in [
            (json!("100"), json!(100)),
            (json!(" 5.0 "), json!(5)),
            (json!("-3"), json!(-3)),
            (json!("0.5"), json!(0.5)),
            (json!(5.0), json!(5)),
            (json!(1e300), json!(1e300)),
            (json!(true), json!(true)),
            (json!("inf"), json!("inf")),
            (json!("n"), json!("n")),
        ] {
            let mut document = Document::from(given.clone());
            document.settle_number();
            assert_eq!(document, Document::from(settled), "{given}");
        }
    }
}
