//! The dispatch of arithmetic on all lanes. It is compiled for any processor, and again for AVX2
//! with FMA.

use super::product::{self, Multiply};
use super::regs::{ALL, Regs};
use super::{cvt, float, half, int};
use crate::ir::{Consts, Fp, Inst, Op, Row32, Row64, Testp};

/// Executes an arithmetic instruction in the lanes of a mask. Returns false if the instruction is
/// not an arithmetic one.
pub(in crate::exec) type Alu = fn(&mut Regs, &Consts, &Inst, u32) -> bool;

/// Returns the lowest address that a warp accesses, the highest address, and the bitwise OR of all
/// addresses.
pub(in crate::exec) type Span = fn(&[u64; 32]) -> (u64, u64, u64);

/// Returns the fastest versions of these functions that this processor supports.
pub(in crate::exec) fn select() -> (Alu, Span, Multiply) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("lzcnt")
    {
        // SAFETY: the processor was just found to have these features.
        return (
            |r, k, i, m| unsafe { alu_avx2(r, k, i, m) },
            |a| unsafe { span_avx2(a) },
            // SAFETY: as above.
            |r, k, task, tiles| unsafe { product::multiply_avx2(r, k, task, tiles) },
        );
    }
    (alu, span, product::multiply)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
fn alu_avx2(r: &mut Regs, k: &Consts, i: &Inst, m: u32) -> bool {
    alu_inline(r, k, i, m)
}

