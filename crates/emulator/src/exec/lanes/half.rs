//! f16 and bf16 arithmetic, on single values and on pairs, rounded once.

use super::float::holds;
use super::regs::Regs;
use crate::arith::approx;
use crate::arith::soft::{self, Format, Round};
use crate::ir::{Consts, F1, F2, FCmp, Fp, Inst, Mode};

/// Returns the floating-point format of an element type.
fn format(fp: Fp) -> Format {
    match fp {
        Fp::Bf16 | Fp::Bf16x2 => soft::BF16,
        _ => soft::F16,
    }
}

fn packed(fp: Fp) -> bool {
    matches!(fp, Fp::F16x2 | Fp::Bf16x2)
}

/// Converts an element to f32, which represents it exactly. NaNs become quiet.
#[inline(always)]
pub(in crate::exec) fn to_f32(f: Format, v: u16) -> f32 {
    if f == soft::BF16 {
        return f32::from_bits(u32::from(v) << 16);
    }
    // The code has no branches, so that the compiler vectorises a row of lanes. The product adjusts
    // the exponent to f32 and normalises subnormal numbers.
    let magnitude = u32::from(v & 0x7fff) << 13;
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
    let quiet = if v & 0x7fff > 0x7c00 { 0x7fc0_0000 } else { 0x7f80_0000 };
    let bits = if v & 0x7fff >= 0x7c00 { magnitude | quiet } else { scaled.to_bits() };
    f32::from_bits(bits | u32::from(v & 0x8000) << 16)
}

/// Converts an f32, rounded to nearest.
pub(in crate::exec) fn from_f32(f: Format, v: f32) -> u16 {
    if v.is_nan() {
        return f.nan() as u16;
    }
    if f == soft::BF16 {
        let bits = v.to_bits();
        return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    }
    half::f16::from_f32_const(v).to_bits()
}

/// Flushes a result with `.ftz` that is below the normal numbers when it is rounded with an
/// unlimited exponent range. `exact` is the result before rounding, `v` the result after it.
fn flushed(f: Format, mode: Mode, v: u16, exact: f64) -> u16 {
    let least = f64::from(to_f32(f, 1 << f.man));
    let half_ulp = 1.0 - 0.25 / f64::from(1u32 << f.man);
    if mode.ftz && exact.abs() < least * half_ulp { v & 0x8000 } else { v }
}

/// Applies flushing, clamping and `.relu` to a result.
fn finish(f: Format, mode: Mode, v: u16) -> u16 {
    let magnitude = v & 0x7fff;
    let nan = f.is_nan(v.into());
    let v = if mode.ftz && magnitude < 1 << f.man { v & 0x8000 } else { v };
    let one = if f == soft::BF16 { 0x3f80 } else { 0x3c00 };
    if mode.sat {
        return if nan || v >> 15 == 1 { 0 } else { v.min(one) };
    }
    if mode.relu && !nan && v >> 15 == 1 { 0 } else { v }
}

fn input(f: Format, mode: Mode, v: u16) -> u16 {
    if mode.ftz && v & 0x7fff < 1 << f.man { v & 0x8000 } else { v }
}

fn binary(f: Format, op: F2, mode: Mode, a: u16, b: u16) -> u16 {
    let (a, b) = (input(f, mode, a), input(f, mode, b));
    let (x, y) = (to_f32(f, a), to_f32(f, b));
    // A sum, difference or product of two elements is rounded twice here. The result equals that of
    // a single rounding, because f32 has at least twice as many significant bits plus two.
    let v = match op {
        F2::Add => from_f32(f, x + y),
        F2::Sub => from_f32(f, x - y),
        F2::Mul => flushed(f, mode, from_f32(f, x * y), (x * y).into()),
        F2::Div | F2::DivApprox => from_f32(f, x / y),
        F2::Copysign => a & 0x8000 | b & 0x7fff,
        _ => pick(f, op, a, b),
    };
    finish(f, mode, v)
}

fn pick(f: Format, op: F2, a: u16, b: u16) -> u16 {
    let max = matches!(op, F2::Max | F2::MaxNan | F2::MaxXorAbs | F2::MaxNanXorAbs);
    let keep = matches!(op, F2::MinNan | F2::MaxNan | F2::MinNanXorAbs | F2::MaxNanXorAbs);
    let xor = matches!(op, F2::MinXorAbs | F2::MaxXorAbs | F2::MinNanXorAbs | F2::MaxNanXorAbs);
    let sign = if xor { (a ^ b) & 0x8000 } else { 0 };
    let (a, b) = if xor { (a & 0x7fff, b & 0x7fff) } else { (a, b) };
    let nan = f.nan() as u16;
    match (f.is_nan(a.into()), f.is_nan(b.into())) {
        (true, true) => nan,
        (true, false) => {
            if keep {
                nan
            } else {
                b | sign
            }
        }
        (false, true) => {
            if keep {
                nan
            } else {
                a | sign
            }
        }
        _ => {
            let (x, y) = (to_f32(f, a), to_f32(f, b));
            let a_less = x < y || (x == y && a >> 15 > b >> 15);
            sign | if a_less != max { a } else { b }
        }
    }
}

