//! Integer arithmetic on lanes.

use super::bits::{
    absdiff4, bfe, bfi, bfind, bmsk, dp2a, dp4a, fns, funnel, halves, lop3, prmt, prmt_mode, szext,
};
use super::regs::Regs;
use crate::ir::{Carry, Cmp, Consts, I1, I2, I3, Inst};

fn s24(v: u32) -> i64 {
    i64::from((v << 8) as i32 >> 8)
}

fn u24(v: u32) -> u64 {
    u64::from(v & 0x00ff_ffff)
}

/// Divides as a GPU does: a division by zero returns all ones as quotient and as remainder.
fn div_s32(a: u32, b: u32) -> u32 {
    if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 }
}

fn rem_s32(a: u32, b: u32) -> u32 {
    if b == 0 { u32::MAX } else { (a as i32).wrapping_rem(b as i32) as u32 }
}

#[inline(always)]
pub(in crate::exec) fn i32_2(r: &mut Regs, k: &Consts, i: &Inst, op: I2, m: u32) {
    match op {
        I2::Add => r.b32(k, i, m, u32::wrapping_add),
        I2::Sub => r.b32(k, i, m, u32::wrapping_sub),
        I2::Mul => r.b32(k, i, m, u32::wrapping_mul),
        I2::And => r.b32(k, i, m, |a, b| a & b),
        I2::Or => r.b32(k, i, m, |a, b| a | b),
        I2::Xor => r.b32(k, i, m, |a, b| a ^ b),
        I2::Shl => r.b32(k, i, m, |a, b| if b > 31 { 0 } else { a << (b & 31) }),
        I2::ShrU => r.b32(k, i, m, |a, b| if b > 31 { 0 } else { a >> (b & 31) }),
        I2::ShrS => r.b32(k, i, m, |a, b| ((a as i32) >> b.min(31)) as u32),
        I2::MinS => r.b32(k, i, m, |a, b| (a as i32).min(b as i32) as u32),
        I2::MinU => r.b32(k, i, m, u32::min),
        I2::MaxS => r.b32(k, i, m, |a, b| (a as i32).max(b as i32) as u32),
        I2::MaxU => r.b32(k, i, m, u32::max),
        I2::MulHiU => r.b32(k, i, m, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        I2::MulHiS => {
            r.b32(k, i, m, |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32);
        }
        _ => i32_2_rare(r, k, i, op, m),
    }
}

fn i32_2_rare(r: &mut Regs, k: &Consts, i: &Inst, op: I2, m: u32) {
    match op {
        I2::Mul24S => r.b32(k, i, m, |a, b| (s24(a) * s24(b)) as u32),
        I2::Mul24U => r.b32(k, i, m, |a, b| (u24(a) * u24(b)) as u32),
        I2::Mul24HiS => r.b32(k, i, m, |a, b| ((s24(a) * s24(b)) >> 16) as u32),
        I2::Mul24HiU => r.b32(k, i, m, |a, b| ((u24(a) * u24(b)) >> 16) as u32),
        I2::DivS => r.b32(k, i, m, div_s32),
        I2::DivU => r.b32(k, i, m, |a, b| a.checked_div(b).unwrap_or(u32::MAX)),
        I2::RemS => r.b32(k, i, m, rem_s32),
        I2::RemU => r.b32(k, i, m, |a, b| a.checked_rem(b).unwrap_or(u32::MAX)),
        I2::AddSat => r.b32(k, i, m, |a, b| (a as i32).saturating_add(b as i32) as u32),
        I2::SubSat => r.b32(k, i, m, |a, b| (a as i32).saturating_sub(b as i32) as u32),
        I2::MinRelu => r.b32(k, i, m, |a, b| (a as i32).min(b as i32).max(0) as u32),
        I2::MaxRelu => r.b32(k, i, m, |a, b| (a as i32).max(b as i32).max(0) as u32),
        I2::BmskClamp => r.b32(k, i, m, |a, b| bmsk(a, b, true)),
        I2::BmskWrap => r.b32(k, i, m, |a, b| bmsk(a, b, false)),
        I2::SzextSClamp => r.b32(k, i, m, |a, b| szext(a, b, true, true)),
        I2::SzextSWrap => r.b32(k, i, m, |a, b| szext(a, b, true, false)),
        I2::SzextUClamp => r.b32(k, i, m, |a, b| szext(a, b, false, true)),
        I2::SzextUWrap => r.b32(k, i, m, |a, b| szext(a, b, false, false)),
        I2::MinS16x2 => {
            r.b32(k, i, m, |a, b| halves(a, b, |x, y| (x as i16).min(y as i16) as u16));
        }
        I2::MaxS16x2 => {
            r.b32(k, i, m, |a, b| halves(a, b, |x, y| (x as i16).max(y as i16) as u16));
        }
        I2::MinU16x2 => r.b32(k, i, m, |a, b| halves(a, b, u16::min)),
        I2::MaxU16x2 => r.b32(k, i, m, |a, b| halves(a, b, u16::max)),
        I2::Add16x2 => r.b32(k, i, m, |a, b| halves(a, b, u16::wrapping_add)),
        _ => {}
    }
}

/// Computes 16-bit operations. Operands and results are zero-extended.
#[inline(always)]
pub(in crate::exec) fn i16_2(r: &mut Regs, k: &Consts, i: &Inst, op: I2, m: u32) {
    let s = |v: u32| i32::from(v as i16);
    let w = |v: i32| v as u32 & 0xffff;
    match op {
        I2::Add => r.b32(k, i, m, |a, b| a.wrapping_add(b) & 0xffff),
        I2::Sub => r.b32(k, i, m, |a, b| a.wrapping_sub(b) & 0xffff),
        I2::Mul => r.b32(k, i, m, |a, b| a.wrapping_mul(b) & 0xffff),
        I2::MulHiS => r.b32(k, i, m, |a, b| w((s(a) * s(b)) >> 16)),
        I2::MulHiU => r.b32(k, i, m, |a, b| a.wrapping_mul(b) >> 16),
        I2::And => r.b32(k, i, m, |a, b| a & b),
        I2::Or => r.b32(k, i, m, |a, b| a | b),
        I2::Xor => r.b32(k, i, m, |a, b| a ^ b),
        I2::Shl => r.b32(k, i, m, |a, b| if b > 15 { 0 } else { (a << (b & 15)) & 0xffff }),
        I2::ShrU => r.b32(k, i, m, |a, b| if b > 15 { 0 } else { a >> (b & 15) }),
        I2::ShrS => r.b32(k, i, m, |a, b| w(s(a) >> b.min(15))),
        I2::MinS => r.b32(k, i, m, |a, b| w(s(a).min(s(b)))),
        I2::MaxS => r.b32(k, i, m, |a, b| w(s(a).max(s(b)))),
        I2::MinU => r.b32(k, i, m, u32::min),
        I2::MaxU => r.b32(k, i, m, u32::max),
        I2::DivS => r.b32(k, i, m, |a, b| w(s(a).checked_div(s(b)).unwrap_or(-1))),
        I2::RemS => r.b32(k, i, m, |a, b| w(s(a).checked_rem(s(b)).unwrap_or(-1))),
        I2::DivU => r.b32(k, i, m, |a, b| a.checked_div(b).unwrap_or(0xffff)),
        I2::RemU => r.b32(k, i, m, |a, b| a.checked_rem(b).unwrap_or(0xffff)),
        _ => {}
    }
}

#[inline(always)]
pub(in crate::exec) fn i64_2(r: &mut Regs, k: &Consts, i: &Inst, op: I2, m: u32) {
    let s = |v: u64| v as i64;
    match op {
        I2::Add => r.b64(k, i, m, u64::wrapping_add),
        I2::Sub => r.b64(k, i, m, u64::wrapping_sub),
        I2::Mul => r.b64(k, i, m, u64::wrapping_mul),
        I2::And => r.b64(k, i, m, |a, b| a & b),
        I2::Or => r.b64(k, i, m, |a, b| a | b),
        I2::Xor => r.b64(k, i, m, |a, b| a ^ b),
        I2::Shl => r.b64_32(k, i, m, |a, b| if b > 63 { 0 } else { a << (b & 63) }),
        I2::ShrU => r.b64_32(k, i, m, |a, b| if b > 63 { 0 } else { a >> (b & 63) }),
        I2::ShrS => r.b64_32(k, i, m, |a, b| (s(a) >> b.min(63)) as u64),
        I2::MulHiU => r.b64(k, i, m, |a, b| ((u128::from(a) * u128::from(b)) >> 64) as u64),
        I2::MulHiS => r.b64(k, i, m, |a, b| ((i128::from(s(a)) * i128::from(s(b))) >> 64) as u64),
        I2::MinS => r.b64(k, i, m, |a, b| s(a).min(s(b)) as u64),
        I2::MaxS => r.b64(k, i, m, |a, b| s(a).max(s(b)) as u64),
        I2::MinU => r.b64(k, i, m, u64::min),
        I2::MaxU => r.b64(k, i, m, u64::max),
        I2::DivS => {
            r.b64(k, i, m, |a, b| if b == 0 { u64::MAX } else { s(a).wrapping_div(s(b)) as u64 });
        }
        I2::RemS => {
            r.b64(k, i, m, |a, b| if b == 0 { u64::MAX } else { s(a).wrapping_rem(s(b)) as u64 })
        }
        I2::DivU => r.b64(k, i, m, |a, b| a.checked_div(b).unwrap_or(u64::MAX)),
        I2::RemU => r.b64(k, i, m, |a, b| a.checked_rem(b).unwrap_or(u64::MAX)),
        _ => {}
    }
}

#[inline(always)]
pub(in crate::exec) fn i32_1(r: &mut Regs, k: &Consts, i: &Inst, op: I1, m: u32) {
    match op {
        I1::Not => r.u32(k, i, m, |a| !a),
        I1::Cnot => r.u32(k, i, m, |a| u32::from(a == 0)),
        I1::Neg => r.u32(k, i, m, u32::wrapping_neg),
        I1::Abs => r.u32(k, i, m, |a| (a as i32).wrapping_abs() as u32),
        I1::Popc => r.u32(k, i, m, u32::count_ones),
        I1::Clz => r.u32(k, i, m, u32::leading_zeros),
        I1::Brev => r.u32(k, i, m, u32::reverse_bits),
        I1::BfindS => r.u32(k, i, m, |a| bfind(a.into(), 32, true, false)),
        I1::BfindU => r.u32(k, i, m, |a| bfind(a.into(), 32, false, false)),
        I1::BfindShiftS => r.u32(k, i, m, |a| bfind(a.into(), 32, true, true)),
        I1::BfindShiftU => r.u32(k, i, m, |a| bfind(a.into(), 32, false, true)),
    }
}

pub(in crate::exec) fn i16_1(r: &mut Regs, k: &Consts, i: &Inst, op: I1, m: u32) {
    match op {
        I1::Not => r.u32(k, i, m, |a| !a & 0xffff),
        I1::Cnot => r.u32(k, i, m, |a| u32::from(a == 0)),
        I1::Neg => r.u32(k, i, m, |a| a.wrapping_neg() & 0xffff),
        I1::Abs => r.u32(k, i, m, |a| u32::from((a as i16).unsigned_abs())),
        _ => {}
    }
}

#[inline(always)]
pub(in crate::exec) fn i64_1(r: &mut Regs, k: &Consts, i: &Inst, op: I1, m: u32) {
    match op {
        I1::Not => r.u64(k, i, m, |a| !a),
        I1::Cnot => r.u64(k, i, m, |a| u64::from(a == 0)),
        I1::Neg => r.u64(k, i, m, u64::wrapping_neg),
        I1::Abs => r.u64(k, i, m, |a| (a as i64).wrapping_abs() as u64),
        I1::Brev => r.u64(k, i, m, u64::reverse_bits),
        I1::Popc => r.u32_64(k, i, m, u64::count_ones),
        I1::Clz => r.u32_64(k, i, m, u64::leading_zeros),
        I1::BfindS => r.u32_64(k, i, m, |a| bfind(a, 64, true, false)),
        I1::BfindU => r.u32_64(k, i, m, |a| bfind(a, 64, false, false)),
        I1::BfindShiftS => r.u32_64(k, i, m, |a| bfind(a, 64, true, true)),
        I1::BfindShiftU => r.u32_64(k, i, m, |a| bfind(a, 64, false, true)),
    }
}

#[inline(always)]
pub(in crate::exec) fn i32_3(r: &mut Regs, k: &Consts, i: &Inst, op: I3, m: u32) {
    match op {
        I3::Mad => r.t32(k, i, m, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        _ => i32_3_rare(r, k, i, op, m),
    }
}

fn i32_3_rare(r: &mut Regs, k: &Consts, i: &Inst, op: I3, m: u32) {
    let hi_s = |a: u32, b: u32| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32;
    let hi_u = |a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32;
    match op {
        I3::MadHiS => r.t32(k, i, m, |a, b, c| hi_s(a, b).wrapping_add(c)),
        I3::MadHiU => r.t32(k, i, m, |a, b, c| hi_u(a, b).wrapping_add(c)),
        I3::MadHiSatS => {
            r.t32(k, i, m, |a, b, c| (hi_s(a, b) as i32).saturating_add(c as i32) as u32);
        }
        I3::Mad24S => r.t32(k, i, m, |a, b, c| ((s24(a) * s24(b)) as u32).wrapping_add(c)),
        I3::Mad24U => r.t32(k, i, m, |a, b, c| ((u24(a) * u24(b)) as u32).wrapping_add(c)),
        I3::Mad24HiS => {
            r.t32(k, i, m, |a, b, c| (((s24(a) * s24(b)) >> 16) as u32).wrapping_add(c));
        }
        I3::Mad24HiU => {
            r.t32(k, i, m, |a, b, c| (((u24(a) * u24(b)) >> 16) as u32).wrapping_add(c));
        }
        I3::SadS => r.t32(k, i, m, |a, b, c| c.wrapping_add((a as i32).abs_diff(b as i32))),
        I3::SadU => r.t32(k, i, m, |a, b, c| c.wrapping_add(a.abs_diff(b))),
        I3::BfeS => r.t32(k, i, m, |a, b, c| bfe(a.into(), b, c, 32, true) as u32),
        I3::BfeU => r.t32(k, i, m, |a, b, c| bfe(a.into(), b, c, 32, false) as u32),
        I3::Bfi => {
            let s = *r.s32(k, i.s);
            let (a, b, c) = (*r.s32(k, i.a), *r.s32(k, i.b), *r.s32(k, i.c));
            let o = std::array::from_fn(|l| bfi(a[l].into(), b[l].into(), c[l], s[l], 32) as u32);
            r.put32(i.d, &o, m);
        }
        I3::Lop3 => {
            let table = i.imm as u32;
            r.t32(k, i, m, |a, b, c| lop3(a, b, c, table));
        }
        I3::Prmt => r.t32(k, i, m, prmt),
        I3::PrmtF4e | I3::PrmtB4e | I3::PrmtRc8 | I3::PrmtEcl | I3::PrmtEcr | I3::PrmtRc16 => {
            r.t32(k, i, m, |a, b, c| prmt(a, b, prmt_mode(op, c)));
        }
        I3::ShfLClamp => r.t32(k, i, m, |a, b, c| funnel(a, b, c, true, true)),
        I3::ShfLWrap => r.t32(k, i, m, |a, b, c| funnel(a, b, c, true, false)),
        I3::ShfRClamp => r.t32(k, i, m, |a, b, c| funnel(a, b, c, false, true)),
        I3::ShfRWrap => r.t32(k, i, m, |a, b, c| funnel(a, b, c, false, false)),
        I3::Absdiff4 => r.t32(k, i, m, |a, b, _| absdiff4(a, b)),
        I3::Absdiff4Add => {
            r.t32(k, i, m, |a, b, c| dp4a(absdiff4(a, b), 0x0101_0101, c, false, false));
        }
        I3::Dp4aSS => r.t32(k, i, m, |a, b, c| dp4a(a, b, c, true, true)),
        I3::Dp4aSU => r.t32(k, i, m, |a, b, c| dp4a(a, b, c, true, false)),
        I3::Dp4aUS => r.t32(k, i, m, |a, b, c| dp4a(a, b, c, false, true)),
        I3::Dp4aUU => r.t32(k, i, m, |a, b, c| dp4a(a, b, c, false, false)),
        I3::Dp2aLoSS => r.t32(k, i, m, |a, b, c| dp2a(a, b, c, true, true, false)),
        I3::Dp2aLoSU => r.t32(k, i, m, |a, b, c| dp2a(a, b, c, true, false, false)),
        I3::Dp2aLoUS => r.t32(k, i, m, |a, b, c| dp2a(a, b, c, false, true, false)),
        I3::Dp2aLoUU => r.t32(k, i, m, |a, b, c| dp2a(a, b, c, false, false, false)),
        I3::Dp2aHiSS => r.t32(k, i, m, |a, b, c| dp2a(a, b, c, true, true, true)),
        I3::Dp2aHiSU => r.t32(k, i, m, |a, b, c| dp2a(a, b, c, true, false, true)),
        I3::Dp2aHiUS => r.t32(k, i, m, |a, b, c| dp2a(a, b, c, false, true, true)),
        I3::Dp2aHiUU => r.t32(k, i, m, |a, b, c| dp2a(a, b, c, false, false, true)),
        I3::Fns => r.t32(k, i, m, |a, b, c| fns(a, b, c as i32)),
        I3::Mad => {}
    }
}

pub(in crate::exec) fn i16_3(r: &mut Regs, k: &Consts, i: &Inst, op: I3, m: u32) {
    let s = |v: u32| i32::from(v as i16);
    match op {
        I3::Mad => r.t32(k, i, m, |a, b, c| a.wrapping_mul(b).wrapping_add(c) & 0xffff),
        I3::MadHiS => {
            r.t32(k, i, m, |a, b, c| ((s(a) * s(b)) >> 16).wrapping_add(c as i32) as u32 & 0xffff);
        }
        I3::MadHiU => r.t32(k, i, m, |a, b, c| (a.wrapping_mul(b) >> 16).wrapping_add(c) & 0xffff),
        I3::SadS => r.t32(k, i, m, |a, b, c| c.wrapping_add(s(a).abs_diff(s(b))) & 0xffff),
        I3::SadU => r.t32(k, i, m, |a, b, c| c.wrapping_add(a.abs_diff(b)) & 0xffff),
        _ => {}
    }
}

pub(in crate::exec) fn i64_3(r: &mut Regs, k: &Consts, i: &Inst, op: I3, m: u32) {
    let s = |v: u64| i128::from(v as i64);
    match op {
        I3::Mad => r.t64(k, i, m, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        I3::MadHiS => r.t64(k, i, m, |a, b, c| (((s(a) * s(b)) >> 64) as u64).wrapping_add(c)),
        I3::MadHiU => r.t64(k, i, m, |a, b, c| {
            (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c)
        }),
        I3::SadS => r.t64(k, i, m, |a, b, c| c.wrapping_add((a as i64).abs_diff(b as i64))),
        I3::SadU => r.t64(k, i, m, |a, b, c| c.wrapping_add(a.abs_diff(b))),
        I3::BfeS | I3::BfeU | I3::Bfi => {
            let a = *r.s64(k, i.a);
            let o: [u64; 32] = if op == I3::Bfi {
                let (b, c, n) = (*r.s64(k, i.b), *r.s32(k, i.c), *r.s32(k, i.s));
                std::array::from_fn(|l| bfi(a[l], b[l], c[l], n[l], 64))
            } else {
                let (b, c) = (*r.s32(k, i.b), *r.s32(k, i.c));
                std::array::from_fn(|l| bfe(a[l], b[l], c[l], 64, op == I3::BfeS))
            };
            r.put64(i.d, &o, m);
        }
        _ => {}
    }
}

#[inline(always)]
pub(in crate::exec) fn cmp32(r: &mut Regs, k: &Consts, i: &Inst, op: Cmp, m: u32) {
    match op {
        Cmp::Eq => r.c32(k, i, m, |a, b| a == b),
        Cmp::Ne => r.c32(k, i, m, |a, b| a != b),
        Cmp::LtS => r.c32(k, i, m, |a, b| (a as i32) < b as i32),
        Cmp::LeS => r.c32(k, i, m, |a, b| a as i32 <= b as i32),
        Cmp::GtS => r.c32(k, i, m, |a, b| a as i32 > b as i32),
        Cmp::GeS => r.c32(k, i, m, |a, b| a as i32 >= b as i32),
        Cmp::LtU => r.c32(k, i, m, |a, b| a < b),
        Cmp::LeU => r.c32(k, i, m, |a, b| a <= b),
        Cmp::GtU => r.c32(k, i, m, |a, b| a > b),
        Cmp::GeU => r.c32(k, i, m, |a, b| a >= b),
    }
}

#[inline(always)]
pub(in crate::exec) fn cmp16(r: &mut Regs, k: &Consts, i: &Inst, op: Cmp, m: u32) {
    match op {
        Cmp::LtS => r.c32(k, i, m, |a, b| (a as i16) < b as i16),
        Cmp::LeS => r.c32(k, i, m, |a, b| a as i16 <= b as i16),
        Cmp::GtS => r.c32(k, i, m, |a, b| a as i16 > b as i16),
        Cmp::GeS => r.c32(k, i, m, |a, b| a as i16 >= b as i16),
        other => cmp32(r, k, i, other, m),
    }
}

#[inline(always)]
pub(in crate::exec) fn cmp64(r: &mut Regs, k: &Consts, i: &Inst, op: Cmp, m: u32) {
    match op {
        Cmp::Eq => r.c64(k, i, m, |a, b| a == b),
        Cmp::Ne => r.c64(k, i, m, |a, b| a != b),
        Cmp::LtS => r.c64(k, i, m, |a, b| (a as i64) < b as i64),
        Cmp::LeS => r.c64(k, i, m, |a, b| a as i64 <= b as i64),
        Cmp::GtS => r.c64(k, i, m, |a, b| a as i64 > b as i64),
        Cmp::GeS => r.c64(k, i, m, |a, b| a as i64 >= b as i64),
        Cmp::LtU => r.c64(k, i, m, |a, b| a < b),
        Cmp::LeU => r.c64(k, i, m, |a, b| a <= b),
        Cmp::GtU => r.c64(k, i, m, |a, b| a > b),
        Cmp::GeU => r.c64(k, i, m, |a, b| a >= b),
    }
}

/// Computes one step of a multi-word operation. Returns the result and the carry out.
fn carry_step(op: Carry, bits: u32, a: u64, b: u64, c: u64, flag: bool) -> (u64, bool) {
    let mask = if bits == 64 { u128::from(u64::MAX) } else { u128::from(u32::MAX) };
    let flag = u128::from(flag);
    let (a, b, c) = (u128::from(a), u128::from(b), u128::from(c));
    let signed = |v: u128| {
        if bits == 64 { i128::from(v as i64) } else { i128::from(v as i32) }
    };
    let v = match op {
        Carry::Add => a + b + flag,
        Carry::Sub => a + (b ^ mask) + 1,
        Carry::Subc => a + (b ^ mask) + flag,
        Carry::MadLo => ((a * b) & mask) + c + flag,
        Carry::MadHiU => ((a * b) >> bits & mask) + c + flag,
        Carry::MadHiS => (((signed(a) * signed(b)) >> bits) as u128 & mask) + c + flag,
    };
    ((v & mask) as u64, v >> bits & 1 == 1)
}

pub(in crate::exec) fn carry32(r: &mut Regs, k: &Consts, i: &Inst, op: Carry, m: u32) {
    let (a, b, c, f) = (*r.s32(k, i.a), *r.s32(k, i.b), *r.s32(k, i.c), r.sp(i.s));
    let (mut o, mut out) = ([0; 32], 0);
    for l in 0..32 {
        let flag = f >> l & 1 == 1;
        let (v, carry) = carry_step(op, 32, a[l].into(), b[l].into(), c[l].into(), flag);
        o[l] = v as u32;
        out |= u32::from(carry) << l;
    }
    r.put32(i.d, &o, m);
    r.putp(i.e, out, m);
}

pub(in crate::exec) fn carry64(r: &mut Regs, k: &Consts, i: &Inst, op: Carry, m: u32) {
    let (a, b, c, f) = (*r.s64(k, i.a), *r.s64(k, i.b), *r.s64(k, i.c), r.sp(i.s));
    let (mut o, mut out) = ([0; 32], 0);
    for l in 0..32 {
        let (v, carry) = carry_step(op, 64, a[l], b[l], c[l], f >> l & 1 == 1);
        o[l] = v;
        out |= u32::from(carry) << l;
    }
    r.put64(i.d, &o, m);
    r.putp(i.e, out, m);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carries_chain_like_a_wide_addition() {
        let (a, b) = (0xffff_ffff_ffff_ffffu64, 0x1_0000_0001u64);
        let (lo, c) = carry_step(Carry::Add, 32, a & 0xffff_ffff, b & 0xffff_ffff, 0, false);
        let (hi, c2) = carry_step(Carry::Add, 32, a >> 32, b >> 32, 0, c);
        assert_eq!(hi << 32 | lo, a.wrapping_add(b));
        assert!(c2);
        let (lo, c) = carry_step(Carry::Sub, 32, 0, 1, 0, false);
        let (hi, c2) = carry_step(Carry::Subc, 32, 5, 0, 0, c);
        assert_eq!((hi, lo), (4, 0xffff_ffff));
        assert!(!c && c2, "the carry is set where nothing is borrowed");
    }
}
