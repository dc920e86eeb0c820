//! Matrices in compressed sparse row (CSR) form with checked arrays. The main type is [`Csr`].

/// The maximum number of rows, columns and non-zeros, since kernels use signed 32-bit indices.
pub const MAX_EXTENT: u64 = i32::MAX as u64;

/// A matrix in compressed sparse row form. The non-zeros of row `i` are those from `row_ptr[i]` up
/// to but not including `row_ptr[i + 1]`. The arrays are checked when the matrix is created.
#[derive(Debug, Clone, PartialEq)]
pub struct Csr {
    cols: u32,
    row_ptr: Vec<u32>,
    col_indices: Vec<u32>,
    values: Vec<f64>,
}

/// Reasons why arrays are not a valid matrix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CsrError {
    /// There are more rows, columns or non-zeros than kernels can index.
    #[error("{what} is {came}; 32-bit indices allow at most {MAX_EXTENT}")]
    TooLarge {
        /// The name of the number.
        what: &'static str,
        came: u64,
    },
    /// An array has an incorrect length.
    #[error("`{array}` has {came} elements, but {wanted} are needed: {why}")]
    Length {
        /// The name of the array.
        array: &'static str,
        /// The length of the array.
        came: u64,
        /// The length that the array must have.
        wanted: u64,
        /// An explanation of the required length.
        why: &'static str,
    },
    /// The row pointers do not begin at 0.
    #[error("`row_ptr[0]` is {came}; row pointers begin at 0")]
    FirstPointer {
        /// The first row pointer.
        came: i64,
    },
    /// The row pointers decrease.
    #[error(
        "`row_ptr[{index}]` is {came}, less than `row_ptr[{before}]`, which is {previous}: row \
         pointers must not decrease", before = index - 1
    )]
    Falls {
        /// The index of the smaller pointer.
        index: u64,
        /// The smaller pointer.
        came: i64,
        /// The pointer before it.
        previous: i64,
    },
    /// The last row pointer is not equal to the number of non-zeros.
    #[error(
        "the last row pointer, `row_ptr[{index}]`, is {came}, but there are {nnz} non-zeros: it must \
         be equal to their number"
    )]
    LastPointer {
        /// The index of the last pointer.
        index: u64,
        /// The last pointer.
        came: i64,
        /// The number of non-zeros.
        nnz: u64,
    },
    /// A column index is outside the matrix.
    #[error("`col_indices[{index}]` is {came}; the matrix has columns 0 to {last}", last = *cols as i64 - 1)]
    Column {
        /// The index in the array.
        index: u64,
        /// The column index.
        came: i64,
        /// The number of columns of the matrix.
        cols: u32,
    },
}

impl CsrError {
    /// Returns the name, as in requests, of the invalid array or number.
    pub fn field(&self) -> String {
        match self {
            Self::TooLarge { what, .. } => (*what).to_owned(),
            Self::Length { array, .. } => (*array).to_owned(),
            Self::FirstPointer { .. } => "row_ptr[0]".to_owned(),
            Self::Falls { index, .. } | Self::LastPointer { index, .. } => {
                format!("row_ptr[{index}]")
            }
            Self::Column { index, .. } => format!("col_indices[{index}]"),
        }
    }
}

/// Checks that a number of rows, columns or non-zeros can be indexed.
pub(crate) fn extent(what: &'static str, came: u64) -> Result<u32, CsrError> {
    match u32::try_from(came) {
        Ok(fits) if came <= MAX_EXTENT => Ok(fits),
        _ => Err(CsrError::TooLarge { what, came }),
    }
}

impl Csr {
    /// Creates a matrix from the arrays of a request. The arrays are signed because a request may
    /// contain any numbers.
    ///
    /// # Errors
    /// Returns the first invalid element or number, with its position.
    pub fn from_signed(
        (rows, cols): (u64, u64),
        row_ptr: &[i64],
        col_indices: &[i64],
        values: Vec<f64>,
    ) -> Result<Self, CsrError> {
        let (rows, cols) = (extent("num_rows", rows)?, extent("num_cols", cols)?);
        let nnz = values.len() as u64;
        extent("nnz", nnz)?;
        lengths(rows, nnz, row_ptr.len(), col_indices.len())?;
        if row_ptr[0] != 0 {
            return Err(CsrError::FirstPointer { came: row_ptr[0] });
        }
        let falls = (1..row_ptr.len()).find(|&index| row_ptr[index] < row_ptr[index - 1]);
        if let Some(index) = falls {
            let (came, previous) = (row_ptr[index], row_ptr[index - 1]);
            return Err(CsrError::Falls { index: index as u64, came, previous });
        }
        let last = row_ptr[row_ptr.len() - 1];
        if last != nnz as i64 {
            return Err(CsrError::LastPointer { index: u64::from(rows), came: last, nnz });
        }
        let outside = |&(_, &column): &(usize, &i64)| !(0..i64::from(cols)).contains(&column);
        if let Some((index, &came)) = col_indices.iter().enumerate().find(outside) {
            return Err(CsrError::Column { index: index as u64, came, cols });
        }
        let row_ptr = row_ptr.iter().map(|&pointer| pointer as u32).collect();
        let col_indices = col_indices.iter().map(|&column| column as u32).collect();
        Ok(Self { cols, row_ptr, col_indices, values })
    }

