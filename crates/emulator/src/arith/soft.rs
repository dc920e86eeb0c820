//! Exact binary floating point of any format up to f64, in all rounding modes.
//!
//! Numbers are unpacked to sign, 128-bit significand and exponent; results are rounded once. The fast
//! paths of the executor use the host's floating point where that gives the same bits. All other paths,
//! and the tests of the fast ones, use this module.

/// A rounding mode of floating-point arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Round {
    /// Rounds to nearest, ties to even.
    #[default]
    Rn,
    /// Rounds toward zero: drops the remaining digits.
    Rz,
    /// Rounds toward negative infinity.
    Rm,
    /// Rounds toward positive infinity.
    Rp,
    /// Rounds to nearest, ties away from zero.
    Rna,
}

/// A binary floating-point format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    /// Number of stored bits of the significand.
    pub(crate) man: u32,
    /// Number of bits of the exponent.
    pub(crate) exp: u32,
}

pub(crate) const F16: Format = Format { man: 10, exp: 5 };
pub(crate) const BF16: Format = Format { man: 7, exp: 8 };
pub(crate) const TF32: Format = Format { man: 10, exp: 8 };
pub(crate) const F32: Format = Format { man: 23, exp: 8 };
pub(crate) const F64: Format = Format { man: 52, exp: 11 };

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exp - 1)) - 1
    }

    fn sign(self) -> u64 {
        1 << (self.man + self.exp)
    }

    /// Returns positive infinity in this format.
    pub(crate) fn inf(self) -> u64 {
        ((1 << self.exp) - 1) << self.man
    }

    /// Returns the NaN of GPU arithmetic: all bits set except the sign, or for f64 the quiet NaN.
    pub(crate) fn nan(self) -> u64 {
        if self == F64 { 0x7ff8_0000_0000_0000 } else { self.sign() - 1 }
    }

    fn largest(self) -> u64 {
        self.inf() - 1
    }

    /// Returns whether `bits` is a NaN.
    pub(crate) fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.inf()
    }
}

/// An unpacked value. A number is exactly `man × 2^exp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    Nan,
    Inf { neg: bool },
    Num { neg: bool, man: u128, exp: i32 },
}

/// Splits `bits` of format `f` into sign, significand and exponent.
pub(crate) fn unpack(f: Format, bits: u64) -> Value {
    let neg = bits & f.sign() != 0;
    let e = (bits >> f.man) & ((1 << f.exp) - 1);
    let m = bits & ((1 << f.man) - 1);
    if e == (1 << f.exp) - 1 {
        return if m == 0 { Value::Inf { neg } } else { Value::Nan };
    }
    let (man, e) = if e == 0 { (m, 1) } else { (m | 1 << f.man, e) };
    Value::Num { neg, man: man.into(), exp: e as i32 - f.bias() - f.man as i32 }
}

/// Returns whether to round a magnitude up. `half` is the first remainder bit; `rest` is true if
/// any later one is set.
fn increments(r: Round, neg: bool, odd: bool, half: bool, rest: bool) -> bool {
    match r {
        Round::Rn => half && (rest || odd),
        Round::Rna => half,
        Round::Rz => false,
        Round::Rm => neg && (half || rest),
        Round::Rp => !neg && (half || rest),
    }
}

/// Shifts right by `n`. Also returns the first bit shifted out, and whether any later bit was set.
fn shift_out(man: u128, n: u32) -> (u128, bool, bool) {
    match n {
        0 => (man, false, false),
        1..=127 => {
            let half = man >> (n - 1) & 1 == 1;
            (man >> n, half, man & ((1 << (n - 1)) - 1) != 0)
        }
        128 => (0, man >> 127 == 1, man << 1 != 0),
        _ => (0, false, man != 0),
    }
}

/// Rounds `±(man × 2^exp)` to format `f`. If `sticky` is set, the magnitude is larger by less than
/// one unit.
pub(crate) fn pack(f: Format, r: Round, neg: bool, man: u128, exp: i32, sticky: bool) -> u64 {
    let sign = if neg { f.sign() } else { 0 };
    if man == 0 {
        return if sticky && increments(r, neg, false, false, true) { sign | 1 } else { sign };
    }
    let zeros = man.leading_zeros();
    let (man, exp) = (man << zeros, exp - zeros as i32);
    // The leading bit has weight 2^top.
    let top = exp + 127;
    let emin = 1 - f.bias();
    let keep = f.man as i32 + 1 - (emin - top).max(0);
    let (mut q, half, rest) = shift_out(man, (128 - keep).clamp(0, 200) as u32);
    if increments(r, neg, q & 1 == 1, half, rest || sticky) {
        q += 1;
    }
    let base = if top < emin { 0 } else { ((top + f.bias() - 1) as u64) << f.man };
    // If the significand carries over, the addition increments the exponent.
    let bits = base + q as u64;
    if top >= emin && bits >= f.inf() || top > f.bias() {
        let to_inf = matches!(r, Round::Rn | Round::Rna)
            || (r == Round::Rp && !neg)
            || (r == Round::Rm && neg);
        return sign | if to_inf { f.inf() } else { f.largest() };
    }
    sign | bits
}

