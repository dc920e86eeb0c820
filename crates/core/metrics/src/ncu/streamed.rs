//! Reads a raw page launch by launch, for pages that do not fit into memory as records.

use std::fmt::Write;

use super::csv::{Columns, NcuCsvError, NcuPage, header};
use super::expected::{Expected, expected};
use super::kernel::{BLOCK_SIZE, GRID_SIZE, capability, extents, in_base_units};
use super::page::{Page, is_id};
use super::places::{self, PlacedLaunch};
use super::{derived, raw};
use crate::text::{Cell, Convention, Notes, Record, Records, Shown, Unit, Value, unit, value};

/// The column of a metric that analyses use.
struct Metric<'a> {
    index: usize,
    place: usize,
    name: &'a str,
    unit_text: &'a str,
    unit: Option<Unit>,
    expected: Expected,
    /// Whether a separator in a cell groups its digits.
    whole: bool,
}

/// Columns that describe a launch, by their positions.
struct Described {
    process: Option<usize>,
    capability: Option<usize>,
    /// Column and place of the block size and of the grid size, and whether the page has them as
    /// metrics.
    sizes: [(Option<usize>, &'static str, Option<usize>, bool); 2],
}

/// Reads a raw page, which must be the only page of the text. Returns notes.
///
/// # Errors
/// See [`NcuCsvError`]. A page of another kind, or one of several, has too many cells.
pub(crate) fn each_launch(
    text: &str,
    mut take: impl FnMut(&PlacedLaunch<'_>) -> Result<(), NcuCsvError>,
) -> Result<Vec<String>, NcuCsvError> {
    let mut records = Records::new(text);
    let mut first = None;
    while let Some(record) = records.next() {
        if let Ok(record) = record
            && let Some(header) = header(&mut records, &record)
        {
            first = Some(header);
            break;
        }
    }
    let Some(first) = first else { return Err(NcuCsvError::NoHeader) };
    let mut page = Page::new(&first)?;
    if page.kind != NcuPage::Raw {
        return Err(NcuCsvError::TooManyCells { line: first.line });
    }
    let mut notes = Notes::default();
    // The units precede the rows; what is between is the tool's log.
    while page.units().is_none() {
        let Some(record) = records.next() else {
            return Err(NcuCsvError::NoUnits { line: first.line });
        };
        page.take(record?, &mut notes)?;
    }
    let units = page.units().cloned().ok_or(NcuCsvError::NoUnits { line: first.line })?;
    let columns = Columns::of(&first)?;
    let reader = Reader::of(&columns, &units, &first);
    reader.rows(records, &mut notes, &mut take)?;
    Ok(notes.into_texts())
}

struct Reader<'a> {
    columns: &'a Columns<'a>,
    units: &'a Record<'a>,
    header: &'a Record<'a>,
    metrics: Vec<Metric<'a>>,
    described: Described,
    available: Vec<bool>,
}

impl<'a> Reader<'a> {
    fn of(columns: &'a Columns<'a>, units: &'a Record<'a>, header: &'a Record<'a>) -> Self {
        let metric = |(index, name): (usize, &'a std::borrow::Cow<'a, str>)| {
            let unit_text = units.fields.get(index).map_or("", |field| field.trim());
            let expected = expected(name);
            let whole = expected.whole && unit_text.find(['K', 'M', 'G']).is_none();
            let (place, unit) = (places::place(name)?, unit(unit_text));
            Some(Metric { index, place, name: name.as_ref(), unit_text, unit, expected, whole })
        };
        let metrics: Vec<Metric<'a>> =
            columns.names.iter().enumerate().filter_map(metric).collect();
        let size = |column, name| {
            let has = columns.index(name).is_some();
            (columns.index(column), name, places::place(name), has)
        };
        let described = Described {
            process: columns.index("Process ID"),
            capability: columns.index("CC"),
            sizes: [size("Block Size", BLOCK_SIZE), size("Grid Size", GRID_SIZE)],
        };
        let mut available = vec![false; places::empty().len()];
        let of_sizes = described.sizes.iter().filter_map(|(_, _, place, _)| *place);
        for place in metrics.iter().map(|metric| metric.place).chain(of_sizes) {
            available[place] = true;
        }
        derived::mark(&mut available);
        Self { columns, units, header, metrics, described, available }
    }

    /// Returns whether a record is a row with all its fields.
    fn is_whole(&self, record: &Record<'_>) -> bool {
        !record.broken
            && record.fields.len() == self.columns.names.len()
            && record.fields.get(self.columns.id).is_some_and(|id| is_id(id.trim()))
    }

    fn rows(
        &self,
        mut records: Records<'_>,
        notes: &mut Notes,
        take: &mut impl FnMut(&PlacedLaunch<'_>) -> Result<(), NcuCsvError>,
    ) -> Result<(), NcuCsvError> {
        let convention = self.convention(records.clone())?;
        let mut shown = Shown::default();
        let mut left_out = 0usize;
        let mut values = places::empty();
        while let Some(record) = records.next() {
            let record = record?;
            if !self.is_whole(&record) {
                if header(&mut records, &record).is_some() {
                    return Err(NcuCsvError::TooManyCells { line: record.line });
                }
                left_out += usize::from(!record.text.trim().is_empty());
                continue;
            }
            self.values(&record, convention, &mut shown, &mut values, notes)?;
            let field = |index: usize| record.fields.get(index).map_or("", |field| field.trim());
            let capability = self.described.capability.and_then(|index| capability(field(index)));
            let whole = || {
                let metrics = raw::metrics(self.columns, self.units, derived::is_used);
                let mut seen = Notes::default();
                raw::kernel(self.columns, &metrics, &record, convention, &mut seen)
            };
            take(&PlacedLaunch {
                kernel: field(self.columns.kernel),
                capability: capability.unwrap_or(0),
                values: &values,
                available: &self.available,
                whole: &whole,
            })?;
        }
        // Cells of another locale have no value, and were seen.
        if let (Convention::Dot | Convention::Comma, Err(conflict)) =
            (convention, shown.convention())
        {
            return Err(conflict.into());
        }
        if left_out > 0 {
            let text = format!("{left_out} lines are no whole rows of the page: they are left out");
            notes.add(format!("line {}", self.header.line), text);
        }
        Ok(())
    }

    /// Returns the decimal separator of the first row that shows it.
    fn convention(&self, records: Records<'_>) -> Result<Convention, NcuCsvError> {
        let mut shown = Shown::default();
        for record in records {
            let record = record?;
            if !self.is_whole(&record) {
                continue;
            }
            self.see_process(&record, &mut shown);
            for metric in &self.metrics {
                shown.see(metric.cell(&record));
            }
            if shown.any() {
                break;
            }
        }
        Ok(shown.convention()?)
    }

    fn see_process(&self, record: &Record<'_>, shown: &mut Shown) {
        let cell = self.described.process.and_then(|index| record.fields.get(index));
        if let Some(text) = cell.filter(|text| text.contains(['.', ','])) {
            let (text, column) = (text.trim(), "Process ID");
            shown.see(Cell { text, whole: true, line: record.line, column });
        }
    }

    /// Reads the cells of a row.
    fn values(
        &self,
        record: &Record<'_>,
        convention: Convention,
        shown: &mut Shown,
        values: &mut [f64],
        notes: &mut Notes,
    ) -> Result<(), NcuCsvError> {
        let line = record.line;
        values.fill(f64::NAN);
        self.see_process(record, shown);
        let mut note = |name: &str, why: &str| {
            let mut place = String::with_capacity(64);
            let _ = write!(place, "line {line}, {name}");
            notes.add(place, format!("{why}; it has no value"));
        };
        for metric in &self.metrics {
            let cell = record.fields[metric.index].as_ref();
            if metric.whole && cell.contains(['.', ',']) {
                shown.see(metric.cell(record));
            }
            values[metric.place] = match value(cell, convention) {
                Value::Number(number) => {
                    match in_base_units(number, metric.unit, metric.unit_text, metric.expected) {
                        Ok(value) => value,
                        Err(why) => {
                            if metric.expected.used {
                                note(metric.name, &why);
                            }
                            continue;
                        }
                    }
                }
                Value::Missing(_) => continue,
                Value::Text => {
                    shown.see(metric.cell(record));
                    continue;
                }
                Value::Ambiguous => {
                    return Err(NcuCsvError::Ambiguous {
                        line,
                        column: metric.name.to_owned(),
                        cell: cell.trim().to_owned(),
                    });
                }
            };
        }
        for (column, name, place, has) in self.described.sizes {
            let extents = column.and_then(|index| extents(&record.fields[index]));
            let (Some(extents), Some(place)) = (extents, place) else { continue };
            let product: f64 = extents.iter().map(|&extent| f64::from(extent)).product();
            let value = values[place];
            if !has {
                values[place] = product;
            } else if let Some(why) = super::kernel::contradicts(name, value, product) {
                values[place] = f64::NAN;
                note(name, &why);
            }
        }
        derived::add_to_places(values);
        Ok(())
    }
}

impl<'a> Metric<'a> {
    fn cell<'r>(&self, record: &'r Record<'_>) -> Cell<'r>
    where
        'a: 'r,
    {
        let text = record.fields[self.index].as_ref();
        Cell { text, whole: self.whole, line: record.line, column: self.name }
    }
}
