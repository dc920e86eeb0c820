//! Parts of neural networks, against double precision.

use half::{bf16, f16};

use super::{args, close, everywhere, go};
use crate::common::Random;

/// `2/√π · exp(−x²) · Σ 2ⁿ x²ⁿ⁺¹ / (1·3·…·(2n+1))`.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, 0.0);
    for n in 1..400 {
        sum += term;
        term *= 2.0 * x * x / f64::from(2 * n + 1);
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}

#[test]
fn attention() {
    const D: usize = 32;
    everywhere("learning", |d| {
        let mut r = Random(101);
        for (n, heads, causal) in [(70usize, 2usize, 0), (45, 1, 1), (1, 1, 1), (32, 3, 0)] {
            let mut tensor = || r.floats(heads * n * D).into_iter().map(|v| v * 2.0).collect();
            let (q, k, v): (Vec<f32>, Vec<f32>, Vec<f32>) = (tensor(), tensor(), tensor());
            let out = d.alloc::<f32>(heads * n * D);
            let p = args![d.upload(&q), d.upload(&k), d.upload(&v), out, n as i32, causal];
            go(d, "flash_attention", (n.div_ceil(32), heads), 128, 0, &p);
            let mut want = vec![];
            for row in 0..heads * n {
                let (head, i) = (row / n * n, row % n);
                let keys = head..head + if causal == 1 { i + 1 } else { n };
                let dot = |j: usize| -> f64 {
                    let term = |c: usize| f64::from(q[row * D + c]) * f64::from(k[j * D + c]);
                    (0..D).map(term).sum::<f64>() / (D as f64).sqrt()
                };
                let weight: Vec<f64> = keys.clone().map(|j| dot(j).exp()).collect();
                let total: f64 = weight.iter().sum();
                want.extend((0..D).map(|c| {
                    let part = weight.iter().zip(keys.clone());
                    part.map(|(w, j)| w * f64::from(v[j * D + c])).sum::<f64>() / total
                }));
            }
            close(&d.download(out, heads * n * D), &want, 1e-5);
        }
    });
}

#[test]
fn positions_and_norms() {
    everywhere("learning", |d| {
        let mut r = Random(103);
        let (positions, dim) = (41usize, 24usize);
        let x: Vec<f16> = r.floats(positions * dim).into_iter().map(f16::from_f32).collect();
        let bits: Vec<u16> = x.iter().map(|v| v.to_bits()).collect();
        let a = d.upload(&bits);
        go(d, "rope", positions, 32, 0, &args![a, positions as i32, dim as i32, 10_000f32]);
        let got = d.download::<u16>(a, positions * dim);
        let got: Vec<f32> = got.into_iter().map(|b| f16::from_bits(b).to_f32()).collect();
        let mut want = vec![0.0; positions * dim];
        for p in 0..positions {
            for i in 0..dim / 2 {
                let angle = p as f64 * 10_000f64.powf(-2.0 * i as f64 / dim as f64);
                let (one, two) = (p * dim + i, p * dim + i + dim / 2);
                let (a, b) = (x[one].to_f64(), x[two].to_f64());
                want[one] = a * angle.cos() - b * angle.sin();
                want[two] = a * angle.sin() + b * angle.cos();
            }
        }
        // Half precision below 2.
        close(&got, &want, 6e-4);

        for (rows, cols, threads) in [(3usize, 130usize, 64), (1, 2, 32)] {
            let x: Vec<bf16> = r.floats(rows * cols).into_iter().map(bf16::from_f32).collect();
            let weight = r.floats(cols);
            let bits: Vec<u16> = x.iter().map(|v| v.to_bits()).collect();
            let y = d.alloc::<u16>(rows * cols);
            let p = args![d.upload(&bits), d.upload(&weight), y, cols as i32];
            go(d, "rms_norm", rows, threads, 0, &p);
            let got = d.download::<u16>(y, rows * cols);
            for (i, got) in got.into_iter().enumerate() {
                let row = &x[i / cols * cols..][..cols];
                let mean = row.iter().map(|v| v.to_f64().powi(2)).sum::<f64>() / cols as f64;
                let want = x[i].to_f64() / (mean + 1e-6).sqrt() * f64::from(weight[i % cols]);
                let error = (bf16::from_bits(got).to_f64() - want).abs();
                assert!(error <= want.abs() / 250.0, "element {i}");
            }
        }
    });
}

