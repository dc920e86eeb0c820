//! Products of small matrices, computed eight columns at a time.
//!
//! The sums equal those of [`dot`](crate::arith::dot), element by element, in a form that the
//! compiler vectorises. A product that is scaled by a power of two and truncated to an integer is
//! exact in f64 as well as in i64. So is the sum of a few such products.

use super::half;
use super::regs::Regs;
use crate::arith::dot::{FRACTION, LEAST, exponent, power_of_two};
use crate::arith::soft::{self, Round};
use crate::ir::{Consts, Elem};

/// Maximum number of elements of A or B: 32 × 16, or 16 × 64 with four bits each.
const LARGEST: usize = 1024;
/// Number of columns that are computed together.
const WIDE: usize = 8;

/// Distribution of a matrix over the lanes. Element `e` of a lane is at the sum of the lane's
/// offset and the element's offset.
pub(in crate::exec) struct Spread {
    pub(in crate::exec) lanes: [u16; 32],
    pub(in crate::exec) elements: Vec<u16>,
}

/// A matrix that is held in registers, and its distribution over the lanes.
pub(in crate::exec) struct Operand<'a> {
    pub(in crate::exec) registers: &'a [u32],
    pub(in crate::exec) elem: Elem,
    pub(in crate::exec) spread: Spread,
}

/// Operands of D = A × B + C, where A is m × k and B is k × n. For 8-bit floats, the depth is
/// ordered so that the terms of the first of the two partial sums come first.
pub(in crate::exec) struct Task<'a> {
    pub(in crate::exec) m: usize,
    pub(in crate::exec) n: usize,
    pub(in crate::exec) k: usize,
    pub(in crate::exec) a: Operand<'a>,
    pub(in crate::exec) b: Operand<'a>,
    pub(in crate::exec) c: Operand<'a>,
    pub(in crate::exec) d: Operand<'a>,
    pub(in crate::exec) saturate: bool,
}

/// Buffers for the values of a product: floating-point values with their exponents, or integers.
pub(in crate::exec) struct Tiles {
    x: [f64; LARGEST],
    x_exponents: [i32; LARGEST],
    y: [f64; LARGEST],
    y_exponents: [i32; LARGEST],
    c: [f64; LARGEST],
}

impl Default for Tiles {
    fn default() -> Self {
        let (values, integers) = ([0.0; LARGEST], [0; LARGEST]);
        Self { x: values, x_exponents: integers, y: values, y_exponents: integers, c: values }
    }
}

/// Computes a product. Returns false without changing registers if the product is unsupported:
/// elements that are not finite, f64, single bits, or a number of columns that is not a multiple of
/// eight.
pub(in crate::exec) type Multiply = fn(&mut Regs, &Consts, &Task<'_>, &mut Tiles) -> bool;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn multiply_avx2(r: &mut Regs, k: &Consts, task: &Task<'_>, tiles: &mut Tiles) -> bool {
    multiply_inline(r, k, task, tiles)
}

pub(in crate::exec) fn multiply(
    r: &mut Regs,
    k: &Consts,
    task: &Task<'_>,
    tiles: &mut Tiles,
) -> bool {
    multiply_inline(r, k, task, tiles)
}

#[inline(always)]
fn multiply_inline(r: &mut Regs, k: &Consts, task: &Task<'_>, tiles: &mut Tiles) -> bool {
    let largest = (task.m * task.k).max(task.k * task.n).max(task.m * task.n);
    if !task.n.is_multiple_of(WIDE) || largest > LARGEST {
        return false;
    }
    match task.a.elem {
        Elem::S8 | Elem::U8 | Elem::S4 | Elem::U4 => integers(r, k, task, tiles),
        Elem::F16 | Elem::Bf16 | Elem::Tf32 | Elem::E4m3 | Elem::E5m2 => {
            let finite = fractions(r, k, &task.a, &mut tiles.x, &mut tiles.x_exponents)
                && fractions(r, k, &task.b, &mut tiles.y, &mut tiles.y_exponents)
                && values(r, k, &task.c, &mut tiles.c);
            if !finite {
                return false;
            }
            if matches!(task.a.elem, Elem::E4m3 | Elem::E5m2) {
                if !two_halves(task, tiles) {
                    return false;
                }
            } else {
                dots(task, tiles, 0, task.k);
            }
            let c = &tiles.c;
            match task.d.elem {
                Elem::F16 => store(r, &task.d, |at| to_f16(c[at]).into()),
                _ => store(r, &task.d, |at| (c[at] as f32).to_bits()),
            }
        }
        _ => return false,
    }
    true
}

