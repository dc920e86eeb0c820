//! Tokens of CUDA C++, detailed enough to skip comments, literals and preprocessor lines. The main
//! type is [`Token`].

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Identifier or keyword.
    Word,
    Number,
    /// String or character literal.
    Literal,
    /// One character of punctuation, or `::`.
    Punct,
    /// A preprocessor line, continuation lines included.
    Directive,
}

/// One token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: TokenKind,
    /// Text of the token in the source.
    pub text: &'a str,
    /// Offset of the token's first byte in the source.
    pub at: usize,
}

/// Splits `source` into tokens. Unknown characters are punctuation, so there are no errors.
pub fn tokenize(source: &str) -> Vec<Token<'_>> {
    tokens(source).collect()
}

/// Returns the tokens of [`tokenize`] one by one, for callers that need only the first ones.
pub fn tokens(source: &str) -> impl Iterator<Item = Token<'_>> {
    // Editors on Windows begin a file with a byte order mark.
    let at = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lexer = Lexer { source, bytes: source.as_bytes(), at, line_start: true };
    std::iter::from_fn(move || lexer.next_token())
}

struct Lexer<'a> {
    source: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Whether the line contains only white space so far.
    line_start: bool,
}

impl<'a> Lexer<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        let start = self.at;
        let byte = *self.bytes.get(start)?;
        let directive = byte == b'#' && self.line_start;
        self.line_start = false;
        let kind = if directive {
            self.directive();
            TokenKind::Directive
        } else if is_word_start(byte) {
            self.take_while(is_word);
            match self.peek(0) {
                Some(b'"') if is_raw_prefix(self.text(start)) => {
                    self.raw_string();
                    TokenKind::Literal
                }
                Some(quote @ (b'"' | b'\'')) if is_literal_prefix(self.text(start)) => {
                    self.quoted(quote);
                    TokenKind::Literal
                }
                _ => TokenKind::Word,
            }
        } else if byte.is_ascii_digit() {
            self.take_while(|b| is_word(b) || b == b'.' || b == b'\'');
            TokenKind::Number
        } else if byte == b'"' || byte == b'\'' {
            self.quoted(byte);
            TokenKind::Literal
        } else {
            self.at += if self.bytes[start..].starts_with(b"::") { 2 } else { 1 };
            while !self.source.is_char_boundary(self.at) {
                self.at += 1;
            }
            TokenKind::Punct
        };
        Some(Token { kind, text: self.text(start), at: start })
    }

    fn text(&self, start: usize) -> &'a str {
        &self.source[start..self.at]
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn take_while(&mut self, keep: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&keep) {
            self.at += 1;
        }
    }

    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek(0) {
            match (byte, self.peek(1)) {
                (b'\n', _) => {
                    self.line_start = true;
                    self.at += 1;
                }
                (b'\\', Some(b'\n')) => self.at += 2,
                (b'/', Some(b'/')) => self.line_end(),
                (b'/', Some(b'*')) => self.block_comment(),
                _ if byte.is_ascii_whitespace() => self.at += 1,
                _ => return,
            }
        }
    }

    /// Moves to the end of the logical line. A backslash continues the line.
    fn line_end(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' => return,
                b'\\' if self.peek(1) == Some(b'\r') && self.peek(2) == Some(b'\n') => self.at += 3,
                b'\\' if self.peek(1).is_some() => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.bytes.len());
    }

    fn block_comment(&mut self) {
        let rest = &self.source[self.at + 2..];
        self.at = match rest.find("*/") {
            Some(end) => self.at + 2 + end + 2,
            None => self.bytes.len(),
        };
    }

    /// Reads a directive. It ends with its line, but comments in it may span lines.
    fn directive(&mut self) {
        while let Some(byte) = self.peek(0) {
            match (byte, self.peek(1)) {
                (b'\n', _) => return,
                (b'\\', Some(b'\r')) if self.peek(2) == Some(b'\n') => self.at += 3,
                (b'\\', Some(b'\n')) => self.at += 2,
                (b'/', Some(b'*')) => self.block_comment(),
                (b'/', Some(b'/')) => return self.line_end(),
                _ => self.at += 1,
            }
        }
    }

    /// Reads a literal, which ends at its quote or, if that is missing, at the end of the line.
    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' if self.peek(1).is_some() => self.at += 2,
                b'\n' => break,
                _ if byte == quote => {
                    self.at += 1;
                    break;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.bytes.len());
        while !self.source.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    /// Reads `R"delimiter(…)delimiter"`.
    fn raw_string(&mut self) {
        let rest = &self.source[self.at + 1..];
        let end = rest.find('(').filter(|&open| open <= 16).and_then(|open| {
            let closing = format!("){}\"", &rest[..open]);
            rest[open..].find(&closing).map(|close| open + close + closing.len())
        });
        self.at = match end {
            Some(end) => self.at + 1 + end,
            None => self.bytes.len(),
        };
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$'
}

fn is_word(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit()
}

fn is_raw_prefix(word: &str) -> bool {
    matches!(word, "R" | "LR" | "uR" | "UR" | "u8R")
}

fn is_literal_prefix(word: &str) -> bool {
    matches!(word, "L" | "u" | "U" | "u8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokenize(source).into_iter().map(|t| t.text).collect()
    }

    #[test]
    fn comments_vanish() {
        assert_eq!(texts("a // b\nc /* d\n e */ f"), ["a", "c", "f"]);
        assert_eq!(texts("a // b \\\n still b\nc"), ["a", "c"]);
        assert_eq!(texts("a /* open"), ["a"]);
    }

    #[test]
    fn literals_are_one_token() {
        assert_eq!(texts(r#"x("a // \" b", 'c', '\'')"#).len(), 8);
        assert_eq!(texts("R\"q(__global__ )\" )q\" z"), ["R\"q(__global__ )\" )q\"", "z"]);
    }

    #[test]
    fn a_directive_is_one_token_with_its_continuations() {
        let tokens = tokenize("  #define K \\\n  __global__ void\nint a; # b");
        assert_eq!(tokens[0].kind, TokenKind::Directive);
        assert_eq!(tokens[1].text, "int");
        assert_eq!(tokens[4].text, "#");
    }

    #[test]
    fn scope_is_one_token_and_other_scripts_do_not_break_it() {
        assert_eq!(texts("a::b é \"ü"), ["a", "::", "b", "é", "\"ü"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_tokenized(source in "\\PC*") {
            tokenize(&source);
        }

        #[test]
        fn any_mix_of_quotes_and_comments_is_tokenized(source in "[\\\\\"'/*#R()\\n aé]{0,60}") {
            tokenize(&source);
        }
    }
}
