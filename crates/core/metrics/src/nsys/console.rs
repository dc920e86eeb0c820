//! Tables of fixed width, as `nsys stats` and `nsys profile --stats=true` print them.

use std::borrow::Cow;

use super::columns::Quantity;
use crate::text::{Record, TableColumns};

/// Units in the titles of tables: `CUDA Kernel Statistics (nanoseconds)`, or `(by size in KiB)`.
const TITLES: [(&str, f64, Quantity); 7] = [
    ("nanoseconds", 1e-9, Quantity::Time),
    ("microseconds", 1e-6, Quantity::Time),
    ("milliseconds", 1e-3, Quantity::Time),
    ("bytes", 1.0, Quantity::Bytes),
    ("KiB", 1024.0, Quantity::Bytes),
    ("KB", 1e3, Quantity::Bytes),
    ("MB", 1e6, Quantity::Bytes),
];

/// Returns whether a line is the title of a table.
pub(super) fn is_title(line: &str) -> bool {
    let line = line.trim();
    line.contains(" Statistics") && line.ends_with([')', ':'])
}

/// Returns the unit in the title of a table.
pub(super) fn unit(line: &str) -> Option<(f64, Quantity)> {
    let line = line.trim().trim_end_matches(':').strip_suffix(')')?;
    let (_, unit) = line.rsplit_once('(').filter(|(title, _)| title.contains("Statistics"))?;
    let unit = unit.strip_prefix("by size in ").unwrap_or(unit);
    let title = TITLES.iter().find(|(name, ..)| *name == unit);
    title.map(|(_, scale, quantity)| (*scale, *quantity))
}

/// Returns the columns and the header of a table from a line of dashes and the line before it.
pub(super) fn table<'a>(
    before: &str,
    dashes: &Record<'a>,
) -> Option<(TableColumns, Record<'static>)> {
    let columns = TableColumns::of(dashes.text)?;
    let fields = columns.cells(before).into_iter();
    let fields = fields.map(|name| Cow::Owned(name.to_owned())).collect();
    let header = Record { line: dashes.line.saturating_sub(1), text: "", fields, broken: false };
    Some((columns, header))
}

/// Returns the header of a table from a line of dashes and the line before it.
pub(super) fn header(before: &str, dashes: &Record<'_>) -> Option<Record<'static>> {
    table(before, dashes).map(|(_, header)| header)
}
