//! Several right answers where the contract expects one: orders of equal keys.
//!
//! The order in which a sort leaves equal keys, or which of several largest elements a search names, is
//! up to the algorithm. An output of indices that differs from the expectation nowhere else is not wrong;
//! the contract says more than it means.

use std::collections::HashSet;

use super::ArgumentContents;
use warpgauge_tensor::Dtype;

/// Indices that differ, all of them between equal keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tie<'a> {
    /// The input that holds the keys.
    pub keys: &'a str,
    /// Elements that differ.
    pub elements: u64,
}

/// Whether `actual` and `expected`, the content of an output of the shape and type of `output`, are both
/// indices of distinct elements of one of the `inputs`, and name equal elements wherever they differ.
///
/// Indices count elements of the whole input or, where output and input agree in all dimensions but
/// the last, of its row. Only the first entry of `seeds` is looked at.
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
    let agree = |keys: &&ArgumentContents<'_>| {
        let bytes = keys.seeds.first().copied().unwrap_or_default();
        rows(output.shape, keys.shape).any(|(row, of_keys)| {
            name_equal_keys((&actual, &expected), row, (bytes, keys.dtype.size()), of_keys)
        })
    };
    let keys = inputs.iter().find(agree)?;
    Some(Tie { keys: keys.name, elements })
}

/// Lengths of the rows of an output and its keys: the whole of both, or the last dimension of each.
fn rows(output: &[u64], keys: &[u64]) -> impl Iterator<Item = (usize, usize)> {
    let whole = [output, keys].map(|shape| shape.iter().product::<u64>() as usize);
    let last = output.split_last().zip(keys.split_last());
    let same = last.filter(|((_, a), (_, b))| a == b && !a.is_empty());
    let by_row = same.map(|((row, _), (of_keys, _))| (*row as usize, *of_keys as usize));
    [Some((whole[0], whole[1])), by_row].into_iter().flatten()
}

fn name_equal_keys(
    (actual, expected): (&[i128], &[i128]),
    row: usize,
    (keys, size): (&[u8], usize),
    of_keys: usize,
) -> bool {
    if row == 0
        || of_keys == 0
        || row > of_keys
        || keys.len() != actual.len() / row * of_keys * size
    {
        return false;
    }
    let rows = actual.chunks(row).zip(expected.chunks(row)).zip(keys.chunks(of_keys * size));
    rows.into_iter().all(|((actual, expected), keys)| {
        let key = |index: &i128| {
            let at = usize::try_from(*index).ok()?.checked_mul(size)?;
            keys.get(at..at.checked_add(size)?)
        };
        let equal = |(a, e): (&i128, &i128)| key(a).is_some() && key(a) == key(e);
        let mut seen = HashSet::with_capacity(row);
        actual.iter().zip(expected).all(equal) && actual.iter().all(|index| seen.insert(*index))
    })
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

    /// The tie found between two orders of these keys.
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
        // By row.
        let keys: (&[u64], &[f32]) = (&[2, 3], &[1.0, 1.0, 2.0, 5.0, 4.0, 4.0]);
        assert_eq!(found(&[2, 3], keys, &[1, 0, 2, 2, 1, 0], &[0, 1, 2, 1, 2, 0]), Some(4));
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
