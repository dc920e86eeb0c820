//! Text of a picture: escaped, and numbers with prefixes.

use crate::xml;

/// Longest text, in characters: a template's name has no bound.
const MAX_CHARS: usize = 96;

/// Text for an element or an attribute: nothing in it is markup, and nothing in it is a character
/// that XML 1.0 does not have.
pub(super) fn escape(text: &str) -> String {
    let shown = text.chars().take(MAX_CHARS).map(|character| match character {
        // Overrides of the writing direction could make a name read as another one.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        other if other.is_control() => '\u{fffd}',
        other => other,
    });
    let more = text.chars().nth(MAX_CHARS).map(|_| '…');
    xml::escape(&shown.chain(more).collect::<String>())
}

/// `10⁻³`, as text without markup; small powers as plain numbers.
pub(super) fn power(exponent: i32) -> String {
    match exponent {
        -2 => "0.01".to_owned(),
        -1 => "0.1".to_owned(),
        0..=3 => 10i64.pow(exponent.unsigned_abs()).to_string(),
        _ => {
            let digits = "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().collect::<Vec<_>>();
            let sign = if exponent < 0 { "⁻" } else { "" };
            let number = exponent.unsigned_abs().to_string();
            let raised = number.bytes().map(|byte| digits[usize::from(byte - b'0')]);
            format!("10{sign}{}", raised.collect::<String>())
        }
    }
}

/// A number with a prefix: `3.21 TB/s`.
pub fn si(value: f64, unit: &str) -> String {
    const PREFIXES: [(f64, &str); 6] =
        [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")];
    // The last one takes what is left.
    let (scale, prefix) =
        PREFIXES.into_iter().find(|(from, _)| value >= *from).unwrap_or((0.0, ""));
    let shown = if scale > 0.0 { value / scale } else { value };
    let digits = match shown {
        _ if shown.fract() == 0.0 => 0,
        _ if shown >= 100.0 => 0,
        _ if shown >= 10.0 => 1,
        _ => 2,
    };
    format!("{shown:.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(escape("a<b>&\"'\u{0}\u{202e}"), "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}");
        assert_eq!(escape(&"x".repeat(1000)).chars().count(), MAX_CHARS + 1);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([power(-3), power(0), power(3), power(12)], ["10⁻³", "1", "1000", "10¹²"]);
        assert_eq!(si(3.21e12, "B/s"), "3.21 TB/s");
        assert_eq!(si(1e9, "OP/s"), "1 GOP/s");
        assert_eq!(si(0.5, "B"), "0.50 B");
        assert_eq!(si(345.6e6, "B"), "346 MB");
    }
}
