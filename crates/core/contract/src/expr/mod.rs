//! Arithmetic in launch dimensions, e.g. `ceil_div(n, 256)`. Evaluation always ends with a value or
//! an error, after a number of steps bounded by the expression's length.
//!
//! ```text
//! sum     := product (("+" | "-") product)*
//! product := unary (("*" | "/" | "%") unary)*
//! unary   := "-" unary | primary
//! primary := integer | "(" sum ")" | function "(" sum "," sum ")"
//!          | name | name ".shape[" integer "]" | name ".size" | name ".numel" | name ".ndim"
//! function := "ceil_div" | "cdiv" | "min" | "max"
//! ```
//!
//! Values are 128-bit signed integers; overflow is an error. `/` rounds down (towards negative
//! infinity, as Python's `//`), `%` has the sign of the divisor, and dividing by zero is an error.

use thiserror::Error;

mod lexer;

use lexer::{Lexer, Token};

/// Maximum length of an expression, bytes.
pub const MAX_LENGTH: usize = 512;

/// Maximum nesting depth of parentheses, functions and signs.
pub const MAX_DEPTH: usize = 64;

/// Reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} (at character {} of `{text}`)", .position + 1)]
pub struct ExprError {
    /// Offset in the expression, bytes from 0.
    pub position: usize,
    /// Description of the problem.
    pub message: String,
    /// The expression, shortened if it is very long.
    pub text: String,
}

