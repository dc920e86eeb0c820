//! Threads that wait for each other.

use super::{args, everywhere, go};
use crate::common::Random;

#[test]
fn whole_grids() {
    everywhere("groups", |d| {
        let mut r = Random(239);
        for (n, blocks) in [(1001usize, 3), (1, 1), (64, 8)] {
            let x: Vec<i64> = (0..n).map(|_| r.next() as i64 >> 20).collect();
            let a = d.upload(&x);
            d.cooperative = true;
            go(d, "grid_reduce", blocks, 96, 0, &args![a, n as i32]);
            d.cooperative = false;
            assert_eq!(d.download::<i64>(a, 1)[0], x.iter().sum::<i64>());
        }
    });
}

#[test]
fn parts_of_warps() {
    everywhere("groups", |d| {
        let mut r = Random(241);
        for (blocks, threads) in [(2usize, 96usize), (1, 32)] {
            let n = blocks * threads;
            let x: Vec<i32> = (0..n).map(|_| (r.next() % 500) as i32).collect();
            let out: Vec<u64> = (0..4).map(|_| d.alloc::<i32>(n)).collect();
            let p = args![d.upload(&x), out[0], out[1], out[2], out[3]];
            go(d, "tiles", blocks, threads, 0, &p);
            let got: Vec<Vec<i32>> = out.iter().map(|o| d.download(*o, n)).collect();
            for i in 0..n {
                let warp = i / 32 * 32..i / 32 * 32 + 32;
                assert_eq!(got[0][i], x[i / 4 * 4..][..4].iter().sum::<i32>(), "tile of {i}");
                assert_eq!(got[1][i], *x[i / 16 * 16..=i].iter().max().unwrap(), "scan at {i}");
                let same: Vec<i32> =
                    warp.clone().map(|l| x[l]).filter(|v| v % 3 == x[i] % 3).collect();
                let bits = same.iter().fold(0, |b, v| b | 1 << (v & 15));
                assert_eq!(got[2][i], bits + 1_000_000 * same.len() as i32, "label of {i}");
                let chosen: Vec<usize> = warp.filter(|l| x[*l] % 5 < 2).collect();
                let rank = chosen.iter().position(|l| *l == i);
                let want = rank.map_or(-1, |k| k as i32 + 100 * x[chosen[chosen.len() - 1]]);
                assert_eq!(got[3][i], want, "coalesced {i}");
            }
        }
    });
}

#[test]
fn sums_over_lanes() {
    everywhere("groups", |d| {
        let mut r = Random(251);
        let mut x: Vec<u32> = (0..96).map(|_| (r.next() % 1000) as u32).collect();
        x[32..64].iter_mut().for_each(|v| *v %= 100);
        let out = d.alloc::<u32>(96);
        go(d, "lane_sums", 3, 32, 0, &args![d.upload(&x), out]);
        for (i, got) in d.download::<u32>(out, 96).into_iter().enumerate() {
            let warp = &x[i / 32 * 32..][..32];
            let peers = || warp.iter().filter(|v| **v % 4 == x[i] % 4);
            let bits = warp.iter().fold(0, |b, v| b ^ v);
            let all = if (32..64).contains(&i) { 3 } else { 0 };
            let want = peers().sum::<u32>() + peers().max().unwrap() * 1000 + all;
            assert_eq!(got, want.wrapping_add(bits << 24), "thread {i}");
        }
    });
}

#[test]
fn asynchronous_copies() {
    everywhere("groups", |d| {
        let mut r = Random(257);
        for (rows, blocks) in [(7usize, 3), (1, 1)] {
            let x = r.floats(rows * 128);
            let out = d.alloc::<f32>(rows * 128);
            go(d, "copy_rows", blocks, 128, 0, &args![d.upload(&x), out, rows as i32]);
            let want: Vec<f32> = x.chunks(128).flat_map(|r| r.iter().rev().copied()).collect();
            assert_eq!(d.download::<f32>(out, rows * 128), want);
        }
        for (blocks, tiles) in [(3usize, 5usize), (1, 1)] {
            let x: Vec<f32> = (0..blocks * tiles * 256).map(|_| (r.next() % 64) as f32).collect();
            let sum = d.alloc::<f32>(blocks * 64);
            go(d, "pipelined", blocks, 64, 0, &args![d.upload(&x), sum, tiles as i32]);
            for (i, got) in d.download::<f32>(sum, blocks * 64).into_iter().enumerate() {
                let part = |t: usize| &x[((i / 64 * tiles + t) * 64 + 63 - i % 64) * 4..][..4];
                let weigh = |v: &[f32]| v[0] + 2.0 * v[1] + 3.0 * v[2] + 4.0 * v[3];
                assert_eq!(got, (0..tiles).map(|t| weigh(part(t))).sum::<f32>());
            }
        }
    });
}

