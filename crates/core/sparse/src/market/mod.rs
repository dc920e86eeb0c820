//! Matrix Market files: coordinate and array layouts; real, integer and pattern values; general,
//! symmetric and skew-symmetric matrices. <https://math.nist.gov/MatrixMarket/formats.html>
//!
//! A file is read in blocks. Each block is split at line ends into about four pieces per core. The
//! size in the file is checked against the limits before memory is reserved. After that, memory
//! grows with the entries that are read, not with their number in the file. The main function is
//! [`read`].

use std::io::{self, Read};

use rayon::prelude::*;

use super::csr::extent;
use super::{Csr, CsrError};
use blocks::Blocks;

mod blocks;
mod write;

pub use write::write;

/// The minimum size of a piece, in bytes. Smaller pieces are not worth a thread.
const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimits {
    /// The maximum size of the matrix in memory, in bytes: 4 for each row, and 12 for each entry
    /// including mirrored ones.
    pub max_bytes: u64,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { max_bytes: 8 << 30 }
    }
}

/// The content of a file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarketInfo {
    pub layout: Layout,
    /// The type of the values.
    pub field: MarketField,
    pub symmetry: Symmetry,
    /// The number of entries, or of elements of an array, in the file.
    pub stored: u64,
}

impl MarketInfo {
    /// Returns the layout, field and symmetry as words of the header.
    pub fn words(&self) -> [&'static str; 3] {
        [
            match self.layout {
                Layout::Coordinate => "coordinate",
                Layout::Array => "array",
            },
            match self.field {
                MarketField::Real => "real",
                MarketField::Integer => "integer",
                MarketField::Pattern => "pattern",
            },
            match self.symmetry {
                Symmetry::General => "general",
                Symmetry::Symmetric => "symmetric",
                Symmetry::Skew => "skew-symmetric",
            },
        ]
    }
}

/// The layout of the entries in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// The row, column and value of each entry.
    Coordinate,
    /// Every element, column by column.
    Array,
}

/// The type of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarketField {
    /// Decimal numbers.
    Real,
    Integer,
    /// No values; every entry is 1.
    Pattern,
}

/// The symmetry of the matrix, which determines the entries that the file omits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symmetry {
    /// No symmetry. The file contains all entries.
    General,
    /// The file omits the mirror images of the entries below the diagonal.
    Symmetric,
    /// The file omits the mirror images of the entries below the diagonal, which have the opposite
    /// sign. The diagonal is zero.
    Skew,
}

/// Reasons why a file is not a usable matrix.
#[derive(Debug, thiserror::Error)]
pub enum MarketError {
    /// The file cannot be read.
    #[error("could not read the matrix: {0}")]
    Io(#[from] io::Error),
    /// The first line is not a valid header.
    #[error(
        "not a Matrix Market file: line 1 must be `%%MatrixMarket matrix coordinate|array \
         real|integer|pattern general|symmetric|skew-symmetric`, but is {0:?}"
    )]
    Header(String),
    /// The kind of matrix is not supported.
    #[error("the matrix is `{word}`, which is not supported: {remedy}")]
    NotServed {
        /// The word in the header.
        word: &'static str,
        remedy: &'static str,
    },
    /// A line is invalid.
    #[error("line {line}: {problem}")]
    Line {
        /// The line number, starting at 1.
        line: u64,
        /// A description of the problem.
        problem: String,
    },
    /// The file contains fewer entries than its size line announces.
    #[error(
        "the file ends after {came} of {announced} entries; it may have been cut off, or its size line \
         is wrong"
    )]
    Short {
        /// The number of entries found.
        came: u64,
        /// The number of entries in the size line.
        announced: u64,
    },
    /// The matrix is larger than the limits allow.
    #[error(
        "a matrix of {rows} rows and {entries} entries takes {bytes} bytes; at most {most} are accepted"
    )]
    TooLarge {
        rows: u64,
        /// The maximum number of entries. For a matrix with symmetry, this is twice the number in
        /// the file.
        entries: u64,
        /// The size of the matrix, in bytes.
        bytes: u64,
        /// The maximum size, in bytes.
        most: u64,
    },
    /// The numbers of rows and columns are too large for 32-bit indices.
    #[error("line {line}: {source}")]
    Extent {
        /// The line that contains the sizes.
        line: u64,
        /// The error about the number.
        source: CsrError,
    },
}

