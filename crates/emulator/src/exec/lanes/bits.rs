//! Bit fields, permutations and dot products in one lane, as the PTX ISA defines them.

use crate::ir::I3;

/// Applies a function to the low and to the high 16 bits of two words.
pub(in crate::exec) fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    let low = f(a as u16, b as u16);
    let high = f((a >> 16) as u16, (b >> 16) as u16);
    u32::from(low) | u32::from(high) << 16
}

/// Returns a mask of `width` one bits that starts at bit `at`.
pub(in crate::exec) fn bmsk(at: u32, width: u32, clamp: bool) -> u32 {
    let (at, width) = if clamp { (at.min(32), width.min(32)) } else { (at & 31, width & 31) };
    let ones = if width >= 32 { u32::MAX } else { (1 << width) - 1 };
    ones.checked_shl(at).unwrap_or(0)
}

/// Returns the low `n` bits of `a`, sign-extended or zero-extended.
pub(in crate::exec) fn szext(a: u32, n: u32, signed: bool, clamp: bool) -> u32 {
    let n = if clamp { n.min(32) } else { n & 31 };
    match n {
        0 => 0,
        32 => a,
        _ if signed => ((a << (32 - n)) as i32 >> (32 - n)) as u32,
        _ => a & ((1 << n) - 1),
    }
}

/// Returns the position of the highest bit that differs from the sign bit, or a number whose bits
/// are all ones if no bit does.
pub(in crate::exec) fn bfind(v: u64, bits: u32, signed: bool, shift: bool) -> u32 {
    let v = if signed { v ^ (((v << (64 - bits)) as i64 >> 63) as u64) } else { v };
    let v = if bits == 64 { v } else { v & ((1 << bits) - 1) };
    match v {
        0 => u32::MAX,
        v if shift => bits - 1 - (63 - v.leading_zeros()),
        v => 63 - v.leading_zeros(),
    }
}

/// Returns the position and length of a bit field. The 32-bit instructions use the low 8 bits of
/// each operand. The 64-bit instructions, which GPUs emulate in software, use all bits.
fn field(pos: u32, len: u32, bits: u32) -> (u32, u32) {
    if bits == 64 { (pos.min(255), len.min(255)) } else { (pos & 0xff, len & 0xff) }
}

/// Returns `len` bits of `a` starting at bit `pos`. They are extended by the sign (the highest
/// extracted bit) or by zeros.
pub(in crate::exec) fn bfe(a: u64, pos: u32, len: u32, bits: u32, signed: bool) -> u64 {
    let (pos, len) = field(pos, len, bits);
    if len == 0 {
        return 0;
    }
    // This bit fills the positions that the field does not cover.
    let fill = signed && a >> (pos.saturating_add(len) - 1).min(bits - 1) & 1 == 1;
    let field = if pos >= bits { 0 } else { a >> pos };
    let taken = len.min(bits.saturating_sub(pos));
    let low = if taken >= 64 { u64::MAX } else { (1 << taken) - 1 };
    let v = field & low | if fill { !low } else { 0 };
    if bits == 64 { v } else { v & u64::from(u32::MAX) }
}

pub(in crate::exec) fn bfi(a: u64, b: u64, pos: u32, len: u32, bits: u32) -> u64 {
    let (pos, len) = field(pos, len, bits);
    if len == 0 || pos >= bits {
        return b;
    }
    let len = len.min(bits - pos);
    let low = if len >= 64 { u64::MAX } else { (1 << len) - 1 };
    b & !(low << pos) | (a & low) << pos
}

pub(in crate::exec) fn lop3(a: u32, b: u32, c: u32, table: u32) -> u32 {
    let mut out = 0;
    for n in 0..8 {
        if table >> n & 1 == 1 {
            let pick = |v: u32, bit: u32| if n >> bit & 1 == 1 { v } else { !v };
            out |= pick(a, 2) & pick(b, 1) & pick(c, 0);
        }
    }
    out
}

/// Selects bytes of `b:a` by the nibbles of `sel`. If the top bit of a nibble is set, the sign of
/// the selected byte fills the whole byte.
pub(in crate::exec) fn prmt(a: u32, b: u32, sel: u32) -> u32 {
    let all = u64::from(b) << 32 | u64::from(a);
    let mut out = 0;
    for n in 0..4 {
        let s = sel >> (4 * n) & 0xf;
        let byte = (all >> (8 * (s & 7))) as u8;
        let byte = if s & 8 != 0 { (byte as i8 >> 7) as u8 } else { byte };
        out |= u32::from(byte) << (8 * n);
    }
    out
}

/// Returns the selector of bytes for one of the modes of `prmt`.
pub(in crate::exec) fn prmt_mode(op: I3, c: u32) -> u32 {
    let c = (c & 3) as usize;
    match op {
        I3::PrmtF4e => [0x3210, 0x4321, 0x5432, 0x6543][c],
        I3::PrmtB4e => [0x5670, 0x6701, 0x7012, 0x0123][c],
        I3::PrmtRc8 => [0x0000, 0x1111, 0x2222, 0x3333][c],
        I3::PrmtEcl => [0x3210, 0x3211, 0x3222, 0x3333][c],
        I3::PrmtEcr => [0x0000, 0x1110, 0x2210, 0x3210][c],
        _ => [0x1010, 0x3232, 0x1010, 0x3232][c],
    }
}

