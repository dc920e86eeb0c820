//! Seeded tensor content, with the same bits on CPU, on GPU and in numpy (docs/seeded-data.md).
//!
//! Every operation is IEEE binary64, rounded separately. Any range of elements can be computed
//! without the elements before it. The main function is [`fill`].

use rayon::prelude::*;

use super::Dtype;
use super::element::{Element, for_dtype};
use super::generator::{ElementGenerator, InitError, ZeroPoints};
use super::normal::standard_normal;
use super::ordered::{Permutation, Rising};
use super::parts::pack;
use super::philox::{Philox, WORDS_PER_BLOCK};
use crate::TensorInit;

/// Elements per parallel task: enough to hide the cost of a task, and few enough to balance the
/// load.
const CHUNK: usize = 1 << 16;

/// Writes the elements of a tensor argument of this shape from index `first_element` on into `out`,
/// little-endian.
///
/// `name` is the argument's name, which gives half of the random key. If `out` ends with a part of
/// an element, that part is unchanged.
///
/// # Errors
/// Returns an error if the `init` is not valid for the element type or the shape.
pub fn fill(
    init: &TensorInit,
    (dtype, shape): (Dtype, &[u64]),
    name: &str,
    first_element: u64,
    out: &mut [u8],
) -> Result<(), InitError> {
    let generator = ElementGenerator::new(init, dtype, shape)?;
    let stream = generator.stream(init.seed.unwrap_or(0), name);
    for (index, chunk) in whole(out, dtype).chunks_mut(CHUNK * dtype.size()).enumerate() {
        let first = (first_element + (index * CHUNK) as u64) * dtype.parts();
        fill_numbers(dtype, &generator, &stream, first, chunk);
    }
    Ok(())
}

/// Fills like [`fill`], on all cores.
///
/// # Errors
/// Returns the errors of [`fill`].
pub fn fill_parallel(
    init: &TensorInit,
    (dtype, shape): (Dtype, &[u64]),
    name: &str,
    first_element: u64,
    out: &mut [u8],
) -> Result<(), InitError> {
    let generator = ElementGenerator::new(init, dtype, shape)?;
    let stream = generator.stream(init.seed.unwrap_or(0), name);
    let chunks = whole(out, dtype).par_chunks_mut(CHUNK * dtype.size());
    chunks.enumerate().for_each(|(index, chunk)| {
        let first = (first_element + (index * CHUNK) as u64) * dtype.parts();
        fill_numbers(dtype, &generator, &stream, first, chunk);
    });
    Ok(())
}

/// Returns the bytes of whole elements.
fn whole(out: &mut [u8], dtype: Dtype) -> &mut [u8] {
    let bytes = out.len() / dtype.size() * dtype.size();
    &mut out[..bytes]
}

/// Writes elements. `first` is the index of their first number; a complex or packed element has two
/// numbers.
fn fill_numbers(
    dtype: Dtype,
    generator: &ElementGenerator,
    stream: &Philox,
    first: u64,
    out: &mut [u8],
) {
    if dtype.is_packed() {
        let mut numbers = vec![0; 2 * out.len()];
        for_dtype!(dtype, fill_as(generator, stream, first, &mut numbers));
        return pack(dtype, &numbers, out);
    }
    for_dtype!(dtype, fill_as(generator, stream, first, out));
}