#[test]
fn barriers() {
    everywhere("groups", |d| {
        let mut r = Random(263);
        for (blocks, threads, rounds) in [(2usize, 128usize, 4), (1, 96, 1)] {
            let x: Vec<i32> = (0..blocks * threads).map(|_| r.next() as i32).collect();
            let out = d.alloc::<i32>(x.len());
            go(d, "split_barrier", blocks, threads, 0, &args![d.upload(&x), out, rounds]);
            let mut want = x.clone();
            for round in 0..rounds {
                let next = |i: usize| {
                    let other = want[i / threads * threads + (i % threads + 37) % threads];
                    want[i].wrapping_mul(3).wrapping_add(round).wrapping_add(other)
                };
                want = (0..x.len()).map(next).collect();
            }
            assert_eq!(d.download::<i32>(out, x.len()), want);
        }
        let rounds = 6usize;
        let x: Vec<i32> = (0..rounds * 32).map(|_| r.next() as i32 >> 8).collect();
        for (blocks, threads) in [(2usize, 64), (1, 128)] {
            let out = d.alloc::<i32>(blocks * 32);
            let p = args![d.upload(&x), out, rounds as i32];
            go(d, "named_barriers", blocks, threads, 0, &p);
            for (i, got) in d.download::<i32>(out, blocks * 32).into_iter().enumerate() {
                let term = |r: usize| x[r * 32 + 31 - i % 32] * (r as i32 + 1);
                assert_eq!(got, (0..rounds).map(term).sum::<i32>(), "{i}");
            }
        }
    });
}

#[test]
fn blocks_that_wait_for_blocks() {
    everywhere("groups", |d| {
        let (pairs, len) = (9usize, 130usize);
        let (data, flags) = (d.alloc::<i32>(pairs * len), d.upload(&vec![0i32; pairs]));
        let sum = d.upload(&vec![0i64; pairs]);
        go(d, "hand_over", 2 * pairs, 64, 0, &args![data, flags, sum, len as i32]);
        let of = |p: usize| (0..len).map(|i| (p * 1000 + i) as i64).sum();
        assert_eq!(d.download::<i64>(sum, pairs), (0..pairs).map(of).collect::<Vec<i64>>());

        let mut r = Random(269);
        let x: Vec<i32> = (0..3000).map(|_| r.next() as i32).collect();
        let a = d.upload(&x);
        for blocks in [7usize, 1, 3] {
            let (part, total) = (d.alloc::<i64>(blocks), d.alloc::<i64>(1));
            go(d, "last_block", blocks, 96, 0, &args![a, part, total, 3000]);
            let want: i64 = x.iter().map(|v| i64::from(*v)).sum();
            assert_eq!(d.download::<i64>(total, 1)[0], want);
        }

        for (blocks, threads) in [(3usize, 64usize), (1, 33)] {
            let n = blocks * threads;
            let (next, serving) = (d.upload(&[0u32]), d.upload(&[0u32]));
            let (order, at) = (d.alloc::<i32>(n), d.upload(&[0i32]));
            go(d, "tickets", blocks, threads, 0, &args![next, serving, order, at]);
            assert_eq!(d.download::<i32>(order, n), (0..n as i32).collect::<Vec<i32>>());
        }

        let got = d.alloc::<i64>(1);
        go(d, "channel", 2, 32, 0, &args![d.alloc::<i32>(1), d.upload(&[0i32]), got, 30]);
        let want = (0..30i64).fold(0i64, |s, i| s.wrapping_mul(3) + i * i);
        assert_eq!(d.download::<i64>(got, 1)[0], want);
    });
}
