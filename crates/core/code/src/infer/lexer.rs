//! Tokenizer of CUDA C++ for guesses. It drops directives, replaces string literals with `""`, and
//! returns an operator of several characters as one token. The main function is [`read`].

use std::collections::BTreeMap;

use crate::source::{Token, TokenKind, tokens};

use crate::infer::macros::Macros;

/// Maximum number of tokens that are read.
pub(crate) const MAX_TOKENS: usize = 200_000;

/// Operators of more than one character, longest first.
const LONG: [&str; 22] = [
    "<<<", ">>>", "<<=", ">>=", "->", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
    "<<", "==", "!=", "<=", ">=", "&&", "||",
];

/// A source reduced to its code.
#[derive(Debug, Default)]
pub(crate) struct Source<'a> {
    /// Tokens of the source; a string literal is `""`.
    pub tokens: Vec<&'a str>,
    /// Macros and constants with an integer value.
    pub constants: BTreeMap<&'a str, u64>,
}

/// Reads a source and expands the macros that it defines.
pub(crate) fn read(source: &str) -> Source<'_> {
    let mut read = Source::default();
    let mut macros = Macros::default();
    let mut tokens = Vec::new();
    lex(source, &mut tokens, &mut |directive| {
        if !define(directive, &mut read.constants) {
            macros.define(directive);
        }
    });
    read.tokens = macros.written_out(tokens);
    constants(&read.tokens, &mut read.constants);
    read
}

/// Splits text into tokens for guesses. Directives are passed to `directive`.
pub(crate) fn lex<'a>(
    source: &'a str,
    into: &mut Vec<&'a str>,
    directive: &mut dyn FnMut(&'a str),
) {
    let mut given = tokens(source).peekable();
    while into.len() < MAX_TOKENS
        && let Some(token) = given.next()
    {
        let end = match token.kind {
            TokenKind::Directive => {
                directive(token.text);
                continue;
            }
            TokenKind::Literal => {
                into.push("\"\"");
                continue;
            }
            TokenKind::Number => token.at + token.text.len(),
            TokenKind::Word => end_of_word(source, &token),
            TokenKind::Punct => {
                let rest = &source[token.at..];
                let long = LONG.iter().find(|operator| rest.starts_with(**operator));
                token.at + long.map_or(token.text.len(), |operator| operator.len())
            }
        };
        while given.next_if(|next| next.at < end).is_some() {}
        into.push(&source[token.at..end]);
    }
}

/// Returns the end of a word; `blockIdx.x` is one word.
fn end_of_word(source: &str, token: &Token<'_>) -> usize {
    let end = token.at + token.text.len();
    let builtin = matches!(token.text, "threadIdx" | "blockIdx" | "blockDim" | "gridDim");
    let axis = matches!(source.as_bytes().get(end..end + 2), Some([b'.', b'x' | b'y' | b'z']));
    if builtin && axis { end + 2 } else { end }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

pub(crate) fn is_name(token: &str) -> bool {
    token.as_bytes().first().is_some_and(|byte| is_word(*byte) && !byte.is_ascii_digit())
}

/// Returns the value of an integer literal.
pub(crate) fn integer(token: &str) -> Option<u64> {
    let digits = token.trim_end_matches(['u', 'U', 'l', 'L']).replace('\'', "");
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// Records the macro of `#define NAME 16`, with or without parentheses. Returns whether the
/// directive has this form.
fn define<'a>(directive: &'a str, constants: &mut BTreeMap<&'a str, u64>) -> bool {
    let Some(rest) = directive[1..].trim_start().strip_prefix("define") else { return false };
    let mut words = rest.split_whitespace();
    if let (Some(name), Some(value)) = (words.next(), words.next())
        && is_name(name)
        && name.bytes().all(is_word)
        && words.next().is_none_or(|next| next.starts_with("//") || next.starts_with("/*"))
        && let Some(value) = integer(value.trim_matches(['(', ')']))
    {
        constants.insert(name, value);
        return true;
    }
    false
}

/// Collects `const int NAME = 16;` and `constexpr` definitions.
fn constants<'a>(tokens: &[&'a str], constants: &mut BTreeMap<&'a str, u64>) {
    for (at, window) in tokens.windows(4).enumerate() {
        let [name, "=", value, ";"] = *window else { continue };
        let head = &tokens[at.saturating_sub(5)..at];
        if head.iter().any(|token| matches!(*token, "const" | "constexpr"))
            && is_name(name)
            && let Some(value) = integer(value)
        {
            constants.insert(name, value);
        }
    }
}

/// Returns the index of the bracket that closes the one at `open`.
pub(crate) fn closing(tokens: &[&str], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_directives_are_no_code() {
        let read =
            read("#define T 16 // x\n/* main( */ int a = \"main(\"; a<<=2; // b\nconst int W = 8;");
        let tokens = ["int", "a", "=", "\"\"", ";", "a", "<<=", "2", ";"];
        assert_eq!(read.tokens[..9], tokens);
        assert_eq!(read.constants.into_iter().collect::<Vec<_>>(), [("T", 16), ("W", 8)]);
    }

    #[test]
    fn raw_texts_and_separated_digits_are_read_as_the_compiler_reads_them() {
        let read =
            read("const int N = 1'024; auto s = R\"x(\" int main() {)x\"; // a \\\n b\nint z;");
        let tokens = [
            "const", "int", "N", "=", "1'024", ";", "auto", "s", "=", "\"\"", ";", "int", "z", ";",
        ];
        assert_eq!(read.tokens, tokens);
        assert_eq!(read.constants.into_iter().collect::<Vec<_>>(), [("N", 1024)]);
    }

    #[test]
    fn what_never_ends_ends() {
        for source in ["/*", "\"", "#", "'\\", "é", "a\\", "#define"] {
            let _ = read(source);
        }
    }
}
