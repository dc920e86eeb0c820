//! Registers of a frame, and the common loops over lanes.
//!
//! All lanes are computed, regardless of the mask: operations on lanes cannot fail, and the
//! compiler vectorises loops without branches. Only the store uses the mask.

use crate::ir::{Consts, Inst, K, Row32, Row64};

/// Mask of all 32 lanes.
pub(crate) const ALL: u32 = u32::MAX;

/// The registers of a frame, each with a value for every lane.
#[derive(Default)]
pub(crate) struct Regs {
    pub(crate) r32: Vec<Row32>,
    pub(crate) r64: Vec<Row64>,
    pub(crate) p: Vec<u32>,
}

impl Regs {
    /// Resizes the storage to the number of registers of a function. The content of the registers
    /// is undefined.
    pub(crate) fn resize(&mut self, n32: u32, n64: u32, np: u32) {
        self.r32.resize(n32 as usize, Row32([0; 32]));
        self.r64.resize(n64 as usize, Row64([0; 32]));
        self.p.resize(np as usize, 0);
    }

    /// Returns the memory that the registers use, bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let rows = [self.r32.capacity() * 128, self.r64.capacity() * 256, self.p.capacity() * 4];
        rows.iter().sum::<usize>() as u64
    }

    /// Clears all values, so that a kernel that reads an unwritten register gets the same value in
    /// every run.
    pub(crate) fn clear(&mut self) {
        self.r32.clear();
        self.r64.clear();
        self.p.clear();
    }

    #[inline(always)]
    pub(crate) fn s32<'a>(&'a self, k: &'a Consts, n: u32) -> &'a [u32; 32] {
        if n & K == 0 { &self.r32[n as usize].0 } else { &k.k32[(n & !K) as usize].0 }
    }

    #[inline(always)]
    pub(crate) fn s64<'a>(&'a self, k: &'a Consts, n: u32) -> &'a [u64; 32] {
        if n & K == 0 { &self.r64[n as usize].0 } else { &k.k64[(n & !K) as usize].0 }
    }

    #[inline(always)]
    pub(crate) fn sp(&self, n: u32) -> u32 {
        if n & K == 0 { self.p[n as usize] } else { 0u32.wrapping_sub(n & 1) }
    }

    #[inline(always)]
    pub(crate) fn put32(&mut self, n: u32, v: &[u32; 32], mask: u32) {
        let d = &mut self.r32[n as usize].0;
        if mask == ALL {
            *d = *v;
        } else {
            for l in 0..32 {
                d[l] = if mask >> l & 1 != 0 { v[l] } else { d[l] };
            }
        }
    }

    #[inline(always)]
    pub(crate) fn put64(&mut self, n: u32, v: &[u64; 32], mask: u32) {
        let d = &mut self.r64[n as usize].0;
        if mask == ALL {
            *d = *v;
        } else {
            for l in 0..32 {
                d[l] = if mask >> l & 1 != 0 { v[l] } else { d[l] };
            }
        }
    }

    #[inline(always)]
    pub(crate) fn putp(&mut self, n: u32, v: u32, mask: u32) {
        let d = &mut self.p[n as usize];
        *d = (*d & !mask) | (v & mask);
    }

    /// Computes `d = f(a)` on 32-bit registers.
    #[inline(always)]
    pub(crate) fn u32(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u32) -> u32) {
        let a = self.s32(k, i.a);
        let mut o = [0; 32];
        for l in 0..32 {
            o[l] = f(a[l]);
        }
        self.put32(i.d, &o, m);
    }

    /// Computes `d = f(a, b)` on 32-bit registers.
    #[inline(always)]
    pub(crate) fn b32(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u32, u32) -> u32) {
        let (a, b) = (self.s32(k, i.a), self.s32(k, i.b));
        let mut o = [0; 32];
        for l in 0..32 {
            o[l] = f(a[l], b[l]);
        }
        self.put32(i.d, &o, m);
    }

    /// Computes `d = f(a, b, c)` on 32-bit registers.
    #[inline(always)]
    pub(crate) fn t32(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u32, u32, u32) -> u32) {
        let (a, b, c) = (self.s32(k, i.a), self.s32(k, i.b), self.s32(k, i.c));
        let mut o = [0; 32];
        for l in 0..32 {
            o[l] = f(a[l], b[l], c[l]);
        }
        self.put32(i.d, &o, m);
    }

    #[inline(always)]
    pub(crate) fn u64(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u64) -> u64) {
        let a = self.s64(k, i.a);
        let mut o = [0; 32];
        for l in 0..32 {
            o[l] = f(a[l]);
        }
        self.put64(i.d, &o, m);
    }

    #[inline(always)]
    pub(crate) fn b64(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u64, u64) -> u64) {
        let (a, b) = (self.s64(k, i.a), self.s64(k, i.b));
        let mut o = [0; 32];
        for l in 0..32 {
            o[l] = f(a[l], b[l]);
        }
        self.put64(i.d, &o, m);
    }

    #[inline(always)]
    pub(crate) fn t64(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u64, u64, u64) -> u64) {
        let (a, b, c) = (self.s64(k, i.a), self.s64(k, i.b), self.s64(k, i.c));
        let mut o = [0; 32];
        for l in 0..32 {
            o[l] = f(a[l], b[l], c[l]);
        }
        self.put64(i.d, &o, m);
    }

    /// Computes a 64-bit result from a 64-bit and a 32-bit operand.
    #[inline(always)]
    pub(crate) fn b64_32(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u64, u32) -> u64) {
        let (a, b) = (self.s64(k, i.a), self.s32(k, i.b));
        let mut o = [0; 32];
        for l in 0..32 {
            o[l] = f(a[l], b[l]);
        }
        self.put64(i.d, &o, m);
    }

    /// Computes a 64-bit result from a 32-bit operand.
    #[inline(always)]
    pub(crate) fn u64_32(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u32) -> u64) {
        let a = self.s32(k, i.a);
        let mut o = [0; 32];
        for l in 0..32 {
            o[l] = f(a[l]);
        }
        self.put64(i.d, &o, m);
    }

    /// Computes a 32-bit result from a 64-bit operand.
    #[inline(always)]
    pub(crate) fn u32_64(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u64) -> u32) {
        let a = self.s64(k, i.a);
        let mut o = [0; 32];
        for l in 0..32 {
            o[l] = f(a[l]);
        }
        self.put32(i.d, &o, m);
    }

    /// Computes a predicate from two 32-bit values.
    #[inline(always)]
    pub(crate) fn c32(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u32, u32) -> bool) {
        let (a, b) = (self.s32(k, i.a), self.s32(k, i.b));
        let mut bits = [0u32; 32];
        for l in 0..32 {
            bits[l] = u32::from(f(a[l], b[l])) << l;
        }
        let v = bits.iter().fold(0, |x, y| x | y);
        self.putp(i.d, v, m);
    }

    /// Computes a predicate from two 64-bit values.
    #[inline(always)]
    pub(crate) fn c64(&mut self, k: &Consts, i: &Inst, m: u32, f: impl Fn(u64, u64) -> bool) {
        let (a, b) = (self.s64(k, i.a), self.s64(k, i.b));
        let mut bits = [0u32; 32];
        for l in 0..32 {
            bits[l] = u32::from(f(a[l], b[l])) << l;
        }
        let v = bits.iter().fold(0, |x, y| x | y);
        self.putp(i.d, v, m);
    }
}
