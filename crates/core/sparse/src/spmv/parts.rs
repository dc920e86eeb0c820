//! The arrays and numbers of a matrix in each of its formats, by name. The main type is [`Parts`].

use std::collections::HashMap;
use std::io::{self, Write};

use super::request::SpmvOptions;
use crate::Csr;
use crate::formats::{Bsr, Coo, Csc, Ell, FormatError, MAX_PADDED};
use crate::packed::write_numbers;
use crate::spasm::Spasm;
use warpgauge_tensor::{Blob, Dtype};

/// A part of a matrix.
#[derive(Debug, Clone)]
pub enum Part {
    Number(u64),
    /// An array, with its elements in the form that the device receives.
    Array {
        dtype: Dtype,
        /// The number of elements.
        length: u64,
        /// The bytes of the elements.
        data: Blob,
    },
}

/// Reasons why a part cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// The name is unknown.
    #[error("a matrix has no part {0:?}; the parts are {NAMES}")]
    Name(String),
    /// The matrix is not suitable for the format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The format supports only binary32.
    #[error("`spasm_values` are float32: the format supports no other type")]
    Single,
    /// The arrays of the request would take too many bytes.
    #[error(
        "the matrices' arrays in this request exceed limits.max_decoded_bytes; name fewer parts, \
         or smaller matrices"
    )]
    TooMuch,
    /// The part cannot be written to a file.
    #[error("could not store a part of a matrix in a temporary file: {0}")]
    Io(#[from] io::Error),
}

/// The names of all parts.
const NAMES: &str = "num_rows, num_cols, nnz, values, col_indices, row_ptr (CSR); row_indices (COO, with \
    values and col_indices); csc_values, csc_row_indices, csc_col_ptr; ell_width, ell_values, \
    ell_col_indices; bsr_block, bsr_block_rows, bsr_values, bsr_col_indices, bsr_row_ptr; spasm_tile, \
    spasm_tiles, spasm_templates, spasm_tile_rows, spasm_tile_cols, spasm_ranges, spasm_positions, \
    spasm_values";

/// The block size of BSR and SPASM.
const BLOCK: u32 = 4;

/// Returns whether a kernel's arguments include parts of a format with padding, which may be many
/// times larger than the matrix.
pub fn takes_padding(options: &SpmvOptions) -> bool {
    let padded = |name: &String| ["ell_", "bsr_", "spasm_"].iter().any(|it| name.starts_with(it));
    options.args.iter().any(padded)
}

/// A matrix, with the formats that have been requested so far.
pub(crate) struct Parts<'a> {
    csr: &'a Csr,
    /// The maximum number of elements of a format with padding.
    most: u64,
    /// The number of bytes that arrays may still take.
    left: u64,
    /// The arrays created so far, so that each is created only once.
    made: HashMap<(String, Dtype), Part>,
    csc: Option<Csc>,
    ell: Option<Ell>,
    bsr: Option<Bsr>,
    spasm: Option<Spasm>,
}

impl<'a> Parts<'a> {
    /// Prepares the parts of a matrix. A format with padding may take at most `max_bytes`, counted
    /// as 12 bytes for each element. All arrays together may take at most `left` bytes.
    pub(crate) fn new(csr: &'a Csr, max_bytes: u64, left: u64) -> Self {
        let most = (max_bytes / 12).min(MAX_PADDED);
        let made = HashMap::new();
        Self { csr, most, left, made, csc: None, ell: None, bsr: None, spasm: None }
    }

    /// Returns the number of bytes that arrays may still take.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the part with this name. `dtype` is the element type of values.
    pub(crate) fn part(&mut self, name: &str, dtype: Dtype) -> Result<Part, PartError> {
        let key = (name.to_owned(), dtype);
        if let Some(part) = self.made.get(&key) {
            return Ok(part.clone());
        }
        let part = self.make(name, dtype)?;
        if let Part::Array { dtype, length, .. } = &part {
            let bytes = length.saturating_mul(dtype.size() as u64);
            self.left = self.left.checked_sub(bytes).ok_or(PartError::TooMuch)?;
            self.made.insert(key, part.clone());
        }
        Ok(part)
    }

    fn make(&mut self, name: &str, dtype: Dtype) -> Result<Part, PartError> {
        let csr = self.csr;
        match name {
            "num_rows" => Ok(Part::Number(u64::from(csr.rows()))),
            "num_cols" => Ok(Part::Number(u64::from(csr.cols()))),
            "nnz" => Ok(Part::Number(u64::from(csr.nnz()))),
            "x" => floats(&vec![1.0; csr.cols() as usize], dtype),
            "values" => floats(csr.values(), dtype),
            "col_indices" => indices(csr.col_indices()),
            "row_ptr" => indices(csr.row_ptr()),
            "row_indices" => indices(&Coo::from_csr(csr).row_indices),
            _ => match name.split_once('_') {
                Some(("csc", part)) => self.csc(part, dtype),
                Some(("ell", part)) => self.ell(part, dtype),
                Some(("bsr", part)) => self.bsr(part, dtype),
                Some(("spasm", part)) => self.spasm(part, dtype),
                _ => Err(unknown(name)),
            },
        }
    }

