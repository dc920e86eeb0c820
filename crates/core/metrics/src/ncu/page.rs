//! One page of a text: a header and its rows. The main type is [`Page`].

use super::csv::{Columns, NcuCsvError, NcuPage};
use super::kernel::NcuKernel;
use super::{details, raw};
use crate::text::{Notes, Record};

/// A page that is being parsed.
#[derive(Debug)]
pub(super) struct Page<'a> {
    /// Line of the header.
    pub(super) line: usize,
    pub(super) kind: NcuPage,
    columns: Columns<'a>,
    units: Option<Record<'a>>,
    rows: Vec<Record<'a>>,
    /// Line and number of fields of a truncated row; no row may follow it.
    short: Option<(usize, usize)>,
}

/// What a record is in a page.
enum Part<'a> {
    Row(Record<'a>),
    /// Number of fields of the row of units.
    Units(usize),
    Nothing,
}

impl<'a> Page<'a> {
    pub(super) fn new(header: &Record<'a>) -> Result<Self, NcuCsvError> {
        let columns = Columns::of(header)?;
        let kind = match columns.index("Metric Name").is_some() {
            true => NcuPage::Details,
            false => NcuPage::Raw,
        };
        Ok(Self { line: header.line, kind, columns, units: None, rows: Vec::new(), short: None })
    }