    /// Creates a matrix from arrays and checks them.
    ///
    /// # Errors
    /// Returns the first invalid element or number, with its position.
    pub fn new(
        cols: u32,
        row_ptr: Vec<u32>,
        col_indices: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Self, CsrError> {
        let rows = extent("num_rows", (row_ptr.len() as u64).saturating_sub(1))?;
        extent("num_cols", u64::from(cols))?;
        let nnz = values.len() as u64;
        extent("nnz", nnz)?;
        lengths(rows, nnz, row_ptr.len(), col_indices.len())?;
        if row_ptr[0] != 0 {
            return Err(CsrError::FirstPointer { came: i64::from(row_ptr[0]) });
        }
        if let Some(before) = row_ptr.windows(2).position(|pair| pair[1] < pair[0]) {
            let (previous, came) = (i64::from(row_ptr[before]), i64::from(row_ptr[before + 1]));
            return Err(CsrError::Falls { index: before as u64 + 1, came, previous });
        }
        let last = row_ptr[row_ptr.len() - 1];
        if u64::from(last) != nnz {
            let (index, came) = (u64::from(rows), i64::from(last));
            return Err(CsrError::LastPointer { index, came, nnz });
        }
        if let Some(index) = col_indices.iter().position(|&column| column >= cols) {
            let came = i64::from(col_indices[index]);
            return Err(CsrError::Column { index: index as u64, came, cols });
        }
        Ok(Self { cols, row_ptr, col_indices, values })
    }

    /// Creates a matrix from entries in any order, each within the matrix. Entries with the same
    /// row and column are added in the given order.
    pub(crate) fn from_entries(
        (rows, cols): (u32, u32),
        row_of: &[u32],
        col_of: &[u32],
        value_of: &[f64],
    ) -> Self {
        let mut row_ptr = vec![0u32; rows as usize + 1];
        for &row in row_of {
            row_ptr[row as usize + 1] += 1;
        }
        for row in 1..row_ptr.len() {
            row_ptr[row] += row_ptr[row - 1];
        }
        let mut next = row_ptr.clone();
        let mut entries = vec![(0u32, 0f64); row_of.len()];
        for ((&row, &column), &value) in row_of.iter().zip(col_of).zip(value_of) {
            let place = &mut next[row as usize];
            entries[*place as usize] = (column, value);
            *place += 1;
        }
        drop(next);
        Self::from_grouped(cols, row_ptr, entries)
    }

    /// Creates a matrix from entries that are grouped by row. Sorts each row, and adds entries with
    /// the same column.
    fn from_grouped(cols: u32, mut row_ptr: Vec<u32>, mut entries: Vec<(u32, f64)>) -> Self {
        use rayon::prelude::*;
        let mut rest = entries.as_mut_slice();
        let mut groups = Vec::with_capacity(row_ptr.len());
        for pair in row_ptr.windows(2) {
            let (row, after) = rest.split_at_mut((pair[1] - pair[0]) as usize);
            rest = after;
            if row.len() > 1 {
                groups.push(row);
            }
        }
        // The sort is stable, so that sums do not depend on the machine.
        groups.into_par_iter().for_each(|row| row.sort_by_key(|&(column, _)| column));
        let (mut written, mut begin) = (0, 0);
        for pointer in &mut row_ptr[1..] {
            let (end, first) = (*pointer as usize, written);
            for at in begin..end {
                if written > first && entries[written - 1].0 == entries[at].0 {
                    entries[written - 1].1 += entries[at].1;
                } else {
                    entries[written] = entries[at];
                    written += 1;
                }
            }
            begin = end;
            *pointer = written as u32;
        }
        entries.truncate(written);
        let col_indices = entries.par_iter().map(|&(column, _)| column).collect();
        let values = entries.par_iter().map(|&(_, value)| value).collect();
        Self { cols, row_ptr, col_indices, values }
    }

    pub fn rows(&self) -> u32 {
        (self.row_ptr.len() - 1) as u32
    }

    pub fn cols(&self) -> u32 {
        self.cols
    }

    /// Returns the number of stored entries, including zeros.
    pub fn nnz(&self) -> u32 {
        self.values.len() as u32
    }

    /// Returns the index of the first entry of each row. The number of entries follows.
    pub fn row_ptr(&self) -> &[u32] {
        &self.row_ptr
    }

    /// Returns the column of each entry.
    pub fn col_indices(&self) -> &[u32] {
        &self.col_indices
    }

    /// Returns the value of each entry.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the columns and values of a row.
    pub fn row(&self, row: usize) -> (&[u32], &[f64]) {
        let range = self.row_ptr[row] as usize..self.row_ptr[row + 1] as usize;
        (&self.col_indices[range.clone()], &self.values[range])
    }

    /// Returns every entry as (row, column, value).
    pub fn entries(&self) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
        (0..self.rows()).flat_map(move |row| {
            let (columns, values) = self.row(row as usize);
            columns.iter().zip(values).map(move |(&column, &value)| (row, column, value))
        })
    }

