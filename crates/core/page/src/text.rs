//! Formats texts and numbers for pages.

use maud::{Markup, html};
use warpgauge_model::is_hidden;

/// The maximum number of characters of a name.
pub(crate) const NAME: usize = 200;
/// The maximum number of characters of a message.
pub(crate) const MESSAGE: usize = 4_000;
/// The maximum number of characters of a log, a listing or a kernel's printed output.
pub(crate) const LOG: usize = 32_000;

/// Shortens a text to at most `most` characters. Replaces control characters and characters that
/// change the writing direction, except tabs and line feeds; carriage returns are removed. A
/// shortened text ends in `…`.
pub(crate) fn shown(text: &str, most: usize) -> String {
    let plain = |c: char| if is_hidden(c) && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    let is_cut = text.chars().nth(most).is_some();
    let taken = if is_cut { most.saturating_sub(1) } else { most };
    let mut shown: String = text.chars().filter(|c| *c != '\r').take(taken).map(plain).collect();
    if is_cut {
        shown.push('…');
    }
    shown
}

/// Shortens a name from a kernel or a user to one line of plain text.
pub(crate) fn label(text: &str) -> String {
    shown(&text.replace('\n', " "), NAME)
}

/// Shows a name from a kernel or a user. Its writing direction does not affect the surrounding
/// text.
pub(crate) fn name(text: &str) -> Markup {
    html! { bdi { (label(text)) } }
}

/// Shows a name in a monospaced font.
pub(crate) fn code(text: &str) -> Markup {
    html! { code { (name(text)) } }
}

/// Shows a message. Text between backquotes is shown as code.
pub(crate) fn message(text: &str) -> Markup {
    let text = shown(text, MESSAGE);
    let parts = text.split('`').collect::<Vec<_>>();
    // An unpaired backquote is an ordinary character.
    let is_paired = parts.len() % 2 == 1;
    html! {
        bdi {
            @if is_paired {
                @for (index, part) in parts.iter().enumerate() {
                    @if index % 2 == 1 { code { (part) } } @else { (part) }
                }
            } @else { (text) }
        }
    }
}

/// Shows a text with its line breaks. If it is shortened, a note says by how much.
pub(crate) fn block(text: &str, class: &str) -> Markup {
    let characters = text.chars().count();
    html! {
        pre class=(class) tabindex="0" { (shown(text, LOG)) }
        @if characters > LOG {
            p.small.dim { (grouped((characters - LOG) as u64)) " more characters are in the JSON report." }
        }
    }
}

/// Joins a number and its unit with a narrow space that does not break.
pub(crate) fn tight(text: &str) -> String {
    text.replace(' ', "\u{202f}")
}

/// Formats a time in milliseconds.
pub(crate) fn time(ms: f64) -> String {
    tight(&warpgauge_report::readable::duration_ms(ms))
}

/// Formats a fraction as a percentage.
pub(crate) fn percent(share: f64) -> String {
    tight(&warpgauge_report::readable::percent(share))
}

/// Formats a whole number in groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Formats the value of a metric: whole numbers in groups of digits, others with at least three
/// significant digits.
pub(crate) fn number(value: f64) -> String {
    match value {
        _ if value.fract() == 0.0 && value.abs() < 1e15 => {
            let sign = if value < 0.0 { "−" } else { "" };
            format!("{sign}{}", grouped(value.abs() as u64))
        }
        _ if value.abs() < 1e-3 => format!("{value:.2e}"),
        _ => warpgauge_svg::rounded(value),
    }
}

/// Returns the serialised name of a value, with spaces instead of underscores.
pub(crate) fn word(value: &impl serde::Serialize) -> String {
    warpgauge_report::readable::word(value).replace('_', " ")
}

/// Formats a number with a noun: `1 point`, `2 points`, `2 launches`.
pub(crate) fn counted(number: usize, one: &str) -> String {
    let ending = match number {
        1 => "",
        _ if one.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{} {one}{ending}", grouped(number as u64))
}

/// Returns a query string with these names and values, percent-encoded. It is empty without any.
pub(crate) fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut query = String::new();
    for (name, value) in pairs {
        query.push(if query.is_empty() { '?' } else { '&' });
        query.push_str(name);
        query.push('=');
        query.push_str(&encoded(value));
    }
    query
}

/// Percent-encodes a text for a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_bounded_and_cannot_steer_the_direction() {
        assert_eq!(shown("a\u{202e}b\r\n\tc", 20), "a\u{fffd}b\n\tc");
        assert_eq!(shown("abcdef", 4), "abc…");
        assert_eq!(shown("abcd", 4), "abcd");
        let long = block(&"x".repeat(LOG + 1_000), "").into_string();
        assert!(long.contains("1\u{202f}000 more characters"), "{}", &long[LOG..]);
        assert!(long.len() < LOG + 400);
    }

    #[test]
    fn names_are_text() {
        let html = name("<img src=x onerror=alert(1)>").into_string();
        assert_eq!(html, "<bdi>&lt;img src=x onerror=alert(1)&gt;</bdi>");
    }

    #[test]
    fn code_in_a_message_is_code() {
        let html = message("set `<n>` in `args`").into_string();
        assert_eq!(html, "<bdi>set <code>&lt;n&gt;</code> in <code>args</code></bdi>");
        assert_eq!(message("a ` b").into_string(), "<bdi>a ` b</bdi>");
    }

    #[test]
    fn numbers_are_grouped_and_short() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]
        );
        assert_eq!(number(-1500.0), "−1\u{202f}500");
        assert_eq!(number(0.00012), "1.20e-4");
        assert_eq!(number(12.3456), "12.35");
        assert_eq!([counted(1, "point"), counted(2, "point")], ["1 point", "2 points"]);
        assert_eq!(counted(2, "launch"), "2 launches");
    }
}
