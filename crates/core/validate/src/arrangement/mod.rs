//! Outputs with more than one correct content: rows in any order, and elements that are not compared. The main type
//! is [`Arrangement`].
//!
//! The outputs of a launch are brought into the order of the expected ones, so that an element-wise comparison can
//! follow. Elements that are not compared are cleared on both sides.

use std::cmp::Ordering;
use std::ops::Range;

use serde::{Deserialize, Serialize};

mod scaled;

pub use scaled::Scaled;

use warpgauge_tensor::Dtype;
use warpgauge_tensor::element::{Element, for_dtype};

/// Rule for comparing an output whose rows may be in another order, with the outputs whose rows move with them. Numbers
/// of buffers identify outputs and other tensors. A row is the part of a tensor that one index of its first dimension
/// selects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arrangement {
    /// The output whose rows are ordered.
    pub output: usize,
    /// Outputs with the same number of rows, which belong to the rows of `output`.
    pub along: Vec<usize>,
    pub order: RowOrder,
    /// Number of rows that are compared; `None` means all.
    pub up_to: Option<RowCount>,
    /// Tensor of the output's shape, or with one element for each row. Elements or rows whose mask is zero are not
    /// compared.
    pub mask: Option<usize>,
    /// Value of empty rows of the output. The rows of `along` that belong to empty rows are not
    /// compared.
    pub empty: Option<f64>,
    /// Tensor that the output's elements are indices into. An index of an equal row is also
    /// correct.
    pub through: Option<usize>,
    /// Scales of the output's numbers, if they are compared with their scales.
    pub scaled: Option<Scaled>,
}

/// Orders of an output's rows that count as correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowOrder {
    Given,
    Any,
    /// Any order within the segments that begin at these offsets.
    Segments(usize),
    /// Any order among neighbours whose rows in this tensor are equal.
    Equal(usize),
}

/// Number of rows that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowCount {
    /// The first element of this tensor is the number of rows.
    Buffer(usize),
    Rows(u64),
}

/// Content of a tensor.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a> {
    pub dtype: Dtype,
    pub shape: &'a [u64],
    pub bytes: &'a [u8],
}

/// Content of an output whose rows are brought into the expected order.
#[derive(Debug)]
pub struct Rearranged<'a> {
    pub dtype: Dtype,
    pub shape: &'a [u64],
    pub bytes: &'a mut [u8],
}

/// Contents of the tensors that an arrangement reads: inputs, and expected outputs.
pub type Contents<'a> = dyn Fn(usize) -> Option<Content<'a>> + 'a;

impl Arrangement {
    /// An arrangement that leaves its output, the first buffer, unchanged.
    pub const NONE: Self = Self {
        output: 0,
        along: Vec::new(),
        order: RowOrder::Given,
        up_to: None,
        mask: None,
        empty: None,
        through: None,
        scaled: None,
    };

