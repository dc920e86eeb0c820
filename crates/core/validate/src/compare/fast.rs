//! The fast comparison of a chunk: a test for equal bytes, then branch-free arithmetic over eight elements at a time,
//! for which the compiler uses vector instructions.

use half::{bf16, f16};

use super::errors::{BINS, Errors, bin, magnitude, ordinal};
use super::{Comparable, ResolvedTolerance};
use crate::pieces::CHUNK;
use warpgauge_tensor::element::{Boolean, E2m1, E4m3, E5m2, E8m0, Element, I4, U4};
use warpgauge_tensor::float8::E8M0_NAN;

/// Number of elements that each step of the loop processes.
const LANES: usize = 8;

/// Number of elements whose errors are buffered, so that each loop needs few registers.
const TILE: usize = 256;

/// Number of accumulators of sums and counts.
const SUMS: usize = 4;

// A lane's counts must not overflow.
const _: () = assert!(CHUNK < u32::MAX as usize);

/// Compares floating-point elements. `infinity` is the smallest magnitude, as bits, of an element that is not finite.
fn floats_match<T: Element>(
    actual: &[u8],
    expected: &[u8],
    infinity: u64,
    tolerance: &ResolvedTolerance,
) -> Option<Errors> {
    let pairs = (actual.len() / T::SIZE) as u64;
    if actual == expected {
        let finite = expected
            .chunks_exact(T::SIZE)
            .fold(true, |all, bytes| all & (magnitude::<T>(bytes) < infinity));
        return finite.then(|| Errors::none(pairs));
    }
    let mut running = Running::default();
    let tile = TILE * T::SIZE;
    for (actual, expected) in actual.chunks(tile).zip(expected.chunks(tile)) {
        running.match_tile::<T>(actual, expected, tolerance);
        running.sum_tile();
        running.count_tile::<T>(actual, expected);
        if running.mismatches != [0; LANES] {
            return None;
        }
    }
    Some(running.finish(pairs))
}

struct Running {
    mismatches: [u64; LANES],
    max_abs: [f64; LANES],
    max_rel: f64,
    /// A value slightly below `max_rel`. An element needs the division only if its error is larger than this share of
    /// the expectation.
    interesting: f64,
    /// Errors of the elements of the last tile, followed by zeros.
    errors: [f64; TILE],
    sum: [f64; SUMS],
    sum_of_squares: [f64; SUMS],
    max_ulp: u64,
    /// Several histograms, because neighbours mostly fall into the same bin, and increments of a single counter would
    /// wait for each other.
    bins: [[u32; BINS]; SUMS],
}

impl Default for Running {
    fn default() -> Self {
        Self {
            mismatches: [0; LANES],
            max_abs: [0.0; LANES],
            max_rel: 0.0,
            interesting: 0.0,
            errors: [0.0; TILE],
            sum: [0.0; SUMS],
            sum_of_squares: [0.0; SUMS],
            max_ulp: 0,
            bins: [[0; BINS]; SUMS],
        }
    }
}

impl Running {
    /// Compares a tile: records mismatches, the largest errors, and the error of each element.
    #[inline(always)]
    fn match_tile<T: Element>(
        &mut self,
        actual: &[u8],
        expected: &[u8],
        tolerance: &ResolvedTolerance,
    ) {
        let step = LANES * T::SIZE;
        if actual.len() < TILE * T::SIZE {
            self.errors = [0.0; TILE];
        }
        let mut left = actual.chunks_exact(step);
        let mut right = expected.chunks_exact(step);
        let mut at = 0;
        for (a, e) in left.by_ref().zip(right.by_ref()) {
            let a: [f64; LANES] = std::array::from_fn(|i| T::read(&a[i * T::SIZE..]).to_f64());
            let e: [f64; LANES] = std::array::from_fn(|i| T::read(&e[i * T::SIZE..]).to_f64());
            let errors = self.add(&a, &e, tolerance);
            self.errors[at..at + LANES].copy_from_slice(&errors);
            at += LANES;
        }
        let (left, right) = (left.remainder(), right.remainder());
        for (a, e) in left.chunks_exact(T::SIZE).zip(right.chunks_exact(T::SIZE)) {
            let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
            (x[0], y[0]) = (T::read(a).to_f64(), T::read(e).to_f64());
            self.errors[at] = self.add(&x, &y, tolerance)[0];
            at += 1;
        }
    }

    #[inline(always)]
    fn add(
        &mut self,
        a: &[f64; LANES],
        e: &[f64; LANES],
        tolerance: &ResolvedTolerance,
    ) -> [f64; LANES] {
        let mut errors = [0.0; LANES];
        let mut larger = [0u64; LANES];
        for lane in 0..LANES {
            let magnitude = e[lane].abs();
            let error = (a[lane] - e[lane]).abs();
            // An infinite or NaN error fails both tests.
            let fine =
                (error <= tolerance.atol + tolerance.rtol * magnitude) & (error < f64::INFINITY);
            self.mismatches[lane] |= u64::from(!fine);
            let above = error > self.max_abs[lane];
            self.max_abs[lane] = if above { error } else { self.max_abs[lane] };
            larger[lane] = u64::from(error > self.interesting * magnitude);
            errors[lane] = error;
        }
        if larger.iter().fold(0, |any, lane| any | lane) != 0 {
            self.divide(&errors, e);
        }
        errors
    }

