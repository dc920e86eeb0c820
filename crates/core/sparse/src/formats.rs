//! Conversion between CSR and the formats CSC, COO, ELL and BSR.

use super::Csr;

/// The column of an empty slot in ELL. Kernels see −1.
pub const NO_COLUMN: u32 = u32::MAX;

/// Reasons why a matrix cannot be converted to a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Padding would make the matrix too large.
    #[error(
        "{format} would hold {elements} elements for {nnz} non-zeros; at most {most} are allowed. \
         Use another format for a matrix with such rows"
    )]
    TooMuchPadding {
        /// The name of the format.
        format: &'static str,
        /// The number of elements, including padding.
        elements: u64,
        /// The number of entries of the matrix.
        nnz: u64,
        /// The maximum number of elements.
        most: u64,
    },
    /// The block size is not supported.
    #[error("the block size is {0}; it must be 1 to 64")]
    Block(u32),
}

/// The maximum number of elements of a format with padding.
pub const MAX_PADDED: u64 = 1 << 30;

fn padded(format: &'static str, elements: u64, nnz: u32, most: u64) -> Result<usize, FormatError> {
    match usize::try_from(elements) {
        Ok(fits) if elements <= most => Ok(fits),
        _ => Err(FormatError::TooMuchPadding { format, elements, nnz: u64::from(nnz), most }),
    }
}

/// Returns an error if a format with padding would be too large.
pub(crate) fn check_padding(
    format: &'static str,
    elements: u64,
    nnz: u32,
    most: u64,
) -> Result<(), FormatError> {
    padded(format, elements, nnz, most).map(drop)
}

/// The coordinate format, sorted by row and, within each row, by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Coo {
    /// The numbers of rows and columns of the matrix.
    pub extents: (u32, u32),
    pub row_indices: Vec<u32>,
    pub col_indices: Vec<u32>,
    pub values: Vec<f64>,
}

impl Coo {
    /// Converts from CSR.
    pub fn from_csr(csr: &Csr) -> Self {
        Self {
            extents: (csr.rows(), csr.cols()),
            row_indices: csr.entries().map(|(row, ..)| row).collect(),
            col_indices: csr.col_indices().to_vec(),
            values: csr.values().to_vec(),
        }
    }

    /// Converts to CSR. Entries with the same row and column are added.
    pub fn to_csr(&self) -> Csr {
        Csr::from_entries(self.extents, &self.row_indices, &self.col_indices, &self.values)
    }
}

/// Compressed sparse columns (CSC), i.e. the CSR form of the transposed matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Csc {
    /// The numbers of rows and columns of the matrix.
    pub extents: (u32, u32),
    /// The index of the first entry of each column. The number of entries follows.
    pub col_ptr: Vec<u32>,
    /// The row of each entry.
    pub row_indices: Vec<u32>,
    /// The value of each entry.
    pub values: Vec<f64>,
}

impl Csc {
    /// Converts from CSR.
    pub fn from_csr(csr: &Csr) -> Self {
        let transposed = transpose(csr);
        Self {
            extents: (csr.rows(), csr.cols()),
            col_ptr: transposed.row_ptr().to_vec(),
            row_indices: transposed.col_indices().to_vec(),
            values: transposed.values().to_vec(),
        }
    }

    /// Converts to CSR.
    pub fn to_csr(&self) -> Csr {
        let mut columns = Vec::with_capacity(self.values.len());
        for (column, pair) in (0u32..).zip(self.col_ptr.windows(2)) {
            columns.extend((pair[0]..pair[1]).map(|_| column));
        }
        Csr::from_entries(self.extents, &self.row_indices, &columns, &self.values)
    }
}

/// Returns the transposed matrix.
pub fn transpose(csr: &Csr) -> Csr {
    let rows: Vec<u32> = csr.entries().map(|(row, ..)| row).collect();
    Csr::from_entries((csr.cols(), csr.rows()), csr.col_indices(), &rows, csr.values())
}

/// ELLPACK: every row has as many slots as the longest row. Slot `k` of row `i` is element `k ·
/// rows + i`, so that neighbouring threads, each of which handles one row, read neighbouring
/// elements.
#[derive(Debug, Clone, PartialEq)]
pub struct Ell {
    /// The numbers of rows and columns of the matrix.
    pub extents: (u32, u32),
    /// The number of slots per row.
    pub width: u32,
    /// The column of each slot, or [`NO_COLUMN`].
    pub col_indices: Vec<u32>,
    /// The value of each slot, or 0 if the slot is empty.
    pub values: Vec<f64>,
}

