//! What C++ compiles to: calls, tables, stacks, unions.

use half::f16;

use super::{args, everywhere, go};
use crate::common::Random;

#[test]
fn virtual_functions() {
    everywhere("language", |d| {
        for (n, blocks) in [(100usize, 2), (1, 1)] {
            let (area, corners) = (d.alloc::<f32>(n), d.alloc::<i32>(n));
            go(d, "shapes", blocks, 64, 0, &args![area, corners, n as i32]);
            let want = (0..n).map(|i| match (i % 3, i as f32) {
                (0, r) => (3.0 * r * r, 0),
                (1, w) => (2.0 * w, 4),
                (_, w) => (0.25 * w * w, 44 + i as i32),
            });
            let (areas, all): (Vec<f32>, Vec<i32>) = want.unzip();
            assert_eq!(d.download::<f32>(area, n), areas);
            assert_eq!(d.download::<i32>(corners, n), all);
        }
    });
}

#[test]
fn jump_tables() {
    everywhere("language", |d| {
        // The sum of 1 … i + 1; the common divisor of 6 i + 12 and 90; a hash; and a loop without
        // end, or an unknown instruction.
        let mut code = vec![];
        let mut start = vec![];
        let sum = [6, 1, 1, 2, 1, 0, 10, 2, 7, 1, 1, 3, 7, 10, 8, 6, 0];
        let divisor = [6, 1, 6, 4, 1, 12, 2, 1, 90, 7, 10, 11, 5, 8, 9, 12, 0];
        let hash = [6, 1, 31, 4, 9, 1, 31, 4, 9, 1, 31, 4, 9, 0];
        let endless = [6, 1, 3, 11, 8, 7, 77, 1, 1, 8, 7];
        for program in [&sum[..], &divisor, &hash, &endless] {
            let base = code.len() as i32;
            start.push(base);
            let mut at = 0;
            while at < program.len() {
                code.push(program[at]);
                if matches!(program[at], 1 | 8) {
                    at += 1;
                    code.push(program[at] + if program[at - 1] == 8 { base } else { 0 });
                }
                at += 1;
            }
        }
        let n = 101usize;
        let out = d.alloc::<i32>(n);
        let p = args![d.upload(&code), d.upload(&start), out, n as i32, 1500];
        go(d, "interpreter", 2, 64, 0, &p);
        for (i, got) in d.download::<i32>(out, n).into_iter().enumerate() {
            let v = i as i32;
            let (a, b) = (6 * v + 12, 90);
            let want = match i % 4 {
                0 => (v + 1) * (v + 2) / 2,
                1 => (1..=90).rev().find(|g| a % g == 0 && b % g == 0).unwrap(),
                2 => (0..3).fold(v, |h, _| (h * 31) ^ ((h * 31) >> 3)),
                _ if v % 3 == 0 => -77,
                _ => i32::MAX,
            };
            assert_eq!(got, want, "program {}, input {i}", i % 4);
        }
    });
}

#[test]
fn recursion() {
    everywhere("language", |d| {
        let mut r = Random(229);
        let n = 45usize;
        let mut x: Vec<i16> = (0..40 * n).map(|_| r.next() as i16 >> (r.next() % 13)).collect();
        let out = d.alloc::<i16>(40 * n);
        go(d, "sort_private", 2, 32, 0, &args![d.upload(&x), out, n as i32]);
        x.chunks_mut(40).for_each(<[i16]>::sort_unstable);
        assert_eq!(d.download::<i16>(out, 40 * n), x);
        for (n, want) in [(1, 1), (5, 10), (6, 4), (7, 40)] {
            let count = d.upload(&[0i32]);
            go(d, "queens", 1, 32, 0, &args![count, n]);
            assert_eq!(d.download::<i32>(count, 1)[0], want, "{n} queens");
        }
    });
}

#[test]
fn functions_by_number() {
    everywhere("language", |d| {
        let mut r = Random(233);
        let n = 97usize;
        let x: Vec<f64> = r.floats(n).into_iter().map(f64::from).collect();
        let which: Vec<i32> = (0..n).map(|_| r.next() as i32).collect();
        let out = d.alloc::<f64>(n);
        go(d, "dispatch", 4, 32, 0, &args![d.upload(&x), d.upload(&which), out, n as i32]);
        let table: [fn(f64, f64) -> f64; 4] =
            [|a, b| a + b, |a, b| a - b, |a, b| a / b, |a, b| if a > b { a } else { b }];
        for (i, got) in d.download::<f64>(out, n).into_iter().enumerate() {
            let first = x[..4].iter().fold(x[i], |a, b| table[which[i] as usize & 3](a, *b));
            let bias = i as f64 * 0.5;
            assert_eq!(got, first + x[..3].iter().fold(0.0, |a, b| a * 2.0 + b + bias));
        }
    });
}

