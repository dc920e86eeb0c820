//! Splits PTX text into tokens.

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters, digits, `_`, `$`, `%`: an identifier, a register, a modifier or a number.
    Word,
    /// The text between two double quotes.
    Str,
    /// A single other character.
    Punct(u8),
    /// The end of the text.
    End,
}

/// One token, and its line, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) line: u32,
    /// Byte offset of the token in the text.
    pub(super) at: usize,
}

/// Splits a text into tokens one by one.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
}

fn word_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'%')
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        // A text from a C API may end in zero bytes. Any other zero byte is an invalid character.
        Self { text: text.trim_end_matches('\0'), at: 0, line: 1 }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Skips white space and comments. An unclosed comment extends to the end of the text.
    fn skip(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            match self.peek(0) {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if self.peek(1) == b'/' => {
                    while self.at < bytes.len() && bytes[self.at] != b'\n' {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => {
                    self.at += 2;
                    while self.at < bytes.len() && !bytes[self.at..].starts_with(b"*/") {
                        self.line += u32::from(bytes[self.at] == b'\n');
                        self.at += 1;
                    }
                    self.at = (self.at + 2).min(bytes.len());
                }
                _ => return,
            }
        }
    }

    /// Returns the length of a decimal number with a fraction, which consists of several words. The
    /// exponent is optional. Returns 0 if the text at this position is not such a number.
    fn decimal(&self) -> usize {
        let digits = |mut n: usize| {
            while self.peek(n).is_ascii_digit() {
                n += 1;
            }
            n
        };
        let mut n = digits(0);
        if self.peek(n) == b'.' && self.peek(n + 1).is_ascii_digit() {
            n = digits(n + 1);
            if matches!(self.peek(n), b'e' | b'E') {
                let sign = usize::from(matches!(self.peek(n + 1), b'+' | b'-'));
                if self.peek(n + 1 + sign).is_ascii_digit() {
                    n = digits(n + 1 + sign);
                }
            }
            return n;
        }
        0
    }

    pub(super) fn token(&mut self) -> Token<'a> {
        self.skip();
        let (at, line) = (self.at, self.line);
        let bytes = self.text.as_bytes();
        let Some(&first) = bytes.get(at) else {
            return Token { kind: Kind::End, text: "", line, at };
        };
        let end = |s: &mut Self, kind, from: usize, to: usize, next: usize| {
            s.at = next;
            Token { kind, text: s.text.get(from..to).unwrap_or(""), line, at }
        };
        if word_byte(first) {
            let mut n = if first.is_ascii_digit() { self.decimal() } else { 0 };
            while n == 0 || (word_byte(self.peek(n)) && !self.text[at..at + n].contains('.')) {
                n += 1;
            }
            let word = end(self, Kind::Word, at, at + n, at + n);
            // The only constant that PTX predefines: the number of threads of a warp.
            return if word.text == "WARP_SZ" { Token { text: "32", ..word } } else { word };
        }
        if first == b'"' {
            let body = bytes[at + 1..].iter().position(|b| *b == b'"' || *b == b'\n');
            let close = body.map_or(bytes.len(), |n| at + 1 + n);
            let next = (close + 1).min(bytes.len());
            if bytes.get(close) == Some(&b'\n') {
                self.line += 1;
            }
            return end(self, Kind::Str, at + 1, close, next);
        }
        // A character of several bytes is one token, so that no slice splits it.
        let n = self.text[at..].chars().next().map_or(1, char::len_utf8);
        let kind = Kind::Punct(if n == 1 { first } else { 0 });
        end(self, kind, at, at + n, at + n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<(String, u32)> {
        let mut lexer = Lexer::new(text);
        let mut out = Vec::new();
        loop {
            let t = lexer.token();
            if t.kind == Kind::End {
                return out;
            }
            out.push((t.text.to_string(), t.line));
        }
    }

    #[test]
    fn words_numbers_strings_and_comments() {
        let got = all("ld.v4 %r<9>; // x\n.version 9.5 /* a\nb */ 1.5e-3 \"q;\" 0f3F80 é\0\0");
        let words: Vec<&str> = got.iter().map(|(t, _)| t.as_str()).collect();
        let want = ["ld", ".", "v4", "%r", "<", "9", ">", ";", ".", "version", "9.5", "1.5e-3"];
        assert_eq!(words[..12], want);
        assert_eq!(words[12..], ["q;", "0f3F80", "é"]);
        assert_eq!(got[14].1, 3);
    }
}