fn wrong(line: u64, problem: impl Into<String>) -> MarketError {
    MarketError::Line { line, problem: problem.into() }
}

/// Reads a whole file. After each block, calls `progress` with the number of bytes read so far.
///
/// Entries with the same row and column are added. Zeros in an array do not become entries.
///
/// # Errors
/// The error describes the problem in the file and its location.
pub fn read(
    from: &mut impl Read,
    limits: &ReadLimits,
    mut progress: impl FnMut(u64),
) -> Result<(Csr, MarketInfo), MarketError> {
    let mut blocks = Blocks::new(from);
    let head = head(&mut blocks)?;
    check_size(&head, limits)?;
    let mut entries = Entries::new(&head);
    let mut line = head.lines;
    while let Some(block) = blocks.next(line)? {
        for piece in parse_block(block, &head) {
            let lines = piece.lines;
            entries.add(piece, line)?;
            line += lines;
        }
        progress(blocks.read);
    }
    progress(blocks.read);
    Ok((entries.finish()?, head.info))
}

/// The part of the file before the entries.
struct Head {
    info: MarketInfo,
    rows: u32,
    cols: u32,
    /// The number of lines up to and including the sizes.
    lines: u64,
}

/// Returns the size of a matrix in CSR form, in bytes: 4 for each row, another 4, and 12 for each
/// entry.
pub(crate) fn csr_bytes(rows: u64, entries: u64) -> u64 {
    rows.saturating_add(1).saturating_mul(4).saturating_add(entries.saturating_mul(12))
}

/// Checks that the size in the file is within the limits.
fn check_size(head: &Head, limits: &ReadLimits) -> Result<(), MarketError> {
    let doubled = if head.info.symmetry == Symmetry::General { 1 } else { 2 };
    let entries = head.info.stored.saturating_mul(doubled);
    let rows = u64::from(head.rows);
    let bytes = csr_bytes(rows, entries);
    // Zeros in an array do not become entries, but all elements may be non-zero.
    if bytes > limits.max_bytes || extent("nnz", entries).is_err() {
        return Err(MarketError::TooLarge { rows, entries, bytes, most: limits.max_bytes });
    }
    Ok(())
}

fn head(blocks: &mut Blocks<'_, impl Read>) -> Result<Head, MarketError> {
    let mut lines = 0;
    let first = blocks.line(&mut lines)?.unwrap_or_default();
    let words: Vec<String> = first.split_whitespace().map(str::to_ascii_lowercase).collect();
    let not = || MarketError::Header(first.chars().take(100).collect());
    let [magic, object, layout, field, symmetry] = words.as_slice() else { return Err(not()) };
    if magic != "%%matrixmarket" || object != "matrix" {
        return Err(not());
    }
    let layout = match layout.as_str() {
        "coordinate" => Layout::Coordinate,
        "array" => Layout::Array,
        _ => return Err(not()),
    };
    let field = match field.as_str() {
        "real" | "double" => MarketField::Real,
        "integer" => MarketField::Integer,
        "pattern" if layout == Layout::Coordinate => MarketField::Pattern,
        "complex" => {
            let remedy = "send its real and its imaginary part as two real matrices";
            return Err(MarketError::NotServed { word: "complex", remedy });
        }
        _ => return Err(not()),
    };
    let symmetry = match symmetry.as_str() {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" if field != MarketField::Pattern => Symmetry::Skew,
        "hermitian" => {
            let remedy = "a real matrix of this kind is `symmetric`";
            return Err(MarketError::NotServed { word: "hermitian", remedy });
        }
        _ => return Err(not()),
    };
    let sizes = loop {
        let Some(text) = blocks.line(&mut lines)? else {
            return Err(wrong(lines + 1, "the file ends before the line with the sizes"));
        };
        if !text.trim().is_empty() && !text.trim_start().starts_with('%') {
            break text;
        }
    };
    let numbers: Option<Vec<u64>> =
        sizes.split_whitespace().map(|word| word.parse().ok()).collect();
    let wanted = match layout {
        Layout::Coordinate => "rows, columns and entries",
        Layout::Array => "rows and columns",
    };
    let (rows, cols, stored) = match (layout, numbers.as_deref()) {
        (Layout::Coordinate, Some(&[rows, cols, entries])) => (rows, cols, Some(entries)),
        (Layout::Array, Some(&[rows, cols])) => (rows, cols, None),
        _ => {
            let shown: String = sizes.trim().chars().take(80).collect();
            return Err(wrong(lines, format!("expected the numbers of {wanted}, found {shown:?}")));
        }
    };
    let sized = |what, came| {
        extent(what, came).map_err(|source| MarketError::Extent { line: lines, source })
    };
    let (rows, cols) = (sized("num_rows", rows)?, sized("num_cols", cols)?);
    if symmetry != Symmetry::General && rows != cols {
        let problem = format!("a {rows} × {cols} matrix cannot be {}: it is not square", words[4]);
        return Err(wrong(lines, problem));
    }
    let (r, c) = (u64::from(rows), u64::from(cols));
    let stored = stored.unwrap_or(match symmetry {
        Symmetry::General => r * c,
        Symmetry::Symmetric => r * (r + 1) / 2,
        Symmetry::Skew => r * r.saturating_sub(1) / 2,
    });
    Ok(Head { info: MarketInfo { layout, field, symmetry, stored }, rows, cols, lines })
}