    /// Returns the outputs that are arranged, with `output` first.
    pub fn outputs(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.output).chain(self.along.iter().copied())
    }

    /// Returns the tensors that the arrangement reads.
    pub fn reads(&self) -> impl Iterator<Item = usize> {
        let order = match self.order {
            RowOrder::Segments(buffer) | RowOrder::Equal(buffer) => Some(buffer),
            RowOrder::Given | RowOrder::Any => None,
        };
        let count = match self.up_to {
            Some(RowCount::Buffer(buffer)) => Some(buffer),
            _ => None,
        };
        let scales = self.scaled.as_ref().map(|scaled| scaled.scales);
        [order, count, self.mask, self.through, scales].into_iter().flatten()
    }

    /// Clears the elements that are not compared in the contents of [`outputs`](Self::outputs), in
    /// their order.
    pub fn clear(&self, contents: &Contents<'_>, group: &mut [Rearranged<'_>]) {
        let Some((rows, count)) = group.first().map(|output| self.rows(output.shape, contents))
        else {
            return;
        };
        for output in group.iter_mut() {
            let row = output.bytes.len() / rows.max(1);
            output.bytes[count * row..].fill(0);
        }
        if let Some(mask) = self.mask.and_then(contents) {
            clear_masked(&mask, rows, group);
        }
        if let (Some(empty), [keys, along @ ..]) = (self.empty, &mut *group) {
            let values = sort_keys(keys.dtype, keys.bytes);
            let empty = key_of(keys.dtype, empty);
            let each = values.len() / rows.max(1);
            for row in 0..count {
                if values[row * each..][..each].iter().all(|&value| value == empty) {
                    for output in along.iter_mut() {
                        let bytes = output.bytes.len() / rows.max(1);
                        output.bytes[row * bytes..][..bytes].fill(0);
                    }
                }
            }
        }
    }

    /// Brings the contents of [`outputs`](Self::outputs), in their order, into the order of the expected ones. Both
    /// must already be cleared.
    pub fn arrange(
        &self,
        contents: &Contents<'_>,
        group: &mut [Rearranged<'_>],
        expected: &[&[u8]],
    ) {
        let same = |(output, expected): (&Rearranged<'_>, &&[u8])| output.bytes == *expected;
        let fits = group.iter().zip(expected).all(|(own, other)| own.bytes.len() == other.len());
        if group.len() != expected.len() || !fits || group.iter().zip(expected).all(same) {
            return;
        }
        let Some((rows, count)) = group.first().map(|output| self.rows(output.shape, contents))
        else {
            return;
        };
        if let Some(scaled) = &self.scaled {
            if let Some(scales) = contents(scaled.scales) {
                scaled.excuse(&scales, group, expected);
            }
            return;
        }
        if let Some(keys) = self.through.and_then(contents) {
            return excuse_equal(&keys, &mut group[0], expected[0]);
        }
        let segments = self.segments(contents, count);
        if segments.is_empty() {
            return;
        }
        let table = |bytes: &[u8], dtype| (sort_keys(dtype, bytes), rows);
        let own: Vec<_> = group.iter().map(|output| table(output.bytes, output.dtype)).collect();
        let theirs = group.iter().zip(expected);
        let theirs: Vec<_> = theirs.map(|(output, other)| table(other, output.dtype)).collect();
        let mut moves = Vec::new();
        for segment in segments {
            moves.extend(ordered(&theirs, segment.clone()).into_iter().zip(ordered(&own, segment)));
        }
        for output in group.iter_mut() {
            let row = output.bytes.len() / rows.max(1);
            let before = output.bytes.to_vec();
            for &(to, from) in &moves {
                output.bytes[to * row..][..row].copy_from_slice(&before[from * row..][..row]);
            }
        }
    }

    /// Returns the number of rows of an output, and the number of rows that are compared.
    fn rows(&self, shape: &[u64], contents: &Contents<'_>) -> (usize, usize) {
        let rows = shape.first().copied().unwrap_or(1);
        let count = match self.up_to {
            None => rows,
            Some(RowCount::Rows(count)) => count.min(rows),
            Some(RowCount::Buffer(buffer)) => {
                let value = contents(buffer).and_then(|content| numbers(&content).first().copied());
                value.unwrap_or(rows as i128).clamp(0, rows.into()) as u64
            }
        };
        (rows as usize, count as usize)
    }

    /// Returns the ranges of rows within which any order is correct.
    fn segments(&self, contents: &Contents<'_>, count: usize) -> Vec<Range<usize>> {
        let all = match self.order {
            RowOrder::Given => Vec::new(),
            RowOrder::Any => std::iter::once(0..count).collect(),
            RowOrder::Segments(offsets) => {
                let offsets =
                    contents(offsets).map(|content| numbers(&content)).unwrap_or_default();
                // Decreasing offsets must not put a row into two segments.
                let mut end = 0;
                let segment = |pair: &[i128]| {
                    let [from, to] =
                        [pair[0], pair[1]].map(|at| at.clamp(0, count as i128) as usize);
                    let from = from.max(end);
                    end = end.max(to);
                    from..to
                };
                offsets.windows(2).map(segment).collect()
            }
            RowOrder::Equal(keys) => {
                contents(keys).map(|keys| runs(&keys, count)).unwrap_or_default()
            }
        };
        all.into_iter().filter(|range| range.len() > 1).collect()
    }
}

/// Returns the ranges of equal neighbours among the first `count` rows.
fn runs(keys: &Content<'_>, count: usize) -> Vec<Range<usize>> {
    let rows = keys.shape.first().copied().unwrap_or(1) as usize;
    let values = sort_keys(keys.dtype, keys.bytes);
    let each = values.len() / rows.max(1);
    let row = |index: usize| &values[index * each..][..each];
    let mut found = Vec::new();
    let mut first = 0;
    for next in 1..=count.min(rows) {
        if next == count.min(rows) || row(next) != row(first) {
            found.push(first..next);
            first = next;
        }
    }
    found
}

/// Clears the elements, or the rows, for which the mask is zero.
fn clear_masked(mask: &Content<'_>, rows: usize, group: &mut [Rearranged<'_>]) {
    let values = sort_keys(mask.dtype, mask.bytes);
    let zero = sort_keys(mask.dtype, &[0; 8][..mask.dtype.size()])[0];
    let by_row = values.len() == rows;
    for (index, output) in group.iter_mut().enumerate() {
        let bytes = match by_row {
            true => output.bytes.len() / rows.max(1),
            false if index == 0 => output.dtype.size(),
            false => continue,
        };
        for (part, _) in
            output.bytes.chunks_mut(bytes.max(1)).zip(&values).filter(|(_, value)| **value == zero)
        {
            part.fill(0);
        }
    }
}

