//! Floating-point arithmetic on lanes of f32 and f64.
//!
//! The host rounds to nearest even. The other modes, which are rare, use [`soft`]. A NaN result has
//! the same bits as on a GPU.

use super::regs::Regs;
use crate::arith::approx;
use crate::arith::nan;
use crate::arith::soft::{self, Format, Round};
use crate::ir::{Consts, F1, F2, FCmp, Inst, Mode};

/// The single NaN that f32 arithmetic of a GPU returns.
const NAN32: u32 = 0x7fff_ffff;
/// 2^-94: the smallest normal number times [`SCALE`].
const TINY: f32 = f32::from_bits((127 - 94) << 23);
/// 2^32, the factor by which `flushed` scales small numbers.
const SCALE: f32 = 4_294_967_296.0;

/// Replaces subnormals by zeros of the same sign.
#[inline(always)]
pub(in crate::exec) fn flush(v: u32) -> u32 {
    if v & 0x7f80_0000 == 0 { v & 0x8000_0000 } else { v }
}

/// Applies the modifiers to a result before it is stored.
#[inline(always)]
fn finish(v: f32, ftz: bool, sat: bool) -> u32 {
    let bits = if v.is_nan() { NAN32 } else { v.to_bits() };
    let bits = if ftz { flush(bits) } else { bits };
    if sat { clamp(bits) } else { bits }
}

/// Clamps to [0, 1]; NaN becomes 0.
#[inline(always)]
fn clamp(bits: u32) -> u32 {
    let v = f32::from_bits(bits);
    if v > 1.0 {
        1f32.to_bits()
    } else if v > 0.0 {
        bits
    } else {
        0
    }
}

#[inline(always)]
fn input(v: u32, ftz: bool) -> f32 {
    f32::from_bits(if ftz { flush(v) } else { v })
}

/// Computes a binary operation that is rounded to nearest.
#[inline(always)]
fn near2(r: &mut Regs, k: &Consts, i: &Inst, mode: Mode, m: u32, f: impl Fn(f32, f32) -> f32) {
    if !mode.ftz && !mode.sat {
        r.b32(k, i, m, |a, b| finish(f(f32::from_bits(a), f32::from_bits(b)), false, false));
    } else if mode.ftz && !mode.sat {
        r.b32(k, i, m, |a, b| finish(f(input(a, true), input(b, true)), true, false));
    } else {
        let ftz = mode.ftz;
        r.b32(k, i, m, |a, b| finish(f(input(a, ftz), input(b, ftz)), ftz, true));
    }
}

/// Returns `v`, the rounded `a × b + c` (only the product if `c` is `None`), with `.ftz` applied. A
/// GPU flushes a result that is below the normal numbers when it is rounded with an unlimited
/// exponent. The host's rounding may have raised it to the smallest normal number. Infinity, where
/// scaling overflows, is never flushed.
#[inline(always)]
fn flushed(v: f32, a: f32, b: f32, c: Option<f32>) -> f32 {
    let scaled = match c {
        Some(c) => (a * SCALE).mul_add(b, c * SCALE),
        None => (a * SCALE) * b,
    };
    if scaled.abs() < TINY { 0f32.copysign(v) } else { v }
}

/// Applies the rule of `flushed` to a result of `f` in a directed rounding mode. `f` also computes
/// in the format [`WIDE`].
fn exact_flushed(v: u32, args: [u32; 3], f: impl Fn(Format, [u64; 3]) -> u64) -> u32 {
    if v & 0x7fff_ffff != 0x0080_0000 {
        return v;
    }
    let wide = f(WIDE, args.map(|a| soft::convert(soft::F32, WIDE, Round::Rz, a.into())));
    let least = soft::convert(soft::F32, WIDE, Round::Rz, 0x0080_0000);
    if wide & ((1 << (WIDE.man + WIDE.exp)) - 1) < least { v & 1 << 31 } else { v }
}

/// A format with the significand of f32 and a larger range of exponents.
const WIDE: Format = Format { man: 23, exp: 11 };