/// Computes the sums of products of 8-bit floats ([`eight`](crate::arith::dot::eight)). Returns
/// false if a partial sum exceeds the range of D's format.
#[inline(always)]
fn two_halves(task: &Task<'_>, tiles: &mut Tiles) -> bool {
    let size = task.m * task.n;
    let mut addend = [0.0; LARGEST];
    addend[..size].copy_from_slice(&tiles.c[..size]);
    tiles.c[..size].fill(0.0);
    for half in 0..2 {
        dots(task, tiles, half * task.k / 2, (half + 1) * task.k / 2);
        for v in &mut tiles.c[..size] {
            *v = match task.d.elem {
                Elem::F16 => half::to_f32(soft::F16, to_f16(*v)).into(),
                _ => f64::from(*v as f32),
            };
        }
        if tiles.c[..size].iter().any(|v| !v.is_finite()) {
            return false;
        }
    }
    tiles.c[..size].iter_mut().zip(&addend[..size]).for_each(|(v, c)| *v += c);
    true
}

/// Adds the products at depths `from..to` to each element of C.
#[inline(always)]
fn dots(task: &Task<'_>, tiles: &mut Tiles, from: usize, to: usize) {
    let (n, k) = (task.n, task.k);
    for i in 0..task.m {
        let x = &tiles.x[i * k + from..i * k + to];
        let x_exponents = &tiles.x_exponents[i * k + from..i * k + to];
        for j in (0..n).step_by(WIDE) {
            let c = *wide(&tiles.c, i * n + j);
            let mut top: [i32; WIDE] = c.map(exponent);
            for (s, e) in x_exponents.iter().enumerate() {
                let y = wide(&tiles.y_exponents, (from + s) * n + j);
                for l in 0..WIDE {
                    top[l] = top[l].max(e + y[l]);
                }
            }
            // If all terms are zero, no exponent determines the scale.
            let scale = top.map(|top| power_of_two(FRACTION - top.max(LEAST)));
            let mut sum = [0.0; WIDE];
            for l in 0..WIDE {
                sum[l] += (c[l] * scale[l]).trunc();
            }
            for (s, x) in x.iter().enumerate() {
                let y = wide(&tiles.y, (from + s) * n + j);
                for l in 0..WIDE {
                    sum[l] += (x * y[l] * scale[l]).trunc();
                }
            }
            let mut out = [0.0; WIDE];
            for l in 0..WIDE {
                // Keeps 24 of 53 significant bits.
                let cut = f64::from_bits(sum[l].to_bits() >> 29 << 29);
                out[l] = cut * power_of_two(top[l].max(LEAST) - FRACTION);
            }
            for l in 0..WIDE {
                // A zero plus zeros is +0, unless all of them are −0.
                if top[l] < LEAST && c[l].to_bits() != 0 {
                    let y = |s: usize| tiles.y[(from + s) * n + j + l];
                    out[l] = x.iter().enumerate().fold(c[l], |sum, (s, x)| x.mul_add(y(s), sum));
                }
            }
            tiles.c[i * n + j..][..WIDE].copy_from_slice(&out);
        }
    }
}

#[inline(always)]
fn wide<T>(values: &[T; LARGEST], at: usize) -> &[T; WIDE] {
    values[at..].first_chunk().expect("columns are multiples of eight")
}

#[inline(always)]
fn integers(r: &mut Regs, k: &Consts, task: &Task<'_>, tiles: &mut Tiles) {
    let a = task.a.elem;
    load(r, k, &task.a, |at, v| tiles.x_exponents[at] = integer(a, v));
    let b = task.b.elem;
    load(r, k, &task.b, |at, v| tiles.y_exponents[at] = integer(b, v));
    load(r, k, &task.c, |at, v| tiles.c[at] = f64::from(v as i32));
    let (n, depth) = (task.n, task.k);
    for i in 0..task.m {
        for j in (0..n).step_by(WIDE) {
            let mut sum = [0i32; WIDE];
            for s in 0..depth {
                let x = tiles.x_exponents[i * depth + s];
                let y = wide(&tiles.y_exponents, s * n + j);
                for l in 0..WIDE {
                    // The sum of a few dozen products of 16-bit integers does not overflow.
                    sum[l] = sum[l].wrapping_add(x.wrapping_mul(y[l]));
                }
            }
            for (c, sum) in tiles.c[i * n + j..][..WIDE].iter_mut().zip(sum) {
                *c += f64::from(sum);
            }
        }
    }
    let c = &tiles.c;
    let (least, most) = (i64::from(i32::MIN), i64::from(i32::MAX));
    store(r, &task.d, |at| {
        let v = c[at] as i64;
        (if task.saturate { v.clamp(least, most) } else { v }) as u32
    });
}

#[inline(always)]
fn integer(elem: Elem, v: u32) -> i32 {
    match elem {
        Elem::S8 => (v as i8).into(),
        Elem::S4 => ((v as i8) << 4 >> 4).into(),
        _ => v as i32,
    }
}