/// Replaces indices by the expected ones if both select equal rows. If the expected indices are all different, those of
/// the output must be, too.
fn excuse_equal(keys: &Content<'_>, output: &mut Rearranged<'_>, expected: &[u8]) {
    let rows = keys.shape.first().copied().unwrap_or(1) as usize;
    let row = keys.bytes.len() / rows.max(1);
    let indices = |bytes| numbers(&Content { dtype: output.dtype, shape: output.shape, bytes });
    let (own, theirs) = (indices(&*output.bytes), indices(expected));
    let distinct = |all: &[i128]| {
        let mut sorted = all.to_vec();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[0] != pair[1])
    };
    if distinct(&theirs) && !distinct(&own) {
        return;
    }
    let key = |index: i128| {
        let index = usize::try_from(index).ok().filter(|&index| index < rows)?;
        keys.bytes.get(index * row..(index + 1) * row)
    };
    let size = output.dtype.size();
    let slots = output.bytes.chunks_exact_mut(size).zip(expected.chunks_exact(size));
    for ((slot, wanted), (&own, &theirs)) in slots.zip(own.iter().zip(&theirs)) {
        if own != theirs && key(own).is_some() && key(own) == key(theirs) {
            slot.copy_from_slice(wanted);
        }
    }
}

/// Returns the rows of a range in ascending order of their elements in all tables.
fn ordered(tables: &[(Vec<i64>, usize)], range: Range<usize>) -> Vec<usize> {
    let mut order: Vec<usize> = range.collect();
    let compare = |a: &usize, b: &usize| {
        tables.iter().fold(Ordering::Equal, |before, (values, rows)| {
            let each = values.len() / (*rows).max(1);
            before.then_with(|| values[a * each..][..each].cmp(&values[b * each..][..each]))
        })
    };
    order.sort_unstable_by(compare);
    order
}

/// Returns an integer for each element, such that the integers are ordered as the elements. Both zeros are equal, and
/// NaN is the largest.
fn sort_keys(dtype: Dtype, bytes: &[u8]) -> Vec<i64> {
    fn of<T: Element>(bytes: &[u8], dtype: Dtype) -> Vec<i64> {
        let key = |bytes: &[u8]| {
            if dtype == Dtype::Uint64 {
                let value = bytes.try_into().map(u64::from_le_bytes).unwrap_or_default();
                return (value ^ 1 << 63) as i64;
            }
            if dtype == Dtype::Int64 {
                return bytes.try_into().map(i64::from_le_bytes).unwrap_or_default();
            }
            float_key(T::read(bytes).to_f64())
        };
        bytes.chunks_exact(T::SIZE).map(key).collect()
    }
    for_dtype!(dtype, of(bytes, dtype))
}

/// Maps numbers to integers in the same order.
fn float_key(value: f64) -> i64 {
    let value = if value == 0.0 { 0.0 } else { value };
    let bits = if value.is_nan() { i64::MAX } else { value.to_bits() as i64 };
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// Returns the sort key of a number in an element type.
fn key_of(dtype: Dtype, value: f64) -> i64 {
    match dtype {
        Dtype::Uint64 => (value as u64 ^ 1 << 63) as i64,
        Dtype::Int64 => value as i64,
        _ => float_key(value),
    }
}

/// Returns elements as integers. Floating-point elements are truncated.
fn numbers(content: &Content<'_>) -> Vec<i128> {
    fn of<T: Element>(bytes: &[u8], dtype: Dtype) -> Vec<i128> {
        let number = |bytes: &[u8]| match dtype {
            Dtype::Uint64 => bytes.try_into().map(u64::from_le_bytes).unwrap_or_default().into(),
            Dtype::Int64 => bytes.try_into().map(i64::from_le_bytes).unwrap_or_default().into(),
            _ => T::read(bytes).to_f64() as i128,
        };
        bytes.chunks_exact(T::SIZE).map(number).collect()
    }
    for_dtype!(content.dtype, of(content.bytes, content.dtype))
}

#[cfg(test)]
mod tests;