/// Returns the bits of `man × 2^exp`, rounded to nearest, in a format whose exponent has no upper limit.
pub(crate) fn pack_extended(f: Format, man: u128, exp: i32) -> u64 {
    if man == 0 {
        return 0;
    }
    let zeros = man.leading_zeros();
    let (man, top) = (man << zeros, exp - zeros as i32 + 127);
    let emin = 1 - f.bias();
    let keep = f.man as i32 + 1 - (emin - top).max(0);
    let (q, half, rest) = shift_out(man, (128 - keep).clamp(0, 200) as u32);
    let up = increments(Round::Rn, false, q & 1 == 1, half, rest);
    let base = if top < emin { 0 } else { ((top + f.bias() - 1) as u64) << f.man };
    base + q as u64 + u64::from(up)
}

/// Returns the sum of two values given as sign, `man` and `exp`, rounded once.
fn add_scaled(
    f: Format,
    r: Round,
    (na, ma, ea): (bool, u128, i32),
    (nb, mb, eb): (bool, u128, i32),
) -> u64 {
    if ma == 0 || mb == 0 {
        if ma == 0 && mb == 0 {
            let neg = if na == nb { na } else { r == Round::Rm };
            return pack(f, r, neg, 0, 0, false);
        }
        let (n, m, e) = if ma == 0 { (nb, mb, eb) } else { (na, ma, ea) };
        return pack(f, r, n, m, e, false);
    }
    // The leading bits are moved to position 126, so that a sum fits. Bits shifted out become a
    // sticky bit.
    let up = |m: u128, e: i32| (m << (m.leading_zeros() - 1), e - (m.leading_zeros() as i32 - 1));
    let ((ma, ea), (mb, eb)) = (up(ma, ea), up(mb, eb));
    let big_first = (ea, ma) >= (eb, mb);
    let ((nx, mx, ex), (ny, my, ey)) =
        if big_first { ((na, ma, ea), (nb, mb, eb)) } else { ((nb, mb, eb), (na, ma, ea)) };
    let (my, half, rest) = shift_out(my, (ex - ey).min(200) as u32);
    let lost = half || rest;
    if nx == ny {
        return pack(f, r, nx, mx + my, ex, lost);
    }
    let diff = mx - my;
    if diff == 0 && !lost {
        return pack(f, r, r == Round::Rm, 0, 0, false);
    }
    // x − (y + δ) = (x − y − 1) + (1 − δ)
    if lost { pack(f, r, nx, diff - 1, ex, true) } else { pack(f, r, nx, diff, ex, false) }
}

/// Returns `a × b + c`, rounded once.
pub(crate) fn fma(f: Format, r: Round, a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = (unpack(f, a), unpack(f, b), unpack(f, c));
    let product = match product(a, b) {
        Value::Nan => return f.nan(),
        p => p,
    };
    match (product, c) {
        (_, Value::Nan) => f.nan(),
        (Value::Inf { neg: x }, Value::Inf { neg: y }) if x != y => f.nan(),
        (Value::Inf { neg }, _) | (_, Value::Inf { neg }) => infinity(f, neg),
        (Value::Num { neg: n, man: m, exp: e }, Value::Num { neg, man, exp }) => {
            add_scaled(f, r, (n, m, e), (neg, man, exp))
        }
        _ => f.nan(),
    }
}

fn infinity(f: Format, neg: bool) -> u64 {
    f.inf() | if neg { f.sign() } else { 0 }
}

fn product(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Inf { neg: x }, Value::Inf { neg: y }) => Value::Inf { neg: x != y },
        (Value::Inf { neg: x }, Value::Num { neg: y, man, .. })
        | (Value::Num { neg: y, man, .. }, Value::Inf { neg: x }) => {
            if man == 0 {
                Value::Nan
            } else {
                Value::Inf { neg: x != y }
            }
        }
        (Value::Num { neg: x, man: m, exp: e }, Value::Num { neg: y, man: n, exp: g }) => {
            Value::Num { neg: x != y, man: m * n, exp: e + g }
        }
    }
}

