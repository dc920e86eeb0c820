//! The first look at a chunk: branch-free over eight elements at a time, so that the compiler uses
//! vector instructions.

use half::{bf16, f16};

use super::{Comparable, ResolvedTolerance};
use crate::tensor::element::{Boolean, E4m3, E5m2, Element};

/// Elements per step.
const LANES: usize = 8;

fn floats_match<T: Element>(
    actual: &[u8],
    expected: &[u8],
    tolerance: &ResolvedTolerance,
) -> Option<(f64, f64)> {
    let mut running = Running::default();
    let step = LANES * T::SIZE;
    let mut left = actual.chunks_exact(step);
    let mut right = expected.chunks_exact(step);
    for (a, e) in left.by_ref().zip(right.by_ref()) {
        let a: [f64; LANES] = std::array::from_fn(|i| T::read(&a[i * T::SIZE..]).to_f64());
        let e: [f64; LANES] = std::array::from_fn(|i| T::read(&e[i * T::SIZE..]).to_f64());
        running.add(&a, &e, tolerance);
    }
    let last = left.remainder().chunks_exact(T::SIZE).zip(right.remainder().chunks_exact(T::SIZE));
    for (a, e) in last {
        let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
        (x[0], y[0]) = (T::read(a).to_f64(), T::read(e).to_f64());
        running.add(&x, &y, tolerance);
    }
    running.finish()
}

/// Errors so far.
#[derive(Default)]
struct Running {
    mismatches: [u64; LANES],
    max_abs: [f64; LANES],
    max_rel: f64,
    /// A little below `max_rel`: an element needs the division only if its error is larger than
    /// this share of the expectation.
    interesting: f64,
}

impl Running {
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

    fn finish(self) -> Option<(f64, f64)> {
        let fine = self.mismatches.iter().all(|&mismatches| mismatches == 0);
        let max_abs = self.max_abs.into_iter().fold(0.0, f64::max);
        fine.then(|| (max_abs, self.max_rel.min(f64::MAX)))
    }
}

macro_rules! compare_floats {
    ($($type:ty),*) => {$(
        impl Comparable for $type {
            fn distance(actual: Self, expected: Self) -> f64 {
                (actual.to_f64() - expected.to_f64()).abs()
            }
            fn all_match(
                actual: &[u8],
                expected: &[u8],
                tolerance: &ResolvedTolerance,
            ) -> Option<(f64, f64)> {
                floats_match::<$type>(actual, expected, tolerance)
            }
        }
    )*};
}
compare_floats!(f64, f32, f16, bf16, E4m3, E5m2);

macro_rules! compare_integers {
    ($($type:ty: $distance:expr),*) => {$(
        impl Comparable for $type {
            fn distance(actual: Self, expected: Self) -> f64 {
                $distance(actual, expected)
            }
            /// Equal bytes match under every tolerance; the rest is looked at one by one.
            fn all_match(
                actual: &[u8],
                expected: &[u8],
                _: &ResolvedTolerance,
            ) -> Option<(f64, f64)> {
                (actual == expected).then_some((0.0, 0.0))
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
