//! Seeded tensor content, with the same bits on CPU, on GPU and in numpy (docs/seeded-data.md).
//!
//! Every operation is IEEE binary64, rounded separately. Any range of elements can be computed
//! without the elements before it. The main function is [`fill`].

use rayon::prelude::*;

use super::Dtype;
use super::element::{Element, for_dtype};
use super::generator::{ElementGenerator, InitError};
use super::normal::standard_normal;
use super::philox::{Philox, WORDS_PER_BLOCK};
use crate::TensorInit;

/// Elements per parallel task: enough to hide the cost of a task, and few enough to balance the
/// load.
const CHUNK: usize = 1 << 16;

/// Writes the elements of a tensor argument from `first_element` on into `out`, little-endian.
///
/// `name` is the argument's name, which gives half of the random key. If `out` ends with a part of
/// an element, that part is unchanged.
pub fn fill(
    init: &TensorInit,
    dtype: Dtype,
    name: &str,
    first_element: u64,
    out: &mut [u8],
) -> Result<(), InitError> {
    let generator = ElementGenerator::new(init, dtype)?;
    let stream = Philox::for_argument(init.seed.unwrap_or(0), name);
    for_dtype!(dtype, fill_as(&generator, &stream, first_element, out));
    Ok(())
}

/// Fills like [`fill`], on all cores.
pub fn fill_parallel(
    init: &TensorInit,
    dtype: Dtype,
    name: &str,
    first_element: u64,
    out: &mut [u8],
) -> Result<(), InitError> {
    let generator = ElementGenerator::new(init, dtype)?;
    let stream = Philox::for_argument(init.seed.unwrap_or(0), name);
    out.par_chunks_mut(CHUNK * dtype.size()).enumerate().for_each(|(index, chunk)| {
        let first = first_element + (index * CHUNK) as u64;
        for_dtype!(dtype, fill_as(&generator, &stream, first, chunk));
    });
    Ok(())
}

fn fill_as<T: Element>(generator: &ElementGenerator, stream: &Philox, first: u64, out: &mut [u8]) {
    match *generator {
        ElementGenerator::Constant(value) => {
            let element = T::from_f64(value);
            out.chunks_exact_mut(T::SIZE).for_each(|slot| element.write(slot));
        }
        ElementGenerator::Arange { start, step } => {
            for (slot, i) in out.chunks_exact_mut(T::SIZE).zip(first..) {
                let offset = i as f64 * step;
                T::from_f64(start + offset).write(slot);
            }
        }
        ElementGenerator::Uniform { low, high } => {
            let width = high - low;
            from_words::<T>(stream, first, out, |word| {
                let u = (word >> 11) as f64 * 2f64.powi(-53);
                let scaled = u * width;
                T::from_f64(low + scaled)
            });
        }
        ElementGenerator::Normal { mean, std } => from_words::<T>(stream, first, out, |word| {
            let scaled = std * standard_normal(word);
            T::from_f64(mean + scaled)
        }),
        ElementGenerator::Integers { low, span } => from_words::<T>(stream, first, out, |word| {
            T::from_i128(low + i128::from(scale_down(word, span)))
        }),
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

/// Computes each element from its word, four words at a time.
fn from_words<T: Element>(stream: &Philox, first: u64, out: &mut [u8], element: impl Fn(u64) -> T) {
    let mut skip = (first % WORDS_PER_BLOCK) as usize;
    let mut block = first / WORDS_PER_BLOCK;
    let mut rest = out;
    while rest.len() >= T::SIZE {
        let words = &stream.block(block)[skip..];
        let here = words.len().min(rest.len() / T::SIZE) * T::SIZE;
        let (slots, after) = rest.split_at_mut(here);
        for (slot, &word) in slots.chunks_exact_mut(T::SIZE).zip(words) {
            element(word).write(slot);
        }
        rest = after;
        skip = 0;
        block += 1;
    }
}

#[cfg(test)]
mod tests;
