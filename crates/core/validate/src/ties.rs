//! Outputs with several correct answers: orders of equal keys.
//!
//! An algorithm may leave equal keys in any order, and may select any of several largest elements. Therefore indices
//! are judged by the keys that they select.

use std::collections::HashSet;

use super::ArgumentContents;
use warpgauge_tensor::Dtype;
use warpgauge_tensor::element::{Element, for_dtype};

/// Indices that differ from the expected ones, but only among equal keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tie<'a> {
    /// Name of the input that holds the keys.
    pub keys: &'a str,
    /// Number of elements that differ.
    pub elements: u64,
}

/// Detects a tie. `actual` and `expected` are contents of the output that `output` describes. Both must select the
/// largest or the smallest keys of one of the `inputs` in order. Their keys must be equal wherever the indices
/// differ.
///
/// Indices count elements of the whole input, or along one of its dimensions. In the second case the other dimensions
/// of the output are the same, and this dimension is as long or shorter (`argsort`, `topk`), of length 1, or missing
/// (`argmax`). Only the first entry of `seeds` is used.
pub fn tie<'a>(
    output: &ArgumentContents<'_>,
    (actual, expected): (&[u8], &[u8]),
    inputs: &'a [ArgumentContents<'a>],
) -> Option<Tie<'a>> {
    let (actual, expected) = (integers(output.dtype, actual)?, integers(output.dtype, expected)?);
    let elements = actual.iter().zip(&expected).filter(|(a, e)| a != e).count() as u64;
    if elements == 0 || actual.len() != expected.len() {
        return None;
    }
    let agree = |input: &&ArgumentContents<'_>| {
        let keys = numbers(input);
        // If all keys are equal, any index would pass.
        let differ = keys.iter().any(|key| *key != keys[0]);
        let layouts = layouts(output.shape, input.shape);
        differ && layouts.iter().any(|layout| layout.agrees(&keys, &actual, &expected))
    };
    let keys = inputs.iter().find(agree)?;
    Some(Tie { keys: keys.name, elements })
}

/// A key as a number, and its bits if binary64 may not represent it exactly.
type Key = (f64, u64);

fn numbers(input: &ArgumentContents<'_>) -> Vec<Key> {
    fn of<T: Element>(bytes: &[u8], exact: bool) -> Vec<Key> {
        let key = |bytes: &[u8]| {
            let mut bits = [0; 8];
            if exact {
                bits[..T::SIZE].copy_from_slice(bytes);
            }
            (T::read(bytes).to_f64(), u64::from_le_bytes(bits))
        };
        bytes.chunks_exact(T::SIZE).map(key).collect()
    }
    let bytes = input.seeds.first().copied().unwrap_or_default();
    let exact = matches!(input.dtype, Dtype::Int64 | Dtype::Uint64);
    for_dtype!(input.dtype, of(bytes, exact))
}

/// Meaning of the indices: `outer` × `inner` rows of `length` keys, with `selected` indices each.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    outer: usize,
    length: usize,
    inner: usize,
    selected: usize,
}

/// Returns the possible layouts: all keys as one row, and rows along each dimension that fits the output.
fn layouts(output: &[u64], keys: &[u64]) -> Vec<Layout> {
    let product = |extents: &[u64]| extents.iter().product::<u64>() as usize;
    let mut all =
        vec![Layout { outer: 1, length: product(keys), inner: 1, selected: product(output) }];
    for axis in 0..keys.len() {
        let (before, rest) = keys.split_at(axis);
        let Some((&length, after)) = rest.split_first() else { continue };
        let is_shorter =
            output.len() == keys.len() && output[..axis] == *before && output[axis + 1..] == *after;
        let is_reduced =
            output.len() + 1 == keys.len() && output[..axis] == *before && output[axis..] == *after;
        let selected = match (is_shorter, is_reduced) {
            (true, _) => output[axis] as usize,
            (_, true) => 1,
            _ => continue,
        };
        let (outer, inner) = (product(before), product(after));
        all.push(Layout { outer, length: length as usize, inner, selected });
    }
    all
}

impl Layout {
    /// Returns whether both lists of indices select distinct extreme keys of each row in order, and equal keys at
    /// each position.
    fn agrees(&self, keys: &[Key], actual: &[i128], expected: &[i128]) -> bool {
        let Self { outer, length, inner, selected } = *self;
        let fits = selected > 0
            && selected <= length
            && keys.len() == outer * length * inner
            && actual.len() == outer * selected * inner;
        let rows = || (0..outer).flat_map(|outer| (0..inner).map(move |inner| (outer, inner)));
        fits && [true, false].into_iter().any(|largest| {
            rows().all(|row| self.row_agrees(keys, (actual, expected), row, largest))
        })
    }