/// Returns `a + b`, rounded once.
pub(crate) fn add(f: Format, r: Round, a: u64, b: u64) -> u64 {
    let one = (f.bias() as u64) << f.man;
    fma(f, r, a, one, b)
}

/// Returns `a × b`, rounded once.
pub(crate) fn mul(f: Format, r: Round, a: u64, b: u64) -> u64 {
    match product(unpack(f, a), unpack(f, b)) {
        Value::Nan => f.nan(),
        Value::Inf { neg } => infinity(f, neg),
        Value::Num { neg, man, exp } => pack(f, r, neg, man, exp, false),
    }
}

/// Returns `a ÷ b`, rounded once.
pub(crate) fn div(f: Format, r: Round, a: u64, b: u64) -> u64 {
    match (unpack(f, a), unpack(f, b)) {
        (Value::Nan, _) | (_, Value::Nan) | (Value::Inf { .. }, Value::Inf { .. }) => f.nan(),
        (Value::Inf { neg }, Value::Num { neg: n, .. }) => infinity(f, neg != n),
        (Value::Num { neg, .. }, Value::Inf { neg: n }) => pack(f, r, neg != n, 0, 0, false),
        (Value::Num { neg: x, man: m, exp: e }, Value::Num { neg: y, man: n, exp: g }) => {
            let neg = x != y;
            if n == 0 {
                return if m == 0 { f.nan() } else { infinity(f, neg) };
            }
            if m == 0 {
                return pack(f, r, neg, 0, 0, false);
            }
            let shift = m.leading_zeros() - 1;
            let (q, rest) = ((m << shift) / n, (m << shift) % n);
            pack(f, r, neg, q, e - g - shift as i32, rest != 0)
        }
    }
}

/// Returns the square root of `a`, rounded once.
pub(crate) fn sqrt(f: Format, r: Round, a: u64) -> u64 {
    match unpack(f, a) {
        Value::Nan | Value::Inf { neg: true } => f.nan(),
        Value::Inf { neg: false } => f.inf(),
        Value::Num { man: 0, .. } => a,
        Value::Num { neg: true, .. } => f.nan(),
        Value::Num { man, exp, .. } => {
            let mut shift = man.leading_zeros() as i32 - 1;
            shift -= (exp - shift) & 1;
            let scaled = man << shift;
            let root = scaled.isqrt();
            pack(f, r, false, root, (exp - shift) / 2, root * root != scaled)
        }
    }
}

/// Converts `bits` of format `from` to format `to`.
pub(crate) fn convert(from: Format, to: Format, r: Round, bits: u64) -> u64 {
    match unpack(from, bits) {
        Value::Nan => to.nan(),
        Value::Inf { neg } => infinity(to, neg),
        Value::Num { neg, man, exp } => pack(to, r, neg, man, exp, false),
    }
}

/// Converts an integer, negative if `neg`, to format `to`.
pub(crate) fn from_int(to: Format, r: Round, neg: bool, magnitude: u128) -> u64 {
    pack(to, r, neg && magnitude != 0, magnitude, 0, false)
}

/// Rounds `bits` to an integer. Values beyond i128 saturate. Returns `None` for a NaN.
pub(crate) fn to_int(f: Format, r: Round, bits: u64) -> Option<i128> {
    match unpack(f, bits) {
        Value::Nan => None,
        Value::Inf { neg } => Some(if neg { i128::MIN } else { i128::MAX }),
        Value::Num { neg, man, exp } => {
            let magnitude = if exp >= 0 {
                if exp as u32 >= man.leading_zeros() {
                    if man == 0 {
                        0
                    } else {
                        return Some(if neg { i128::MIN } else { i128::MAX });
                    }
                } else {
                    man << exp
                }
            } else {
                let (q, half, rest) = shift_out(man, exp.unsigned_abs());
                q + u128::from(increments(r, neg, q & 1 == 1, half, rest))
            };
            let v = magnitude as i128;
            Some(if neg { -v } else { v })
        }
    }
}

