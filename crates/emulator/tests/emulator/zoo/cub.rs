//! Parts of CUB, against the standard library.

use super::{args, go, on};
use crate::common::Random;

#[test]
fn sorts() {
    on("cub", &["80"], |d| {
        let mut r = Random(271);
        for blocks in [3usize, 1] {
            let keys: Vec<f32> = (0..192 * blocks).map(|_| (r.next() % 80) as f32 - 40.0).collect();
            let values: Vec<i32> = (0..192 * blocks as i32).collect();
            let (k, v) = (d.upload(&keys), d.upload(&values));
            go(d, "sort_pairs", blocks, 64, 0, &args![k, v]);
            let (got, moved) = (d.download::<f32>(k, keys.len()), d.download::<i32>(v, keys.len()));
            for b in (0..keys.len()).step_by(192) {
                let mut order: Vec<usize> = (b..b + 192).collect();
                order.sort_by(|x, y| keys[*y].total_cmp(&keys[*x]));
                for (i, at) in order.into_iter().enumerate() {
                    assert_eq!((got[b + i], moved[b + i]), (keys[at], at as i32));
                }
            }
        }
        for (blocks, n) in [(2usize, 201usize), (1, 256), (1, 1)] {
            let mut x: Vec<i32> = (0..blocks * n).map(|_| r.next() as i32 >> 8).collect();
            let a = d.upload(&x);
            go(d, "merge_sort", blocks, 128, 0, &args![a, n as i32]);
            x.chunks_mut(n).for_each(|c| c.sort_by_key(|v| (v & 1 == 0, *v)));
            assert_eq!(d.download::<i32>(a, blocks * n), x);
        }
    });
}

#[test]
fn parts() {
    on("cub", &["80"], |d| {
        let mut r = Random(277);
        for blocks in [2usize, 1] {
            let x: Vec<u8> = (0..512 * blocks).map(|_| r.next() as u8).collect();
            let (bins, range) = (d.alloc::<u32>(64 * blocks), d.alloc::<f32>(2 * blocks));
            let (product, firsts) = (d.alloc::<u32>(128 * blocks), d.alloc::<i32>(128 * blocks));
            go(
                d,
                "block_parts",
                blocks,
                128,
                0,
                &args![d.upload(&x), bins, range, product, firsts],
            );
            let bins = d.download::<u32>(bins, 64 * blocks);
            let range = d.download::<f32>(range, 2 * blocks);
            let product = d.download::<u32>(product, 128 * blocks);
            let firsts = d.download::<i32>(firsts, 128 * blocks);
            for (b, x) in x.chunks(512).enumerate() {
                let mut counts = [0u32; 64];
                x.iter().for_each(|v| counts[usize::from(v & 63)] += 1);
                assert_eq!(bins[64 * b..][..64], counts);
                let part = |k: usize| x.iter().skip(k).step_by(4).map(|v| v & 63);
                let (low, high) = (part(0).min().unwrap(), part(3).max().unwrap());
                assert_eq!(range[2 * b..][..2], [f32::from(low) * 0.5, f32::from(high) * 1.5]);
                let mut before = 1u32;
                for t in 0..128 {
                    assert_eq!(product[128 * b + t], before, "product before {t}");
                    before = before.wrapping_mul(u32::from(x[4 * t] | 1));
                    let head = |t: usize| t.is_multiple_of(5) || t.is_multiple_of(32);
                    let end = (t + 1..128).find(|t| head(*t)).unwrap_or(128);
                    let sum = (t..end).map(|t| i32::from(x[4 * t + 1])).sum();
                    assert_eq!(
                        firsts[128 * b + t],
                        if head(t) { sum } else { 0 },
                        "segment at {t}"
                    );
                }
            }
        }
    });
}