    fn row_agrees(
        &self,
        keys: &[Key],
        (actual, expected): (&[i128], &[i128]),
        (outer, inner): (usize, usize),
        largest: bool,
    ) -> bool {
        let key = |at: usize| keys[(outer * self.length + at) * self.inner + inner];
        let named =
            |index: i128| usize::try_from(index).ok().filter(|index| *index < self.length).map(key);
        let mut seen = HashSet::with_capacity(self.selected);
        let places =
            || (0..self.selected).map(|place| (outer * self.selected + place) * self.inner + inner);
        let name_equal_keys = places().all(|at| {
            let key = named(actual[at]);
            key.is_some() && key == named(expected[at]) && seen.insert(actual[at])
        });
        // Keys are sorted only if necessary, because sorting takes longest.
        if !name_equal_keys {
            return false;
        }
        let mut sorted: Vec<Key> = (0..self.length).map(key).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        if largest {
            sorted.reverse();
        }
        places()
            .zip(&sorted)
            .all(|(at, extreme)| named(expected[at]).is_some_and(|key| key.0 == extreme.0))
    }
}

fn integers(dtype: Dtype, bytes: &[u8]) -> Option<Vec<i128>> {
    let signed = match dtype {
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => true,
        Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64 => false,
        _ => return None,
    };
    let value = |element: &[u8]| {
        let negative = signed && element.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut wide = [if negative { 0xFF } else { 0 }; 16];
        wide[..element.len()].copy_from_slice(element);
        i128::from_le_bytes(wide)
    };
    Some(bytes.chunks_exact(dtype.size()).map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_i32(values: &[i32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Returns the size of the tie between two orders of these keys.
    fn found(
        shape: &[u64],
        keys: (&[u64], &[f32]),
        actual: &[i32],
        expected: &[i32],
    ) -> Option<u64> {
        let bytes = keys.1.iter().flat_map(|key| key.to_le_bytes()).collect::<Vec<_>>();
        let seeds = [&bytes[..]];
        let keys =
            [ArgumentContents { name: "x", dtype: Dtype::Float32, shape: keys.0, seeds: &seeds }];
        let output = ArgumentContents { name: "order", dtype: Dtype::Int32, shape, seeds: &[] };
        let tie = tie(&output, (&of_i32(actual), &of_i32(expected)), &keys);
        tie.map(|tie| tie.elements)
    }

    #[test]
    fn equal_keys_may_come_in_any_order() {
        let keys: (&[u64], &[f32]) = (&[5], &[2.0, 1.0, 2.0, 1.0, 3.0]);
        assert_eq!(found(&[5], keys, &[3, 1, 2, 0, 4], &[1, 3, 0, 2, 4]), Some(4));
        // The largest two of five; the second place is shared.
        assert_eq!(found(&[2], keys, &[4, 2], &[4, 0]), Some(1));
        // Keys are compared within each row.
        let keys: (&[u64], &[f32]) = (&[2, 3], &[1.0, 1.0, 2.0, 5.0, 4.0, 4.0]);
        assert_eq!(found(&[2, 3], keys, &[1, 0, 2, 2, 1, 0], &[0, 1, 2, 1, 2, 0]), Some(4));
    }

    #[test]
    fn rows_run_along_any_dimension() {
        // Indices of the largest element of each row, and of each column.
        let keys: (&[u64], &[f32]) = (&[2, 3], &[5.0, 5.0, 2.0, 5.0, 4.0, 2.0]);
        assert_eq!(found(&[2], keys, &[1, 0], &[0, 0]), Some(1));
        assert_eq!(found(&[2, 1], keys, &[1, 0], &[0, 0]), Some(1));
        assert_eq!(found(&[3], keys, &[1, 0, 1], &[0, 0, 0]), Some(2));
        // Index in the whole input.
        assert_eq!(found(&[], keys, &[3], &[0]), Some(1));
        // Index of the smallest element of each row.
        assert_eq!(
            found(&[2], (&[2, 3], &[1.0, 1.0, 2.0, 5.0, 4.0, 4.0]), &[1, 2], &[0, 1]),
            Some(2)
        );
    }

    #[test]
    fn equal_keys_alone_make_no_selection() {
        // Neither the largest nor the smallest.
        let keys: (&[u64], &[f32]) = (&[5], &[2.0, 1.0, 2.0, 1.0, 3.0]);
        assert_eq!(found(&[1], keys, &[2], &[0]), None);
        // All keys are equal.
        assert_eq!(found(&[2], (&[4], &[1.0; 4]), &[2, 3], &[0, 1]), None);
    }

    #[test]
    fn anything_else_is_wrong() {
        let keys: (&[u64], &[f32]) = (&[4], &[2.0, 1.0, 2.0, 1.0]);
        assert_eq!(found(&[4], keys, &[0, 1, 2, 3], &[1, 3, 0, 2]), None, "other keys");
        assert_eq!(found(&[4], keys, &[1, 1, 2, 2], &[1, 3, 0, 2]), None, "named twice");
        assert_eq!(found(&[4], keys, &[3, 1, 2, 4], &[1, 3, 0, 2]), None, "beyond the end");
        assert_eq!(found(&[4], keys, &[3, 1, -2, 0], &[1, 3, 0, 2]), None, "before the start");
        assert_eq!(found(&[4], keys, &[1, 3, 0, 2], &[1, 3, 0, 2]), None, "equal");
        assert_eq!(found(&[0], (&[0], &[]), &[], &[]), None, "empty");
    }
}
