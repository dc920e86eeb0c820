//! Reads a raw page launch by launch, for pages that do not fit into memory as records.

use std::cell::OnceCell;
use std::fmt::Write;

use super::csv::{Columns, NcuCsvError, NcuPage, header};
use super::expected::{Expected, expected};
use super::kernel::{BLOCK_SIZE, GRID_SIZE, capability, describes, extents, in_base_units};
use super::page::Page;
use super::places::{self, PlacedLaunch};
use super::{derived, raw};
use crate::text::{
    Cell, Convention, Notes, Record, Records, Shown, Step, Unit, Value, unit, value,
};

/// The column of a metric.
#[derive(Clone)]
struct Metric<'a> {
    index: usize,
    /// Place of the value, if analyses use the metric.
    place: Option<usize>,
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
    let first = loop {
        match records.step(header) {
            Some(Ok(Step::Header(first))) => break first,
            Some(_) => {}
            None => return Err(NcuCsvError::NoHeader),
        }
    };
    let mut page = Page::new(&first)?;
    if page.kind != NcuPage::Raw {
        return Err(NcuCsvError::TooManyCells { line: first.line });
    }
    let mut notes = Notes::default();
    // The units precede the rows; what is between is the tool's log.
    let units = loop {
        if let Some(units) = page.units() {
            break units.clone();
        }
        let Some(record) = next(&mut records)? else {
            return Err(NcuCsvError::NoKernels { line: first.line });
        };
        page.row(record, &mut notes)?;
    };
    let columns = Columns::of(&first)?;
    let reader = Reader::of(&columns, &units);
    reader.rows(records, &mut page, &mut notes, &mut take)?;
    Ok(notes.into_texts())
}

/// Returns the next record of a text that has only one page.
fn next<'a>(records: &mut Records<'a>) -> Result<Option<Record<'a>>, NcuCsvError> {
    match records.step(header).transpose()? {
        Some(Step::Header(header)) => Err(NcuCsvError::TooManyCells { line: header.line }),
        Some(Step::Other(record)) => Ok(Some(record)),
        None => Ok(None),
    }
}

struct Reader<'a> {
    columns: &'a Columns<'a>,
    units: &'a Record<'a>,
    metrics: Vec<Metric<'a>>,
    /// The metrics that analyses use.
    placed: Vec<Metric<'a>>,
    /// For each column the index of its metric, and whether a separator groups digits.
    shows: Vec<Option<(usize, bool)>>,
    described: Described,
    available: Vec<bool>,
    /// The metrics that analyses use, for launches that are read with all their cells.
    used: OnceCell<Vec<raw::Metric<'a>>>,
}

impl<'a> Reader<'a> {
    fn of(columns: &'a Columns<'a>, units: &'a Record<'a>) -> Self {
        let metric = |(index, name): (usize, &'a std::borrow::Cow<'a, str>)| {
            let unit_text = units.fields.get(index).map_or("", |field| field.trim());
            let expected = expected(name);
            let whole = expected.whole && unit_text.find(['K', 'M', 'G']).is_none();
            let (place, unit) = (places::place(name), unit(unit_text));
            Metric { index, place, name: name.as_ref(), unit_text, unit, expected, whole }
        };
        let names = columns.names.iter().enumerate();
        let names = names.filter(|(_, name)| !name.is_empty() && !describes(name));
        let metrics: Vec<Metric<'a>> = names.map(metric).collect();
        let mut shows = vec![None; columns.names.len()];
        for (at, metric) in metrics.iter().enumerate() {
            shows[metric.index] = Some((at, metric.whole));
        }
        let placed: Vec<Metric<'a>> =
            metrics.iter().filter(|metric| metric.place.is_some()).cloned().collect();
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
        for place in placed.iter().filter_map(|metric| metric.place).chain(of_sizes) {
            available[place] = true;
        }
        derived::mark(&mut available);
        let used = OnceCell::new();
        Self { columns, units, metrics, placed, shows, described, available, used }
    }

    fn rows<'t>(
        &self,
        mut records: Records<'t>,
        page: &mut Page<'t>,
        notes: &mut Notes,
        take: &mut impl FnMut(&PlacedLaunch<'_>) -> Result<(), NcuCsvError>,
    ) -> Result<(), NcuCsvError> {
        let mut shown = self.first_shown(records.clone(), page);
        // If cells contradict each other, the loop only looks for errors that come before that one.
        let convention = shown.clone().convention().unwrap_or_default();
        let mut failed = None;
        let mut cells = Notes::default();
        let mut values = places::empty();
        let mut any = false;
        while let Some(record) = next(&mut records)? {
            let Some(record) = page.row(record, notes)? else { continue };
            any = true;
            self.see(&record, convention, &mut shown);
            if failed.is_some() || shown.contradicts() {
                continue;
            }
            let launch = self.values(&record, convention, &mut values, &mut cells);
            failed = launch.and_then(|()| self.give(&record, convention, &values, take)).err();
        }
        page.end(true, notes)?;
        shown.convention()?;
        notes.append(cells);
        match failed {
            Some(error) => Err(error),
            None if any => Ok(()),
            None => Err(NcuCsvError::NoKernels { line: page.line }),
        }
    }