#[test]
fn losses() {
    everywhere("learning", |d| {
        let mut r = Random(107);
        for (rows, classes, threads) in [(6usize, 77usize, 64), (1, 1, 32), (2, 300, 96)] {
            let x: Vec<f32> = r.floats(rows * classes).into_iter().map(|v| v * 20.0).collect();
            let label: Vec<i32> = (0..rows)
                .map(|i| if i == 4 { -1 } else { (r.next() % classes as u64) as i32 })
                .collect();
            let (loss, gradient) = (d.alloc::<f32>(rows), d.alloc::<f32>(rows * classes));
            let p = args![d.upload(&x), d.upload(&label), loss, gradient, classes as i32];
            go(d, "cross_entropy", rows, threads, 0, &p);
            let (mut losses, mut gradients) = (vec![], vec![]);
            for (x, label) in x.chunks(classes).zip(&label) {
                let sum: f64 = x.iter().map(|v| f64::from(*v).exp()).sum();
                let is = |c: usize| c as i32 == *label;
                let own = x.iter().enumerate().find(|(c, _)| is(*c));
                losses.push(own.map_or(0.0, |(_, v)| sum.ln() - f64::from(*v)));
                gradients.extend(x.iter().enumerate().map(|(c, v)| {
                    let part = f64::from(*v).exp() / sum - if is(c) { 1.0 } else { 0.0 };
                    if *label < 0 { 0.0 } else { part }
                }));
            }
            close(&d.download(loss, rows), &losses, 1e-5);
            close(&d.download(gradient, rows * classes), &gradients, 1e-6);
        }
    });
}

#[test]
fn embeddings() {
    everywhere("learning", |d| {
        let mut r = Random(109);
        let (words, width, batch) = (12usize, 40usize, 30usize);
        let table = r.floats(words * width);
        let index: Vec<i64> = (0..batch).map(|_| (r.next() % 13) as i64 - 1).collect();
        let (di, out) = (d.upload(&index), d.alloc::<f32>(batch * width));
        let p = args![d.upload(&table), di, out, width as i32 / 4];
        go(d, "gather_rows", batch, 32, 0, &p);
        let row = |i: i64| match usize::try_from(i) {
            Ok(i) => table[i * width..][..width].to_vec(),
            Err(_) => vec![0.0; width],
        };
        let want: Vec<f32> = index.iter().flat_map(|i| row(*i)).collect();
        assert_eq!(d.download::<f32>(out, batch * width), want);

        let grad: Vec<f32> = (0..batch * width).map(|_| (r.next() % 64) as f32).collect();
        let sums = d.upload(&vec![0f32; words * width]);
        let halves = d.upload(&vec![0u16; words * width]);
        let p = args![d.upload(&grad), di, sums, halves, width as i32];
        go(d, "scatter_add", batch, 32, 0, &p);
        let (mut want, mut counts) = (vec![0f32; words * width], vec![0f32; words * width]);
        for (b, i) in index.iter().enumerate().filter(|(_, i)| **i >= 0) {
            for c in 0..width {
                want[*i as usize * width + c] += grad[b * width + c];
                counts[*i as usize * width + c] += if c % 2 == 0 { 1.0 } else { (c / 2) as f32 };
            }
        }
        assert_eq!(d.download::<f32>(sums, words * width), want);
        let halves = d.download::<u16>(halves, words * width);
        let halves: Vec<f32> = halves.into_iter().map(|b| f16::from_bits(b).to_f32()).collect();
        assert_eq!(halves, counts);
    });
}

#[test]
fn activations() {
    everywhere("learning", |d| {
        let mut r = Random(113);
        let n = 501usize;
        let mut x: Vec<f32> = r.floats(n).into_iter().map(|v| v * 8.0).collect();
        x[..6].copy_from_slice(&[0.0, -0.0, 30.0, -30.0, 1e-6, 20.5]);
        let out: Vec<u64> = (0..4).map(|_| d.alloc::<f32>(n)).collect();
        let p = args![d.upload(&x), out[0], out[1], out[2], out[3], n as i32];
        go(d, "activations", 3, 64, 0, &p);
        let each = |f: &dyn Fn(f64) -> f64| x.iter().map(|v| f(f64::from(*v))).collect::<Vec<_>>();
        let get = |k: usize| d.download::<f32>(out[k], n);
        close(&get(0), &each(&|v| 0.5 * v * (1.0 + erf(v / 2f64.sqrt()))), 1e-6);
        let inner = |v: f64| (2.0 / std::f64::consts::PI).sqrt() * (v + 0.044715 * v.powi(3));
        close(&get(1), &each(&|v| 0.5 * v * (1.0 + inner(v).tanh())), 2e-6);
        close(&get(2), &each(&|v| v / (1.0 + (-v).exp())), 2e-6);
        close(&get(3), &each(&|v| v.exp().ln_1p()), 1e-6);
    });
}