/// The parsed content of a piece of text.
#[derive(Default)]
struct Piece {
    lines: u64,
    rows: Vec<u32>,
    cols: Vec<u32>,
    /// Empty for a pattern, which has no values.
    values: Vec<f64>,
    /// The line within the piece, starting at 0, and its problem.
    problem: Option<(u64, String)>,
}

fn parse_block(block: &[u8], head: &Head) -> Vec<Piece> {
    let size = block.len().div_ceil(4 * rayon::current_num_threads()).max(PIECE_BYTES);
    let mut pieces = Vec::new();
    let mut left = block;
    while !left.is_empty() {
        let end = left[size.min(left.len()) - 1..].iter().position(|&byte| byte == b'\n');
        let end = end.map_or(left.len(), |end| size.min(left.len()) + end);
        let (piece, after) = left.split_at(end);
        pieces.push(piece);
        left = after;
    }
    pieces.into_par_iter().map(|piece| parse_piece(piece, head)).collect()
}

fn parse_piece(text: &[u8], head: &Head) -> Piece {
    let mut piece = Piece::default();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if piece.problem.is_none()
            && let Err(problem) = piece.parse_line(line, head)
        {
            piece.problem = Some((piece.lines, problem));
        }
        piece.lines += 1;
    }
    piece
}

impl Piece {
    fn parse_line(&mut self, line: &[u8], head: &Head) -> Result<(), String> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { return Ok(()) };
        if first[0] == b'%' {
            return Ok(());
        }
        let info = &head.info;
        if info.layout == Layout::Array {
            self.values.push(value(first, info.field)?);
            for word in words {
                self.values.push(value(word, info.field)?);
            }
            return Ok(());
        }
        let row = index(first, "row", head.rows)?;
        let column = index(words.next().ok_or("the column is missing")?, "column", head.cols)?;
        if info.field != MarketField::Pattern {
            let word = words.next().ok_or("the value is missing")?;
            self.values.push(value(word, info.field)?);
        }
        if let Some(word) = words.next() {
            let shown = String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned();
            return Err(format!("unexpected word {shown:?}"));
        }
        match info.symmetry {
            Symmetry::General => {}
            _ if row < column => {
                return Err(format!(
                    "entry ({}, {}) is above the diagonal; the file of a symmetric matrix contains \
                     only entries on and below it",
                    row + 1,
                    column + 1
                ));
            }
            Symmetry::Skew if row == column => {
                return Err("a skew-symmetric matrix has no entries on the diagonal".to_owned());
            }
            Symmetry::Symmetric | Symmetry::Skew => {}
        }
        self.rows.push(row);
        self.cols.push(column);
        Ok(())
    }
}

/// Parses an index. The result starts at 0.
fn index(word: &[u8], what: &str, extent: u32) -> Result<u32, String> {
    let digit = |&byte: &u8| byte.wrapping_sub(b'0');
    let number = (word.len() <= 18 && word.iter().all(u8::is_ascii_digit))
        .then(|| word.iter().map(digit).fold(0u64, |number, digit| number * 10 + u64::from(digit)));
    match number {
        Some(number) if (1..=u64::from(extent)).contains(&number) => Ok((number - 1) as u32),
        _ => Err(format!(
            "{what} {:?} is not an integer from 1 to {extent}",
            String::from_utf8_lossy(&word[..word.len().min(40)])
        )),
    }
}

