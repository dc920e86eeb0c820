//! Invisible characters that change how a text appears.

/// Returns whether the character is a control character, or changes the text direction (Unicode's
/// `Bidi_Control`). Such a character in a name can disguise the name.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_are_hidden_and_letters_are_not() {
        for c in "\u{202e}\u{2066}\u{200f}\u{61c}\u{7}\n\u{9b}".chars() {
            assert!(is_hidden(c), "{c:?}");
        }
        for c in "aßא字 \u{200d}_-".chars() {
            assert!(!is_hidden(c), "{c:?}");
        }
    }
}