#[test]
fn values_and_variables() {
    everywhere("language", |d| {
        let n = 70usize;
        let out = d.alloc::<u8>(32 * n);
        let mut p = args![b'x'].arg(1i16).arg(-2i16).arg(300i16).arg(4i16).arg(-5i16);
        p = p.arg(1.5f32).arg(0.25f64).arg(21u32 | 1500 << 5 | 5 << 16).arg(1u8);
        p = p.arg(7f32).arg(-8f32).arg(9f32);
        p.0.resize(48, 0);
        go(d, "by_value", 3, 32, 0, &p.arg(out).arg(n as i32));
        for (i, got) in d.download::<u8>(out, 32 * n).chunks(32).enumerate() {
            // The last of three bits, 101, is a sign: −3.
            let sum = 1 - 2 + 300 + 4 - 5 + i as i64 + 21 * 1500 - 3;
            assert_eq!(got[..8], sum.to_le_bytes());
            assert_eq!(got[8], b'x');
            let f: Vec<f32> =
                got[16..].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
            assert_eq!(f, [7.0, -2.0, 9.0, -1.5]);
        }
        let (out, most) = (d.alloc::<f32>(40), d.upload(&[0u32]));
        for (round, from) in [(1, 1), (2, 0), (3, 1)] {
            go(d, "variables", 1, 40, 0, &args![out, most]);
            let of = |i: usize| [2.0, 3.0, 5.0, 7.0, 11.0, 13.0][from + i % 5] * 2.5;
            assert_eq!(d.download::<f32>(out, 40), (0..40).map(of).collect::<Vec<f32>>());
            assert_eq!(d.download::<u32>(most, 1)[0], 99 + 40 * round);
        }
    });
}

#[test]
fn atomics() {
    everywhere("language", |d| {
        for (n, blocks) in [(700usize, 6usize), (1, 1)] {
            let wrap = d.upload(&[0u32, 0, 0]);
            let (narrow, sums) = (d.upload(&[7u16, 60_000, 9]), d.upload(&[0f64, 0.0]));
            let (chain, least) = (d.upload(&[0i32, 0]), d.upload(&[1e30f32]));
            let (half, masks) = (d.upload(&[0u16, 5]), d.upload(&[0u64, 0, u64::MAX]));
            let p = args![wrap, narrow, sums, chain, least, half, masks, n as i32];
            go(d, "atomics", blocks, 128, 0, &p);
            let own = |b: usize| n.saturating_sub(b * 128).min(128);
            let ring: usize = (0..blocks).map(|b| own(b) % 7).sum();
            let down = (51 - n % 51) as u32 % 51;
            assert_eq!(d.download::<u32>(wrap, 3), [n as u32 % 100, down, ring as u32]);
            let third = 60_000u16.wrapping_add(3 * n as u16);
            assert_eq!(d.download::<u16>(narrow, 3), [7, third, 9]);
            assert_eq!(d.download::<f64>(sums, 2), [0.25 * n as f64, 0.5 * n as f64]);
            // All that was ever there, once each.
            assert_eq!(
                d.download::<i32>(chain, 2).iter().sum::<i32>(),
                (1..=n as i32).sum::<i32>()
            );
            assert_eq!(d.download::<f32>(least, 1), [0.5]);
            assert_eq!(d.download::<u16>(half, 2), [f16::from_f32(n as f32).to_bits(), 5]);
            let mut want = [0u64, 0, u64::MAX];
            for i in 0..n {
                want[0] ^= 1 << (i % 64);
                want[1] |= 1 << (i * 7 % 64);
                want[2] &= !(1 << (i % 13));
            }
            assert_eq!(d.download::<u64>(masks, 3), want);
        }
    });
}

#[test]
fn uneven_loops() {
    everywhere("language", |d| {
        let mut from: Vec<u64> = (1..=90).collect();
        from.extend([837_799, 63_728_127, 9_780_657_630]);
        let n = from.len();
        let steps = d.alloc::<i32>(n);
        go(d, "collatz", 3, 32, 0, &args![d.upload(&from), steps, n as i32]);
        let got = d.download::<i32>(steps, n);
        for (from, got) in from.into_iter().zip(&got) {
            let next = |v: &u64| Some(if v % 2 == 1 { 3 * v + 1 } else { v / 2 });
            let path = std::iter::successors(Some(from), next);
            assert_eq!(*got as usize, path.take_while(|v| *v != 1).count(), "{from}");
        }
        assert_eq!(got[n - 1], 1132);
    });
}

#[test]
fn messages() {
    everywhere("language", |d| {
        go(d, "report", 1, 32, 0, &args![d.upload(&[0.5f32, -0.25, 0.0, 1e-9, 0.0]), 4]);
        let text = String::from_utf8(d.printed.lock().unwrap().clone()).unwrap();
        let want = "0: 0.5 plus 0  50.0% a 0\n1: -0.25 minus 0x11 -25.0% b 1099511627776\n\
            2: 0 plus 0x22   0.0% c 2199023255552\n3: 1e-09 plus 0x33   0.0% d 3298534883328\n";
        assert_eq!(text, want);
    });
}
