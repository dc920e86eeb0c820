//! Counts mismatches by their position in a tensor, in a map of limited size.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of rows, and of columns, of a map.
const MAX_SIDE: u64 = 32;

/// Number of mismatches in each part of an output. The output is regarded as a matrix: the last
/// dimension gives the columns, and all dimensions before it together give the rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MismatchMap {
    /// Number of rows and of columns of the matrix.
    pub matrix: [u64; 2],
    /// Number of mismatches in each cell, by row and then by column; at most 32 × 32 cells. Element
    /// `(i, j)` of a matrix of `m` × `n` elements is in cell `(⌊i·rows/m⌋, ⌊j·columns/n⌋)`.
    pub counts: Vec<Vec<u64>>,
}

impl MismatchMap {
    /// Creates an empty map. Returns `None` if the shape has no elements, or too many for 64-bit
    /// indices.
    fn new(shape: &[u64]) -> Option<Self> {
        let (columns, before) = shape.split_last()?;
        let rows = before.iter().try_fold(1u64, |product, side| product.checked_mul(*side))?;
        rows.checked_mul(*columns).filter(|elements| *elements > 0)?;
        // The index of a cell is computed in 64 bits.
        rows.max(*columns).checked_mul(MAX_SIDE)?;
        let cells = |side: u64| side.min(MAX_SIDE) as usize;
        let counts = vec![vec![0; cells(*columns)]; cells(rows)];
        Some(Self { matrix: [rows, *columns], counts })
    }

    /// Counts the mismatch at an offset. An offset beyond the last element is ignored.
    fn add(&mut self, offset: u64) {
        let [rows, columns] = self.matrix;
        let (row, column) = (offset / columns, offset % columns);
        let cell = |at: u64, side: u64| (at * side.min(MAX_SIDE) / side) as usize;
        if row < rows {
            self.counts[cell(row, rows)][cell(column, columns)] += 1;
        }
    }

    fn join(&mut self, part: &Self) {
        for (row, theirs) in self.counts.iter_mut().zip(&part.counts) {
            row.iter_mut().zip(theirs).for_each(|(count, more)| *count += more);
        }
    }

    /// Returns the rows and the columns of the matrix that a cell covers.
    pub fn place(&self, row: usize, column: usize) -> [Range<u64>; 2] {
        let across = self.counts.first().map_or(0, Vec::len);
        let span = |cell: usize, cells: usize, side: u64| {
            // The first index of a cell is ⌈cell·side/cells⌉.
            let first = |cell: usize| {
                let first = (cell as u128 * u128::from(side)).div_ceil(cells.max(1) as u128);
                u64::try_from(first).unwrap_or(u64::MAX)
            };
            first(cell)..first(cell + 1)
        };
        let [rows, columns] = self.matrix;
        [span(row, self.counts.len(), rows), span(column, across, columns)]
    }

    /// Returns the number of elements in a cell.
    pub fn elements(&self, row: usize, column: usize) -> u64 {
        let [rows, columns] = self.place(row, column).map(|span| span.end - span.start);
        rows.saturating_mul(columns)
    }
}

/// Map of a tensor, or of a part of it. The first mismatch allocates it.
#[derive(Debug, Clone, Default)]
pub(super) struct LazyMap(Option<MismatchMap>);

impl LazyMap {
    /// Counts the mismatch at an offset in a tensor of this shape.
    pub(super) fn add(&mut self, offset: u64, shape: &[u64]) {
        if self.0.is_none() {
            self.0 = MismatchMap::new(shape);
        }
        if let Some(map) = &mut self.0 {
            map.add(offset);
        }
    }

    /// Adds the mismatches of another part of the same tensor.
    pub(super) fn join(&mut self, part: LazyMap) {
        match (&mut self.0, part.0) {
            (Some(map), Some(part)) => map.join(&part),
            (empty @ None, part) => *empty = part,
            (Some(_), None) => {}
        }
    }

    /// Returns the map if it contains more than `listed` mismatches.
    pub(super) fn beyond(self, listed: usize) -> Option<MismatchMap> {
        let count = |map: &MismatchMap| map.counts.iter().flatten().sum::<u64>();
        self.0.filter(|map| count(map) > listed as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(shape: &[u64], wrong: impl Fn(u64) -> bool) -> MismatchMap {
        let mut maps = [LazyMap::default(), LazyMap::default()];
        for offset in (0..shape.iter().product::<u64>()).filter(|offset| wrong(*offset)) {
            maps[usize::from(offset % 3 == 0)].add(offset, shape);
        }
        let [mut whole, part] = maps;
        whole.join(part);
        whole.beyond(0).unwrap()
    }

    #[test]
    fn mismatches_are_counted_where_they_lie() {
        let small = map(&[2, 3], |offset| offset == 1 || offset == 5);
        assert_eq!(
            small,
            MismatchMap { matrix: [2, 3], counts: vec![vec![0, 1, 0], vec![0, 0, 1]] }
        );
        // The rows of all leading dimensions follow each other.
        let batch = map(&[2, 64, 100], |offset| offset >= 6400);
        assert_eq!((batch.matrix, batch.counts.len(), batch.counts[0].len()), ([128, 100], 32, 32));
        for (row, counts) in batch.counts.iter().enumerate() {
            for (column, count) in counts.iter().enumerate() {
                let all = batch.elements(row, column);
                assert_eq!(*count, if row >= 16 { all } else { 0 }, "{row}, {column}");
            }
        }
        assert_eq!((0..32).map(|column| batch.elements(0, column)).sum::<u64>(), 4 * 100);
    }

    #[test]
    fn maps_have_a_bounded_size_and_no_cell_for_what_is_not_in_the_shape() {
        let mut long = LazyMap::default();
        (0..20).for_each(|n| long.add(n << 40, &[1 << 50]));
        let long = long.beyond(10).unwrap();
        assert_eq!((long.counts.len(), long.counts[0].len()), (1, 32));
        assert_eq!(long.counts[0][0], 20);
        for shape in [&[][..], &[0, 4], &[u64::MAX, 2], &[u64::MAX]] {
            let mut map = LazyMap::default();
            map.add(0, shape);
            assert_eq!(map.beyond(0), None, "{shape:?}");
        }
        let mut behind = LazyMap::default();
        (4..8).for_each(|offset| behind.add(offset, &[2, 2]));
        assert_eq!(behind.beyond(0), None);
    }
}