/// Applies flushing and clamping to the bits of an f32 result.
fn around(mode: Mode, v: u64) -> u32 {
    let v = if mode.ftz { flush(v as u32) } else { v as u32 };
    if mode.sat { clamp(v) } else { v }
}

fn exact2(r: &mut Regs, k: &Consts, i: &Inst, mode: Mode, m: u32, f: impl Fn(u64, u64) -> u64) {
    let x = |v: u32| u64::from(if mode.ftz { flush(v) } else { v });
    r.b32(k, i, m, |a, b| around(mode, f(x(a), x(b))));
}

/// Returns the minimum or maximum. −0 is less than +0. A NaN operand is ignored unless `nan` is
/// set.
#[inline(always)]
fn pick32(a: u32, b: u32, max: bool, nan: bool, ftz: bool) -> u32 {
    let (a, b) = if ftz { (flush(a), flush(b)) } else { (a, b) };
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => NAN32,
        (true, false) => {
            if nan {
                NAN32
            } else {
                b
            }
        }
        (false, true) => {
            if nan {
                NAN32
            } else {
                a
            }
        }
        _ => {
            let a_less = x < y || (x == y && a >> 31 > b >> 31);
            if a_less != max { a } else { b }
        }
    }
}

fn min_max32(r: &mut Regs, k: &Consts, i: &Inst, op: F2, mode: Mode, m: u32) {
    let max = matches!(op, F2::Max | F2::MaxNan | F2::MaxXorAbs | F2::MaxNanXorAbs);
    let nan = matches!(op, F2::MinNan | F2::MaxNan | F2::MinNanXorAbs | F2::MaxNanXorAbs);
    let xor = matches!(op, F2::MinXorAbs | F2::MaxXorAbs | F2::MinNanXorAbs | F2::MaxNanXorAbs);
    if !xor {
        let ftz = mode.ftz;
        return r.b32(k, i, m, |a, b| pick32(a, b, max, nan, ftz));
    }
    r.b32(k, i, m, |a, b| {
        let v = pick32(a & !(1 << 31), b & !(1 << 31), max, nan, mode.ftz);
        if f32::from_bits(v).is_nan() { v } else { v | (a ^ b) & 1 << 31 }
    });
}

#[inline(always)]
pub(in crate::exec) fn f32_2(r: &mut Regs, k: &Consts, i: &Inst, op: F2, mode: Mode, m: u32) {
    if mode.round == Round::Rn {
        match op {
            F2::Add => return near2(r, k, i, mode, m, |a, b| a + b),
            F2::Sub => return near2(r, k, i, mode, m, |a, b| a - b),
            F2::Mul if mode.ftz => {
                return near2(r, k, i, mode, m, |a, b| flushed(a * b, a, b, None));
            }
            F2::Mul => return near2(r, k, i, mode, m, |a, b| a * b),
            F2::Div => return near2(r, k, i, mode, m, |a, b| a / b),
            F2::DivApprox => return near2(r, k, i, mode, m, approx::div),
            _ => {}
        }
    }
    f32_2_rare(r, k, i, op, mode, m);
}

fn f32_2_rare(r: &mut Regs, k: &Consts, i: &Inst, op: F2, mode: Mode, m: u32) {
    let (f, round) = (soft::F32, mode.round);
    match op {
        F2::Add => exact2(r, k, i, mode, m, |a, b| soft::add(f, round, a, b)),
        F2::Sub => exact2(r, k, i, mode, m, |a, b| soft::add(f, round, a, b ^ 1 << 31)),
        F2::Mul if mode.ftz => r.b32(k, i, m, |a, b| {
            let args = [flush(a), flush(b), 0];
            let of = |f: Format, [a, b, _]: [u64; 3]| soft::mul(f, round, a, b);
            around(mode, exact_flushed(of(f, args.map(u64::from)) as u32, args, of).into())
        }),
        F2::Mul => exact2(r, k, i, mode, m, |a, b| soft::mul(f, round, a, b)),
        F2::Div => exact2(r, k, i, mode, m, |a, b| soft::div(f, round, a, b)),
        F2::Copysign => r.b32(k, i, m, |a, b| a & 1 << 31 | b & !(1 << 31)),
        _ => min_max32(r, k, i, op, mode, m),
    }
}