#[test]
fn quantisation() {
    everywhere("learning", |d| {
        let mut r = Random(127);
        let groups = 7usize;
        let mut x: Vec<f32> = r.floats(groups * 32).into_iter().map(|v| v * 3.0).collect();
        x[64..96].fill(0.0);
        let (packed, scale) = (d.alloc::<u32>(groups * 4), d.alloc::<u16>(groups));
        go(d, "quantise4", 4, 64, 0, &args![d.upload(&x), packed, scale, groups as i32]);
        let out = d.alloc::<u16>(groups * 32);
        let p = args![packed, scale, out, groups as i32 * 4];
        go(d, "dequantise4", 2, 32, 0, &p);
        let (packed, scale) =
            (d.download::<u32>(packed, groups * 4), d.download::<u16>(scale, groups));
        for (i, got) in d.download::<u16>(out, groups * 32).into_iter().enumerate() {
            let of = &x[i / 32 * 32..][..32];
            let s = f16::from_f32(of.iter().fold(0f32, |m, v| m.max(v.abs())) / 7.0);
            assert_eq!(s.to_bits(), scale[i / 32]);
            let steps = x[i] / s.to_f32();
            let q = if steps.is_nan() { 0.0 } else { steps.round_ties_even().clamp(-8.0, 7.0) };
            assert_eq!(packed[i / 8] >> (4 * (i % 8)) & 15, q as i32 as u32 & 15, "element {i}");
            assert_eq!(f16::from_bits(got), f16::from_f32(q * s.to_f32()), "element {i}");
        }

        let (rows, cols) = (3usize, 101usize);
        let x: Vec<f32> = r.floats(rows * cols).into_iter().map(|v| v * v * v * 9.0).collect();
        let (y, scale) = (d.alloc::<u8>(rows * cols), d.alloc::<f32>(rows));
        go(d, "quantise8", rows, 64, 0, &args![d.upload(&x), y, scale, cols as i32]);
        let scale = d.download::<f32>(scale, rows);
        for (i, got) in d.download::<u8>(y, rows * cols).into_iter().enumerate() {
            let most = x[i / cols * cols..][..cols].iter().fold(0f32, |m, v| m.max(v.abs()));
            assert_eq!(scale[i / cols], most / 448.0);
            let want = float8::F8E4M3::from_f32(x[i] / scale[i / cols]);
            assert_eq!(got, want.to_bits(), "element {i}: {}", x[i]);
        }
    });
}

#[test]
fn optimiser() {
    everywhere("learning", |d| {
        let mut r = Random(131);
        let n = 200usize;
        let (w, g, m) = (r.floats(n), r.floats(n), r.floats(n));
        let v: Vec<f32> = r.floats(n).into_iter().map(f32::abs).collect();
        let (dw, dm, dv) = (d.upload(&w), d.upload(&m), d.upload(&v));
        let p = args![dw, d.upload(&g), dm, dv, n as i32];
        let p = p.arg(1e-2f32).arg(0.9f32).arg(0.99f32).arg(1e-8f32).arg(0.1f32).arg(3);
        go(d, "adam", 3, 96, 0, &p);
        let (mut ws, mut ms, mut vs) = (vec![], vec![], vec![]);
        for i in 0..n {
            let [w, g, m, v] = [w[i], g[i], m[i], v[i]].map(f64::from);
            let (a, b) = (0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g);
            let step = a / (1.0 - 0.9f64.powi(3)) / ((b / (1.0 - 0.99f64.powi(3))).sqrt() + 1e-8);
            ws.push(w - 1e-2 * (step + 0.1 * w));
            ms.push(a);
            vs.push(b);
        }
        close(&d.download(dm, n), &ms, 1e-6);
        close(&d.download(dv, n), &vs, 1e-6);
        // 1 − 0.99³ loses two digits.
        close(&d.download(dw, n), &ws, 1e-5);
    });
}