fn value(word: &[u8], field: MarketField) -> Result<f64, String> {
    let text = std::str::from_utf8(word).unwrap_or("\u{fffd}");
    let parsed = match field {
        MarketField::Integer => text.parse::<i64>().ok().map(|integer| integer as f64),
        // Fortran writes exponents with `D`.
        _ => text.parse::<f64>().ok().or_else(|| text.replace(['D', 'd'], "e").parse().ok()),
    };
    let shown = || text.chars().take(40).collect::<String>();
    match parsed {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(format!("{:?} is not a finite number", shown())),
        None if field == MarketField::Integer => Err(format!("{:?} is not an integer", shown())),
        None => Err(format!("{:?} is not a number", shown())),
    }
}

/// The entries read so far.
struct Entries<'a> {
    head: &'a Head,
    rows: Vec<u32>,
    cols: Vec<u32>,
    values: Vec<f64>,
    /// The number of entries, or of elements of an array, read from the file.
    came: u64,
    /// The row and column of the next element of an array.
    next: (u32, u32),
}

impl<'a> Entries<'a> {
    fn new(head: &'a Head) -> Self {
        let first = u32::from(head.info.symmetry == Symmetry::Skew);
        Self {
            head,
            rows: Vec::new(),
            cols: Vec::new(),
            values: Vec::new(),
            came: 0,
            next: (first, 0),
        }
    }

    fn add(&mut self, piece: Piece, before: u64) -> Result<(), MarketError> {
        let info = &self.head.info;
        let came = match info.field {
            MarketField::Pattern => piece.rows.len(),
            _ if piece.problem.is_none() => piece.values.len(),
            _ => piece.rows.len(),
        };
        self.came += came as u64;
        if let Some((line, problem)) = piece.problem {
            return Err(wrong(before + line + 1, problem));
        }
        if self.came > info.stored {
            let problem = format!("there are more than the {} entries announced", info.stored);
            return Err(wrong(before + piece.lines, problem));
        }
        if info.layout == Layout::Array {
            for value in piece.values {
                self.add_element(value);
            }
            return Ok(());
        }
        if info.symmetry == Symmetry::General {
            self.rows.extend_from_slice(&piece.rows);
            self.cols.extend_from_slice(&piece.cols);
            match info.field {
                MarketField::Pattern => self.values.resize(self.rows.len(), 1.0),
                _ => self.values.extend_from_slice(&piece.values),
            }
            return Ok(());
        }
        for (at, (&row, &column)) in piece.rows.iter().zip(&piece.cols).enumerate() {
            let value = if info.field == MarketField::Pattern { 1.0 } else { piece.values[at] };
            self.add_pair(row, column, value);
        }
        Ok(())
    }

    /// Adds an entry on or below the diagonal, and its mirror image.
    fn add_pair(&mut self, row: u32, column: u32, value: f64) {
        self.push(row, column, value);
        if row != column {
            let skew = self.head.info.symmetry == Symmetry::Skew;
            self.push(column, row, if skew { -value } else { value });
        }
    }

    fn push(&mut self, row: u32, column: u32, value: f64) {
        self.rows.push(row);
        self.cols.push(column);
        self.values.push(value);
    }

    /// Adds the next element of an array. Arrays are stored column by column.
    fn add_element(&mut self, value: f64) {
        let (row, column) = self.next;
        if value != 0.0 {
            match self.head.info.symmetry {
                Symmetry::General => self.push(row, column, value),
                Symmetry::Symmetric | Symmetry::Skew => self.add_pair(row, column, value),
            }
        }
        self.next = if row + 1 < self.head.rows {
            (row + 1, column)
        } else {
            let column = column + 1;
            match self.head.info.symmetry {
                Symmetry::General => (0, column),
                Symmetry::Symmetric => (column, column),
                Symmetry::Skew => (column + 1, column),
            }
        };
    }

    fn finish(self) -> Result<Csr, MarketError> {
        let announced = self.head.info.stored;
        if self.came < announced {
            return Err(MarketError::Short { came: self.came, announced });
        }
        let extents = (self.head.rows, self.head.cols);
        Ok(Csr::from_entries(extents, &self.rows, &self.cols, &self.values))
    }
}

#[cfg(test)]
mod tests;
