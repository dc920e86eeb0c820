//! The NaN that an instruction returns, as measured on a GPU.
//!
//! Arithmetic of f32, f16 and bf16 has a single NaN. Arithmetic of f64 returns one of its NaN
//! operands, quieted. For a sum or product this is the last of two NaNs, for a fused operation b
//! before c before a, for a quotient the dividend. Without a NaN operand the result is [`INVALID`].
//! Conversions from and to f64 keep the sign and the upper bits of the payload.

use super::soft::{BF16, F32, F64, Format, Round, TF32};

/// The f64 NaN that an invalid operation returns: 0 × ∞, ∞ − ∞, 0 / 0 or √−1.
pub(crate) const INVALID: u64 = 0xfff8_0000_0000_0000;

#[inline(always)]
fn is(v: u64) -> bool {
    v & (u64::MAX >> 1) > 0x7ff0_0000_0000_0000
}

#[inline(always)]
pub(crate) fn quiet(v: u64) -> u64 {
    v | 1 << 51
}

/// Returns the f64 result of an operation with one operand. Replaces a NaN by the NaN that a GPU
/// returns.
#[inline(always)]
pub(crate) fn one(v: u64, a: u64) -> u64 {
    let nan = if is(a) { quiet(a) } else { INVALID };
    if is(v) { nan } else { v }
}

/// Like [`one`] for two operands. A NaN `b` takes precedence over a NaN `a`.
#[inline(always)]
pub(crate) fn two(v: u64, a: u64, b: u64) -> u64 {
    one(v, if is(b) { b } else { a })
}

/// Like [`one`] for `a × b + c`.
#[inline(always)]
pub(crate) fn three(v: u64, a: u64, b: u64, c: u64) -> u64 {
    let last = if is(c) { c } else { a };
    one(v, if is(b) { b } else { last })
}

/// Modifiers of a conversion that affect a NaN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conversion {
    pub(crate) round: Round,
    pub(crate) integral: bool,
    pub(crate) ftz: bool,
    pub(crate) sat: bool,
}

/// Converts a NaN to another format, or to the same format.
pub(crate) fn convert(from: Format, to: Format, how: Conversion, v: u64) -> u64 {
    let plain = !how.ftz && !how.sat;
    if plain && !how.integral && from == to && (to == F32 || to == F64) {
        return v;
    }
    if plain && from == BF16 && to == F32 {
        return v << 16;
    }
    if to == TF32 {
        // Rounding to nearest, ties away from zero, keeps the upper bits of a NaN.
        return if how.round == Round::Rna { v & 0xffff_e000 } else { 0x7fff_e000 };
    }
    if from != F64 && to != F64 {
        return to.nan();
    }
    // `.ftz` first replaces an f32 NaN by the single NaN.
    let v = if how.ftz && from == F32 { from.nan() } else { v };
    let sign = v >> (from.man + from.exp) & 1;
    let payload = v << (64 - from.man) | 1 << 63;
    sign << (to.man + to.exp) | to.inf() | payload >> (64 - to.man)
}