#[inline(always)]
pub(in crate::exec) fn f32_fma(r: &mut Regs, k: &Consts, i: &Inst, mode: Mode, m: u32) {
    let near = |a: u32, b: u32, c: u32, ftz: bool, sat: bool| {
        let (a, b, c) = (input(a, ftz), input(b, ftz), input(c, ftz));
        let v = a.mul_add(b, c);
        finish(if ftz { flushed(v, a, b, Some(c)) } else { v }, ftz, sat)
    };
    if mode.round != Round::Rn {
        let x = |v: u32| if mode.ftz { flush(v) } else { v };
        let of = |f: Format, [a, b, c]: [u64; 3]| soft::fma(f, mode.round, a, b, c);
        return r.t32(k, i, m, |a, b, c| {
            let args = [x(a), x(b), x(c)];
            let v = of(soft::F32, args.map(u64::from)) as u32;
            around(mode, if mode.ftz { exact_flushed(v, args, of) } else { v }.into())
        });
    }
    match (mode.ftz, mode.sat) {
        (false, false) => r.t32(k, i, m, |a, b, c| near(a, b, c, false, false)),
        (true, false) => r.t32(k, i, m, |a, b, c| near(a, b, c, true, false)),
        (ftz, true) => r.t32(k, i, m, |a, b, c| near(a, b, c, ftz, true)),
    }
}

#[inline(always)]
pub(in crate::exec) fn f32_1(r: &mut Regs, k: &Consts, i: &Inst, op: F1, mode: Mode, m: u32) {
    let ftz = mode.ftz;
    let near = |a: u32, f: fn(f32) -> f32| finish(f(input(a, ftz)), ftz, false);
    if mode.sat || mode.round != Round::Rn {
        return f32_1_rare(r, k, i, op, mode, m);
    }
    match op {
        F1::Sqrt | F1::SqrtApprox => r.u32(k, i, m, |a| near(a, f32::sqrt)),
        F1::Rcp | F1::RcpApprox => r.u32(k, i, m, |a| near(a, f32::recip)),
        F1::RsqrtApprox => r.u32(k, i, m, |a| near(a, approx::rsqrt)),
        F1::Ex2 => r.u32(k, i, m, |a| near(a, approx::ex2)),
        _ => f32_1_rare(r, k, i, op, mode, m),
    }
}

fn f32_1_rare(r: &mut Regs, k: &Consts, i: &Inst, op: F1, mode: Mode, m: u32) {
    let x = |v: u32| if mode.ftz { flush(v) } else { v };
    let of =
        |f: fn(f32) -> f32| move |a: u32| u64::from(finish(f(f32::from_bits(a)), false, false));
    let one = 1f32.to_bits().into();
    match op {
        F1::Neg => r.u32(k, i, m, |a| canonical(x(a) ^ 1 << 31)),
        F1::Abs => r.u32(k, i, m, |a| canonical(x(a) & !(1 << 31))),
        F1::Sqrt if mode.round == Round::Rn => {
            r.u32(k, i, m, |a| around(mode, of(f32::sqrt)(x(a))));
        }
        F1::Sqrt => {
            r.u32(k, i, m, |a| around(mode, soft::sqrt(soft::F32, mode.round, x(a).into())));
        }
        F1::Rcp if mode.round == Round::Rn => {
            r.u32(k, i, m, |a| around(mode, of(f32::recip)(x(a))));
        }
        F1::Rcp => {
            r.u32(k, i, m, |a| around(mode, soft::div(soft::F32, mode.round, one, x(a).into())));
        }
        F1::SqrtApprox => r.u32(k, i, m, |a| around(mode, of(f32::sqrt)(x(a)))),
        F1::RcpApprox => r.u32(k, i, m, |a| around(mode, of(f32::recip)(x(a)))),
        F1::RsqrtApprox => r.u32(k, i, m, |a| around(mode, of(approx::rsqrt)(x(a)))),
        F1::Sin => r.u32(k, i, m, |a| around(mode, of(approx::sin)(x(a)))),
        F1::Cos => r.u32(k, i, m, |a| around(mode, of(approx::cos)(x(a)))),
        F1::Ex2 => r.u32(k, i, m, |a| around(mode, of(approx::ex2)(x(a)))),
        F1::Lg2 => r.u32(k, i, m, |a| around(mode, of(approx::lg2)(x(a)))),
        F1::Tanh => r.u32(k, i, m, |a| around(mode, of(approx::tanh)(x(a)))),
    }
}