/// Reads the values of a matrix and their exponents. Returns whether all are finite.
#[inline(always)]
fn fractions(
    r: &Regs,
    k: &Consts,
    operand: &Operand<'_>,
    to: &mut [f64; LARGEST],
    exponents: &mut [i32; LARGEST],
) -> bool {
    let mut largest = [i32::MIN; 32];
    for (e, offset) in operand.spread.elements.iter().enumerate() {
        let row = fractions_of(operand.elem, &lanes_of(r, k, operand, e));
        let mut row_exponents = [0; 32];
        for l in 0..32 {
            row_exponents[l] = exponent(row[l]);
            largest[l] = largest[l].max(row_exponents[l]);
        }
        for l in 0..32 {
            let at = usize::from(operand.spread.lanes[l] + offset) % LARGEST;
            to[at] = row[l];
            exponents[at] = row_exponents[l];
        }
    }
    largest.iter().all(|e| *e <= 1023)
}

/// Reads the values of a matrix. Returns whether all are finite.
#[inline(always)]
fn values(r: &Regs, k: &Consts, operand: &Operand<'_>, to: &mut [f64; LARGEST]) -> bool {
    let mut largest = [i32::MIN; 32];
    for (e, offset) in operand.spread.elements.iter().enumerate() {
        let row = fractions_of(operand.elem, &lanes_of(r, k, operand, e));
        for l in 0..32 {
            largest[l] = largest[l].max(exponent(row[l]));
            to[usize::from(operand.spread.lanes[l] + offset) % LARGEST] = row[l];
        }
    }
    largest.iter().all(|e| *e <= 1023)
}

/// Extracts the values of one format from the low bits of words. Each format has a separate loop,
/// which the compiler vectorises.
#[inline(always)]
fn fractions_of(elem: Elem, lanes: &[u32; 32]) -> [f64; 32] {
    let mut row = [0.0; 32];
    macro_rules! all {
        ($v:ident => $value:expr) => {
            for l in 0..32 {
                let $v = lanes[l];
                row[l] = f64::from($value);
            }
        };
    }
    match elem {
        Elem::F16 => all!(v => widened(v & 0xffff, 10, 15, v & 0x7c00 == 0x7c00)),
        Elem::Bf16 => all!(v => f32::from_bits(v << 16)),
        // The hardware uses only the upper 19 bits.
        Elem::Tf32 => all!(v => f32::from_bits(v & 0xffff_e000)),
        Elem::E5m2 => all!(v => widened(v << 8 & 0xffff, 10, 15, v & 0x7c == 0x7c)),
        Elem::E4m3 => all!(v => widened(v & 0x7f | (v & 0x80) << 8, 3, 7, v & 0x7f == 0x7f)),
        _ => all!(v => f32::from_bits(v)),
    }
    row
}

/// Converts an element of a small format, whose sign is in bit 15. A multiplication adjusts the
/// exponent to f32 and normalises subnormal numbers. `special` sets the exponent of infinities and
/// NaNs.
#[inline(always)]
fn widened(v: u32, digits: u32, bias: u32, special: bool) -> f32 {
    let magnitude = (v & 0x7fff) << (23 - digits);
    let f = f32::from_bits(magnitude) * f32::from_bits((254 - bias) << 23);
    let bits = if special { magnitude | 0x7f80_0000 } else { f.to_bits() };
    f32::from_bits(bits | (v & 0x8000) << 16)
}

/// Converts an f64 to f16. Values that f32 represents exactly take a fast path.
fn to_f16(v: f64) -> u16 {
    let narrow = v as f32;
    if f64::from(narrow) == v {
        half::from_f32(soft::F16, narrow)
    } else {
        soft::convert(soft::F64, soft::F16, Round::Rn, v.to_bits()) as u16
    }
}

/// Returns element `e` of each lane in the low bits. The bits above it may hold other elements.
#[inline(always)]
fn lanes_of(r: &Regs, k: &Consts, operand: &Operand<'_>, e: usize) -> [u32; 32] {
    let bits = operand.elem.bits();
    let per = (32 / bits) as usize;
    let shift = bits * (e % per) as u32;
    r.s32(k, operand.registers[e / per]).map(|word| word >> shift)
}

/// Calls `take` with the position of each element and its value, without the bits above it.
#[inline(always)]
fn load(r: &Regs, k: &Consts, operand: &Operand<'_>, mut take: impl FnMut(usize, u32)) {
    let mask = u32::MAX >> (32 - operand.elem.bits());
    for (e, offset) in operand.spread.elements.iter().enumerate() {
        let lanes = lanes_of(r, k, operand, e);
        for (lane, v) in operand.spread.lanes.iter().zip(lanes) {
            take(usize::from(lane + offset), v & mask);
        }
    }
}

/// Writes the elements of D, repeated until its registers are full.
#[inline(always)]
fn store(r: &mut Regs, operand: &Operand<'_>, value: impl Fn(usize) -> u32) {
    let bits = operand.elem.bits();
    let per = (32 / bits) as usize;
    let own = operand.spread.elements.len();
    for (n, register) in operand.registers.iter().enumerate() {
        let mut row = [0; 32];
        for within in 0..per {
            let offset = operand.spread.elements[(n * per + within) % own];
            for (l, word) in row.iter_mut().enumerate() {
                let at = usize::from(operand.spread.lanes[l] + offset);
                *word |= value(at) << (bits * within as u32);
            }
        }
        r.r32[*register as usize].0 = row;
    }
}
