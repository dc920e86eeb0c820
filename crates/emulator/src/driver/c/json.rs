//! A minimal JSON writer for the report.

use std::fmt::Write;

/// Returns the text as a quoted JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Returns a JSON array of the values, which must already be JSON.
pub fn list(values: impl Iterator<Item = String>) -> String {
    format!("[{}]", values.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        assert_eq!(quoted("a\"\\\n\u{1}é"), "\"a\\\"\\\\\\u000a\\u0001é\"");
        assert_eq!(list([quoted("x"), "1".into()].into_iter()), "[\"x\",1]");
    }
}