/// Writes the numbers from index `first` on.
fn fill_as<T: Element>(generator: &ElementGenerator, stream: &Philox, first: u64, out: &mut [u8]) {
    match generator {
        &ElementGenerator::Constant(value) => by_index(first, out, |_| T::from_f64(value)),
        &ElementGenerator::Arange { start, step, parts } => by_index(first, out, |i| {
            let offset = (i / parts) as f64 * step;
            T::from_f64(if i % parts == 0 { start + offset } else { 0.0 })
        }),
        &ElementGenerator::Uniform { low, width } => {
            from_words(stream, first, out, |_, word| uniform::<T>(word, low, width));
        }
        &ElementGenerator::Normal { mean, std } => from_words(stream, first, out, |_, word| {
            let scaled = std * standard_normal(word);
            T::from_f64(mean + scaled)
        }),
        &ElementGenerator::Exponents { mean, std } => from_words(stream, first, out, |_, word| {
            let scaled = std * standard_normal(word);
            let exponent = (mean + scaled).round_ties_even().clamp(-127.0, 127.0);
            T::from_f64(2f64.powi(exponent as i32))
        }),
        &ElementGenerator::Integers { low, span } => {
            from_words(stream, first, out, |_, word| integer::<T>(word, low, span));
        }
        ElementGenerator::UniformColumns(columns) => from_words(stream, first, out, |i, word| {
            let (low, width) = columns[(i % columns.len() as u64) as usize];
            uniform::<T>(word, low, width)
        }),
        ElementGenerator::IntegerColumns(columns) => from_words(stream, first, out, |i, word| {
            let (low, span) = columns[(i % columns.len() as u64) as usize];
            integer::<T>(word, low, span)
        }),
        ElementGenerator::Choice(values) => from_words(stream, first, out, |_, word| {
            T::from_f64(values[scale_down(word, values.len() as u64) as usize])
        }),
        &ElementGenerator::Permutation { low, span } => {
            let permutation = Permutation::new(stream, span);
            by_index(first, out, |i| T::from_i128(low + i128::from(permutation.at(i))));
        }
        &ElementGenerator::Sorted { low, points, top, unique } => {
            let rising = Rising::new(stream, points, top);
            rises(&rising, first + 1, out, |values, k| {
                let before = if unique { first + k as u64 } else { 0 };
                T::from_i128(low + i128::from(values[k]) + i128::from(before))
            });
        }
        &ElementGenerator::SortedFloats { low, width, points } => {
            let rising = Rising::new(stream, points, 1 << 53);
            rises(&rising, first + 1, out, |values, k| {
                let scaled = values[k] as f64 * 2f64.powi(-53) * width;
                T::from_f64(low + scaled)
            });
        }
        &ElementGenerator::Offsets { low, points, top } => {
            let rising = Rising::new(stream, points, top);
            rises(&rising, first, out, |values, k| T::from_i128(low + i128::from(values[k])));
        }
        ElementGenerator::Scales(range) => {
            by_index(first, out, |i| T::from_f64(range.at(stream.key(), i)));
        }
        &ElementGenerator::ZeroPoints { low, span } => {
            let zeros = ZeroPoints { low, span, key: stream.key() };
            by_index(first, out, |i| T::from_f64(zeros.at(i) as f64));
        }
        ElementGenerator::Quantized(values) => from_words(stream, first, out, |i, word| {
            T::from_f64(values.at(i, standard_normal(word)))
        }),
        ElementGenerator::Lengths(of) => {
            let rising = Rising::new(stream, of.points(), of.top);
            rises(&rising, first, out, |values, k| {
                T::from_i128(i128::from(values[k + 1]) - i128::from(values[k]))
            });
        }
        ElementGenerator::Segments(of) => {
            let rising = Rising::new(stream, of.points(), of.top);
            by_index(first, out, |i| T::from_i128(i128::from(rising.segment_of(i))));
        }
    }
}

#[inline]
fn uniform<T: Element>(word: u64, low: f64, width: f64) -> T {
    let u = (word >> 11) as f64 * 2f64.powi(-53);
    let scaled = u * width;
    T::from_f64(low + scaled)
}

#[inline]
fn integer<T: Element>(word: u64, low: i128, span: u64) -> T {
    T::from_i128(low + i128::from(scale_down(word, span)))
}

/// Computes each element from its index.
fn by_index<T: Element>(first: u64, out: &mut [u8], element: impl Fn(u64) -> T) {
    for (slot, i) in out.chunks_exact_mut(T::SIZE).zip(first..) {
        element(i).write(slot);
    }
}

/// Computes each element from the values of a rising sequence from index `first` on, and its
/// position in `out`. The values include one more than `out` has elements, if the sequence has it.
fn rises<T: Element>(
    rising: &Rising,
    first: u64,
    out: &mut [u8],
    element: impl Fn(&[u64], usize) -> T,
) {
    let mut values = Vec::new();
    rising.values(first, out.len() / T::SIZE + 1, &mut values);
    for (k, slot) in out.chunks_exact_mut(T::SIZE).enumerate() {
        element(&values, k).write(slot);
    }
}

/// Maps a word to 0 … span − 1 by multiplication. For a span of up to 2^32 it uses the upper half
/// of the word, so that a product of two 32-bit numbers suffices.
#[inline]
fn scale_down(word: u64, span: u64) -> u64 {
    if span <= 1 << 32 {
        ((word >> 32) * span) >> 32
    } else {
        ((u128::from(word) * u128::from(span)) >> 64) as u64
    }
}

/// Computes each element from its index and its word, four words at a time.
fn from_words<T: Element>(
    stream: &Philox,
    first: u64,
    out: &mut [u8],
    element: impl Fn(u64, u64) -> T,
) {
    let mut index = first;
    let mut skip = (first % WORDS_PER_BLOCK) as usize;
    let mut block = first / WORDS_PER_BLOCK;
    let mut rest = out;
    while rest.len() >= T::SIZE {
        let words = &stream.block(block)[skip..];
        let here = words.len().min(rest.len() / T::SIZE) * T::SIZE;
        let (slots, after) = rest.split_at_mut(here);
        for (slot, &word) in slots.chunks_exact_mut(T::SIZE).zip(words) {
            element(index, word).write(slot);
            index += 1;
        }
        rest = after;
        skip = 0;
        block += 1;
    }
}

#[cfg(test)]
mod tests;