fn alu(r: &mut Regs, k: &Consts, i: &Inst, m: u32) -> bool {
    alu_inline(r, k, i, m)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn span_avx2(a: &[u64; 32]) -> (u64, u64, u64) {
    span(a)
}

#[inline(always)]
fn span(a: &[u64; 32]) -> (u64, u64, u64) {
    let (mut low, mut high, mut bits) = (a[0], a[0], 0);
    for v in a {
        low = low.min(*v);
        high = high.max(*v);
        bits |= v;
    }
    (low, high, bits)
}

#[inline(always)]
fn alu_inline(r: &mut Regs, k: &Consts, i: &Inst, m: u32) -> bool {
    match i.op {
        Op::I32(op) => int::i32_2(r, k, i, op, m),
        Op::I64(op) => int::i64_2(r, k, i, op, m),
        Op::I32x3(op) => int::i32_3(r, k, i, op, m),
        Op::F2 { fp: Fp::F32, op, mode } => float::f32_2(r, k, i, op, mode, m),
        Op::Fma { fp: Fp::F32, mode } => float::f32_fma(r, k, i, mode, m),
        Op::F2 { fp: Fp::F64, op, mode } => float::f64_2(r, k, i, op, mode, m),
        Op::Fma { fp: Fp::F64, mode } => float::f64_fma(r, k, i, mode, m),
        Op::Cmp32(op) => int::cmp32(r, k, i, op, m),
        Op::Cmp64(op) => int::cmp64(r, k, i, op, m),
        Op::FCmp { fp: Fp::F32, cmp, ftz } => float::f32_cmp(r, k, i, cmp, ftz, m),
        Op::FCmp { fp: Fp::F64, cmp, .. } => float::f64_cmp(r, k, i, cmp, m),
        Op::Cvt(c) => cvt::cvt(r, k, i, c, m),
        Op::MulWide { signed, add } => mul_wide(r, k, i, signed, add, m),
        Op::F1 { fp: Fp::F32, op, mode } => float::f32_1(r, k, i, op, mode, m),
        Op::Mov32 => r.u32(k, i, m, |a| a),
        Op::Mov64 => r.u64(k, i, m, |a| a),
        Op::Sel32 => select32(r, k, i, m),
        Op::Sel64 => select64(r, k, i, m),
        Op::AndP => r.putp(i.d, r.sp(i.a) & r.sp(i.b), m),
        Op::OrP => r.putp(i.d, r.sp(i.a) | r.sp(i.b), m),
        Op::XorP => r.putp(i.d, r.sp(i.a) ^ r.sp(i.b), m),
        Op::NotP => r.putp(i.d, !r.sp(i.a), m),
        Op::MovP => r.putp(i.d, r.sp(i.a), m),
        Op::I32x1(op) => int::i32_1(r, k, i, op, m),
        Op::I64x1(op) => int::i64_1(r, k, i, op, m),
        Op::I16(op) => int::i16_2(r, k, i, op, m),
        Op::Cmp16(op) => int::cmp16(r, k, i, op, m),
        _ => return rare(r, k, i, m),
    }
    true
}

fn rare(r: &mut Regs, k: &Consts, i: &Inst, m: u32) -> bool {
    match i.op {
        Op::Nop => {}
        Op::I16x1(op) => int::i16_1(r, k, i, op, m),
        Op::I16x3(op) => int::i16_3(r, k, i, op, m),
        Op::I64x3(op) => int::i64_3(r, k, i, op, m),
        Op::Carry32(op) => int::carry32(r, k, i, op, m),
        Op::Carry64(op) => int::carry64(r, k, i, op, m),
        Op::MulWide16 { signed, add } => mul_wide16(r, k, i, signed, add, m),
        Op::F1 { fp: Fp::F64, op, mode } => float::f64_1(r, k, i, op, mode, m),
        Op::F1 { fp, op, mode } => half::one(r, k, i, fp, op, mode, m),
        Op::F2 { fp, op, mode } => half::two(r, k, i, fp, op, mode, m),
        Op::Fma { fp, mode } => half::fma(r, k, i, fp, mode, m),
        Op::FCmp { fp, cmp, ftz } => half::compare(r, k, i, fp, cmp, ftz, m),
        Op::Testp { fp, class } => testp(r, k, i, fp, class, m),
        Op::CvtPack { to, mode, satfinite } => cvt::pack(r, k, i, to, mode, satfinite, m),
        Op::CvtUnpack { from, relu } => cvt::unpack(r, k, i, from, relu, m),
        Op::Slct { wide, float, ftz } => slct(r, k, i, wide, float, ftz, m),
        Op::Pack64 => {
            let (a, b) = (r.s32(k, i.a), r.s32(k, i.b));
            let o = std::array::from_fn(|l| u64::from(b[l]) << 32 | u64::from(a[l]));
            r.put64(i.d, &o, m);
        }
        Op::Unpack64 => {
            let a = *r.s64(k, i.a);
            r.put32(i.d, &a.map(|v| v as u32), m);
            r.put32(i.e, &a.map(|v| (v >> 32) as u32), m);
        }
        _ => return false,
    }
    true
}

#[inline(always)]
fn mul_wide(r: &mut Regs, k: &Consts, i: &Inst, signed: bool, add: bool, m: u32) {
    let (a, b) = (r.s32(k, i.a), r.s32(k, i.b));
    let mut o = [0u64; 32];
    if signed {
        for l in 0..32 {
            o[l] = i64::from(a[l] as i32).wrapping_mul(i64::from(b[l] as i32)) as u64;
        }
    } else {
        for l in 0..32 {
            o[l] = u64::from(a[l]) * u64::from(b[l]);
        }
    }
    if add {
        let c = r.s64(k, i.c);
        for l in 0..32 {
            o[l] = o[l].wrapping_add(c[l]);
        }
    }
    r.put64(i.d, &o, m);
}

fn mul_wide16(r: &mut Regs, k: &Consts, i: &Inst, signed: bool, add: bool, m: u32) {
    let x = |v: u32| {
        if signed { i32::from(v as i16) as u32 } else { v & 0xffff }
    };
    let product = |a: u32, b: u32| x(a).wrapping_mul(x(b));
    if add {
        r.t32(k, i, m, |a, b, c| product(a, b).wrapping_add(c));
    } else {
        r.b32(k, i, m, product);
    }
}

#[inline(always)]
fn select32(r: &mut Regs, k: &Consts, i: &Inst, m: u32) {
    let p = r.sp(i.c);
    let (a, b) = (r.s32(k, i.a), r.s32(k, i.b));
    let mut o = [0; 32];
    for l in 0..32 {
        o[l] = if p >> l & 1 != 0 { a[l] } else { b[l] };
    }
    r.put32(i.d, &o, m);
}

#[inline(always)]
fn select64(r: &mut Regs, k: &Consts, i: &Inst, m: u32) {
    let p = r.sp(i.c);
    let (a, b) = (r.s64(k, i.a), r.s64(k, i.b));
    let mut o = [0; 32];
    for l in 0..32 {
        o[l] = if p >> l & 1 != 0 { a[l] } else { b[l] };
    }
    r.put64(i.d, &o, m);
}

fn slct(r: &mut Regs, k: &Consts, i: &Inst, wide: bool, float: bool, ftz: bool, m: u32) {
    let c = r.s32(k, i.c);
    // A NaN selects the second operand, as do negative numbers. −0 is not negative.
    let first = c.iter().enumerate().fold(0, |p, (l, v)| {
        let v = if ftz { float::flush(*v) } else { *v };
        let yes = if float { f32::from_bits(v) >= 0.0 } else { v as i32 >= 0 };
        p | u32::from(yes) << l
    });
    if wide {
        let (a, b) = (*r.s64(k, i.a), *r.s64(k, i.b));
        let o = Row64(std::array::from_fn(|l| if first >> l & 1 == 1 { a[l] } else { b[l] }));
        r.put64(i.d, &o.0, m);
    } else {
        let (a, b) = (*r.s32(k, i.a), *r.s32(k, i.b));
        let o = Row32(std::array::from_fn(|l| if first >> l & 1 == 1 { a[l] } else { b[l] }));
        r.put32(i.d, &o.0, m);
    }
}

fn testp(r: &mut Regs, k: &Consts, i: &Inst, fp: Fp, class: Testp, m: u32) {
    use std::num::FpCategory as C;
    let test = |c: C| match class {
        Testp::Finite => !matches!(c, C::Nan | C::Infinite),
        Testp::Infinite => c == C::Infinite,
        Testp::Number => c != C::Nan,
        Testp::NotANumber => c == C::Nan,
        // A GPU counts zeros as normal.
        Testp::Normal => matches!(c, C::Normal | C::Zero),
        Testp::Subnormal => matches!(c, C::Subnormal),
    };
    let bits = (0..32).fold(0, |p, l| {
        let c = match fp {
            Fp::F64 => f64::from_bits(r.s64(k, i.a)[l]).classify(),
            _ => f32::from_bits(r.s32(k, i.a)[l]).classify(),
        };
        p | u32::from(test(c)) << l
    });
    r.putp(i.d, bits, m & ALL);
}