impl Ell {
    /// Converts from CSR.
    ///
    /// # Errors
    /// Returns an error if the padded matrix would have more than [`MAX_PADDED`] elements.
    pub fn from_csr(csr: &Csr) -> Result<Self, FormatError> {
        Self::within(csr, MAX_PADDED)
    }

    /// Converts from CSR, if the result has at most `most` elements.
    ///
    /// # Errors
    /// Returns an error if the padded matrix would have more than `most` elements.
    pub fn within(csr: &Csr, most: u64) -> Result<Self, FormatError> {
        let (rows, width) = (csr.rows() as usize, csr.longest_row());
        let elements = padded("ELL", u64::from(csr.rows()) * u64::from(width), csr.nnz(), most)?;
        let (mut col_indices, mut values) = (vec![NO_COLUMN; elements], vec![0.0; elements]);
        for row in 0..rows {
            let (columns, own) = csr.row(row);
            for (place, (&column, &value)) in columns.iter().zip(own).enumerate() {
                col_indices[place * rows + row] = column;
                values[place * rows + row] = value;
            }
        }
        Ok(Self { extents: (csr.rows(), csr.cols()), width, col_indices, values })
    }

    /// Converts to CSR.
    pub fn to_csr(&self) -> Csr {
        let rows = self.extents.0 as usize;
        let (mut row_of, mut col_of, mut value_of) = (Vec::new(), Vec::new(), Vec::new());
        for (at, &column) in self.col_indices.iter().enumerate() {
            if column != NO_COLUMN {
                row_of.push((at % rows) as u32);
                col_of.push(column);
                value_of.push(self.values[at]);
            }
        }
        Csr::from_entries(self.extents, &row_of, &col_of, &value_of)
    }
}

/// Block compressed sparse rows: dense square blocks, each stored row by row. The elements of
/// blocks beyond the edge of the matrix are zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Bsr {
    /// The numbers of rows and columns of the matrix.
    pub extents: (u32, u32),
    /// The number of rows and of columns of a block.
    pub block: u32,
    /// The index of the first block in each row of blocks, followed by the number of blocks.
    pub row_ptr: Vec<u32>,
    /// The column of each block, counted in blocks.
    pub col_indices: Vec<u32>,
    /// The `block · block` values of each block.
    pub values: Vec<f64>,
}

impl Bsr {
    /// Converts from CSR.
    ///
    /// # Errors
    /// Returns an error if the block size is not supported, or if the blocks would have more than
    /// [`MAX_PADDED`] elements.
    pub fn from_csr(csr: &Csr, block: u32) -> Result<Self, FormatError> {
        Self::within(csr, block, MAX_PADDED)
    }

    /// Converts from CSR, if the result has at most `most` elements.
    ///
    /// # Errors
    /// Returns an error if the block size is not supported, or if the blocks would have more than
    /// `most` elements.
    pub fn within(csr: &Csr, block: u32, most: u64) -> Result<Self, FormatError> {
        if !(1..=64).contains(&block) {
            return Err(FormatError::Block(block));
        }
        let block_rows = csr.rows().div_ceil(block);
        let size = (block * block) as usize;
        let (mut row_ptr, mut col_indices) = (vec![0u32], Vec::new());
        let mut values = Vec::new();
        // For the current row of blocks: the index of the block in each column of blocks.
        let mut place = vec![u32::MAX; csr.cols().div_ceil(block) as usize];
        for block_row in 0..block_rows {
            let first = block_row * block;
            let rows = first..(first + block).min(csr.rows());
            let begin = col_indices.len();
            for row in rows.clone() {
                col_indices.extend(csr.row(row as usize).0.iter().map(|column| column / block));
                let own = &mut col_indices[begin..];
                own.sort_unstable();
                let distinct = dedup(own);
                col_indices.truncate(begin + distinct);
            }
            padded("BSR", col_indices.len() as u64 * size as u64, csr.nnz(), most)?;
            for (at, &column) in col_indices.iter().enumerate().skip(begin) {
                place[column as usize] = at as u32;
            }
            values.resize(col_indices.len() * size, 0.0);
            for row in rows {
                let (columns, own) = csr.row(row as usize);
                for (&column, &value) in columns.iter().zip(own) {
                    let base = place[(column / block) as usize] as usize * size;
                    let within = (row - first) * block + column % block;
                    values[base + within as usize] += value;
                }
            }
            row_ptr.push(col_indices.len() as u32);
        }
        Ok(Self { extents: (csr.rows(), csr.cols()), block, row_ptr, col_indices, values })
    }