    /// Returns the number of entries in the longest row.
    pub fn longest_row(&self) -> u32 {
        self.row_ptr.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// Returns the number of rows without entries.
    pub fn empty_rows(&self) -> u32 {
        self.row_ptr.windows(2).filter(|pair| pair[0] == pair[1]).count() as u32
    }

    /// Applies a function to every value.
    #[must_use]
    pub fn with_values(mut self, value: impl Fn(f64) -> f64) -> Self {
        for own in &mut self.values {
            *own = value(*own);
        }
        self
    }
}

fn lengths(rows: u32, nnz: u64, pointers: usize, columns: usize) -> Result<(), CsrError> {
    let wanted = u64::from(rows) + 1;
    if pointers as u64 != wanted {
        let why = "one for each row, and one for the end";
        return Err(CsrError::Length { array: "row_ptr", came: pointers as u64, wanted, why });
    }
    if columns as u64 != nnz {
        let why = "one for each element of `values`";
        let came = columns as u64;
        return Err(CsrError::Length { array: "col_indices", came, wanted: nnz, why });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(row_ptr: &[i64], columns: &[i64]) -> Result<Csr, CsrError> {
        Csr::from_signed((2, 3), row_ptr, columns, vec![1.0; 3])
    }

    #[test]
    fn arrays_that_are_no_matrix_say_where() {
        assert!(signed(&[0, 1, 3], &[2, 0, 1]).is_ok());
        let cases: [(&[i64], &[i64], &str, &str); 8] = [
            (&[0, 1], &[2, 0, 1], "row_ptr", "has 2 elements, but 3"),
            (&[0, 1, 3], &[2, 0], "col_indices", "has 2 elements, but 3"),
            (&[1, 1, 3], &[2, 0, 1], "row_ptr[0]", "begin at 0"),
            (&[0, 4, 3], &[2, 0, 1], "row_ptr[2]", "must not decrease"),
            (&[0, -1, 3], &[2, 0, 1], "row_ptr[1]", "must not decrease"),
            (&[0, 1, 2], &[2, 0, 1], "row_ptr[2]", "there are 3 non-zeros"),
            (&[0, 1, 3], &[2, 3, 1], "col_indices[1]", "columns 0 to 2"),
            (&[0, 1, 3], &[2, 0, -1], "col_indices[2]", "is -1"),
        ];
        for (row_ptr, columns, field, message) in cases {
            let error = signed(row_ptr, columns).unwrap_err();
            assert_eq!(error.field(), field);
            assert!(error.to_string().contains(message), "{error}");
            let narrow = |of: &[i64]| of.iter().map(|&it| it as u32).collect::<Vec<_>>();
            if row_ptr.iter().chain(columns).all(|&it| it >= 0) && row_ptr.len() == 3 {
                let same = Csr::new(3, narrow(row_ptr), narrow(columns), vec![1.0; 3]);
                assert_eq!(same.unwrap_err(), error);
            }
        }
        let error = Csr::from_signed((1 << 40, 3), &[0], &[], vec![]).unwrap_err();
        assert_eq!(error.field(), "num_rows");
        assert!(Csr::new(0, vec![], vec![], vec![]).is_err());
    }

    #[test]
    fn entries_in_any_order_become_sorted_rows_and_sums() {
        let csr = Csr::from_entries(
            (3, 4),
            &[2, 0, 2, 2, 0],
            &[3, 1, 0, 3, 0],
            &[1.0, 2.0, 3.0, 4.0, 5.0],
        );
        assert_eq!(csr.row_ptr(), [0, 2, 2, 4]);
        assert_eq!(csr.col_indices(), [0, 1, 0, 3]);
        assert_eq!(csr.values(), [5.0, 2.0, 3.0, 5.0]);
        assert_eq!((csr.longest_row(), csr.empty_rows()), (2, 1));
    }
}
