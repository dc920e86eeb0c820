//! Synchronisation and arithmetic of the toolkit's C++ library.

use super::{args, close64, go, on};
use crate::common::Random;

const ARCHS: [&str; 2] = ["75", "90"];

#[test]
fn latches_and_semaphores() {
    on("toolkit", &ARCHS, |d| {
        for (blocks, threads) in [(2usize, 256usize), (1, 70)] {
            let out = d.alloc::<i32>(blocks * threads);
            go(d, "latch", blocks, threads, 0, &args![out]);
            let want = (0..blocks * threads).map(|i| 3 * (threads - 1 - i % threads) as i32);
            assert_eq!(d.download::<i32>(out, blocks * threads), want.collect::<Vec<i32>>());
            let out = d.alloc::<i32>(blocks);
            go(d, "semaphore", blocks, threads, 0, &args![out, 3]);
            assert_eq!(d.download::<i32>(out, blocks), vec![3 * threads as i32; blocks]);
        }
    });
}

#[test]
fn pipelines() {
    on("toolkit", &ARCHS, |d| {
        let mut r = Random(283);
        for (rounds, blocks) in [(7usize, 2usize), (1, 1)] {
            let x: Vec<i32> = (0..64 * rounds).map(|_| r.next() as i32 >> 10).collect();
            let (a, n) = (d.upload(&x), rounds as i32);
            for (kernel, width) in [("block_pipeline", 64usize), ("roles", 32)] {
                let out = d.alloc::<i32>(width * blocks);
                go(d, kernel, blocks, 64, 0, &args![a, out, n]);
                for (i, got) in d.download::<i32>(out, width * blocks).into_iter().enumerate() {
                    let term = |r: usize| x[r * width + width - 1 - i % width] * (r as i32 + 1);
                    assert_eq!(got, (0..rounds).map(term).sum::<i32>(), "{kernel}, thread {i}");
                }
            }
        }
    });
}

#[test]
fn complex_numbers() {
    on("toolkit", &ARCHS, |d| {
        let mut r = Random(293);
        let n = 75usize;
        let x: Vec<f64> = r.floats(2 * n).into_iter().map(|v| f64::from(v) * 3.0).collect();
        let a = d.upload(&x);
        go(d, "complex", 3, 32, 0, &args![a, n as i32]);
        let mut want = vec![];
        for z in x.chunks(2) {
            let (radius, angle) = (z[0].hypot(z[1]), z[1].atan2(z[0]));
            // exp(z) · √z / (z + 1 + 2i) in polar form.
            let (p, q) = (z[0] + 1.0, z[1] + 2.0);
            let size = z[0].exp() * radius.sqrt() / p.hypot(q);
            let turn = z[1] + angle / 2.0 - q.atan2(p);
            want.push(size * turn.cos() - z[0] * radius);
            want.push(size * turn.sin() + z[1] * radius);
        }
        close64(&d.download::<f64>(a, 2 * n), &want, 1e-13);
    });
}

#[test]
fn parts_of_words() {
    on("toolkit", &ARCHS, |d| {
        let mut r = Random(307);
        let n = 200usize;
        let mut words = || -> Vec<u32> {
            let special = [0, u32::MAX, 0x8000_8000, 0x7fff_7fff, 0x80ff_0180, 0x0100_ff00];
            (0..n)
                .map(
                    |i| if i % 4 == 0 { special[(r.next() % 6) as usize] } else { r.next() as u32 },
                )
                .collect()
        };
        let (x, y) = (words(), words());
        let out = d.alloc::<u32>(16 * n);
        go(d, "packed", 4, 64, 0, &args![d.upload(&x), d.upload(&y), out, n as i32]);
        let each = |a: u32, b: u32, bits: u32, f: &dyn Fn(i32, i32) -> i32| {
            let signed = |v: u32, at: u32| (v << (32 - bits - at)) as i32 >> (32 - bits);
            (0..32 / bits).fold(0, |w, k| {
                let v = f(signed(a, k * bits), signed(b, k * bits)) as u32;
                w | (v & (u32::MAX >> (32 - bits))) << (k * bits)
            })
        };
        let (byte, half) = (|v: i32| v & 255, |v: i32| v & 0xffff);
        let all = |yes: bool| if yes { -1 } else { 0 };
        for (i, got) in d.download::<u32>(out, 16 * n).chunks(16).enumerate() {
            let (a, b) = (x[i], y[i]);
            let sums =
                |v: u32, s: u32| (0..32 / s).map(|k| v >> (k * s) & (u32::MAX >> (32 - s))).sum();
            let want: [u32; 16] = [
                each(a, b, 8, &|p, q| p + q),
                each(a, b, 8, &|p, q| p - q),
                each(a, b, 8, &|p, q| (p - q).abs()),
                each(a, b, 8, &|p, q| (byte(p) - byte(q)).abs()),
                each(a, b, 8, &|p, q| p.max(q)),
                each(a, b, 16, &|p, q| half(p).min(half(q))),
                sums(each(a, b, 8, &|p, q| (byte(p) - byte(q)).abs()), 8),
                each(a, b, 8, &|p, q| all(p > q)),
                each(a, b, 16, &|p, q| i32::from(half(p) <= half(q))),
                each(a, b, 8, &|p, q| (byte(p) + byte(q) + 1) / 2),
                each(a, b, 8, &|p, q| (byte(p) + byte(q)) / 2),
                each(a, b, 8, &|p, q| (p + q).clamp(-128, 127)),
                each(a, b, 16, &|p, q| (half(p) - half(q)).max(0)),
                each(a, b, 16, &|p, _| (-p).min(32767)),
                each(a, b, 8, &|p, _| p.abs().min(127)),
                sums(each(a, b, 16, &|p, q| (p - q).abs()), 16),
            ];
            assert_eq!(got, want, "{a:#x}, {b:#x}");
        }
    });
}