/// Returns the bits of an f32, with any NaN replaced by the single NaN of GPU arithmetic.
#[inline(always)]
pub(in crate::exec) fn canonical(v: u32) -> u32 {
    if v & 0x7fff_ffff > 0x7f80_0000 { NAN32 } else { v }
}

#[inline(always)]
fn near64(r: &mut Regs, k: &Consts, i: &Inst, m: u32, f: impl Fn(f64, f64) -> f64) {
    r.b64(k, i, m, |a, b| nan::two(f(f64::from_bits(a), f64::from_bits(b)).to_bits(), a, b));
}

#[inline(always)]
pub(in crate::exec) fn f64_2(r: &mut Regs, k: &Consts, i: &Inst, op: F2, mode: Mode, m: u32) {
    if mode.round == Round::Rn {
        match op {
            F2::Add => return near64(r, k, i, m, |a, b| a + b),
            F2::Sub => return near64(r, k, i, m, |a, b| a - b),
            F2::Mul => return near64(r, k, i, m, |a, b| a * b),
            F2::Div => {
                return r.b64(k, i, m, |a, b| {
                    nan::two((f64::from_bits(a) / f64::from_bits(b)).to_bits(), b, a)
                });
            }
            _ => {}
        }
    }
    f64_2_rare(r, k, i, op, mode.round, m);
}

fn f64_2_rare(r: &mut Regs, k: &Consts, i: &Inst, op: F2, round: Round, m: u32) {
    let f = soft::F64;
    let sign = 1u64 << 63;
    match op {
        F2::Add => r.b64(k, i, m, |a, b| nan::two(soft::add(f, round, a, b), a, b)),
        F2::Sub => r.b64(k, i, m, |a, b| nan::two(soft::add(f, round, a, b ^ sign), a, b)),
        F2::Mul => r.b64(k, i, m, |a, b| nan::two(soft::mul(f, round, a, b), a, b)),
        F2::Div => r.b64(k, i, m, |a, b| nan::two(soft::div(f, round, a, b), b, a)),
        F2::Copysign => r.b64(k, i, m, |a, b| a & sign | b & !sign),
        _ => {
            let max = matches!(op, F2::Max | F2::MaxNan);
            r.b64(k, i, m, |a, b| {
                let (x, y) = (f64::from_bits(a), f64::from_bits(b));
                match (x.is_nan(), y.is_nan()) {
                    (true, true) => nan::quiet(b),
                    (true, false) => b,
                    (false, true) => a,
                    _ => {
                        let a_less = x < y || (x == y && a >> 63 > b >> 63);
                        if a_less != max { a } else { b }
                    }
                }
            });
        }
    }
}

#[inline(always)]
pub(in crate::exec) fn f64_fma(r: &mut Regs, k: &Consts, i: &Inst, mode: Mode, m: u32) {
    if mode.round == Round::Rn {
        r.t64(k, i, m, |a, b, c| {
            let v = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
            nan::three(v.to_bits(), a, b, c)
        });
    } else {
        r.t64(k, i, m, |a, b, c| nan::three(soft::fma(soft::F64, mode.round, a, b, c), a, b, c));
    }
}

