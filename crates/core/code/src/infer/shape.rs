//! Guesses the rows of tensors from indices such as `row * n + column`.

use crate::infer::body::{Body, Known};
use crate::infer::lexer::{closing, integer};

/// Returns the number of elements of a row, if all uses of `pointer` are indices with that row length.
pub(super) fn row_length(body: &Body<'_>, pointer: &str, known: &Known<'_>) -> Option<u64> {
    let mut found = None;
    for (at, _) in body.tokens.iter().enumerate().filter(|(_, token)| **token == pointer) {
        if body.tokens.get(at + 1) != Some(&"[") {
            return None;
        }
        let close = closing(body.tokens, at + 1)?;
        let index = match &body.tokens[at + 2..close] {
            [name] => match body.definitions.get(name)?.as_slice() {
                [one] => &body.tokens[one.clone()],
                _ => return None,
            },
            index => index,
        };
        let length = multiplier(index, known)?;
        if *found.get_or_insert(length) != length {
            return None;
        }
    }
    found
}

/// Returns the known factor of the only product in a sum, such as the value of `n` in `row * n +
/// column`.
fn multiplier(index: &[&str], known: &Known<'_>) -> Option<u64> {
    let (mut terms, mut from, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, token) in index.iter().enumerate() {
        match *token {
            "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.checked_sub(1)?,
            "+" if depth == 0 => {
                terms.push(&index[from..at]);
                from = at + 1;
            }
            "-" | "?" | "/" | "%" if depth == 0 => return None,
            _ => {}
        }
    }
    terms.push(&index[from..]);
    let mut products = terms.iter().filter(|term| term.contains(&"*"));
    let (product, None) = (products.next()?, products.next()) else { return None };
    if terms.len() < 2 {
        return None;
    }
    let value = |token: &str| integer(token).or_else(|| known.integers.get(token).copied());
    match product {
        [.., "*", last] => value(last),
        [first, "*", ..] => value(first),
        _ => None,
    }
    .filter(|length| *length > 1)
}
