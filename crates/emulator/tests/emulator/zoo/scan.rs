//! Prefix sums, compaction, histograms and moments, against sequential loops.

use super::{args, close, everywhere, go};
use crate::common::Random;

#[test]
fn prefix_sums() {
    everywhere("scan", |d| {
        let mut r = Random(19);
        for (n, threads) in [(9_999usize, 256), (1, 32), (5_000, 64)] {
            let x: Vec<i32> = (0..n).map(|_| r.next() as i32).collect();
            let tiles = n.div_ceil(threads);
            let (y, state) = (d.alloc::<i64>(n), d.upload(&vec![0u64; tiles]));
            let p = args![d.upload(&x), y, state, d.upload(&[0u32]), n as i32];
            go(d, "look_back_scan", tiles, threads, 0, &p);
            let mut sum = 0;
            let mut add = |v: &i32| {
                sum += i64::from(*v);
                sum
            };
            assert_eq!(d.download::<i64>(y, n), x.iter().map(&mut add).collect::<Vec<i64>>());
        }
        let (n, threads) = (700usize, 160usize);
        // Whole numbers, so that the order of the additions does not matter.
        let x: Vec<f32> = (0..n).map(|_| (r.next() % 100) as f32 - 50.0).collect();
        let head: Vec<u8> = (0..n).map(|_| u8::from(r.next().is_multiple_of(7))).collect();
        let y = d.alloc::<f32>(n);
        let p = args![d.upload(&x), d.upload(&head), y, n as i32];
        go(d, "segmented_scan", n.div_ceil(threads), threads, threads * 8, &p);
        let mut sum = 0.0;
        for (i, got) in d.download::<f32>(y, n).into_iter().enumerate() {
            let begin = head[i] == 1 || i % threads == 0;
            sum = if begin { x[i] } else { sum + x[i] };
            assert_eq!(got, sum, "element {i}");
        }
    });
}

#[test]
fn compaction() {
    everywhere("scan", |d| {
        let mut r = Random(23);
        for (n, threads) in [(2_345usize, 128), (20, 32)] {
            let x: Vec<i32> = (0..n).map(|_| r.next() as i32 % 1000).collect();
            let (y, count) = (d.alloc::<i32>(n), d.upload(&[0u32]));
            let p = args![d.upload(&x), y, count, n as i32];
            go(d, "compact", n.div_ceil(threads), threads, 0, &p);
            let mut want: Vec<i32> = x.into_iter().filter(|v| *v > 0).collect();
            assert_eq!(d.download::<u32>(count, 1)[0] as usize, want.len());
            // Warps come in any order.
            let mut got = d.download::<i32>(y, want.len());
            got.sort_unstable();
            want.sort_unstable();
            assert_eq!(got, want);
        }
    });
}

#[test]
fn histograms() {
    everywhere("scan", |d| {
        let mut r = Random(29);
        for (n4, blocks, threads) in [(1_501usize, 3, 256), (7, 1, 96)] {
            let x: Vec<u8> = (0..4 * n4).map(|_| (r.next() % 40 * (r.next() % 7)) as u8).collect();
            let bins = d.upload(&[0u32; 256]);
            go(d, "byte_histogram", blocks, threads, 0, &args![d.upload(&x), bins, n4 as i32]);
            let mut want = [0u32; 256];
            x.iter().for_each(|v| want[usize::from(*v)] += 1);
            assert_eq!(d.download::<u32>(bins, 256), want);
        }
    });
}

#[test]
fn batch_norm() {
    everywhere("scan", |d| {
        let mut r = Random(31);
        for (batch, channels, space, threads) in [(3usize, 5usize, 77usize, 96), (1, 1, 40, 32)] {
            let n = batch * channels * space;
            // Far from zero, where the sum of squares would lose the variance.
            let x: Vec<f32> = r.floats(n).into_iter().map(|v| v * 3.0 + 1000.0).collect();
            let (gamma, beta) = (r.floats(channels), r.floats(channels));
            let (y, m, v) = (d.alloc::<f32>(n), d.alloc::<f32>(channels), d.alloc::<f32>(channels));
            let p = args![d.upload(&x), y, m, v, d.upload(&gamma), d.upload(&beta)];
            let p = p.arg(batch as i32).arg(space as i32);
            go(d, "batch_norm", channels, threads, 0, &p);
            let of = |c: usize| {
                let at = move |b: usize| (b * channels + c) * space;
                (0..batch).flat_map(move |b| at(b)..at(b) + space)
            };
            let (mut means, mut variances, mut want) = (vec![], vec![], vec![0.0; n]);
            for c in 0..channels {
                let count = (batch * space) as f64;
                let mean = of(c).map(|i| f64::from(x[i])).sum::<f64>() / count;
                let variance = of(c).map(|i| (f64::from(x[i]) - mean).powi(2)).sum::<f64>() / count;
                for i in of(c) {
                    let unit = (f64::from(x[i]) - mean) / (variance + 1e-5).sqrt();
                    want[i] = unit * f64::from(gamma[c]) + f64::from(beta[c]);
                }
                means.push(mean);
                variances.push(variance);
            }
            // At 1000 a float's spacing is 6e-5, and it is a part of a deviation of 1.7.
            close(&d.download(m, channels), &means, 1e-6);
            close(&d.download(v, channels), &variances, 1e-4);
            close(&d.download(y, n), &want, 2e-4);
        }
    });
}
