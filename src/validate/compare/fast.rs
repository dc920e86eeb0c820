//! The first look at a chunk: bytes that are equal, then branch-free arithmetic over eight elements
//! at a time, so that the compiler uses vector instructions.

use half::{bf16, f16};

use super::errors::{BINS, Errors, bin, magnitude, ordinal};
use super::{CHUNK, Comparable, ResolvedTolerance};
use crate::tensor::element::{Boolean, E4m3, E5m2, Element};

/// Elements per step.
const LANES: usize = 8;

// A lane's counts must not overflow.
const _: () = assert!(CHUNK < u32::MAX as usize);

/// `infinity`: magnitude bits from which on an element is not a finite number.
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
    let step = LANES * T::SIZE;
    let mut left = actual.chunks_exact(step);
    let mut right = expected.chunks_exact(step);
    for (a, e) in left.by_ref().zip(right.by_ref()) {
        running.count(&std::array::from_fn(|i| {
            let at = i * T::SIZE;
            ordinal::<T>(&a[at..]).abs_diff(ordinal::<T>(&e[at..]))
        }));
        let a: [f64; LANES] = std::array::from_fn(|i| T::read(&a[i * T::SIZE..]).to_f64());
        let e: [f64; LANES] = std::array::from_fn(|i| T::read(&e[i * T::SIZE..]).to_f64());
        running.add(&a, &e, tolerance);
    }
    let last = left.remainder().chunks_exact(T::SIZE).zip(right.remainder().chunks_exact(T::SIZE));
    for (a, e) in last {
        running.count_one(0, ordinal::<T>(a).abs_diff(ordinal::<T>(e)));
        let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
        (x[0], y[0]) = (T::read(a).to_f64(), T::read(e).to_f64());
        running.add(&x, &y, tolerance);
    }
    running.finish(pairs)
}

/// Errors so far.
struct Running {
    mismatches: [u64; LANES],
    max_abs: [f64; LANES],
    sum: [f64; LANES],
    sum_of_squares: [f64; LANES],
    max_rel: f64,
    /// A little below `max_rel`: an element needs the division only if its error is larger than
    /// this share of the expectation.
    interesting: f64,
    max_ulp: [u64; LANES],
    /// One histogram per lane: neighbours mostly fall into one bin, and must not wait for each
    /// other.
    bins: [[u32; BINS]; LANES],
}

impl Default for Running {
    fn default() -> Self {
        Self {
            mismatches: [0; LANES],
            max_abs: [0.0; LANES],
            sum: [0.0; LANES],
            sum_of_squares: [0.0; LANES],
            max_rel: 0.0,
            interesting: 0.0,
            max_ulp: [0; LANES],
            bins: [[0; BINS]; LANES],
        }
    }
}

impl Running {
    #[inline(always)]
    fn count(&mut self, ulps: &[u64; LANES]) {
        for (lane, &ulps) in ulps.iter().enumerate() {
            self.count_one(lane, ulps);
        }
    }

    #[inline(always)]
    fn count_one(&mut self, lane: usize, ulps: u64) {
        self.max_ulp[lane] = self.max_ulp[lane].max(ulps);
        self.bins[lane][bin(ulps)] += 1;
    }

    #[inline(always)]
    fn add(&mut self, a: &[f64; LANES], e: &[f64; LANES], tolerance: &ResolvedTolerance) {
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
            self.sum[lane] += error;
            self.sum_of_squares[lane] += error * error;
            larger[lane] = u64::from(error > self.interesting * magnitude);
            errors[lane] = error;
        }
        if larger.iter().fold(0, |any, lane| any | lane) != 0 {
            self.divide(&errors, e);
        }
    }

    // Inlined: a call would force the running state out of the registers.
    #[inline(always)]
    fn divide(&mut self, errors: &[f64; LANES], expected: &[f64; LANES]) {
        for (error, expected) in errors.iter().zip(expected) {
            if *expected != 0.0 {
                self.max_rel = self.max_rel.max(error / expected.abs());
            }
        }
        self.interesting = self.max_rel * (1.0 - 4.0 * f64::EPSILON);
    }

    fn finish(self, pairs: u64) -> Option<Errors> {
        if self.mismatches.iter().any(|&mismatches| mismatches != 0) {
            return None;
        }
        let max_abs = self.max_abs.into_iter().fold(0.0, f64::max);
        let sums = (self.sum.into_iter().sum(), self.sum_of_squares.into_iter().sum());
        let mut errors = Errors::summed(pairs, max_abs, self.max_rel.min(f64::MAX), sums);
        let max_ulp = self.max_ulp.into_iter().max().unwrap_or(0);
        self.bins.iter().for_each(|bins| errors.add_bins(bins, max_ulp));
        Some(errors)
    }
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
    // Has no infinity: only the largest code is not a number.
    E4m3: 0x7F,
    E5m2: 0x7C
);

macro_rules! compare_integers {
    ($($type:ty: $distance:expr),*) => {$(
        impl Comparable for $type {
            const ULP: bool = false;
            fn distance(actual: Self, expected: Self) -> f64 {
                $distance(actual, expected)
            }
            /// Equal bytes match under every tolerance; the rest is looked at one by one.
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
    Boolean: |a: Boolean, e: Boolean| (a.to_f64() - e.to_f64()).abs()
);
