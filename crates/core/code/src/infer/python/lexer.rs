//! Logical lines of Python source and their tokens. The main function is [`lines`].

/// Maximum number of tokens that are read.
const MAX_TOKENS: usize = 400_000;

/// Operators of more than one character, longest first.
const LONG: [&str; 22] = [
    "**=", "//=", ">>=", "<<=", "...", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", ":=",
];

/// A logical line without comments: a statement, or a part of one that ends with `:`.
#[derive(Debug, Default)]
pub(super) struct Line<'a> {
    /// Width of the indentation, in columns; a tab counts as 8.
    pub indent: usize,
    /// Tokens of the line; a string literal is one token that includes its quotes.
    pub tokens: Vec<&'a str>,
}

/// Reads the logical lines of a source. Brackets and backslashes join lines.
pub(super) fn lines(source: &str) -> Vec<Line<'_>> {
    let bytes = source.as_bytes();
    let (mut lines, mut line) = (Vec::new(), Line::default());
    let (mut at, mut depth, mut read, mut begins) = (0, 0_usize, 0, true);
    while at < bytes.len() && read < MAX_TOKENS {
        if begins {
            let blank = bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
            line.indent = blank.clone().map(|byte| if *byte == b'\t' { 8 } else { 1 }).sum();
            at += blank.count();
            begins = false;
            continue;
        }
        match bytes[at] {
            b'\n' if depth == 0 => {
                lines
                    .extend(Some(std::mem::take(&mut line)).filter(|line| !line.tokens.is_empty()));
                (at, begins) = (at + 1, true);
            }
            b'\\' if matches!(bytes.get(at + 1), Some(b'\n' | b'\r')) => at += 2,
            byte if byte.is_ascii_whitespace() => at += 1,
            b'#' => at += bytes[at..].iter().take_while(|byte| **byte != b'\n').count(),
            _ => {
                let end = at + length(&source[at..]);
                let token = &source[at..end];
                match token {
                    "(" | "[" | "{" => depth += 1,
                    ")" | "]" | "}" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                line.tokens.push(token);
                read += 1;
                at = end;
            }
        }
    }
    lines.extend(Some(line).filter(|line| !line.tokens.is_empty()));
    lines
}

/// Returns the length of the first token of a text, in bytes.
fn length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let word = bytes.iter().take_while(|byte| is_word(**byte)).count();
    let quote = bytes.get(word).copied();
    let is_prefix = word <= 2 && text[..word].bytes().all(|byte| b"rRbBuUfF".contains(&byte));
    if is_prefix && matches!(quote, Some(b'"' | b'\'')) {
        return word + literal(&text[word..]);
    }
    if bytes[0].is_ascii_digit() || bytes[0] == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit)
    {
        return number(bytes);
    }
    if word > 0 {
        return word;
    }
    let long = LONG.iter().find(|operator| text.starts_with(**operator));
    long.map_or_else(|| text.chars().next().map_or(1, char::len_utf8), |operator| operator.len())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns the length of a number, with its fraction and its exponent.
fn number(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        let is_sign = matches!(byte, b'+' | b'-')
            && matches!(bytes[end - 1], b'e' | b'E')
            && !bytes.starts_with(b"0x");
        if !is_word(*byte) && *byte != b'.' && !is_sign {
            break;
        }
        end += 1;
    }
    end
}

/// Returns the length of a string literal without a prefix.
fn literal(text: &str) -> usize {
    let quote = &text[..1];
    let triple = [quote, quote, quote].concat();
    let (open, is_triple) = if text.starts_with(&triple) { (3, true) } else { (1, false) };
    let mut at = open;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match rest[0] {
            b'\\' => at += 1,
            b'\n' if !is_triple => return at,
            _ if is_triple && rest.starts_with(triple.as_bytes()) => return at + 3,
            byte if !is_triple && byte == quote.as_bytes()[0] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    // The literal ends with an incomplete escape or has no closing quote.
    text.len()
}

/// Returns whether a token is a name.
pub(super) fn is_name(token: &str) -> bool {
    token.as_bytes().first().is_some_and(|byte| is_word(*byte) && !byte.is_ascii_digit())
        && !token.ends_with(['"', '\''])
}

/// Returns the text of a string literal without prefix and quotes.
pub(super) fn text_of(token: &str) -> Option<&str> {
    let quoted = token.trim_start_matches(['r', 'R', 'b', 'B', 'u', 'U', 'f', 'F']);
    let quote = quoted.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    quoted.strip_prefix(quote)?.strip_suffix(quote)
}

/// Maximum number of tokens between two brackets.
const MAX_SPAN: usize = 4_000;

/// Returns the index of the bracket that closes the one at `open`, if it is within [`MAX_SPAN`]
/// tokens.
pub(super) fn closing(tokens: &[&str], open: usize) -> Option<usize> {
    let end = tokens.len().min(open.saturating_add(MAX_SPAN));
    crate::infer::lexer::closing(&tokens[..end], open)
}

/// Splits tokens at the commas outside of brackets.
pub(super) fn items<'t, 'a>(tokens: &'t [&'a str]) -> Vec<&'t [&'a str]> {
    let (mut all, mut from, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                all.push(&tokens[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(&tokens[from..]);
    all.retain(|item| !item.is_empty());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_by_brackets_and_backslashes() {
        let read = lines(
            "@triton.jit  # why\ndef k(\n    a, b=1.5e-3,\n):\n\tx = a \\\n + b'\\'#'\n\n\"\"\"\nx\n\"\"\"\n",
        );
        let tokens =
            read.iter().map(|line| (line.indent, line.tokens.join(" "))).collect::<Vec<_>>();
        assert_eq!(
            tokens,
            [
                (0, "@ triton . jit".to_owned()),
                (0, "def k ( a , b = 1.5e-3 , ) :".to_owned()),
                (8, "x = a + b'\\'#'".to_owned()),
                (0, "\"\"\"\nx\n\"\"\"".to_owned()),
            ]
        );
    }

    #[test]
    fn what_never_ends_ends() {
        for source in
            ["'", "\"\"\"", "\\", "é", "1e", "f'\\", "(((", ")))", "a\\\n", "0x", "\u{feff}x"]
        {
            let _ = lines(source);
        }
        let many = "(".repeat(500_000);
        assert!(lines(&many)[0].tokens.len() <= MAX_TOKENS);
    }
}