fn fused(f: Format, mode: Mode, a: u16, b: u16, c: u16) -> u16 {
    let get = |v| f64::from(to_f32(f, input(f, mode, v)));
    let (product, c) = (get(a) * get(b), get(c));
    let sum = product + c;
    if !sum.is_finite() {
        return finish(f, mode, from_f32(f, sum as f32));
    }
    // The product is exact. The error of the sum gives the direction in which the f64 is rounded to
    // odd.
    let back = sum - product;
    let error = (product - (sum - back)) + (c - back);
    let mut bits = sum.to_bits();
    if error != 0.0 && bits & 1 == 0 {
        let toward_zero = (error < 0.0) != (sum < 0.0);
        bits = if toward_zero { bits - 1 } else { bits + 1 };
    }
    let v = soft::convert(soft::F64, f, Round::Rn, bits) as u16;
    finish(f, mode, flushed(f, mode, v, f64::from_bits(bits)))
}

fn unary(f: Format, op: F1, mode: Mode, a: u16) -> u16 {
    let a = input(f, mode, a);
    let of = |g: fn(f32) -> f32| from_f32(f, g(to_f32(f, a)));
    let v = match op {
        F1::Neg | F1::Abs if f.is_nan(a.into()) => return f.nan() as u16,
        F1::Neg => return a ^ 0x8000,
        F1::Abs => return a & 0x7fff,
        F1::Sqrt | F1::SqrtApprox => of(f32::sqrt),
        F1::Rcp | F1::RcpApprox => of(f32::recip),
        F1::RsqrtApprox => of(approx::rsqrt),
        F1::Sin => of(approx::sin),
        F1::Cos => of(approx::cos),
        F1::Ex2 if f == soft::F16 => {
            let v = approx::ex2(to_f32(f, a));
            // A GPU truncates the digits that a subnormal number cannot represent.
            let cut = v > 0.0 && v < to_f32(f, 1 << f.man);
            if cut { (v * 16_777_216.0) as u16 } else { from_f32(f, v) }
        }
        F1::Ex2 => of(approx::ex2),
        F1::Lg2 => of(approx::lg2),
        F1::Tanh => of(approx::tanh),
    };
    finish(f, mode, v)
}

/// Applies `g` to one element, or to both halves of a pair.
fn each(fp: Fp, a: u32, b: u32, c: u32, g: impl Fn(u16, u16, u16) -> u16) -> u32 {
    let low = u32::from(g(a as u16, b as u16, c as u16));
    if !packed(fp) {
        return low;
    }
    low | u32::from(g((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16)) << 16
}

pub(in crate::exec) fn two(r: &mut Regs, k: &Consts, i: &Inst, fp: Fp, op: F2, mode: Mode, m: u32) {
    let f = format(fp);
    r.b32(k, i, m, |a, b| each(fp, a, b, 0, |x, y, _| binary(f, op, mode, x, y)));
}

pub(in crate::exec) fn fma(r: &mut Regs, k: &Consts, i: &Inst, fp: Fp, mode: Mode, m: u32) {
    let f = format(fp);
    r.t32(k, i, m, |a, b, c| each(fp, a, b, c, |x, y, z| fused(f, mode, x, y, z)));
}

pub(in crate::exec) fn one(r: &mut Regs, k: &Consts, i: &Inst, fp: Fp, op: F1, mode: Mode, m: u32) {
    let f = format(fp);
    r.u32(k, i, m, |a| each(fp, a, 0, 0, |x, _, _| unary(f, op, mode, x)));
}

pub(in crate::exec) fn compare(
    r: &mut Regs,
    k: &Consts,
    i: &Inst,
    fp: Fp,
    cmp: FCmp,
    ftz: bool,
    m: u32,
) {
    let f = format(fp);
    let mode = Mode { ftz, ..Mode::default() };
    let test = |a: u32, b: u32| {
        let x = to_f32(f, input(f, mode, a as u16));
        let y = to_f32(f, input(f, mode, b as u16));
        holds(cmp, x < y, x == y, x.is_nan() || y.is_nan())
    };
    let (a, b) = (*r.s32(k, i.a), *r.s32(k, i.b));
    r.c32(k, i, m, test);
    if packed(fp) {
        let high = (0..32).fold(0, |v, l| v | u32::from(test(a[l] >> 16, b[l] >> 16)) << l);
        r.putp(i.e, high, m);
    }
}

/// Adds two elements for an atomic operation.
pub(in crate::exec) fn add(f: Format, a: u16, b: u16) -> u16 {
    binary(f, F2::Add, Mode::default(), a, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_is_the_f32_that_it_is_elsewhere() {
        for v in 0..=u16::MAX {
            let want = half::f16::from_bits(v).to_f32_const().to_bits();
            assert_eq!(to_f32(soft::F16, v).to_bits(), want, "{v:#06x}");
        }
    }

    #[test]
    fn one_rounding() {
        let mut state = 12345u64;
        for _ in 0..300_000 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let (a, b, c) = (state as u16, (state >> 16) as u16, (state >> 32) as u16);
            for f in [soft::F16, soft::BF16] {
                let (x, y, z) = (a.into(), b.into(), c.into());
                let mode = Mode::default();
                let same = |got: u16, want: u64, what: &str| {
                    let nan = f.is_nan(want) && f.is_nan(got.into());
                    assert!(nan || u64::from(got) == want, "{what} {a:x} {b:x} {c:x}");
                };
                same(binary(f, F2::Add, mode, a, b), soft::add(f, Round::Rn, x, y), "add");
                same(binary(f, F2::Mul, mode, a, b), soft::mul(f, Round::Rn, x, y), "mul");
                same(fused(f, mode, a, b, c), soft::fma(f, Round::Rn, x, y, z), "fma");
            }
        }
    }
}
