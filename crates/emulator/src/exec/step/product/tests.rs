//! Compares products of eight columns at a time with those by elements, bit for bit.

use super::*;
use crate::exec::lanes::product::{Multiply, Task, Tiles, multiply};
use crate::exec::lanes::select;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }

    /// Returns random bits of an element. `mood` selects which values are likely.
    fn element(&mut self, elem: Elem, mood: u32) -> u32 {
        let (man, bits) = match elem {
            Elem::F16 => (10, 16),
            Elem::Bf16 => (7, 16),
            Elem::E4m3 => (3, 8),
            Elem::E5m2 => (2, 8),
            Elem::F32 | Elem::Tf32 => (23, 32),
            _ => return self.next(),
        };
        let mask = u32::MAX >> (32 - bits);
        let sign = self.next() << (bits - 1) & mask;
        let exponents = bits - 1 - man;
        let (bias, largest) = ((1u32 << (exponents - 1)) - 1, (1u32 << exponents) - 1);
        let mantissa = self.next() & ((1 << man) - 1);
        match mood {
            // Any value, including NaN.
            0 => self.next() & mask,
            // Values near one, so that all terms matter.
            1 => sign | (bias - 2 + self.next() % 4) << man | mantissa,
            // Finite values of any size.
            2 => sign | (self.next() % largest) << man | mantissa,
            // Mostly zeros.
            3 if !self.next().is_multiple_of(8) => sign,
            _ if self.next().is_multiple_of(4) => sign | mantissa,
            _ => sign | (bias + self.next() % 2) << man,
        }
    }

    fn word(&mut self, elem: Elem, mood: u32) -> u32 {
        let bits = elem.bits();
        (0..32 / bits).fold(0, |word, n| {
            let mask = u32::MAX >> (32 - bits);
            word | (self.element(elem, mood) & mask) << (bits * n)
        })
    }
}

/// Returns the registers per lane for `elements` elements of a warp.
fn registers(elem: Elem, elements: usize) -> u32 {
    (elements as u32 * elem.bits()).div_ceil(1024)
}

/// Creates random registers for D, A, B and C, and their lists.
fn fragments(
    rnd: &mut Random,
    mood: u32,
    elems: [Elem; 4],
    sizes: [usize; 4],
) -> (Regs, [Vec<u32>; 4]) {
    let mut regs = Regs::default();
    let mut next = 0;
    let lists = std::array::from_fn(|n| {
        let count = registers(elems[n], sizes[n]);
        next += count;
        (next - count..next).collect()
    });
    regs.resize(next, 0, 0);
    for (n, list) in lists.iter().enumerate() {
        let list: &Vec<u32> = list;
        for register in list {
            // Most lanes have the mood of the matrix.
            regs.r32[*register as usize].0 = std::array::from_fn(|_| rnd.word(elems[n], mood));
        }
    }
    (regs, lists)
}

fn ways() -> [Multiply; 2] {
    [multiply, select().2]
}

/// Compares each fast way with `by_elements`. Returns whether all of them computed the product.
fn check(mut by_elements: impl FnMut(&mut Regs), regs: &Regs, task: &Task<'_>, what: &str) -> bool {
    let copy = |regs: &Regs| {
        let mut copy = Regs::default();
        copy.r32.clone_from(&regs.r32);
        copy
    };
    let mut want = copy(regs);
    by_elements(&mut want);
    ways().into_iter().all(|way| {
        let mut got = copy(regs);
        let done = way(&mut got, &Consts::default(), task, &mut Tiles::default());
        for register in task.d.registers {
            let (got, want) = (got.r32[*register as usize].0, want.r32[*register as usize].0);
            assert!(!done || got == want, "{what}: {got:08x?}, not {want:08x?}");
        }
        done
    })
}

