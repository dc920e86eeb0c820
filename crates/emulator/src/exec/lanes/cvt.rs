//! Conversions between number types in the lanes of a warp.

use super::float::{canonical, flush};
use super::half;
use super::regs::Regs;
use crate::arith::nan::{self, Conversion};
use crate::arith::soft::{self, Format, Round};
use crate::ir::{Class, Consts, Cvt, Inst, Mode};
use crate::ptx::Type;

fn format(ty: Type) -> Option<Format> {
    Some(match ty {
        Type::F16 => soft::F16,
        Type::Bf16 => soft::BF16,
        Type::Tf32 => soft::TF32,
        Type::F32 => soft::F32,
        Type::F64 => soft::F64,
        _ => return None,
    })
}

/// Returns the value of an integer in a register.
fn integer(ty: Type, v: u64) -> i128 {
    let shift = 64 - ty.bits();
    let v = v << shift;
    if ty.signed() { i128::from(v as i64 >> shift) } else { i128::from(v >> shift) }
}

/// Returns the smallest and largest value of an integer type.
fn limits(ty: Type) -> (i128, i128) {
    let bits = ty.bits();
    if ty.signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Returns the register content for an integer. Types narrower than 32 bits are extended to 32
/// bits.
fn register(ty: Type, v: i128) -> u64 {
    match ty.bits() {
        8 if ty.signed() => u64::from(v as i8 as u32),
        8 => u64::from(v as u8),
        16 => u64::from(v as u16),
        32 => u64::from(v as u32),
        _ => v as u64,
    }
}

/// Replaces a subnormal f32 by zero if `on` is set. Values of other types are unchanged.
fn flush_if(on: bool, ty: Type, v: u64) -> u64 {
    if on && ty == Type::F32 { u64::from(flush(v as u32)) } else { v }
}

fn float_to_float(c: Cvt, from: Format, to: Format, v: u64) -> u64 {
    // A conversion to f16 does not flush its operand.
    let v = flush_if(c.mode.ftz && to != soft::F16, c.from, v);
    let mut out = if from.is_nan(v) {
        let Mode { round, ftz, sat, .. } = c.mode;
        nan::convert(from, to, Conversion { round, integral: c.integral, ftz, sat }, v)
    } else if from == to {
        if c.integral { soft::to_integral(from, c.mode.round, v) } else { v }
    } else if to == soft::TF32 {
        // The result is an f32 whose low bits are zero.
        soft::convert(from, soft::TF32, c.mode.round, v) << 13
    } else if c.integral {
        soft::convert(from, to, Round::Rn, soft::to_integral(from, c.mode.round, v))
    } else {
        soft::convert(from, to, c.mode.round, v)
    };
    let f = if to == soft::TF32 { soft::F32 } else { to };
    let sign = 1u64 << (f.man + f.exp);
    if c.satfinite && (out & !sign == f.inf() || to == soft::TF32 && f.is_nan(out)) {
        out -= if to == soft::TF32 { 1 << 13 } else { 1 };
    }
    if c.mode.relu && !f.is_nan(out) && out & sign != 0 {
        out = 0;
    }
    if c.mode.sat {
        let one = ((1u64 << (f.exp - 1)) - 1) << f.man;
        out = if f.is_nan(out) || out & sign != 0 { 0 } else { out.min(one) };
    }
    flush_if(c.mode.ftz, c.to, out)
}

/// Converts one register value between two types.
pub(in crate::exec) fn convert(c: Cvt, v: u64) -> u64 {
    match (format(c.from), format(c.to)) {
        (Some(from), Some(to)) => float_to_float(c, from, to, v),
        (Some(from), None) => {
            let v = flush_if(c.mode.ftz, c.from, v);
            let (low, high) = limits(c.to);
            match soft::to_int(from, c.mode.round, v) {
                // NaN becomes the value with only the top bit set if f64 or 64 bits are involved,
                // and 0 otherwise.
                None if c.to.signed() && from == soft::F64 => register(c.to, low),
                None if c.to.bits() == 64 || from == soft::F64 => 1 << (c.to.bits() - 1),
                None => 0,
                Some(n) => register(c.to, n.clamp(low, high)),
            }
        }
        (None, Some(to)) => {
            let n = integer(c.from, v);
            let out = soft::from_int(to, c.mode.round, n < 0, n.unsigned_abs());
            if !c.mode.sat {
                return out;
            }
            let one = ((1u64 << (to.exp - 1)) - 1) << to.man;
            if n < 0 { 0 } else { out.min(one) }
        }
        (None, None) => {
            let n = integer(c.from, v);
            let (low, high) = limits(c.to);
            register(c.to, if c.mode.sat { n.clamp(low, high) } else { n })
        }
    }
}

fn class(ty: Type) -> Class {
    if ty.bits() == 64 { Class::W64 } else { Class::W32 }
}

/// The fast paths rely on Rust's `as`: from f32 to i32 it rounds toward zero, saturates, and
/// converts NaN to 0.
#[inline(always)]
pub(in crate::exec) fn cvt(r: &mut Regs, k: &Consts, i: &Inst, c: Cvt, m: u32) {
    let plain = !c.mode.ftz && !c.mode.sat && !c.mode.relu && !c.satfinite;
    let zero = plain && c.mode.round == Round::Rz;
    let near = plain && c.mode.round == Round::Rn && !c.integral;
    match (c.from, c.to) {
        (Type::U32 | Type::B32, Type::U64 | Type::S64 | Type::B64) if plain => {
            r.u64_32(k, i, m, u64::from);
        }
        (Type::S32, Type::S64 | Type::U64) if plain => {
            r.u64_32(k, i, m, |a| i64::from(a as i32) as u64);
        }
        (Type::U64 | Type::S64 | Type::B64, Type::U32 | Type::S32 | Type::B32) if plain => {
            r.u32_64(k, i, m, |a| a as u32);
        }
        (Type::U32 | Type::S32, Type::U16 | Type::S16) if plain => r.u32(k, i, m, |a| a & 0xffff),
        (Type::U16, Type::U32 | Type::S32) if plain => r.u32(k, i, m, |a| a & 0xffff),
        (Type::S16, Type::S32 | Type::U32) if plain => {
            r.u32(k, i, m, |a| i32::from(a as i16) as u32);
        }
        (Type::S32, Type::F32) if near => r.u32(k, i, m, |a| (a as i32 as f32).to_bits()),
        (Type::U32, Type::F32) if near => r.u32(k, i, m, |a| (a as f32).to_bits()),
        (Type::F32, Type::S32) if zero => r.u32(k, i, m, |a| f32::from_bits(a) as i32 as u32),
        (Type::F32, Type::U32) if zero => r.u32(k, i, m, |a| f32::from_bits(a) as u32),
        (Type::S32, Type::F64) if near => {
            r.u64_32(k, i, m, |a| f64::from(a as i32).to_bits());
        }
        (Type::F16, Type::F32) if near => {
            r.u32(k, i, m, |a| canonical(half::to_f32(soft::F16, a as u16).to_bits()));
        }
        (Type::Bf16, Type::F32) if near => {
            r.u32(k, i, m, |a| a << 16);
        }
        (Type::F32, Type::F16) if near => {
            r.u32(k, i, m, |a| half::from_f32(soft::F16, f32::from_bits(a)).into());
        }
        (Type::F32, Type::Bf16) if near => {
            r.u32(k, i, m, |a| half::from_f32(soft::BF16, f32::from_bits(a)).into());
        }
        // The host propagates a NaN like a GPU, but this is not guaranteed.
        (Type::F32, Type::F64) if near => r.u64_32(k, i, m, |a| {
            let v = f64::from(f32::from_bits(a));
            if v.is_nan() { convert(c, a.into()) } else { v.to_bits() }
        }),
        (Type::F64, Type::F32) if near => r.u32_64(k, i, m, |a| {
            let v = f64::from_bits(a) as f32;
            if v.is_nan() { convert(c, a) as u32 } else { v.to_bits() }
        }),
        _ => any(r, k, i, c, m),
    }
}

fn any(r: &mut Regs, k: &Consts, i: &Inst, c: Cvt, m: u32) {
    if matches!(c.to, Type::E4m3x2 | Type::E5m2x2) {
        let f = eight(c.to);
        return r.u32(k, i, m, |a| {
            let get =
                |h: u32| soft::convert(soft::F16, soft::F32, Round::Rn, u64::from(h & 0xffff));
            let low = to_eight(f, c.mode, get(a));
            u32::from(low) | u32::from(to_eight(f, c.mode, get(a >> 16))) << 8
        });
    }
    match (class(c.from), class(c.to)) {
        (Class::W32, Class::W32) => r.u32(k, i, m, |a| convert(c, a.into()) as u32),
        (Class::W32, _) => r.u64_32(k, i, m, |a| convert(c, a.into())),
        (_, Class::W32) => r.u32_64(k, i, m, |a| convert(c, a) as u32),
        _ => r.u64(k, i, m, |a| convert(c, a)),
    }
}

/// An 8-bit floating-point format, with its largest finite magnitude and its NaN.
#[derive(Clone, Copy)]
struct Eight {
    format: Format,
    largest: u8,
    nan: u8,
}

fn eight(ty: Type) -> Eight {
    if ty == Type::E4m3x2 {
        // The format has no infinities: the codes of the top exponent are numbers, except for the
        // last.
        Eight { format: Format { man: 3, exp: 4 }, largest: 0x7e, nan: 0x7f }
    } else {
        Eight { format: Format { man: 2, exp: 5 }, largest: 0x7b, nan: 0x7f }
    }
}

/// Converts an f32 to an 8-bit float. Rounds to nearest and saturates to the largest finite number.
fn to_eight(e: Eight, mode: Mode, v: u64) -> u8 {
    let x = f32::from_bits(v as u32);
    if x.is_nan() {
        return e.nan;
    }
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    if mode.relu && sign != 0 {
        return 0;
    }
    let magnitude = match soft::unpack(soft::F32, v & 0x7fff_ffff) {
        soft::Value::Num { man, exp, .. } => soft::pack_extended(e.format, man, exp),
        _ => u64::MAX,
    };
    sign | magnitude.min(u64::from(e.largest)) as u8
}

fn from_eight(ty: Type, v: u8) -> u16 {
    let e = eight(ty);
    if ty == Type::E5m2x2 {
        let h = u16::from(v) << 8;
        return if soft::F16.is_nan(h.into()) { 0x7fff } else { h };
    }
    let sign = u16::from(v & 0x80) << 8;
    if v & 0x7f == e.nan {
        return 0x7fff;
    }
    let (exp, man) = (u32::from(v >> 3 & 15), u32::from(v & 7));
    let x = if exp == 0 {
        man as f32 / 512.0
    } else {
        (8 + man) as f32 / 8.0 * 2f32.powi(exp as i32 - 7)
    };
    sign | half::from_f32(soft::F16, x)
}

/// Returns the value of an 8-bit float, in format e5m2 if `e5m2` and e4m3 otherwise.
pub(in crate::exec) fn eight_bits(e5m2: bool, v: u8) -> f64 {
    let ty = if e5m2 { Type::E5m2x2 } else { Type::E4m3x2 };
    half::to_f32(soft::F16, from_eight(ty, v)).into()
}

/// Converts two f32 values to a packed pair. `a` becomes the high half.
pub(in crate::exec) fn pack(
    r: &mut Regs,
    k: &Consts,
    i: &Inst,
    to: Type,
    mode: Mode,
    sat: bool,
    m: u32,
) {
    if matches!(to, Type::E4m3x2 | Type::E5m2x2) {
        let e = eight(to);
        return r.b32(k, i, m, |a, b| {
            u32::from(to_eight(e, mode, b.into())) | u32::from(to_eight(e, mode, a.into())) << 8
        });
    }
    let to = if to == Type::F16x2 { Type::F16 } else { Type::Bf16 };
    if mode == Mode::default() && !sat {
        let f = if to == Type::F16 { soft::F16 } else { soft::BF16 };
        let near = |v: u32| u32::from(half::from_f32(f, f32::from_bits(v)));
        return r.b32(k, i, m, |a, b| near(b) | near(a) << 16);
    }
    let c = Cvt { to, from: Type::F32, mode, integral: false, satfinite: sat };
    r.b32(k, i, m, |a, b| convert(c, b.into()) as u32 | (convert(c, a.into()) as u32) << 16);
}

/// Converts a packed pair of 8-bit floats to f16x2.
pub(in crate::exec) fn unpack(r: &mut Regs, k: &Consts, i: &Inst, from: Type, relu: bool, m: u32) {
    let get = |v: u8| {
        let h = from_eight(from, v);
        u32::from(if relu && h >> 15 == 1 && h & 0x7fff <= 0x7c00 { 0 } else { h })
    };
    r.u32(k, i, m, |a| get(a as u8) | get((a >> 8) as u8) << 16);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cvt(to: Type, from: Type, round: Round, v: u64) -> u64 {
        let mode = Mode { round, ..Mode::default() };
        convert(Cvt { to, from, mode, integral: false, satfinite: false }, v)
    }

    #[test]
    fn saturation_and_nan() {
        let f = |x: f32| u64::from(x.to_bits());
        assert_eq!(cvt(Type::S32, Type::F32, Round::Rz, f(3e9)), 0x7fff_ffff);
        assert_eq!(cvt(Type::U32, Type::F32, Round::Rz, f(-1.0)), 0);
        assert_eq!(cvt(Type::S32, Type::F32, Round::Rz, f(f32::NAN)), 0);
        assert_eq!(cvt(Type::S64, Type::F32, Round::Rz, f(f32::NAN)), 1 << 63);
        assert_eq!(cvt(Type::U8, Type::F32, Round::Rn, f(300.0)), 255);
        assert_eq!(cvt(Type::S8, Type::S32, Round::Rn, 0x1ff), 0xffff_ffff);
        assert_eq!(cvt(Type::U8, Type::U32, Round::Rn, 0x1ff), 0xff);
        assert_eq!(cvt(Type::S64, Type::S8, Round::Rn, 0x80), u64::MAX - 127);
        let mode = Mode { sat: true, ..Mode::default() };
        let c = Cvt { to: Type::U8, from: Type::S32, mode, integral: false, satfinite: false };
        assert_eq!(convert(c, 0xffff_fff0), 0);
        assert_eq!(convert(c, 999), 255);
    }

    #[test]
    fn eight_bit_floats_round_trip() {
        for ty in [Type::E4m3x2, Type::E5m2x2] {
            for v in 0..=255u8 {
                let h = from_eight(ty, v);
                if soft::F16.is_nan(h.into()) || h & 0x7fff == 0x7c00 {
                    continue;
                }
                let f = soft::convert(soft::F16, soft::F32, Round::Rn, h.into());
                assert_eq!(to_eight(eight(ty), Mode::default(), f), v, "{ty:?} {v:#x}");
            }
        }
        let f = |x: f32| u64::from(x.to_bits());
        assert_eq!(to_eight(eight(Type::E4m3x2), Mode::default(), f(1e9)), 0x7e);
        assert_eq!(to_eight(eight(Type::E5m2x2), Mode::default(), f(f32::INFINITY)), 0x7b);
    }
}