    /// Returns the row of units, if it has been read.
    pub(super) fn units(&self) -> Option<&Record<'a>> {
        self.units.as_ref()
    }

    /// Adds a record. Returns the number of its fields, or `None` if it does not belong to the
    /// page. A note records such a line, unless it belongs to the tool's log.
    pub(super) fn take(
        &mut self,
        record: Record<'a>,
        notes: &mut Notes,
    ) -> Result<Option<usize>, NcuCsvError> {
        Ok(match self.part(record, notes)? {
            Part::Row(record) => {
                let fields = record.fields.len();
                self.rows.push(record);
                Some(fields)
            }
            Part::Units(fields) => Some(fields),
            Part::Nothing => None,
        })
    }

    /// Returns a record if it is a row of the page, and adds everything else, as [`Self::take`]
    /// does.
    pub(super) fn row(
        &mut self,
        record: Record<'a>,
        notes: &mut Notes,
    ) -> Result<Option<Record<'a>>, NcuCsvError> {
        Ok(match self.part(record, notes)? {
            Part::Row(record) => Some(record),
            Part::Units(_) | Part::Nothing => None,
        })
    }

    fn part(&mut self, record: Record<'a>, notes: &mut Notes) -> Result<Part<'a>, NcuCsvError> {
        let text = record.text.trim();
        if is_no_content(text) {
            return Ok(Part::Nothing);
        }
        let line = record.line;
        let mut left_out = |why: &str| {
            let begin: String = text.chars().take(40).collect();
            notes.add(format!("line {line}"), format!("`{begin}` {why}: it is left out"));
            Ok(Part::Nothing)
        };
        if record.broken {
            return left_out("is cut off, or has an unclosed quote");
        }
        if self.is_units(&record) {
            return self.take_units(record);
        }
        if !self.has_launch(&record) {
            return left_out("is not a row of the page");
        }
        // A details page has no row of units; in a raw page it precedes the other rows.
        if self.kind == NcuPage::Raw && self.units.is_none() {
            return Err(NcuCsvError::NoUnits { line: self.line });
        }
        self.fits(&record)?;
        Ok(Part::Row(record))
    }

    /// Returns whether a record is a row, whatever the number of its fields.
    pub(super) fn is_row(&self, record: &Record<'_>) -> bool {
        !record.broken && self.has_launch(record) && !is_no_content(record.text.trim())
    }

    fn has_launch(&self, record: &Record<'_>) -> bool {
        record.fields.len() > self.columns.kernel
            && record.fields.get(self.columns.id).is_some_and(|id| is_id(id.trim()))
    }

    /// Returns whether a record is the row of units, which contains no kernel name.
    fn is_units(&self, record: &Record<'_>) -> bool {
        let empty = |index: usize| record.fields.get(index).is_none_or(|f| f.trim().is_empty());
        self.kind == NcuPage::Raw
            && record.fields.len() > self.columns.kernel
            && empty(self.columns.id)
            && empty(self.columns.kernel)
            && (record.fields.len() == self.columns.names.len()
                || record.fields.iter().any(|field| !field.trim().is_empty()))
    }

    fn take_units(&mut self, record: Record<'a>) -> Result<Part<'a>, NcuCsvError> {
        let Some(units) = &self.units else {
            self.too_long(&record)?;
            let fields = record.fields.len();
            self.units = Some(record);
            return Ok(Part::Units(fields));
        };
        match units.fields == record.fields {
            true => Ok(Part::Nothing),
            false => Err(NcuCsvError::UnitsTwice { line: record.line, header: self.line }),
        }
    }

    fn length(&self, line: usize, found: usize) -> NcuCsvError {
        let columns = self.columns.names.len();
        NcuCsvError::RowLength { line, found, header: self.line, columns }
    }

    fn too_long(&self, record: &Record<'_>) -> Result<(), NcuCsvError> {
        let beyond = record.fields.iter().skip(self.columns.names.len());
        match beyond.clone().all(|field| field.trim().is_empty()) {
            true => Ok(()),
            false => Err(self.length(record.line, record.fields.len())),
        }
    }

    /// Checks the length of a row. Only the last row of a file may be truncated.
    fn fits(&mut self, record: &Record<'_>) -> Result<(), NcuCsvError> {
        self.too_long(record)?;
        if let Some((line, found)) = self.short {
            return Err(self.length(line, found));
        }
        let needed = match self.kind {
            NcuPage::Raw => self.columns.names.len(),
            // Rows of metrics and rows of rules have different numbers of columns.
            NcuPage::Details => {
                let metric = self.columns.field(record, "Metric Name");
                let rule = self.columns.index("Rule Description");
                let last = match (metric.is_some_and(|name| !name.is_empty()), rule) {
                    (false, Some(rule)) => Some(rule),
                    // A page without rules has rows of metrics only.
                    _ => self.columns.index("Metric Value"),
                };
                last.map_or(0, |index| index + 1)
            }
        };
        if record.fields.len() < needed {
            self.short = Some((record.line, record.fields.len()));
        }
        Ok(())
    }

    /// Notes that the last row is truncated, which is an error unless the page is the end of the
    /// file (`last`).
    pub(super) fn end(&self, last: bool, notes: &mut Notes) -> Result<(), NcuCsvError> {
        if let Some((line, found)) = self.short {
            if !last {
                return Err(self.length(line, found));
            }
            let text = format!(
                "the row is cut off after {found} of {} fields; the fields after them have no \
                 value",
                self.columns.names.len()
            );
            notes.add(format!("line {line}"), text);
        }
        Ok(())
    }

    /// Returns the kernels of the page. `last` means that the page is the end of the file.
    pub(super) fn kernels(
        &self,
        last: bool,
        notes: &mut Notes,
    ) -> Result<Vec<NcuKernel>, NcuCsvError> {
        self.end(last, notes)?;
        match (self.kind, &self.units) {
            (_, _) if self.rows.is_empty() => Ok(Vec::new()),
            (NcuPage::Details, _) => details::kernels(&self.columns, &self.rows, notes),
            (NcuPage::Raw, Some(units)) => raw::kernels(&self.columns, units, &self.rows, notes),
            (NcuPage::Raw, None) => Err(NcuCsvError::NoUnits { line: self.line }),
        }
    }
}

/// Returns whether a line, without the spaces around it, is empty or belongs to the tool's log.
fn is_no_content(text: &str) -> bool {
    text.is_empty() || text.starts_with("==")
}

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.len() < 20 && id.chars().all(|c| c.is_ascii_digit() || ".,".contains(c))
}