    // Inlined, because a call would force the running state out of the registers.
    #[inline(always)]
    fn divide(&mut self, errors: &[f64; LANES], expected: &[f64; LANES]) {
        for (error, expected) in errors.iter().zip(expected) {
            if *expected != 0.0 {
                self.max_rel = self.max_rel.max(error / expected.abs());
            }
        }
        self.interesting = self.max_rel * (1.0 - 4.0 * f64::EPSILON);
    }

    /// Adds the tile's errors to the sums.
    #[inline(always)]
    fn sum_tile(&mut self) {
        let (mut sum, mut squares) = (self.sum, self.sum_of_squares);
        let (errors, _) = self.errors.as_chunks::<SUMS>();
        for errors in errors {
            for lane in 0..SUMS {
                sum[lane] += errors[lane];
                squares[lane] += errors[lane] * errors[lane];
            }
        }
        (self.sum, self.sum_of_squares) = (sum, squares);
    }

    /// Counts the tile's distances in units in the last place.
    #[inline(always)]
    fn count_tile<T: Element>(&mut self, actual: &[u8], expected: &[u8]) {
        let mut ulps = [0u64; TILE];
        let pairs = actual.chunks_exact(T::SIZE).zip(expected.chunks_exact(T::SIZE));
        ulps.iter_mut().zip(pairs).for_each(|(ulps, (a, e))| *ulps = distance::<T>(a, e));
        let ulps = &ulps[..actual.len() / T::SIZE];
        self.max_ulp = ulps.iter().fold(self.max_ulp, |most, ulps| most.max(*ulps));
        for (at, ulps) in ulps.iter().enumerate() {
            self.bins[at % SUMS][bin(*ulps)] += 1;
        }
    }

    fn finish(self, pairs: u64) -> Errors {
        let max_abs = self.max_abs.into_iter().fold(0.0, f64::max);
        let sums = (self.sum.into_iter().sum(), self.sum_of_squares.into_iter().sum());
        let mut errors = Errors::summed(pairs, max_abs, self.max_rel.min(f64::MAX), sums);
        self.bins.iter().for_each(|bins| errors.add_bins(bins, self.max_ulp));
        errors
    }
}

/// Returns the distance of two elements in units in the last place. Narrow types use 32-bit arithmetic, for which
/// vector units have twice the throughput.
#[inline(always)]
fn distance<T: Element>(a: &[u8], e: &[u8]) -> u64 {
    let (a, e) = (ordinal::<T>(a), ordinal::<T>(e));
    if T::SIZE <= 4 { u64::from((a as i32).abs_diff(e as i32)) } else { a.abs_diff(e) }
}

macro_rules! compare_floats {
    ($($type:ty: $infinity:literal),*) => {$(
        impl Comparable for $type {
            const ULP: bool = true;
            fn distance(actual: Self, expected: Self) -> f64 {
                (actual.to_f64() - expected.to_f64()).abs()
            }
            fn all_match(
                actual: &[u8],
                expected: &[u8],
                tolerance: &ResolvedTolerance,
            ) -> Option<Errors> {
                floats_match::<$type>(actual, expected, $infinity, tolerance)
            }
        }
    )*};
}
compare_floats!(
    f64: 0x7FF0_0000_0000_0000,
    f32: 0x7F80_0000,
    f16: 0x7C00,
    bf16: 0x7F80,
    // E4m3 has no infinity; only the largest code is not a number.
    E4m3: 0x7F,
    E5m2: 0x7C,
    // Every code is a finite number.
    E2m1: 0x80
);

/// Neighbours are a factor of 2 apart, so distances in steps are not meaningful.
impl Comparable for E8m0 {
    const ULP: bool = false;
    fn distance(actual: Self, expected: Self) -> f64 {
        (actual.to_f64() - expected.to_f64()).abs()
    }
    /// Equal numbers match under every tolerance. Chunks with NaN are compared element by element.
    fn all_match(actual: &[u8], expected: &[u8], _: &ResolvedTolerance) -> Option<Errors> {
        let equal = actual == expected && !expected.contains(&E8M0_NAN);
        equal.then(|| Errors::none(actual.len() as u64))
    }
}

macro_rules! compare_integers {
    ($($type:ty: $distance:expr),*) => {$(
        impl Comparable for $type {
            const ULP: bool = false;
            fn distance(actual: Self, expected: Self) -> f64 {
                $distance(actual, expected)
            }
            /// Equal bytes match under every tolerance; other chunks are compared element by element.
            fn all_match(
                actual: &[u8],
                expected: &[u8],
                _: &ResolvedTolerance,
            ) -> Option<Errors> {
                (actual == expected).then(|| Errors::none((actual.len() / Self::SIZE) as u64))
            }
        }
    )*};
}
compare_integers!(
    i8: |a: i8, e: i8| f64::from(a.abs_diff(e)),
    i16: |a: i16, e: i16| f64::from(a.abs_diff(e)),
    i32: |a: i32, e: i32| f64::from(a.abs_diff(e)),
    i64: |a: i64, e: i64| a.abs_diff(e) as f64,
    u8: |a: u8, e: u8| f64::from(a.abs_diff(e)),
    u16: |a: u16, e: u16| f64::from(a.abs_diff(e)),
    u32: |a: u32, e: u32| f64::from(a.abs_diff(e)),
    u64: |a: u64, e: u64| a.abs_diff(e) as f64,
    I4: |a: I4, e: I4| (a.to_f64() - e.to_f64()).abs(),
    U4: |a: U4, e: U4| (a.to_f64() - e.to_f64()).abs(),
    Boolean: |a: Boolean, e: Boolean| (a.to_f64() - e.to_f64()).abs()
);
