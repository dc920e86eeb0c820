//! Ranges such as `2^10..2^24 by x4`, in exact decimal arithmetic.

use super::AxisValue;
use crate::error::quoted;

/// Maximum length of a range, bytes.
const MAX_LENGTH: usize = 128;

/// Maximum number of digits after a decimal point.
const MAX_DECIMALS: u32 = 12;

/// Returns the values of a string: at most `limit` elements of a range, the value of a power, or
/// the string itself.
pub(super) fn expand(text: &str, limit: usize) -> Result<Vec<AxisValue>, String> {
    let trimmed = text.trim();
    let numeric = trimmed.bytes().next().is_some_and(|b| b.is_ascii_digit() || b"+-".contains(&b));
    let values = match trimmed.split_once("..") {
        Some((first, rest)) if numeric => range(trimmed, first, rest, limit)?,
        None if numeric && trimmed.contains('^') => vec![number(trimmed)?.value(0)?],
        _ => vec![AxisValue::Text(text.to_owned())],
    };
    if values.len() > limit { Err(too_many(limit)) } else { Ok(values) }
}

pub(super) fn too_many(limit: usize) -> String {
    format!(
        "the sweep is larger than this server accepts: at most {limit} more values are \
             possible here"
    )
}

fn range(text: &str, first: &str, rest: &str, limit: usize) -> Result<Vec<AxisValue>, String> {
    if text.len() > MAX_LENGTH {
        return Err(format!(
            "a range may have at most {MAX_LENGTH} bytes; this one has {}",
            text.len()
        ));
    }
    let (last, step) = match rest.split_once("by") {
        Some((last, step)) => (last, step.trim()),
        None => (rest, "1"),
    };
    let (first, last) = (number(first)?, number(last)?);
    let factor = step.strip_prefix(['x', '*']);
    let step = number(factor.unwrap_or(step))?;
    let decimals = first.decimals.max(last.decimals).max(step.decimals);
    let (start, end) = (first.scaled(decimals)?, last.scaled(decimals)?);
    if start > end {
        return Err(format!("`{}` ends below its start; swap the ends", quoted(text)));
    }
    let step = match factor {
        Some(_) if step.decimals > 0 || step.digits < 2 => {
            return Err("the factor after `by x` must be a whole number of at least 2".to_owned());
        }
        Some(_) if start <= 0 => {
            return Err("a range that multiplies must start above 0".to_owned());
        }
        Some(_) => step.digits,
        None => step.scaled(decimals)?,
    };
    if step <= 0 {
        return Err("the step after `by` must be above 0".to_owned());
    }
    let mut values = Vec::new();
    let mut at = Some(start);
    while let Some(digits) = at.filter(|digits| *digits <= end) {
        if values.len() == limit {
            return Err(too_many(limit));
        }
        values.push(Decimal { digits, decimals }.value(decimals)?);
        at = if factor.is_some() { digits.checked_mul(step) } else { digits.checked_add(step) };
    }
    Ok(values)
}

/// The number `digits` · 10^−`decimals`.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    digits: i128,
    decimals: u32,
}

impl Decimal {
    fn scaled(self, decimals: u32) -> Result<i128, String> {
        let factor = 10_i128.checked_pow(decimals.saturating_sub(self.decimals));
        factor.and_then(|factor| self.digits.checked_mul(factor)).ok_or_else(too_large)
    }

    /// Converts to an axis value: an integer if no number of the range has decimals.
    fn value(self, decimals: u32) -> Result<AxisValue, String> {
        if decimals == 0 {
            return i64::try_from(self.digits).map(AxisValue::Int).map_err(|_| too_large());
        }
        // Parsing text gives the double nearest to the decimal number.
        let text = format!("{}e-{}", self.digits, self.decimals);
        text.parse().map(AxisValue::Float).map_err(|_| too_large())
    }
}

fn too_large() -> String {
    "the number does not fit in 64 bits".to_owned()
}

fn number(text: &str) -> Result<Decimal, String> {
    let text = text.trim();
    let wrong = || {
        format!("`{}` is not a number; expected a number such as 64, 0.25 or 2^10", quoted(text))
    };
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let whole = |text: &str| -> Result<i128, String> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        // Numbers beyond 64 bits are rejected.
        let value = text.parse::<i128>().map_err(|_| too_large())?;
        if value > i128::from(u64::MAX) { Err(too_large()) } else { Ok(value) }
    };
    let value = if let Some((base, exponent)) = unsigned.split_once('^') {
        let exponent = u32::try_from(whole(exponent.trim())?).map_err(|_| too_large())?;
        let power = whole(base.trim())?.checked_pow(exponent).ok_or_else(too_large)?;
        Decimal { digits: power, decimals: 0 }
    } else if let Some((before, after)) = unsigned.split_once('.') {
        let decimals = after.len() as u32;
        if after.len() > MAX_DECIMALS as usize {
            return Err(format!("a number has at most {MAX_DECIMALS} digits after its point"));
        }
        let digits = whole(before)?.checked_mul(10_i128.pow(decimals));
        let digits = digits.and_then(|digits| digits.checked_add(whole(after).ok()?));
        Decimal { digits: digits.ok_or_else(wrong)?, decimals }
    } else {
        Decimal { digits: whole(unsigned)?, decimals: 0 }
    };
    Ok(Decimal { digits: if negative { -value.digits } else { value.digits }, ..value })
}