    fn give(
        &self,
        record: &Record<'_>,
        convention: Convention,
        values: &[f64],
        take: &mut impl FnMut(&PlacedLaunch<'_>) -> Result<(), NcuCsvError>,
    ) -> Result<(), NcuCsvError> {
        let field = |index: usize| record.fields.get(index).map_or("", |field| field.trim());
        let capability = self.described.capability.and_then(|index| capability(field(index)));
        let whole = || {
            let used = || raw::metrics(self.columns, self.units, derived::is_used);
            let used = self.used.get_or_init(used);
            raw::kernel(self.columns, used, record, convention, &mut Notes::default())
        };
        take(&PlacedLaunch {
            kernel: field(self.columns.kernel),
            capability: capability.unwrap_or(0),
            values,
            available: &self.available,
            whole: &whole,
        })
    }

    /// Returns what the first row shows that shows a decimal separator.
    fn first_shown(&self, mut records: Records<'_>, page: &Page<'_>) -> Shown {
        let mut shown = Shown::default();
        // The caller reports errors.
        while let Ok(Some(record)) = next(&mut records) {
            if page.is_row(&record) {
                self.see(&record, Convention::Unknown, &mut shown);
            }
            if shown.any() {
                break;
            }
        }
        shown
    }

    /// Looks at the cells of a row that may show another decimal separator than the known one.
    fn see(&self, record: &Record<'_>, known: Convention, shown: &mut Shown) {
        let cell = self.described.process.and_then(|index| record.fields.get(index));
        if let Some(text) = cell {
            let (text, column) = (text.trim(), "Process ID");
            shown.see(Cell { text, whole: true, line: record.line, column });
        }
        // Large pages have millions of cells, and nearly all show nothing new.
        for (text, shows) in record.fields.iter().zip(&self.shows) {
            let Some((at, whole)) = *shows else { continue };
            if may_show(text, whole, known) {
                let column = self.metrics[at].name;
                shown.see(Cell { text, whole, line: record.line, column });
            }
        }
    }

    /// Reads the cells of a row.
    fn values(
        &self,
        record: &Record<'_>,
        convention: Convention,
        values: &mut [f64],
        notes: &mut Notes,
    ) -> Result<(), NcuCsvError> {
        let line = record.line;
        values.fill(f64::NAN);
        let mut note = |name: &str, why: &str| {
            let mut place = String::with_capacity(64);
            let _ = write!(place, "line {line}, {name}");
            notes.add(place, format!("{why}; it has no value"));
        };
        let complete = raw::complete(self.columns, record);
        let metrics = match convention {
            // Any cell may be ambiguous.
            Convention::Unknown => &self.metrics,
            Convention::Dot | Convention::Comma => &self.placed,
        };
        for metric in metrics {
            if metric.index >= complete {
                break;
            }
            let cell = record.fields[metric.index].as_ref();
            let found = match value(cell, convention) {
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
                Value::Missing(_) | Value::Text => continue,
                Value::Ambiguous => {
                    return Err(NcuCsvError::Ambiguous {
                        line,
                        column: metric.name.to_owned(),
                        cell: cell.trim().to_owned(),
                    });
                }
            };
            if let Some(place) = metric.place {
                values[place] = found;
            }
        }
        for (column, name, place, has) in self.described.sizes {
            let extents = column.and_then(|index| extents(record.fields.get(index)?));
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

/// Returns whether a cell may show another decimal separator than the known one. Returns `true` if
/// only parsing can decide.
fn may_show(text: &str, whole: bool, known: Convention) -> bool {
    let (mut dots, mut commas, mut last, mut plain) = (0, 0, 0, true);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {}
            b'.' => (dots, last) = (dots + 1, at),
            b',' => (commas, last) = (commas + 1, at),
            _ => plain = false,
        }
    }
    let (own, other) = match known {
        _ if dots + commas == 0 => return false,
        _ if !plain => return true,
        Convention::Unknown => return true,
        Convention::Dot => (dots, commas),
        Convention::Comma => (commas, dots),
    };
    match (own, other) {
        (1, 0) => whole,
        (_, 0) => true,
        // Three digits may be a group.
        (0, 1) => last + 4 != text.len() || !(1..=3).contains(&last) || text.starts_with('0'),
        // Only groups of digits have several separators.
        (0, _) => false,
        (..) => (text.as_bytes()[last] == b'.') != (known == Convention::Dot),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::csv::parse_csv;
    use super::*;
    use crate::types::Conditions;

    /// Name and values of each launch, and the notes.
    type Read = (Vec<(String, Vec<Option<f64>>)>, Vec<String>);

    fn one_by_one(text: &str) -> Result<Read, NcuCsvError> {
        let mut launches = Vec::new();
        let notes = each_launch(text, |launch| {
            let values = places::names().map(|(place, _)| places::at(launch.values, place));
            launches.push((launch.kernel.to_owned(), values.collect()));
            assert_eq!((launch.whole)()?.name, launch.kernel);
            Ok(())
        })?;
        Ok((launches, notes))
    }

    fn at_once(text: &str) -> Result<Read, NcuCsvError> {
        let report = parse_csv(text)?;
        let launch = |kernel: &super::super::NcuKernel| {
            let collected = kernel.collected("", &Conditions::default(), &BTreeSet::new(), &[]);
            let values = places::names().map(|(_, name)| collected.values.get(name).copied());
            (kernel.name.clone(), values.collect())
        };
        Ok((report.kernels.iter().map(launch).collect(), report.notes))
    }

    /// Reads a page in both ways, and returns the result.
    fn same(text: &str) -> Result<Read, NcuCsvError> {
        let large = one_by_one(text);
        match large {
            Err(NcuCsvError::TooManyCells { .. }) => {
                assert!(text.matches("Kernel Name").count() > 1, "one page: {text}");
            }
            _ => assert_eq!(large, at_once(text), "{text}"),
        }
        large
    }

    const HEADER: &str = "ID,Process ID,Kernel Name,Block Size,gpu__time_duration.sum,\
                          launch__block_size,dram__bytes.sum,lts__t_sector_hit_rate.pct,other\n";
    const UNITS: &str = ",,,,us,,Kbyte,%,\n";
    const ROW: &str = "1,7,k,\"(32, 1, 1)\",1.5,32,2.5,50,1\n";

    #[test]
    fn units_of_another_page_are_refused() {
        let error = same(&format!("{HEADER}{UNITS}{ROW},,,,ns,,byte,%,\n{ROW}")).unwrap_err();
        assert_eq!(error, NcuCsvError::UnitsTwice { line: 4, header: 1 });
        let (launches, _) = same(&format!("{HEADER}{UNITS}{ROW}{UNITS}{ROW}")).unwrap();
        assert_eq!(launches.len(), 2, "the same units again");
    }

    #[test]
    fn rows_of_other_lengths_are_read_or_refused() {
        let row = ROW.trim_end();
        let (launches, notes) = same(&format!("{HEADER}{UNITS}{row},,\n{row}, \n{ROW}")).unwrap();
        assert_eq!((launches.len(), notes), (3, vec![]), "blank fields at the end");
        let error = same(&format!("{HEADER}{UNITS}{ROW}{row},7\n{ROW}")).unwrap_err();
        assert_eq!(error, NcuCsvError::RowLength { line: 4, found: 10, header: 1, columns: 9 });
        let cut = "1,7,k,\"(32, 1, 1)\",1.5,3";
        let error = same(&format!("{HEADER}{UNITS}{cut}\n{ROW}")).unwrap_err();
        assert_eq!(error, NcuCsvError::RowLength { line: 3, found: 6, header: 1, columns: 9 });
        let (launches, notes) = same(&format!("{HEADER}{UNITS}{ROW}{cut}")).unwrap();
        assert_eq!(launches.len(), 2);
        assert!(notes[0].starts_with("line 4: the row is cut off after 6 of 9"), "{notes:?}");
    }

    #[test]
    fn notes_name_the_lines_that_are_left_out_and_not_the_log() {
        let (launches, notes) = same(&format!(
            "==PROF== Connected\n{HEADER}{UNITS}{ROW}==PROF== 1\n\nhello, world\n\"2\",\"k\n{ROW}\
             ==PROF== Disconnected\n"
        ))
        .unwrap();
        assert_eq!(launches.len(), 2);
        assert_eq!(
            notes,
            [
                "line 7: `hello, world` is not a row of the page: it is left out",
                "line 8: `\"2\",\"k` is cut off, or has an unclosed quote: it is left out",
            ]
        );
    }

    /// A cell that no analysis uses shows the separator, or contradicts the others.
    #[test]
    fn all_cells_show_the_separator() {
        let row = |time: &str, other: &str| format!("1,7,k,,\"{time}\",32,1,50,\"{other}\"\n");
        let of = |rows: &[String]| same(&format!("{HEADER}{UNITS}{}", rows.concat()));
        let (launches, _) = of(&[row("1.024", "1"), row("2", "1,5")]).unwrap();
        let time = places::place("gpu__time_duration.sum").unwrap();
        assert_eq!(launches[0].1[time], Some(1024.0 * 1e-6));
        let mixed = of(&[row("1.5", "1"), row("2", "1,5")]);
        assert!(matches!(mixed, Err(NcuCsvError::MixedLocales { .. })), "{mixed:?}");
        let ambiguous = of(&[row("5", "1"), row("2", "1.024")]);
        assert!(matches!(ambiguous, Err(NcuCsvError::Ambiguous { line: 4, .. })), "{ambiguous:?}");
    }

    fn cell(comma: bool) -> impl Strategy<Value = &'static str> {
        let dot = ["5", "1.5", "120.25", "1,024", "1,209,119", "n/a", "", "32", "32", "0"];
        let commas = ["5", "1,5", "120,25", "1.024", "1.209.119", "n/a", "", "32", "32", "0"];
        let odd = ["word", "-5", "1e400", "1.024", "2,5", "3.5", "1.2.3", "150,5,0"];
        prop_oneof![
            60 => prop::sample::select(if comma { &commas } else { &dot }.to_vec()),
            1 => prop::sample::select(odd.to_vec()),
        ]
    }

    fn row(comma: bool) -> impl Strategy<Value = String> {
        let block = prop::sample::select(vec!["(32, 1, 1)", "(64, 2, 1)", "", "x"]);
        let cells = prop::collection::vec(cell(comma), 5);
        let process = prop_oneof![9 => Just("7"), 1 => Just("7.0"), 1 => Just("1,234")];
        (0..3u32, process, "[ab]", block, cells).prop_map(|(id, process, name, block, cells)| {
            format!("{id},\"{process}\",{name},\"{block}\",\"{}\"", cells.join("\",\""))
        })
    }

    fn line(comma: bool) -> impl Strategy<Value = String> {
        let fixed = [
            "==PROF== Profiling \"k\"",
            "",
            "  ",
            ",,,,,,,,",
            ",",
            "hello",
            "hello, world, and, more",
            "\"open",
            "1,7",
        ];
        let odd = [",,,,ns,,byte,%,", ",,,,us", ",,,,us,,Kbyte,%,,x", HEADER.trim_end()];
        prop_oneof![
            40 => row(comma).prop_map(|row| row + "\n"),
            3 => row(comma).prop_map(|row| row + ", ,\n"),
            1 => row(comma).prop_map(|row| row + ",7\n"),
            1 => (row(comma), 0..80usize).prop_map(|(row, at)| row[..at.min(row.len())].to_owned()),
            2 => Just(UNITS.to_owned()),
            8 => prop::sample::select(fixed.to_vec()).prop_map(|line| format!("{line}\n")),
            1 => prop::sample::select(odd.to_vec()).prop_map(|line| format!("{line}\n")),
        ]
    }

    fn page() -> impl Strategy<Value = String> {
        (any::<bool>(), any::<bool>(), any::<bool>()).prop_flat_map(|(comma, log, units)| {
            prop::collection::vec(line(comma), 0..7).prop_map(move |lines| {
                let log = if log { "==PROF== Connected\nhello, you\n" } else { "" };
                // Most pages have units.
                let units = if units || lines.len() > 1 { UNITS } else { "" };
                format!("{log}{HEADER}{units}{}", lines.concat())
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn launches_and_notes_are_those_of_a_small_page(text in page()) {
            let _ = same(&text);
        }

        #[test]
        fn no_cell_that_shows_another_separator_is_missed(
            text in "-?[0-9]{0,4}[.,]?[0-9]{0,3}[.,]?[0-9]{0,3}[.,]?(e1| \\(1,5\\))?", whole: bool,
        ) {
            let mut shown = Shown::default();
            shown.see(Cell { text: &text, whole, line: 1, column: "c" });
            let shows = shown.convention().unwrap();
            for known in [Convention::Unknown, Convention::Dot, Convention::Comma] {
                let new = shows != Convention::Unknown && shows != known;
                prop_assert!(!new || may_show(&text, whole, known), "{} {:?}", text, known);
            }
        }
    }
}
