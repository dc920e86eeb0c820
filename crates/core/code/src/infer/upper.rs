//! Upper bounds of integer expressions. The main type is [`Reader`].

use std::ops::Range;

use crate::infer::body::{Body, Known, MAX_DEPTH, MAX_STEPS, Upper};
use crate::infer::lexer::{closing, integer, is_name};

/// Evaluator of an expression.
pub(crate) struct Reader<'r, 'a> {
    body: &'r Body<'a>,
    known: &'r Known<'r>,
    at: usize,
    end: usize,
    depth: usize,
    steps: usize,
}

impl<'r, 'a> Reader<'r, 'a> {
    pub(crate) fn new(body: &'r Body<'a>, known: &'r Known<'r>, range: Range<usize>) -> Self {
        Self { body, known, at: range.start, end: range.end, depth: 0, steps: 0 }
    }

    fn peek(&self) -> &str {
        if self.at < self.end { self.body.tokens[self.at] } else { "" }
    }

    pub(crate) fn conditional(&mut self) -> Option<Upper> {
        let condition = self.at..self.end;
        let mut depth = 0_i32;
        for at in condition {
            match self.body.tokens[at] {
                "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                "?" if depth == 0 => {
                    self.at = at + 1;
                    let one = self.sum()?;
                    self.at += 1;
                    let other = self.sum()?;
                    return Some(Upper { value: one.value.max(other.value), exact: false });
                }
                _ => {}
            }
        }
        self.sum()
    }

    fn sum(&mut self) -> Option<Upper> {
        let mut left = self.product()?;
        loop {
            let operator = self.peek();
            let value: fn(u64, Upper) -> Option<u64> = match operator {
                "+" => |left, right| left.checked_add(right.value),
                "-" => |left, right| {
                    Some(if right.exact { left.saturating_sub(right.value) } else { left })
                },
                "<<" => |left, right| left.checked_shl(right.value.try_into().ok()?),
                // The unshifted value is also an upper bound. Only an exact shift may reduce it.
                ">>" => {
                    |left, right| Some(if right.exact { left >> right.value.min(63) } else { left })
                }
                "&" => |left, right| Some(left.min(right.value)),
                "|" | "^" => |left, right| (left | right.value).checked_next_power_of_two(),
                _ => return Some(left),
            };
            self.at += 1;
            let right = self.product()?;
            left = Upper { value: value(left.value, right)?, exact: left.exact && right.exact };
        }
    }

    fn product(&mut self) -> Option<Upper> {
        let mut left = self.primary()?;
        loop {
            let operator = self.peek().to_owned();
            if !matches!(operator.as_str(), "*" | "/" | "%") {
                return Some(left);
            }
            self.at += 1;
            let right = self.primary()?;
            let value = match operator.as_str() {
                "*" => left.value.checked_mul(right.value)?,
                "/" if right.exact => left.value / right.value.max(1),
                "/" => left.value,
                _ => left.value.min(right.value.saturating_sub(1)),
            };
            left = Upper { value, exact: left.exact && right.exact && operator != "%" };
        }
    }

    fn primary(&mut self) -> Option<Upper> {
        self.steps += 1;
        if self.steps > MAX_STEPS || self.at >= self.end {
            return None;
        }
        let token = self.body.tokens[self.at];
        match token {
            "(" => {
                let close = closing(self.body.tokens, self.at)?;
                let inner = &self.body.tokens[self.at + 1..close];
                let is_type = |t: &&str| {
                    matches!(
                        *t,
                        "int"
                            | "unsigned"
                            | "long"
                            | "size_t"
                            | "uint32_t"
                            | "int64_t"
                            | "uint64_t"
                            | "int32_t"
                    )
                };
                if !inner.is_empty() && inner.iter().all(is_type) {
                    self.at = close + 1;
                    return self.primary();
                }
                let value = self.within(self.at + 1..close);
                self.at = close + 1;
                value
            }
            "-" | "!" | "~" => {
                self.at += 1;
                self.primary()?;
                Some(Upper { value: 0, exact: false })
            }
            "+" | "&" => {
                self.at += 1;
                self.primary()
            }
            "min" | "max" | "umin" | "umax" => self.least_or_most(token.ends_with("min")),
            _ if integer(token).is_some() => {
                self.at += 1;
                Some(Upper { value: integer(token)?, exact: true })
            }
            _ if is_name(token) => self.named(token),
            _ => None,
        }
    }

    fn least_or_most(&mut self, least: bool) -> Option<Upper> {
        let close = closing(self.body.tokens, self.at + 1)?;
        let mut start = self.at + 2;
        let mut found: Option<Upper> = None;
        while start < close {
            let end = self.body.end(start).min(close);
            if let Some(one) = self.within(start..end) {
                let value = found.map_or(one.value, |other| {
                    if least { other.value.min(one.value) } else { other.value.max(one.value) }
                });
                found = Some(Upper { value, exact: false });
            } else if !least {
                return None;
            }
            start = end + 1;
        }
        self.at = close + 1;
        found
    }

    fn within(&mut self, range: Range<usize>) -> Option<Upper> {
        if self.depth > MAX_DEPTH {
            return None;
        }
        let mut inner = Reader {
            depth: self.depth + 1,
            steps: self.steps,
            ..Reader::new(self.body, self.known, range)
        };
        let value = inner.conditional();
        self.steps = inner.steps;
        value
    }

    fn named(&mut self, name: &str) -> Option<Upper> {
        self.at += 1;
        if self.peek() == "[" {
            let close = closing(self.body.tokens, self.at)?;
            self.at = close + 1;
            let root = self.body.root(name);
            let value = *self.known.contents.get(root)?;
            return Some(Upper { value, exact: false });
        }
        if self.peek() == "(" {
            // The result of a function is unknown. A cast in the form of a call is the exception:
            // its value is that of its argument.
            let close = closing(self.body.tokens, self.at)?;
            let cast = matches!(name, "int" | "unsigned" | "size_t" | "long" | "__ldg");
            let inner = self.at + 1..close;
            self.at = close + 1;
            return if cast { self.within(inner) } else { None };
        }
        if let Some((kind, axis)) = name.split_once('.') {
            let axis = ["x", "y", "z"].iter().position(|known| *known == axis)?;
            return Some(match kind {
                "threadIdx" => Upper { value: self.known.block[axis] - 1, exact: false },
                "blockIdx" => Upper { value: self.known.grid[axis] - 1, exact: false },
                "blockDim" => Upper { value: self.known.block[axis], exact: true },
                _ => Upper { value: self.known.grid[axis], exact: true },
            });
        }
        if name == "warpSize" {
            return Some(Upper { value: 32, exact: true });
        }
        if let Some(bounds) = self.body.bounds.get(name)
            && !self.known.integers.contains_key(name)
        {
            let mut most = None;
            for (range, inclusive) in bounds.clone() {
                if let Some(bound) = self.within(range) {
                    let value = bound.value.saturating_sub(u64::from(!inclusive));
                    most = Some(most.map_or(value, |most: u64| most.max(value)));
                }
            }
            if let Some(value) = most {
                return Some(Upper { value, exact: false });
            }
        }
        if let Some(value) = self.known.integers.get(name) {
            return Some(Upper { value: *value, exact: true });
        }
        let ranges = self.body.definitions.get(name)?.clone();
        let own = |range: &Range<usize>| self.body.tokens[range.clone()].contains(&name);
        let mut most: Option<Upper> = None;
        for range in ranges.iter().filter(|range| !own(range)).cloned().collect::<Vec<_>>() {
            let one = self.within(range)?;
            let exact = one.exact && ranges.len() == 1;
            let value = most.map_or(one.value, |most| most.value.max(one.value));
            most = Some(Upper { value, exact });
        }
        most
    }
}