/// Returns the high word of a result. Its low word becomes zero.
fn high_word(v: f64) -> u64 {
    if v.is_nan() { soft::F64.nan() } else { v.to_bits() & 0xffff_ffff_0000_0000 }
}

pub(in crate::exec) fn f64_1(r: &mut Regs, k: &Consts, i: &Inst, op: F1, mode: Mode, m: u32) {
    let one = 1f64.to_bits();
    let nan = |a: u64| f64::from_bits(a).is_nan();
    let top = |a: u64| {
        let v = f64::from_bits(a & 0xffff_ffff_0000_0000);
        if v.is_subnormal() { 0f64.copysign(v) } else { v }
    };
    match op {
        // On a GPU these two are additions of −0, so a NaN keeps its sign.
        F1::Neg => r.u64(k, i, m, |a| if nan(a) { nan::quiet(a) } else { a ^ 1 << 63 }),
        F1::Abs => r.u64(k, i, m, |a| if nan(a) { nan::quiet(a) } else { a & !(1 << 63) }),
        F1::Sqrt if mode.round == Round::Rn => {
            r.u64(k, i, m, |a| nan::one(f64::from_bits(a).sqrt().to_bits(), a));
        }
        F1::Sqrt => r.u64(k, i, m, |a| nan::one(soft::sqrt(soft::F64, mode.round, a), a)),
        F1::Rcp if mode.round == Round::Rn => {
            r.u64(k, i, m, |a| nan::one(f64::from_bits(a).recip().to_bits(), a));
        }
        F1::Rcp => r.u64(k, i, m, |a| nan::one(soft::div(soft::F64, mode.round, one, a), a)),
        // Without `.ftz` this function has full precision and supports subnormal numbers.
        F1::RsqrtApprox if !mode.ftz => {
            r.u64(k, i, m, |a| nan::one(f64::from_bits(a).sqrt().recip().to_bits(), a));
        }
        F1::RcpApprox => r.u64(k, i, m, |a| high_word(top(a).recip())),
        F1::RsqrtApprox => r.u64(k, i, m, |a| high_word(top(a).sqrt().recip())),
        _ => {}
    }
}

/// Returns whether a comparison is true, given the order of its operands. `nan` is true if one of
/// them is a NaN.
#[inline(always)]
pub(in crate::exec) fn holds(cmp: FCmp, less: bool, equal: bool, nan: bool) -> bool {
    match cmp {
        FCmp::Eq => equal,
        FCmp::Ne => !equal && !nan,
        FCmp::Lt => less,
        FCmp::Le => less || equal,
        FCmp::Gt => !less && !equal && !nan,
        FCmp::Ge => !less && !nan,
        FCmp::Equ => equal || nan,
        FCmp::Neu => !equal,
        FCmp::Ltu => less || nan,
        FCmp::Leu => less || equal || nan,
        FCmp::Gtu => !less && !equal,
        FCmp::Geu => !less,
        FCmp::Num => !nan,
        FCmp::Nan => nan,
    }
}

#[inline(always)]
pub(in crate::exec) fn f32_cmp(r: &mut Regs, k: &Consts, i: &Inst, cmp: FCmp, ftz: bool, m: u32) {
    let with = |a: u32, b: u32, cmp| {
        let (x, y) = (input(a, ftz), input(b, ftz));
        holds(cmp, x < y, x == y, x.is_nan() || y.is_nan())
    };
    macro_rules! each {
        ($($name:ident)*) => {
            match cmp {
                $(FCmp::$name => r.c32(k, i, m, |a, b| with(a, b, FCmp::$name)),)*
            }
        };
    }
    each!(Eq Ne Lt Le Gt Ge Equ Neu Ltu Leu Gtu Geu Num Nan);
}

#[inline(always)]
pub(in crate::exec) fn f64_cmp(r: &mut Regs, k: &Consts, i: &Inst, cmp: FCmp, m: u32) {
    r.c64(k, i, m, |a, b| {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        holds(cmp, x < y, x == y, x.is_nan() || y.is_nan())
    });
}
