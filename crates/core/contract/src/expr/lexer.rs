//! Splits an expression into tokens.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Integer(i128),
    Name(&'a str),
    Symbol(char),
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Integer(value) => write!(f, "`{value}`"),
            Token::Name(name) => write!(f, "`{name}`"),
            Token::Symbol(symbol) => write!(f, "`{symbol}`"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// A lexer with one token of look-ahead.
pub(super) struct Lexer<'a> {
    text: &'a str,
    position: usize,
    next: (usize, Token<'a>),
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, (usize, String)> {
        let mut lexer = Self { text, position: 0, next: (0, Token::End) };
        lexer.next = lexer.read()?;
        Ok(lexer)
    }

    /// Returns the next token and its offset without consuming it.
    pub(super) fn peek(&self) -> (usize, Token<'a>) {
        self.next
    }

    /// Consumes and returns the next token.
    pub(super) fn advance(&mut self) -> Result<(usize, Token<'a>), (usize, String)> {
        let following = self.read()?;
        Ok(std::mem::replace(&mut self.next, following))
    }

    fn read(&mut self) -> Result<(usize, Token<'a>), (usize, String)> {
        let rest = &self.text[self.position..];
        let start = self.position + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        let Some(first) = rest.chars().next() else {
            self.position = start;
            return Ok((start, Token::End));
        };
        let run =
            |accept: fn(char) -> bool| &rest[..rest.find(|c| !accept(c)).unwrap_or(rest.len())];
        let (token, length) = if first.is_ascii_digit() {
            let digits = run(|c| c.is_ascii_alphanumeric() || c == '_');
            let value = digits.parse().map_err(|_| {
                (start, format!("`{digits}` is not a decimal integer of at most 127 bits"))
            })?;
            (Token::Integer(value), digits.len())
        } else if first.is_ascii_alphabetic() || first == '_' {
            let name = run(|c| c.is_ascii_alphanumeric() || c == '_');
            (Token::Name(name), name.len())
        } else if "+-*/%(),.[]".contains(first) {
            (Token::Symbol(first), 1)
        } else {
            return Err((start, format!("`{first}` has no meaning in an expression")));
        };
        self.position = start + length;
        Ok((start, token))
    }
}
