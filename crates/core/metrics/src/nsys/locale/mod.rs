//! Numbers of tables in the formats of different locales. The main type is [`Locale`].
//!
//! The tables are parsed once, with decimal points. A cell with a decimal comma shows that they
//! must be parsed again.

use super::columns::{Column, Quantity};
use super::report::NsysError;
use crate::text::{Cell, Convention, Record, Shown, Value, value};

/// Columns that contain no number.
const TEXTS: [&str; 9] = [
    "name",
    "operation",
    "category",
    "device",
    "gridxyz",
    "blockxyz",
    "kernel name",
    "api name",
    "ctx",
];
/// Columns of times and sizes that are whole in base units. Means and deviations have a fraction.
const WHOLE: [&str; 6] = ["total", "min", "max", "start", "duration", "bytes"];

/// Decimal separator of a text: the assumed one, and those that its cells show.
#[derive(Debug)]
pub(super) struct Locale {
    /// Separator with which cells are parsed: a dot, or a comma.
    pub(super) decimal: Convention,
    shown: Shown,
    /// First cell with a comma that is ambiguous unless another cell shows the separator.
    unsure: Option<NsysError>,
}

impl Default for Locale {
    fn default() -> Self {
        Self::of(Convention::Dot)
    }
}

impl Locale {
    pub(super) fn of(decimal: Convention) -> Self {
        Self { decimal, shown: Shown::default(), unsure: None }
    }

    /// Returns whether a cell shows that the assumed separator is wrong.
    pub(super) fn is_other(&self) -> bool {
        self.decimal == Convention::Dot && self.shown.only_comma()
    }

    /// Looks for decimal separators in a row. Returns whether the row can be parsed with the
    /// assumed separator.
    pub(super) fn see(
        &mut self,
        columns: &[Column],
        record: &Record<'_>,
    ) -> Result<bool, NsysError> {
        for (column, field) in columns.iter().zip(&record.fields) {
            // Large traces have millions of cells without a separator.
            if !field.contains([',', '.']) || TEXTS.contains(&column.name.as_str()) {
                continue;
            }
            let (text, whole) = (field.trim(), is_whole(column));
            let by_four = whole && is_by_four(text);
            if !by_four {
                self.shown.see(Cell { text, whole, line: record.line, column: &column.name });
            }
            let unsure = self.unsure.is_none()
                && !self.shown.any()
                && (by_four
                    || text.contains(',') && value(text, Convention::Unknown) == Value::Ambiguous);
            if unsure {
                self.unsure = Some(NsysError::Ambiguous {
                    line: record.line,
                    column: column.name.clone(),
                    cell: text.chars().take(40).collect(),
                });
            }
        }
        if self.shown.contradicts()
            && let Err(conflict) = self.shown.clone().convention()
        {
            return Err(NsysError::MixedLocales { dot: conflict.dot, comma: conflict.comma });
        }
        Ok(!self.is_other())
    }

    /// Returns an error if a cell is ambiguous, because no cell shows the separator.
    pub(super) fn check(&mut self) -> Result<(), NsysError> {
        match self.unsure.take() {
            Some(unsure) if !self.shown.any() => Err(unsure),
            _ => Ok(()),
        }
    }
}

/// Returns whether the values of a column are whole: counts, and times and sizes in base units.
pub(super) fn is_whole(column: &Column) -> bool {
    let timed = WHOLE.contains(&column.name.as_str());
    match column.unit {
        Some((scale, Quantity::Time)) => timed && scale == 1e-9,
        Some((scale, Quantity::Bytes)) => timed && scale == 1.0,
        Some(_) => false,
        None => {
            const COUNTS: [&str; 5] = ["instances", "num calls", "count", "operations", "corrid"];
            COUNTS.contains(&column.name.as_str())
        }
    }
}

/// Returns whether a cell is like `599,3702`: a group of four digits, or a fraction.
fn is_by_four(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once([',', '.']).is_some_and(|(whole, rest)| {
        (1..=4).contains(&whole.len()) && rest.len() == 4 && digits(whole) && digits(rest)
    })
}

/// Returns whether a cell contains a number of any locale.
pub(super) fn is_number(cell: &str) -> bool {
    let cell = cell.trim();
    matches!(value(cell, Convention::Unknown), Value::Number(_) | Value::Ambiguous)
        || cell.parse::<f64>().is_ok()
}

/// Parses a cell. Returns `None` if it is not a number with this decimal separator.
pub(super) fn number(cell: &str, whole: bool, decimal: Convention) -> Option<f64> {
    let group = if decimal == Convention::Comma { '.' } else { ',' };
    if whole && cell.contains(group) && is_by_four(cell) {
        return cell.replace(group, "").parse().ok();
    }
    match value(cell, decimal) {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

/// Parses a whole number. Returns `None` if the cell is not one.
pub(super) fn count<T: std::str::FromStr>(cell: &str, decimal: Convention) -> Option<T> {
    if let Ok(count) = cell.parse() {
        return Some(count);
    }
    let number = number(cell, true, decimal)?;
    // The digits are parsed, because large counts lose precision as fractions. Digits after a
    // separator change the number.
    let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
    let same = digits.parse::<f64>().is_ok_and(|digits| digits == number);
    same.then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests;