/// A quantity that an expression refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable<'a> {
    /// The value of a scalar argument.
    Scalar(&'a str),
    /// An extent of a tensor argument; dimensions count from 0.
    Shape(&'a str, usize),
    /// Number of elements of a tensor argument.
    Size(&'a str),
    /// Number of dimensions of a tensor argument.
    Rank(&'a str),
}

/// Evaluates an expression. `lookup` returns a variable's value, or the reason why it has none.
pub fn evaluate<F>(text: &str, lookup: F) -> Result<i128, ExprError>
where
    F: Fn(Variable<'_>) -> Result<i128, String>,
{
    if text.len() > MAX_LENGTH {
        let message = format!(
            "an expression may have at most {MAX_LENGTH} bytes; this one has {}",
            text.len()
        );
        return Err(ExprError { position: 0, message, text: text.chars().take(40).collect() });
    }
    let located = |(position, message)| ExprError { position, message, text: text.to_owned() };
    let mut parser = Parser { lexer: Lexer::new(text).map_err(located)?, depth: 0, lookup };
    let value = parser.sum().map_err(located)?;
    match parser.lexer.peek() {
        (_, Token::End) => Ok(value),
        (position, token) => Err(located((position, format!("unexpected {token}")))),
    }
}

/// Result of a parsing step; an error has a position and a message.
type Step<T> = Result<T, (usize, String)>;

struct Parser<'a, F> {
    lexer: Lexer<'a>,
    depth: usize,
    lookup: F,
}

impl<'a, F> Parser<'a, F>
where
    F: Fn(Variable<'_>) -> Result<i128, String>,
{
    fn sum(&mut self) -> Step<i128> {
        let mut left = self.product()?;
        loop {
            let (position, token) = self.lexer.peek();
            let operation = match token {
                Token::Symbol('+') => i128::checked_add,
                Token::Symbol('-') => i128::checked_sub,
                _ => return Ok(left),
            };
            self.lexer.advance()?;
            let right = self.product()?;
            left = operation(left, right).ok_or_else(|| overflow(position))?;
        }
    }

    fn product(&mut self) -> Step<i128> {
        let mut left = self.unary()?;
        loop {
            let (position, token) = self.lexer.peek();
            let Token::Symbol(symbol @ ('*' | '/' | '%')) = token else {
                return Ok(left);
            };
            self.lexer.advance()?;
            let right = self.unary()?;
            left = match symbol {
                '*' => left.checked_mul(right).ok_or_else(|| overflow(position))?,
                '/' => floor_div(left, right, position)?,
                _ => {
                    let whole = floor_div(left, right, position)?;
                    whole
                        .checked_mul(right)
                        .and_then(|product| left.checked_sub(product))
                        .ok_or_else(|| overflow(position))?
                }
            };
        }
    }

    fn unary(&mut self) -> Step<i128> {
        let (position, token) = self.lexer.peek();
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((position, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let value = if token == Token::Symbol('-') {
            self.lexer.advance()?;
            self.unary()?.checked_neg().ok_or_else(|| overflow(position))
        } else {
            self.primary()
        };
        self.depth -= 1;
        value
    }

    fn primary(&mut self) -> Step<i128> {
        let (position, token) = self.lexer.advance()?;
        match token {
            Token::Integer(value) => Ok(value),
            Token::Symbol('(') => {
                let value = self.sum()?;
                self.expect(')')?;
                Ok(value)
            }
            Token::Name(name) => match self.lexer.peek().1 {
                Token::Symbol('(') => self.function(name, position),
                Token::Symbol('.') => self.attribute(name, position),
                _ => self.value_of(Variable::Scalar(name), position),
            },
            other => Err((position, format!("expected a number, a name or `(`, found {other}"))),
        }
    }

    fn function(&mut self, name: &str, position: usize) -> Step<i128> {
        if !["ceil_div", "cdiv", "min", "max"].contains(&name) {
            let message = format!(
                "there is no function `{name}`; the functions are ceil_div (or cdiv), min and max"
            );
            return Err((position, message));
        }
        self.expect('(')?;
        let first = self.sum()?;
        self.expect(',')?;
        let second = self.sum()?;
        self.expect(')')?;
        match name {
            "min" => Ok(first.min(second)),
            "max" => Ok(first.max(second)),
            // ⌈a / b⌉ = −⌊−a / b⌋
            _ => {
                let negated = first.checked_neg().ok_or_else(|| overflow(position))?;
                let floor = floor_div(negated, second, position)?;
                floor.checked_neg().ok_or_else(|| overflow(position))
            }
        }
    }

    fn attribute(&mut self, name: &'a str, position: usize) -> Step<i128> {
        self.expect('.')?;
        let (at, token) = self.lexer.advance()?;
        let variable = match token {
            Token::Name("shape") => {
                self.expect('[')?;
                let (at, token) = self.lexer.advance()?;
                let Token::Integer(dimension) = token else {
                    return Err((at, format!("expected a dimension from 0, found {token}")));
                };
                self.expect(']')?;
                Variable::Shape(name, usize::try_from(dimension).unwrap_or(usize::MAX))
            }
            Token::Name("size" | "numel") => Variable::Size(name),
            Token::Name("ndim") => Variable::Rank(name),
            other => {
                let message = format!(
                    "expected `shape[…]`, `size`, `numel` or `ndim` after `{name}.`, found {other}"
                );
                return Err((at, message));
            }
        };
        self.value_of(variable, position)
    }

    fn value_of(&self, variable: Variable<'_>, position: usize) -> Step<i128> {
        (self.lookup)(variable).map_err(|message| (position, message))
    }

    fn expect(&mut self, symbol: char) -> Step<()> {
        match self.lexer.advance()? {
            (_, Token::Symbol(found)) if found == symbol => Ok(()),
            (position, token) => Err((position, format!("expected `{symbol}`, found {token}"))),
        }
    }
}

fn floor_div(left: i128, right: i128, position: usize) -> Step<i128> {
    if right == 0 {
        return Err((position, "division by zero".to_owned()));
    }
    let quotient = left.checked_div(right).ok_or_else(|| overflow(position))?;
    let inexact = left % right != 0;
    Ok(if inexact && (left < 0) != (right < 0) { quotient - 1 } else { quotient })
}

fn overflow(position: usize) -> (usize, String) {
    (position, "the result does not fit in 128 bits".to_owned())
}

#[cfg(test)]
mod tests;