    fn csc(&mut self, part: &str, dtype: Dtype) -> Result<Part, PartError> {
        let csc = self.csc.get_or_insert_with(|| Csc::from_csr(self.csr));
        match part {
            "values" => floats(&csc.values, dtype),
            "row_indices" => indices(&csc.row_indices),
            "col_ptr" => indices(&csc.col_ptr),
            other => Err(unknown(&format!("csc_{other}"))),
        }
    }

    fn ell(&mut self, part: &str, dtype: Dtype) -> Result<Part, PartError> {
        let ell = match &self.ell {
            Some(ell) => ell,
            None => self.ell.insert(Ell::within(self.csr, self.most)?),
        };
        match part {
            "width" => Ok(Part::Number(u64::from(ell.width))),
            "values" => floats(&ell.values, dtype),
            "col_indices" => indices(&ell.col_indices),
            other => Err(unknown(&format!("ell_{other}"))),
        }
    }

    fn bsr(&mut self, part: &str, dtype: Dtype) -> Result<Part, PartError> {
        let bsr = match &self.bsr {
            Some(bsr) => bsr,
            None => self.bsr.insert(Bsr::within(self.csr, BLOCK, self.most)?),
        };
        match part {
            "block" => Ok(Part::Number(u64::from(bsr.block))),
            "block_rows" => Ok(Part::Number(bsr.row_ptr.len() as u64 - 1)),
            "values" => floats(&bsr.values, dtype),
            "col_indices" => indices(&bsr.col_indices),
            "row_ptr" => indices(&bsr.row_ptr),
            other => Err(unknown(&format!("bsr_{other}"))),
        }
    }

    fn spasm(&mut self, part: &str, dtype: Dtype) -> Result<Part, PartError> {
        if part == "values" && dtype != Dtype::Float32 {
            return Err(PartError::Single);
        }
        let spasm = match &self.spasm {
            Some(spasm) => spasm,
            None => self.spasm.insert(Spasm::within(self.csr, self.most)?),
        };
        match part {
            "tile" => Ok(Part::Number(u64::from(spasm.tile))),
            "tiles" => Ok(Part::Number(spasm.tiles.len() as u64)),
            // A template has 16 bits, but is passed with 32.
            "templates" => {
                indices(&spasm.templates.iter().map(|mask| u32::from(*mask)).collect::<Vec<_>>())
            }
            "tile_rows" => indices(&spasm.tiles.iter().map(|tile| tile.0).collect::<Vec<_>>()),
            "tile_cols" => indices(&spasm.tiles.iter().map(|tile| tile.1).collect::<Vec<_>>()),
            "ranges" => indices(&spasm.ranges),
            "positions" => indices(&spasm.positions),
            "values" => {
                let values: Vec<f64> = spasm.values.iter().map(|it| f64::from(*it)).collect();
                floats(&values, dtype)
            }
            other => Err(unknown(&format!("spasm_{other}"))),
        }
    }
}

fn unknown(name: &str) -> PartError {
    PartError::Name(name.chars().take(60).collect())
}

/// Creates an array of 32-bit integers.
fn indices(numbers: &[u32]) -> Result<Part, PartError> {
    let length = numbers.len() as u64;
    let data = blob(length * 4, |to| write_numbers(to, numbers, u32::to_le_bytes))?;
    Ok(Part::Array { dtype: Dtype::Int32, length, data })
}

/// Creates an array of floats.
pub(crate) fn floats(numbers: &[f64], dtype: Dtype) -> Result<Part, PartError> {
    let length = numbers.len() as u64;
    Ok(Part::Array { dtype, length, data: float_blob(numbers, dtype)? })
}

/// Returns the bytes of floats in binary64, or rounded to binary32.
pub(crate) fn float_blob(numbers: &[f64], dtype: Dtype) -> io::Result<Blob> {
    let length = numbers.len() as u64;
    match dtype {
        Dtype::Float64 => blob(length * 8, |to| write_numbers(to, numbers, f64::to_le_bytes)),
        _ => blob(length * 4, |to| write_numbers(to, numbers, |it| (it as f32).to_le_bytes())),
    }
}

fn blob(bytes: u64, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<Blob> {
    Blob::written(bytes, write)
}
