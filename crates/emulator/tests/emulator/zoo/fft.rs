//! Transforms, against their defining sums.

use std::f64::consts::PI;

use super::{args, close, everywhere, go};
use crate::common::Random;

#[test]
fn fourier() {
    everywhere("fft", |d| {
        let mut r = Random(59);
        let x = r.floats(3 * 512);
        let (a, b, c) = (d.upload(&x), d.alloc::<f32>(3 * 512), d.alloc::<f32>(3 * 512));
        go(d, "fft256", 3, 128, 0, &args![a, b, -1f32]);
        go(d, "fft256", 3, 128, 0, &args![b, c, 1f32]);
        let mut want = vec![];
        for x in x.chunks(512) {
            for k in 0..256 {
                let (mut re, mut im) = (0.0, 0.0);
                for (n, v) in x.chunks(2).enumerate() {
                    let (s, c) = (-2.0 * PI * (n * k % 256) as f64 / 256.0).sin_cos();
                    let (p, q) = (f64::from(v[0]), f64::from(v[1]));
                    re += p * c - q * s;
                    im += p * s + q * c;
                }
                want.extend([re, im]);
            }
        }
        // Eight stages; values grow to about 16, of which a few roundings are 1e-5.
        close(&d.download(b, 3 * 512), &want, 2e-5);
        let back: Vec<f64> = x.iter().map(|v| 256.0 * f64::from(*v)).collect();
        close(&d.download(c, 3 * 512), &back, 2e-4);
    });
}

#[test]
fn walsh_hadamard() {
    everywhere("fft", |d| {
        let mut r = Random(61);
        let rows = 5;
        let x: Vec<i32> = (0..rows * 128).map(|_| r.next() as i32 >> 12).collect();
        let a = d.upload(&x);
        go(d, "hadamard", 2, 96, 0, &args![a, rows as i32]);
        let got = d.download::<i32>(a, rows * 128);
        for (i, got) in got.into_iter().enumerate() {
            let (row, k) = (i / 128, i % 128);
            let sign = |n: usize| if (n & k).count_ones() % 2 == 1 { -1 } else { 1 };
            let want: i32 = (0..128).map(|n| sign(n) * x[row * 128 + n]).sum();
            assert_eq!(got, want, "row {row}, element {k}");
        }
    });
}

#[test]
fn cosine() {
    everywhere("fft", |d| {
        let mut r = Random(67);
        let (w, h) = (24usize, 16usize);
        let x: Vec<i16> = (0..w * h).map(|_| (r.next() % 256) as i16 - 128).collect();
        let out = d.alloc::<f32>(w * h);
        go(d, "dct8x8", (w / 8, h / 8), (8, 8), 0, &args![d.upload(&x), out, w as i32]);
        let mut want = vec![0.0; w * h];
        for (i, want) in want.iter_mut().enumerate() {
            let (top, left, v, u) = (i / w / 8 * 8, i % w / 8 * 8, i / w % 8, i % 8);
            let scale = |k: usize| if k == 0 { 0.125f64.sqrt() } else { 0.5 };
            let wave = |n: usize, k: usize| ((2 * n + 1) as f64 * k as f64 * PI / 16.0).cos();
            for n in 0..64 {
                let s = f64::from(x[(top + n / 8) * w + left + n % 8]);
                *want += s * scale(u) * scale(v) * wave(n % 8, u) * wave(n / 8, v);
            }
        }
        // Sums of 64 terms of up to 128 each.
        close(&d.download(out, w * h), &want, 3e-4);
    });
}
