//! Quantised outputs, whose numbers are compared together with their scales. The main type is
//! [`Scaled`].

use serde::{Deserialize, Serialize};

use warpgauge_tensor::element::{Element, for_dtype};
use warpgauge_tensor::{Dtype, ScaleBlocks, unpacked};

use super::{Content, Rearranged};

/// Rule for comparing the numbers of a quantised output together with their scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaled {
    /// Tensor of the scales. If the tensor is an output, it is the first of `along`.
    pub scales: usize,
    pub blocks: ScaleBlocks,
    /// Absolute and relative tolerance of numbers times their scales; `None` means the sum of half a step of both
    /// numbers.
    pub within: Option<(f64, f64)>,
}

/// Relative difference below which scales count as equal. Sums in another order cause such
/// differences.
const SAME_SCALE: f64 = 1.0 / 4096.0;

/// Maximum share of the numbers with equal scales that may differ. Noise in sums moves at most a tenth of them over a
/// rounding tie; truncation changes half of them.
const MOST_STEPS: f64 = 0.25;

/// Factor on tolerances that allows for the rounding of binary64.
const ROUNDING: f64 = 1.0 + 1e-9;

/// Numbers of a quantised tensor, with their scales.
struct Side<'a> {
    dtype: Dtype,
    bytes: &'a [u8],
    /// Number that each code represents.
    table: &'a [f64],
    scales: &'a [f64],
}

impl Side<'_> {
    /// Returns the number at `index` and its scale. A number or scale that does not exist is NaN.
    fn at(&self, index: usize, scale: u64) -> (f64, f64) {
        let code = match self.dtype.is_packed() {
            true => self.bytes.get(index / 2).map(|byte| byte >> (index % 2 * 4) & 0xF),
            false => self.bytes.get(index).copied(),
        };
        let number = code.and_then(|code| self.table.get(usize::from(code)).copied());
        let scale = usize::try_from(scale).ok().and_then(|at| self.scales.get(at).copied());
        (number.unwrap_or(f64::NAN), scale.unwrap_or(f64::NAN))
    }
}

/// Returns the number that each code of a quantised type represents.
fn table(dtype: Dtype) -> Vec<f64> {
    match dtype.is_packed() {
        true => (0..16).map(|code| values(dtype, &[code])[0]).collect(),
        false => values(dtype, &(0..=u8::MAX).collect::<Vec<_>>()),
    }
}

impl Scaled {
    /// Replaces numbers that are correct together with their scales by the expected ones, and scales whose numbers are
    /// all correct. `group` and `expected` contain the output, and its scales if they are an output. `scales` are the
    /// expected or given ones.
    pub(super) fn excuse(
        &self,
        scales: &Content<'_>,
        group: &mut [Rearranged<'_>],
        expected: &[&[u8]],
    ) {
        let [output, along @ ..] = group else { return };
        let dtype = output.dtype;
        if dtype.largest_quantized().is_none() {
            return;
        }
        let (table, given) = (table(dtype), values(scales.dtype, scales.bytes));
        let written = along.first().map(|scales| values(scales.dtype, scales.bytes));
        let written = written.as_ref().unwrap_or(&given);
        let before = output.bytes.to_vec();
        let own = Side { dtype, bytes: &before, table: &table, scales: written };
        let theirs = Side { dtype, bytes: expected[0], table: &table, scales: &given };
        let numbers = before.len() * if dtype.is_packed() { 2 } else { 1 };
        let pair = |index: usize| {
            let scale = self.blocks.scale_of(index as u64);
            (scale, own.at(index, scale), theirs.at(index, scale))
        };
        let mut right = vec![true; written.len()];
        let (mut alike, mut steps) = (0u64, 0u64);
        for index in 0..numbers {
            let (scale, mine, wanted) = pair(index);
            let same = (mine.1 - wanted.1).abs() <= SAME_SCALE * wanted.1.abs();
            alike += u64::from(same);
            steps += u64::from(same && mine.0 != wanted.0);
            if !self.matches(mine, wanted, (dtype, scales.dtype))
                && let Some(block) = right.get_mut(scale as usize)
            {
                *block = false;
            }
        }
        if self.within.is_none() && steps as f64 > MOST_STEPS * alike as f64 {
            return;
        }
        for index in 0..numbers {
            let (_, mine, wanted) = pair(index);
            if self.matches(mine, wanted, (dtype, scales.dtype)) {
                replace(dtype, (output.bytes, expected[0]), index);
            }
        }
        if let ([scales, ..], [_, wanted, ..]) = (along, expected) {
            let size = scales.dtype.size();
            let slots = scales.bytes.chunks_exact_mut(size).zip(wanted.chunks_exact(size));
            for ((slot, wanted), _) in slots.zip(&right).filter(|(_, right)| **right) {
                slot.copy_from_slice(wanted);
            }
        }
    }

    /// Returns whether a number with its scale matches the expected number with its scale.
    fn matches(
        &self,
        (a, mine): (f64, f64),
        (b, wanted): (f64, f64),
        types: (Dtype, Dtype),
    ) -> bool {
        let (x, y) = (a * mine, b * wanted);
        if !x.is_finite() || !y.is_finite() {
            return false;
        }
        if let Some((atol, rtol)) = self.within {
            return (x - y).abs() <= atol + rtol * y.abs();
        }
        let near = (mine - wanted).abs() <= step_of_scales(types.1) * mine.abs().min(wanted.abs());
        let half = (step(types.0, a) * mine.abs() + step(types.0, b) * wanted.abs()) / 2.0;
        x == y || (near && (x - y).abs() <= half * ROUNDING)
    }
}

/// Returns the relative distance between neighbouring scales, as a share of the smaller one. For wider types, it is the
/// distance of bfloat16, in which many kernels compute scales.
fn step_of_scales(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::Float8E8m0 => 1.0,
        Dtype::Float8E4m3 => 1.0 / 8.0,
        _ => 1.0 / 128.0,
    }
}

/// Returns the distance from a number of a quantised type to the next larger one.
fn step(dtype: Dtype, number: f64) -> f64 {
    let (digits, lowest) = match dtype {
        Dtype::Float8E4m3 => (3, -6),
        Dtype::Float8E5m2 => (2, -14),
        Dtype::Float4E2m1x2 => (1, 0),
        _ => return 1.0,
    };
    let exponent = (number.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.max(lowest) - digits)
}

/// Returns the numbers of a tensor.
fn values(dtype: Dtype, bytes: &[u8]) -> Vec<f64> {
    fn of<T: Element>(bytes: &[u8]) -> Vec<f64> {
        bytes.chunks_exact(T::SIZE).map(|bytes| T::read(bytes).to_f64()).collect()
    }
    for_dtype!(dtype, of(&unpacked(dtype, bytes)))
}

/// Replaces the number at `index` by that of the other tensor. The other half of a packed byte stays unchanged.
fn replace(dtype: Dtype, (bytes, by): (&mut [u8], &[u8]), index: usize) {
    let (at, mask) = match dtype.is_packed() {
        true => (index / 2, 0xF << (index % 2 * 4)),
        false => (index, 0xFF),
    };
    if let (Some(own), Some(other)) = (bytes.get_mut(at), by.get(at)) {
        *own = (*own & !mask) | (*other & mask);
    }
}

#[cfg(test)]
mod tests;
