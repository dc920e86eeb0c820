//! Sorting and selection, against the standard library's sort.

use super::{args, everywhere, go};
use crate::common::Random;

#[test]
fn bitonic() {
    everywhere("sort", |d| {
        let mut r = Random(11);
        for (n, size, threads) in [(1000, 1024, 256), (1, 32, 32), (100, 128, 96), (64, 64, 32)] {
            let mut keys: Vec<u32> = (0..n).map(|_| r.next() as u32 >> (r.next() % 30)).collect();
            let k = d.upload(&keys);
            go(d, "bitonic_block", 1, threads, size * 4, &args![k, n as i32, size as i32]);
            keys.sort_unstable();
            assert_eq!(d.download::<u32>(k, n), keys);
        }
        let n = 512;
        let keys = r.floats(n);
        let values: Vec<i32> = (0..n as i32).collect();
        let (k, v) = (d.upload(&keys), d.upload(&values));
        for size in (1..=9).map(|b| 1i32 << b) {
            for j in (0..).map(|s| size >> (s + 1)).take_while(|j| *j > 0) {
                go(d, "bitonic_step", n.div_ceil(96), 96, 0, &args![k, v, j, size, n as i32]);
            }
        }
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
        let sorted = d.download::<f32>(k, n);
        let moved = d.download::<i32>(v, n);
        for (i, at) in order.iter().enumerate() {
            // Equal keys may be in any order: their values still belong to them.
            assert_eq!((sorted[i], keys[moved[i] as usize]), (keys[*at], keys[*at]));
        }
    });
}

#[test]
fn radix() {
    everywhere("sort", |d| {
        let mut r = Random(13);
        for (n, threads) in [(3001usize, 256), (200, 256), (1, 32), (777, 96)] {
            let mut keys: Vec<u32> = (0..n).map(|_| r.next() as u32).collect();
            let blocks = n.div_ceil(threads);
            let mut from = d.upload(&keys);
            let (mut to, counts) = (d.alloc::<u32>(n), d.alloc::<u32>(16 * blocks));
            for shift in (0..32).step_by(4) {
                let n = n as i32;
                go(d, "radix_count", blocks, threads, 0, &args![from, counts, n, shift]);
                go(d, "radix_offsets", 1, 256, 0, &args![counts, 16 * blocks as i32]);
                go(d, "radix_scatter", blocks, threads, 0, &args![from, to, counts, n, shift]);
                std::mem::swap(&mut from, &mut to);
            }
            keys.sort_unstable();
            assert_eq!(d.download::<u32>(from, n), keys);
        }
    });
}

#[test]
fn largest() {
    everywhere("sort", |d| {
        let mut r = Random(17);
        for (rows, cols) in [(5usize, 301usize), (1, 32), (2, 9)] {
            // Few different values, so that there are ties.
            let x: Vec<f32> = (0..rows * cols).map(|_| (r.next() % 90) as f32 - 40.5).collect();
            let (value, place) = (d.alloc::<f32>(rows * 8), d.alloc::<i32>(rows * 8));
            go(d, "top_k", rows, 32, 0, &args![d.upload(&x), cols as i32, value, place]);
            let (value, place) = (d.download::<f32>(value, rows * 8), d.download(place, rows * 8));
            for (row, x) in x.chunks(cols).enumerate() {
                let mut order: Vec<usize> = (0..cols).collect();
                order.sort_by(|a, b| x[*b].total_cmp(&x[*a]));
                for k in 0..8 {
                    let at = row * 8 + k;
                    assert_eq!((value[at], place[at]), (x[order[k]], order[k] as i32));
                }
            }
        }
        for (n, blocks, threads) in [(10_001, 7, 96), (5, 1, 1024), (1, 3, 32)] {
            let x: Vec<f32> = (0..n).map(|_| r.float() * 1e6).map(f32::round).collect();
            let best = d.upload(&[0u64]);
            go(d, "argmax", blocks, threads, 0, &args![d.upload(&x), n, best]);
            let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let at = x.iter().position(|v| *v == most).unwrap();
            assert_eq!(!(d.download::<u64>(best, 1)[0] as u32), at as u32);
        }
    });
}