    /// Converts to CSR. A block does not distinguish stored zeros from absent entries, so all zeros
    /// are dropped.
    pub fn to_csr(&self) -> Csr {
        let (mut row_of, mut col_of, mut value_of) = (Vec::new(), Vec::new(), Vec::new());
        let size = self.block as usize;
        for (block_row, pair) in (0u32..).zip(self.row_ptr.windows(2)) {
            for at in pair[0] as usize..pair[1] as usize {
                let dense = &self.values[at * size * size..][..size * size];
                for (within, &value) in dense.iter().enumerate().filter(|(_, value)| **value != 0.0)
                {
                    row_of.push(block_row * self.block + (within / size) as u32);
                    col_of.push(self.col_indices[at] * self.block + (within % size) as u32);
                    value_of.push(value);
                }
            }
        }
        Csr::from_entries(self.extents, &row_of, &col_of, &value_of)
    }
}

/// Moves the distinct values of a sorted slice to its front, and returns how many there are.
fn dedup(sorted: &mut [u32]) -> usize {
    let mut kept = 0;
    for at in 0..sorted.len() {
        if kept == 0 || sorted[kept - 1] != sorted[at] {
            sorted[kept] = sorted[at];
            kept += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spasm::Spasm;
    use proptest::prelude::*;

    fn matrix() -> impl Strategy<Value = Csr> {
        (1u32..40, 1u32..40).prop_flat_map(|(rows, cols)| {
            // There are no zeros, since blocks do not keep them.
            let entry = (0..rows, 0..cols, (1i32..1000).prop_map(|v| f64::from(v) / 8.0));
            proptest::collection::vec(entry, 0..150).prop_map(move |entries| {
                let rows_of: Vec<u32> = entries.iter().map(|entry| entry.0).collect();
                let cols_of: Vec<u32> = entries.iter().map(|entry| entry.1).collect();
                let values: Vec<f64> = entries.iter().map(|entry| entry.2).collect();
                Csr::from_entries((rows, cols), &rows_of, &cols_of, &values)
            })
        })
    }

    proptest! {
        #[test]
        fn every_format_gives_the_matrix_back(csr in matrix(), block in 1u32..9) {
            prop_assert_eq!(&Coo::from_csr(&csr).to_csr(), &csr);
            prop_assert_eq!(&Csc::from_csr(&csr).to_csr(), &csr);
            prop_assert_eq!(&Ell::from_csr(&csr).unwrap().to_csr(), &csr);
            prop_assert_eq!(&Bsr::from_csr(&csr, block).unwrap().to_csr(), &csr);
            prop_assert_eq!(&Spasm::from_csr(&csr).unwrap().to_csr(), &csr);
            prop_assert_eq!(&transpose(&transpose(&csr)), &csr);
        }
    }

    #[test]
    fn layouts_are_those_of_the_formats() {
        // 1 2 .
        // . . .
        // 3 . 4
        let csr =
            Csr::new(3, vec![0, 2, 2, 4], vec![0, 1, 0, 2], vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        let csc = Csc::from_csr(&csr);
        assert_eq!(csc.col_ptr, [0, 2, 3, 4]);
        assert_eq!((csc.row_indices, csc.values), (vec![0, 2, 0, 2], vec![1.0, 3.0, 2.0, 4.0]));
        let ell = Ell::from_csr(&csr).unwrap();
        assert_eq!(ell.col_indices, [0, NO_COLUMN, 0, 1, NO_COLUMN, 2]);
        assert_eq!(ell.values, [1.0, 0.0, 3.0, 2.0, 0.0, 4.0]);
        let bsr = Bsr::from_csr(&csr, 2).unwrap();
        assert_eq!((bsr.row_ptr, bsr.col_indices), (vec![0, 1, 3], vec![0, 0, 1]));
        assert_eq!(bsr.values, [1.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn one_long_row_is_no_reason_to_take_all_memory() {
        let rows = 3_000_000;
        let mut row_ptr = vec![1000u32; rows + 1];
        row_ptr[0] = 0;
        let csr = Csr::new(1000, row_ptr, (0..1000).collect(), vec![1.0; 1000]).unwrap();
        let error = Ell::from_csr(&csr).unwrap_err().to_string();
        assert!(error.contains("3000000000 elements"), "{error}");
        assert!(Bsr::from_csr(&csr, 0).is_err());
    }
}