/// Rounds `bits` to an integral value of the same format.
pub(crate) fn to_integral(f: Format, r: Round, bits: u64) -> u64 {
    match unpack(f, bits) {
        Value::Nan => f.nan(),
        Value::Num { neg, man, exp } if exp < 0 => {
            let (q, half, rest) = shift_out(man, exp.unsigned_abs());
            let q = q + u128::from(increments(r, neg, q & 1 == 1, half, rest));
            pack(f, Round::Rn, neg, q, 0, false)
        }
        _ => bits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns numbers of all magnitudes, with many special values.
    fn samples() -> impl Iterator<Item = u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        (0..).map(move |i| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            match i % 7 {
                0 => state & 0x800f_ffff_ffff_ffff,
                1 => state & 0xfff0_0000_0000_0003,
                2 => (state & 0x803f_ffff_ffff_ffff) | 0x3fe0_0000_0000_0000,
                _ => state,
            }
        })
    }

    #[test]
    fn agrees_with_the_host_in_nearest_even() {
        let mut s = samples();
        let same = |f: Format, got: u64, want: u64| {
            if f.is_nan(want) { f.is_nan(got) } else { got == want }
        };
        for _ in 0..200_000 {
            let (x, y, z) = (s.next().unwrap(), s.next().unwrap(), s.next().unwrap());
            let (a, b, c) = (f64::from_bits(x), f64::from_bits(y), f64::from_bits(z));
            assert!(same(F64, add(F64, Round::Rn, x, y), (a + b).to_bits()), "{a:e} + {b:e}");
            assert!(same(F64, mul(F64, Round::Rn, x, y), (a * b).to_bits()), "{a:e} * {b:e}");
            assert!(same(F64, div(F64, Round::Rn, x, y), (a / b).to_bits()), "{a:e} / {b:e}");
            assert!(same(F64, sqrt(F64, Round::Rn, x), a.sqrt().to_bits()), "sqrt {a:e}");
            let fused = fma(F64, Round::Rn, x, y, z);
            assert!(same(F64, fused, a.mul_add(b, c).to_bits()), "{a:e} * {b:e} + {c:e}");
            let narrow = convert(F64, F32, Round::Rn, x);
            assert!(same(F32, narrow, u64::from((a as f32).to_bits())), "{a:e}");
            let (xf, yf) = (x >> 32, y >> 32);
            let (af, bf) = (f32::from_bits(xf as u32), f32::from_bits(yf as u32));
            let sum = u64::from((af + bf).to_bits());
            assert!(same(F32, add(F32, Round::Rn, xf, yf), sum), "{af:e} + {bf:e}");
            let half = u64::from(half::f16::from_f32(af).to_bits());
            assert!(same(F16, convert(F32, F16, Round::Rn, xf), half), "{af:e}");
        }
    }

    #[test]
    fn directed_modes_enclose_the_value() {
        let mut s = samples();
        for _ in 0..100_000 {
            let (x, y) = (s.next().unwrap() >> 32, s.next().unwrap() >> 32);
            let exact = f64::from(f32::from_bits(x as u32)) * f64::from(f32::from_bits(y as u32));
            if !exact.is_finite() {
                continue;
            }
            let get = |r| f64::from(f32::from_bits(mul(F32, r, x, y) as u32));
            assert!(get(Round::Rm) <= exact && exact <= get(Round::Rp));
            assert!(get(Round::Rz).abs() <= exact.abs());
            let near = get(Round::Rn);
            assert!(near == get(Round::Rm) || near == get(Round::Rp));
        }
        assert_eq!(add(F32, Round::Rm, 0x3f80_0000, 0xbf80_0000), 0x8000_0000);
        assert_eq!(mul(F32, Round::Rz, 0x7f7f_ffff, 0x7f7f_ffff), 0x7f7f_ffff);
        assert_eq!(mul(F32, Round::Rp, 0x0000_0001, 0x0000_0001), 1);
    }

    #[test]
    fn integers() {
        assert_eq!(to_int(F32, Round::Rn, 2.5f32.to_bits().into()), Some(2));
        assert_eq!(to_int(F32, Round::Rp, (-2.5f32).to_bits().into()), Some(-2));
        assert_eq!(to_int(F64, Round::Rz, 1e30f64.to_bits()), Some(1e30 as i128));
        assert_eq!(from_int(F32, Round::Rz, false, 0x1ff_ffff), u64::from(33_554_430f32.to_bits()));
        assert_eq!(to_integral(F32, Round::Rm, (-0.5f32).to_bits().into()), 0xbf80_0000);
        assert_eq!(to_integral(F32, Round::Rn, (-0.5f32).to_bits().into()), 0x8000_0000);
    }
}
