//! Operands: their types, random values and literals.

/// What an operand is: the width of its register and how its values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ty {
    /// A predicate, from an even chance.
    P,
    /// Bits in a register of 16, whatever they mean.
    B16,
    U16,
    S16,
    B32,
    U32,
    S32,
    B64,
    U64,
    S64,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
    F32,
    F64,
    /// A 32-bit amount by which to shift: mostly near the widths of registers.
    Shift,
    /// A 32-bit number below this one.
    Below(u32),
    /// An f32 between two numbers.
    F32In(i32, i32),
    /// Small whole numbers as f16, for sums that are exact whatever their order.
    SmallF16x2,
    SmallBf16x2,
    SmallF32,
    SmallF64,
    SmallTf32,
    SmallE4m3x4,
    SmallE5m2x4,
    /// Numbers of magnitude at most 1.
    UnitF16x2,
    UnitBf16x2,
    UnitF32,
    UnitF64,
    UnitE4m3x4,
    UnitE5m2x4,
    /// Small whole numbers, zeros of both signs, and now and then an infinity or NaN.
    EdgeF16x2,
    EdgeBf16x2,
    EdgeF32,
}

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`, which is small.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }
}

/// A binary floating-point format: bits of significand and exponent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    pub man: u32,
    pub exp: u32,
}

pub const F16: Format = Format { man: 10, exp: 5 };
pub const BF16: Format = Format { man: 7, exp: 8 };
pub const F32: Format = Format { man: 23, exp: 8 };
pub const F64: Format = Format { man: 52, exp: 11 };

impl Format {
    pub fn bits(self) -> u32 {
        1 + self.man + self.exp
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    fn bias(self) -> u64 {
        (1 << (self.exp - 1)) - 1
    }

    fn infinity(self) -> u64 {
        ((1 << self.exp) - 1) << self.man
    }

    /// Zeros, infinities, NaN with and without payload, both ends of the normal and subnormal
    /// numbers, and some ordinary ones.
    fn special(self, r: &mut Random) -> u64 {
        let one = self.bias() << self.man;
        let inf = self.infinity();
        let quiet = 1 << (self.man - 1);
        let list = [
            0,
            inf,
            inf | quiet,
            inf | quiet | (r.next() & (quiet - 1)),
            inf | 1,
            1,
            (1 << self.man) - 1,
            1 << self.man,
            (1 << self.man) + 1,
            inf - 1,
            one,
            one + 1,
            one - 1,
            one + (1 << self.man),
            one - (1 << self.man),
            one + (1 << (self.man - 1)),
        ];
        let v = list[r.below(list.len() as u64) as usize];
        v | (r.next() & 1) << (self.bits() - 1)
    }

    /// Any value, with those where implementations differ more often than by chance.
    fn draw(self, r: &mut Random) -> u64 {
        let sign = (r.next() & 1) << (self.bits() - 1);
        let man = r.next() & ((1 << self.man) - 1);
        let bias = self.bias();
        match r.below(16) {
            0..=3 => r.next() & self.mask(),
            4..=6 => self.special(r),
            // Near one, where sums cancel.
            7..=9 => sign | (bias - 4 + r.below(8)) << self.man | man,
            // Powers of two and their neighbours.
            10 | 11 => {
                let power = r.below((1 << self.exp) - 1) << self.man;
                (power + r.below(5)).saturating_sub(2) & (self.mask() >> 1) | sign
            }
            // Small multiples of a half.
            12 => sign | self.multiple(r.below(64), 1),
            // The ends of the integer types.
            13 => {
                let ends = [7u64, 8, 15, 16, 31, 32, 63, 64];
                let e = bias + ends[r.below(8) as usize];
                let e = e.min((1 << self.exp) - 2);
                sign | ((e << self.man) + r.below(5)).saturating_sub(2)
            }
            // Few digits, so that results are often halfway between two.
            14 => {
                let few = man & !((1 << (self.man / 2 + 1)) - 1);
                let range = bias.min(40);
                sign | (bias - range / 2 + r.below(range)) << self.man | few
            }
            // Subnormal.
            _ => sign | man,
        }
    }

    /// `n / 2^halvings`, exactly; both are small.
    pub fn multiple(self, n: u64, halvings: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let top = 63 - u64::from(n.leading_zeros());
        let fraction = n ^ 1 << top;
        (self.bias() + top - halvings) << self.man | fraction << (u64::from(self.man) - top)
    }

    /// The value as an f64.
    pub fn value(self, bits: u64) -> f64 {
        let sign = if bits >> (self.bits() - 1) & 1 == 1 { -1.0 } else { 1.0 };
        let man = (bits & ((1 << self.man) - 1)) as f64 / (1u64 << self.man) as f64;
        let exp = bits >> self.man & ((1 << self.exp) - 1);
        let bias = self.bias() as i32;
        if exp == (1 << self.exp) - 1 {
            return if man == 0.0 { sign * f64::INFINITY } else { f64::NAN };
        }
        // In two steps, so that no power of two is out of range.
        let power = exp.max(1) as i32 - bias;
        let (half, rest) = (power / 2, power - power / 2);
        let significand = if exp == 0 { man } else { 1.0 + man };
        sign * significand * 2f64.powi(half) * 2f64.powi(rest)
    }

    /// Distance between `v` and the next number of the format.
    pub fn ulp(self, v: f64) -> f64 {
        let least = 1 - self.bias() as i32;
        let exponent = ((v.abs().to_bits() >> 52) as i32 - 1023).max(least);
        2f64.powi((exponent - self.man as i32).max(-1074))
    }
}

fn integer(bits: u32, r: &mut Random) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let v = match r.below(8) {
        0..=2 => r.next(),
        3 => r.below(33).wrapping_sub(16),
        4 => {
            let min = 1u64 << (bits - 1);
            let list = [0, 1, mask, min, min - 1, min + 1, mask - 1, 2];
            list[r.below(8) as usize]
        }
        5 => (1u64 << r.below(bits.into())).wrapping_add(r.below(3)).wrapping_sub(1),
        // All magnitudes alike, of either sign.
        6 => r.next() >> (64 - bits) >> r.below(bits.into()),
        _ => (r.next() >> (64 - bits) >> r.below(bits.into())).wrapping_neg(),
    };
    v & mask
}

/// A number from −8 to 8 in halves: sums of many products are exact even in f16.
fn small(f: Format, r: &mut Random) -> u64 {
    let sign = (r.next() & 1) << (f.bits() - 1);
    let n = r.below(5);
    if n == 0 { 0 } else { sign | f.multiple(n, 0) }
}

fn unit(f: Format, r: &mut Random) -> u64 {
    let sign = (r.next() & 1) << (f.bits() - 1);
    let man = r.next() & ((1 << f.man) - 1);
    let span = f.bias().min(8);
    sign | (f.bias() - 1 - r.below(span)) << f.man | man
}

/// Mostly small; the rest are what a sum must not lose.
fn edge(f: Format, r: &mut Random) -> u64 {
    match r.below(64) {
        0 => f.infinity(),
        1 => f.infinity() | 1 << (f.bits() - 1),
        2 => f.infinity() | 1 << (f.man - 1) | 1,
        3..8 => 1 << (f.bits() - 1),
        _ => small(f, r),
    }
}

fn pair(v: u64, w: u64) -> u64 {
    v | w << 16
}

fn four(f: Format, draw: fn(Format, &mut Random) -> u64, r: &mut Random) -> u64 {
    (0..4).fold(0, |v, i| v | draw(f, r) << (8 * i))
}

const E4M3: Format = Format { man: 3, exp: 4 };
const E5M2: Format = Format { man: 2, exp: 5 };

impl Ty {
    /// Bits of the register; 1 for a predicate.
    pub fn bits(self) -> u32 {
        match self {
            Self::P => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 => 16,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 | Self::SmallF64 | Self::UnitF64 => 64,
            _ => 32,
        }
    }

    /// The type with which its register is declared.
    pub fn register(self) -> &'static str {
        match self.bits() {
            1 => "pred",
            16 => "b16",
            32 => "b32",
            _ => "b64",
        }
    }

    /// Bytes that a value has in the buffers.
    pub fn slot(self) -> usize {
        if self.bits() == 64 { 8 } else { 4 }
    }

    /// The format of its elements, and how many there are.
    pub fn format(self) -> Option<(Format, u32)> {
        Some(match self {
            Self::F16 => (F16, 1),
            Self::Bf16 => (BF16, 1),
            Self::F16x2 | Self::SmallF16x2 | Self::UnitF16x2 | Self::EdgeF16x2 => (F16, 2),
            Self::Bf16x2 | Self::SmallBf16x2 | Self::UnitBf16x2 | Self::EdgeBf16x2 => (BF16, 2),
            Self::F32 | Self::F32In(..) | Self::SmallF32 | Self::UnitF32 | Self::EdgeF32 => {
                (F32, 1)
            }
            Self::F64 | Self::SmallF64 | Self::UnitF64 => (F64, 1),
            _ => return None,
        })
    }

    /// A random value; some are near `before`, the operand to the left.
    pub fn draw(self, r: &mut Random, before: Option<u64>) -> u64 {
        let plain = !matches!(self, Self::P | Self::Shift | Self::Below(_) | Self::F32In(..));
        if let Some(b) = before.filter(|_| plain && !self.bounded())
            && r.below(8) == 0
        {
            let mask = u64::MAX >> (64 - self.bits());
            return match r.below(4) {
                0 => b,
                1 => b ^ 1 << (self.bits() - 1),
                2 => b.wrapping_add(1),
                _ => b.wrapping_sub(1),
            } & mask;
        }
        match self {
            Self::P => r.next() & 1,
            Self::B16 | Self::U16 | Self::S16 => integer(16, r),
            Self::B32 | Self::U32 | Self::S32 => integer(32, r),
            Self::B64 | Self::U64 | Self::S64 => integer(64, r),
            Self::F16 => F16.draw(r),
            Self::Bf16 => BF16.draw(r),
            Self::F16x2 => pair(F16.draw(r), F16.draw(r)),
            Self::Bf16x2 => pair(BF16.draw(r), BF16.draw(r)),
            Self::F32 => F32.draw(r),
            Self::F64 => F64.draw(r),
            Self::Shift => match r.below(8) {
                0 => integer(32, r),
                1 => [0, 31, 32, 33, 63, 64, 65, 255][r.below(8) as usize],
                _ => r.below(70),
            },
            Self::Below(n) => r.below(n.into()),
            Self::F32In(low, high) => {
                let fraction = (r.next() >> 11) as f64 / (1u64 << 53) as f64;
                let v = f64::from(low) + fraction * f64::from(high - low);
                (v as f32).to_bits().into()
            }
            _ => self.draw_bounded(r),
        }
    }

    /// Whether values are limited on purpose.
    fn bounded(self) -> bool {
        let name = format!("{self:?}");
        ["Small", "Unit", "Edge"].iter().any(|p| name.starts_with(p))
    }

    fn draw_bounded(self, r: &mut Random) -> u64 {
        match self {
            Self::SmallF16x2 => pair(small(F16, r), small(F16, r)),
            Self::SmallBf16x2 => pair(small(BF16, r), small(BF16, r)),
            Self::SmallF32 | Self::SmallTf32 => small(F32, r),
            Self::SmallF64 => small(F64, r),
            Self::SmallE4m3x4 => four(E4M3, small, r),
            Self::SmallE5m2x4 => four(E5M2, small, r),
            Self::UnitF16x2 => pair(unit(F16, r), unit(F16, r)),
            Self::UnitBf16x2 => pair(unit(BF16, r), unit(BF16, r)),
            Self::UnitF64 => unit(F64, r),
            Self::UnitE4m3x4 => four(E4M3, unit, r),
            Self::UnitE5m2x4 => four(E5M2, unit, r),
            Self::EdgeF16x2 => pair(edge(F16, r), edge(F16, r)),
            Self::EdgeBf16x2 => pair(edge(BF16, r), edge(BF16, r)),
            Self::EdgeF32 => edge(F32, r),
            _ => unit(F32, r),
        }
    }

    /// A value as a literal, where PTX has literals of the type.
    pub fn literal(self, v: u64) -> Option<String> {
        Some(match self {
            Self::U16 | Self::B16 => format!("{}", v as u16),
            Self::S16 => format!("{}", v as i16),
            // Positions and lengths of bit fields may be literals below 256 only.
            Self::Shift => format!("{}", v as u8),
            Self::U32 | Self::B32 | Self::Below(_) => format!("{:#x}", v as u32),
            Self::S32 => format!("{}", v as i32),
            Self::U64 | Self::B64 => format!("{v:#x}"),
            Self::S64 if v == 1 << 63 => "0x8000000000000000".into(),
            Self::S64 => format!("{}", v as i64),
            Self::F32 | Self::F32In(..) => format!("0f{:08X}", v as u32),
            Self::F64 => format!("0d{v:016X}"),
            _ => return None,
        })
    }
}