pub(in crate::exec) fn funnel(a: u32, b: u32, c: u32, left: bool, clamp: bool) -> u32 {
    let n = if clamp { c.min(32) } else { c & 31 };
    let both = u64::from(b) << 32 | u64::from(a);
    if left { ((both << n) >> 32) as u32 } else { (both >> n) as u32 }
}

/// Returns the absolute differences of the bytes of `a` and `b`.
pub(in crate::exec) fn absdiff4(a: u32, b: u32) -> u32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    u32::from_le_bytes(std::array::from_fn(|n| a[n].abs_diff(b[n])))
}

/// Returns `c` plus the dot product of the four bytes of `a` and `b`.
pub(in crate::exec) fn dp4a(a: u32, b: u32, c: u32, sa: bool, sb: bool) -> u32 {
    let byte = |v: u32, n: u32, s: bool| {
        let x = (v >> (8 * n)) as u8;
        if s { i32::from(x as i8) } else { i32::from(x) }
    };
    (0..4).fold(c, |acc, n| acc.wrapping_add((byte(a, n, sa) * byte(b, n, sb)) as u32))
}

/// Returns `c` plus the dot product of the two halves of `a` and the low or high two bytes of `b`.
pub(in crate::exec) fn dp2a(a: u32, b: u32, c: u32, sa: bool, sb: bool, high: bool) -> u32 {
    let b = if high { b >> 16 } else { b };
    (0..2).fold(c, |acc, n| {
        let x = (a >> (16 * n)) as u16;
        let x = if sa { i32::from(x as i16) } else { i32::from(x) };
        let y = (b >> (8 * n)) as u8;
        let y = if sb { i32::from(y as i8) } else { i32::from(y) };
        acc.wrapping_add(x.wrapping_mul(y) as u32)
    })
}

/// Returns the position of the `offset`-th set bit of `mask`, counted upward or downward from bit
/// `base`. Returns a number whose bits are all ones if there is no such bit.
pub(in crate::exec) fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    let base = base & 31;
    if offset == 0 {
        return if mask >> base & 1 == 1 { base } else { u32::MAX };
    }
    if offset == i32::MIN {
        // On a GPU the magnitude of the offset overflows.
        return 0;
    }
    let mut left = offset.unsigned_abs();
    let mut at = i64::from(base);
    let step = if offset > 0 { 1 } else { -1 };
    while (0..32).contains(&at) {
        if mask >> at & 1 == 1 {
            left -= 1;
            if left == 0 {
                return at as u32;
            }
        }
        at += step;
    }
    u32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bit_fields_follow_the_isa() {
        assert_eq!(bfe(0xffff_fff0, 4, 8, 32, false), 0xff);
        assert_eq!(bfe(0x0000_0080, 4, 4, 32, true), 0xffff_fff8);
        assert_eq!(bfe(0x8000_0000, 40, 4, 32, true), 0xffff_ffff);
        assert_eq!(bfe(0x8000_0000, 28, 8, 32, true), 0xffff_fff8);
        assert_eq!(bfi(0xff, 0, 8, 4, 32), 0xf00);
        assert_eq!(bfi(0xff, 7, 40, 4, 32), 7);
        assert_eq!(bfi(0xff, 0, 28, 16, 32), 0xf000_0000);
        assert_eq!(prmt(0x3322_1180, 0x7766_5544, 0x4_8_0_7), 0x44_ff_80_77);
        assert_eq!(lop3(0xf0f0, 0xcccc, 0xaaaa, 0x80), 0xf0f0 & 0xcccc & 0xaaaa);
        assert_eq!(lop3(0xf0f0, 0xcccc, 0xaaaa, 0x96), 0xf0f0 ^ 0xcccc ^ 0xaaaa);
        assert_eq!(funnel(0x8000_0001, 0x1, 4, true, false), 0x18);
        assert_eq!(funnel(1, 2, 40, false, true), 2);
        assert_eq!(fns(0b1011_0000, 4, 2), 5);
        assert_eq!(fns(0b1011_0000, 7, -2), 5);
        assert_eq!(fns(0b1011_0000, 4, i32::MIN), 0);
        assert_eq!(bfi(0xff, 7, 0x100, 4, 64), 7);
        assert_eq!(bfe(0xff, 4, 0x101, 64, false), 0xf);
        assert_eq!(bfe(0xff, 4, 0x101, 32, false), 1);
        assert_eq!(bfind(0xffff_fffe, 32, true, false), 0);
        assert_eq!(bfind(0x8000_0000, 32, false, true), 0);
        assert_eq!(dp4a(0xff01_ff01, 0x0101_0101, 0, true, true), 0);
        assert_eq!(bmsk(4, 4, true), 0xf0);
        assert_eq!(szext(0xf8, 4, true, false), 0xffff_fff8);
    }
}