#[test]
fn mma() {
    use Elem::{Bf16, E4m3, E5m2, F16, F32, S4, S8, S32, Tf32, U4, U8};
    let mut rnd = Random(0x9e37_79b9_7f4a_7c15);
    let forms = [
        (16, 8, 16, F16, F16, F32, F32),
        (16, 8, 8, F16, F16, F32, F32),
        (16, 8, 16, F16, F16, F16, F16),
        (16, 8, 16, Bf16, Bf16, F32, F32),
        (16, 8, 8, Bf16, Bf16, F32, F32),
        (16, 8, 8, Tf32, Tf32, F32, F32),
        (16, 8, 4, Tf32, Tf32, F32, F32),
        (16, 8, 32, E4m3, E4m3, F32, F32),
        (16, 8, 32, E4m3, E5m2, F32, F32),
        (16, 8, 32, E5m2, E4m3, F16, F16),
        (16, 8, 16, E5m2, E5m2, F32, F32),
        (16, 8, 32, S8, U8, S32, S32),
        (16, 8, 16, U8, S8, S32, S32),
        (8, 8, 16, S8, S8, S32, S32),
        (16, 8, 64, S4, U4, S32, S32),
        (8, 8, 32, U4, U4, S32, S32),
    ];
    for (m, n, k, a, b, c, d) in forms {
        let mut fast = 0;
        for round in 0..200 {
            let satfinite = round % 2 == 0 && a.integer();
            let op = Mma { m, n, k, d, a, b, c, satfinite };
            let (m, n, k) = (usize::from(m), usize::from(n), usize::from(k));
            let sizes = [m * n, m * k, k * n, m * n];
            let (regs, [rd, ra, rb, rc]) = fragments(&mut rnd, round % 5, [d, a, b, c], sizes);
            let task = spread::mma(op, &ra, &rb, &rc, &rd);
            let slow = |regs: &mut Regs| {
                mma_by_elements(regs, &Consts::default(), op, [&rd, &ra, &rb, &rc]);
            };
            fast += u32::from(check(slow, &regs, &task, &format!("{op:?}, {round}")));
        }
        // The fast ways do not compute products with NaN.
        assert!(fast >= 120, "{a:?} {b:?} {d:?}: {fast}");
    }
}

#[test]
fn wmma() {
    use Elem::{Bf16, F16, F32, S8, S32, Tf32, U8};
    let mut rnd = Random(0x2545_f491_4f6c_dd1d);
    let forms = [
        (16, 16, 16, F16, F32, F32),
        (16, 16, 16, F16, F16, F16),
        (32, 8, 16, F16, F16, F32),
        (8, 32, 16, Bf16, F32, F32),
        (16, 16, 8, Tf32, F32, F32),
        (16, 16, 16, S8, S32, S32),
        (8, 32, 16, U8, S32, S32),
    ];
    for (m, n, k, elem, c, d) in forms {
        let mut fast = 0;
        for round in 0..200 {
            let (kind, space) = (crate::ir::WmmaKind::Mma, crate::ptx::Space::Generic);
            let satfinite = round % 2 == 0 && elem.integer();
            let op = Wmma { kind, m, n, k, row: true, elem, space, d, c, satfinite };
            let (m, n, k) = (usize::from(m), usize::from(n), usize::from(k));
            // Fragments of 16-bit elements hold every element twice.
            let twice = if elem == F16 { 2 } else { 1 };
            let sizes = [m * n, twice * m * k, twice * k * n, m * n];
            let (regs, [rd, ra, rb, rc]) =
                fragments(&mut rnd, round % 5, [d, elem, elem, c], sizes);
            let task = spread::wmma(op, &ra, &rb, &rc, &rd);
            let slow = |regs: &mut Regs| {
                wmma_by_elements(regs, &Consts::default(), op, [&rd, &ra, &rb, &rc]);
            };
            fast += u32::from(check(slow, &regs, &task, &format!("{op:?}, {round}")));
        }
        assert!(fast >= 120, "{elem:?} {d:?}: {fast}");
    }
}
