//! Products of matrices, against double precision.

use half::{bf16, f16};

use super::{args, close, close64, everywhere, go, on};
use crate::common::Random;

/// `a` (m × k) times `b` (k × n).
fn product(a: &[f64], b: &[f64], n: usize, k: usize) -> Vec<f64> {
    let rows = a.chunks(k);
    rows.flat_map(|row| (0..n).map(|j| (0..k).map(|p| row[p] * b[p * n + j]).sum())).collect()
}

fn double(x: &[f32]) -> Vec<f64> {
    x.iter().map(|v| f64::from(*v)).collect()
}

#[test]
fn single_precision() {
    everywhere("gemm", |d| {
        let mut r = Random(137);
        for (m, n, k, beta) in
            [(70usize, 83usize, 37usize, 0.5f32), (64, 64, 8, 0.0), (1, 1, 1, 1.0)]
        {
            let (a, b, c) = (r.floats(m * k), r.floats(k * n), r.floats(m * n));
            // With beta = 0 the output must not be read.
            let out = if beta == 0.0 { d.alloc::<f32>(m * n) } else { d.upload(&c) };
            let p = args![d.upload(&a), d.upload(&b), out, m as i32, n as i32, k as i32];
            let p = p.arg(1.25f32).arg(beta);
            go(d, "sgemm", (n.div_ceil(64), m.div_ceil(64)), 64, 0, &p);
            let want: Vec<f64> = product(&double(&a), &double(&b), n, k)
                .into_iter()
                .zip(&c)
                .map(|(ab, c)| 1.25 * ab + f64::from(beta) * f64::from(*c))
                .collect();
            close(&d.download(out, m * n), &want, 1e-5);
        }
    });
}

#[test]
fn double_precision() {
    everywhere("gemm", |d| {
        let mut r = Random(139);
        for (m, n, k, parts) in [(19usize, 21usize, 50usize, 3usize), (1, 1, 5, 7)] {
            let (a, b) = (double(&r.floats(m * k)), double(&r.floats(k * n)));
            let c = d.upload(&vec![0f64; m * n]);
            let p = args![d.upload(&a), d.upload(&b), c, m as i32, n as i32, k as i32];
            go(d, "gemm_split_k", (n.div_ceil(16), m.div_ceil(4), parts), (16, 4), 0, &p);
            close64(&d.download(c, m * n), &product(&a, &b, n, k), 1e-13);
        }
    });
    on("gemm", &["80", "90"], |d| {
        let mut r = Random(149);
        let (m, n, k) = (24usize, 40usize, 28usize);
        let (a, b) = (double(&r.floats(m * k)), double(&r.floats(k * n)));
        let c = d.alloc::<f64>(m * n);
        let p = args![d.upload(&a), d.upload(&b), c, m as i32, n as i32, k as i32];
        go(d, "f64_gemm", 4, 128, 0, &p);
        close64(&d.download(c, m * n), &product(&a, &b, n, k), 1e-13);
    });
}

#[test]
fn bfloat16() {
    on("gemm", &["80", "90"], |d| {
        let mut r = Random(151);
        for (m, n, k) in [(50usize, 40usize, 72usize), (1, 8, 8), (32, 64, 16)] {
            let mut make = |len| r.floats(len).into_iter().map(bf16::from_f32).collect();
            let (a, b): (Vec<bf16>, Vec<bf16>) = (make(m * k), make(k * n));
            let bits = |x: &[bf16]| x.iter().map(|v| v.to_bits()).collect::<Vec<u16>>();
            let c = d.alloc::<f32>(m * n);
            let p =
                args![d.upload(&bits(&a)), d.upload(&bits(&b)), c, m as i32, n as i32, k as i32];
            go(d, "bf16_gemm", (n.div_ceil(32), m.div_ceil(32)), 128, 0, &p);
            let wide = |x: &[bf16]| x.iter().map(|v| v.to_f64()).collect::<Vec<f64>>();
            close(&d.download(c, m * n), &product(&wide(&a), &wide(&b), n, k), 1e-5);
        }
    });
}

#[test]
fn integers() {
    everywhere("gemm", |d| {
        let mut r = Random(157);
        for (m, n, k) in [(37usize, 21usize, 96usize), (1, 1, 32), (16, 8, 64)] {
            let mut make = |len| (0..len).map(|_| r.next() as i8).collect();
            let (a, b): (Vec<i8>, Vec<i8>) = (make(m * k), make(n * k));
            let (row, col) = (r.floats(m), r.floats(n));
            let c = d.alloc::<f32>(m * n);
            let p = args![d.upload(&a), d.upload(&b), d.upload(&row), d.upload(&col), c];
            let p = p.arg(m as i32).arg(n as i32).arg(k as i32);
            let warps = m.div_ceil(16) * n.div_ceil(8);
            go(d, "int8_gemm", warps.div_ceil(2), 64, 0, &p);
            for (at, got) in d.download::<f32>(c, m * n).into_iter().enumerate() {
                let (i, j) = (at / n, at % n);
                let term = |p: usize| i32::from(a[i * k + p]) * i32::from(b[j * k + p]);
                let sum: i32 = (0..k).map(term).sum();
                assert_eq!(got, sum as f32 * row[i] * col[j], "row {i}, column {j}");
            }
        }
    });
}

#[test]
fn tf32() {
    on("gemm", &["80", "90"], |d| {
        let mut r = Random(163);
        let (m, n, k) = (32usize, 48usize, 40usize);
        let (a, b) = (r.floats(m * k), r.floats(k * n));
        let c = d.alloc::<f32>(m * n);
        let p = args![d.upload(&a), d.upload(&b), c, m as i32, n as i32, k as i32];
        go(d, "tf32_gemm", 2, 96, 0, &p);
        // To ten bits after the first, halves away from zero.
        let round = |v: &f32| f64::from(f32::from_bits((v.to_bits() + 0x1000) & !0x1fff));
        let a: Vec<f64> = a.iter().map(round).collect();
        let b: Vec<f64> = b.iter().map(round).collect();
        close(&d.download(c, m * n), &product(&a, &b, n, k), 1e-5);
    });
}

#[test]
fn half_precision() {
    everywhere("gemm", |d| {
        let mut r = Random(167);
        let (m, n, k) = (32usize, 48usize, 64usize);
        let mut make = |len| r.floats(len).into_iter().map(f16::from_f32).collect();
        let (x, w, bias): (Vec<f16>, Vec<f16>, Vec<f16>) = (make(m * k), make(n * k), make(n));
        let bits = |x: &[f16]| d.upload(&x.iter().map(|v| v.to_bits()).collect::<Vec<u16>>());
        let y = d.alloc::<u16>(m * n);
        let p = args![bits(&x), bits(&w), bits(&bias), y, m as i32, n as i32, k as i32];
        go(d, "half_linear", 2, 128, 0, &p);
        for (at, got) in d.download::<u16>(y, m * n).into_iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let sum: f64 = (0..k).map(|p| x[i * k + p].to_f64() * w[j * k + p].to_f64()).sum();
            let want = (sum + bias[j].to_f64()).max(0.0);
            // Two roundings of numbers below 16 in half precision.
            let error = (f16::from_bits(got).to_f64() - want).abs();
            assert!(error <= 0.012, "row {i}, column {j}: {error}");
        }
    });
}
