//! The parser's position in the token stream.

use super::lex::{Kind, Lexer, Token};
use super::parse::MAX_DEPTH;
use crate::ptx::LoadError;

/// Maximum length of the text that an error quotes, bytes.
const QUOTE: usize = 160;

pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    /// The token at the parser's position.
    pub(super) now: Token<'a>,
    /// The token after `now`.
    pub(super) then: Token<'a>,
    depth: u32,
    /// Whether an address may contain coordinates of a texture or a surface.
    pub(super) samples: bool,
}

pub(super) type Result<T> = std::result::Result<T, LoadError>;

/// Returns `text` on one line, truncated to a limited length.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().take(QUOTE));
        if out.len() > QUOTE {
            out.truncate(
                out.char_indices().map(|(i, _)| i).take_while(|i| *i <= QUOTE).last().unwrap_or(0),
            );
            out.push('…');
            break;
        }
    }
    out
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let now = lexer.token();
        let then = lexer.token();
        Self { lexer, now, then, depth: 0, samples: false }
    }

    pub(super) fn next(&mut self) -> Token<'a> {
        let token = self.now;
        self.now = self.then;
        self.then = self.lexer.token();
        token
    }

    pub(super) fn at_end(&self) -> bool {
        self.now.kind == Kind::End
    }

    /// Returns the text from byte `from` to the next token.
    pub(super) fn since(&self, from: usize) -> &'a str {
        self.lexer.text().get(from..self.now.at).unwrap_or("")
    }

    pub(super) fn error<T>(&self, reason: impl Into<String>) -> Result<T> {
        let text = self.lexer.text();
        let begin = text[..self.now.at].rfind('\n').map_or(0, |n| n + 1);
        let end = text[self.now.at..].find('\n').map_or(text.len(), |n| self.now.at + n);
        Err(LoadError::invalid(self.now.line, quote(&text[begin..end]), reason.into()))
    }

    /// Returns an error like [`Self::error`], for PTX that the emulator does not support.
    pub(super) fn lacks<T>(&self, reason: impl Into<String>) -> Result<T> {
        self.error(reason).map_err(|error| LoadError { gap: true, ..error })
    }

    pub(super) fn is(&self, c: u8) -> bool {
        self.now.kind == Kind::Punct(c)
    }

    /// Returns whether the next tokens are `.word`.
    pub(super) fn is_dot(&self, word: &str) -> bool {
        self.is(b'.') && self.then.text == word
    }

    pub(super) fn eat(&mut self, c: u8) -> bool {
        let yes = self.is(c);
        if yes {
            self.next();
        }
        yes
    }

    pub(super) fn expect(&mut self, c: u8) -> Result<()> {
        if self.eat(c) {
            return Ok(());
        }
        let found = if self.at_end() { "the end" } else { self.now.text };
        self.error(format!("expected `{}`, found `{}`", c as char, quote(found)))
    }

    pub(super) fn word(&mut self) -> Result<&'a str> {
        if self.now.kind == Kind::Word {
            return Ok(self.next().text);
        }
        let found = if self.at_end() { "the end" } else { self.now.text };
        self.error(format!("expected a name, found `{}`", quote(found)))
    }

    /// Parses a dotted name, such as `.shared::cluster`.
    pub(super) fn dotted(&mut self) -> Result<&'a str> {
        self.expect(b'.')?;
        let from = self.now.at;
        let mut to = from + self.word()?.len();
        while self.is(b':') && self.then.kind == Kind::Punct(b':') {
            self.next();
            self.next();
            let at = self.now.at;
            to = at + self.word()?.len();
        }
        Ok(self.lexer.text().get(from..to).unwrap_or(""))
    }

    pub(super) fn u32(&mut self) -> Result<u32> {
        match super::operand::integer(self.now.text).and_then(|v| u32::try_from(v).ok()) {
            Some(v) if self.now.kind == Kind::Word => {
                self.next();
                Ok(v)
            }
            _ => self.error("expected an unsigned 32-bit number"),
        }
    }

    /// Skips all tokens up to and including the next `c`.
    pub(super) fn skip_past(&mut self, c: u8) -> Result<()> {
        while !self.eat(c) {
            if self.at_end() {
                return self.error(format!("expected `{}` before the end", c as char));
            }
            self.next();
        }
        Ok(())
    }

    /// Runs `f` one nesting level deeper. Returns an error beyond the maximum depth.
    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return self.lacks(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }
}
