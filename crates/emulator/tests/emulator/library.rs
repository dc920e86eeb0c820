//! Code of the toolkit's headers: CUB, cooperative groups, half and 8-bit floats; and integer
//! instructions against their definitions.

use crate::common::{ARCHS, Device, Params, Random};
use half::{bf16, f16};

#[test]
fn cub_and_cooperative_groups() {
    for arch in ARCHS {
        let d = Device::new(&format!("library.{arch}"));
        let mut rnd = Random(71);
        let x: Vec<i32> = (0..3 * 128).map(|_| (rnd.next() % 1000) as i32).collect();
        let (sum, scan) = (d.alloc::<i32>(3), d.alloc::<i32>(384));
        let sorted = d.alloc::<u32>(3 * 512);
        let p = Params::default().arg(d.upload(&x)).arg(sum).arg(scan).arg(sorted);
        d.run("cub_block", 3, 128, &p);
        let (sum, scan) = (d.download::<i32>(sum, 3), d.download::<i32>(scan, 384));
        let sorted = d.download::<u32>(sorted, 3 * 512);
        for (b, x) in x.chunks(128).enumerate() {
            assert_eq!(sum[b], x.iter().sum::<i32>());
            let mut before = 0;
            for (t, v) in x.iter().enumerate() {
                assert_eq!(scan[b * 128 + t], before);
                before += v;
            }
            let key =
                |v: &i32, i: u32| (*v as u32).wrapping_mul(2_654_435_761u32.wrapping_add(97 * i));
            let mut keys: Vec<u32> =
                x.iter().flat_map(|v| (0..4).map(move |i| key(v, i))).collect();
            keys.sort_unstable();
            assert_eq!(sorted[b * 512..(b + 1) * 512], keys);
        }
        let mut d = d;
        d.cooperative = true;
        let (tiles, total) = (d.alloc::<i32>(48), d.upload(&[0i32]));
        let steps = d.upload(&[0i32]);
        d.run(
            "groups",
            3,
            128,
            &Params::default().arg(d.upload(&x)).arg(tiles).arg(total).arg(steps),
        );
        let want: Vec<i32> = x.chunks(8).map(|c| c.iter().sum()).collect();
        assert_eq!(d.download::<i32>(tiles, 48), want);
        let odd = x.iter().filter(|v| **v & 1 == 1).count() as i32;
        assert_eq!(d.download::<i32>(total, 1)[0], odd);
    }
}

#[test]
fn conversions() {
    for arch in ["80", "90"] {
        let d = Device::new(&format!("library.{arch}"));
        let mut rnd = Random(73);
        let x: Vec<f32> = (0..256).map(|_| rnd.float() * 8.0).collect();
        let (e4, e5) = (d.alloc::<u8>(256), d.alloc::<u8>(256));
        let (back, h, b) = (d.alloc::<f32>(256), d.alloc::<u16>(256), d.alloc::<u16>(256));
        let r = d.alloc::<i32>(256);
        let p = Params::default().arg(d.upload(&x)).arg(e4).arg(e5).arg(back).arg(h).arg(b).arg(r);
        d.run("conversions", 1, 256, &p);
        let (e4, e5) = (d.download::<u8>(e4, 256), d.download::<u8>(e5, 256));
        let (back, h) = (d.download::<f32>(back, 256), d.download::<u16>(h, 256));
        let (b, r) = (d.download::<u16>(b, 256), d.download::<i32>(r, 256));
        for (i, x) in x.iter().enumerate() {
            let p = float8::F8E4M3::from_f32(*x);
            let q = float8::F8E5M2::from_f32(*x);
            assert_eq!((e4[i], e5[i]), (p.to_bits(), q.to_bits()), "{x}");
            assert_eq!(back[i], p.to_f32() + q.to_f32());
            // Toward zero: the exponent rebiased, the low bits cut off.
            let cut = f16::from_bits((x.abs().to_bits().wrapping_sub(112 << 23) >> 13) as u16);
            let v = if x.abs() < 6.2e-5 { f16::from_f32(x.abs()) } else { cut };
            let v = if *x < 0.0 { -v } else { v };
            let f = v.to_f64();
            let want = f.sin() + f.abs().sqrt() / f + f / 3.0;
            let got = f16::from_bits(h[i]).to_f64();
            assert!((got - want).abs() < 4e-3 * want.abs().max(1.0), "{x}: {got}, not {want}");
            let (bx, down) = (bf16::from_f32(*x), bf16::from_bits((x.to_bits() >> 16) as u16));
            let down = if *x < 0.0 && down.to_f32() != *x {
                bf16::from_bits(down.to_bits() + 1)
            } else {
                down
            };
            let want = bf16::from_f64(bx.to_f64() * 1.5 + down.to_f64());
            assert_eq!(b[i], want.to_bits(), "{x}");
            let int = f.floor() as i32
                + f.ceil() as i32 * 3
                + x.round_ties_even() as i32
                + (f64::from(x * 1.5)).trunc() as i32
                + f.abs().round_ties_even() as i32;
            assert_eq!(r[i], int, "{x}");
        }
    }
}

fn words(rnd: &mut Random, n: usize) -> Vec<u32> {
    let special = [0, 1, u32::MAX, 1 << 31, i32::MAX as u32, 0x0101_0101, 31, 32];
    (0..n)
        .map(|i| if i % 5 == 0 { special[(rnd.next() % 8) as usize] } else { rnd.next() as u32 })
        .collect()
}

/// Bit `i` of a field's source, with the sign beyond.
fn field(a: u64, pos: u32, len: u32, bits: u32, signed: bool) -> u64 {
    let msb = bits - 1;
    let sign = if !signed || len == 0 { 0 } else { a >> (pos + len - 1).min(msb) & 1 };
    (0..bits).fold(0, |d, i| {
        let bit = if i < len && pos + i <= msb { a >> (pos + i) & 1 } else { sign };
        d | bit << i
    })
}

fn insert(a: u64, b: u64, pos: u32, len: u32, bits: u32) -> u64 {
    (0..len)
        .filter(|i| pos + i < bits)
        .fold(b, |f, i| f & !(1 << (pos + i)) | (a >> i & 1) << (pos + i))
}

#[test]
fn bits() {
    let d = Device::new("integer.80");
    let mut rnd = Random(79);
    let n = 2000;
    let (x, y) = (words(&mut rnd, n), words(&mut rnd, n));
    let out = d.alloc::<u32>(n * 24);
    let p = Params::default().arg(d.upload(&x)).arg(d.upload(&y)).arg(out).arg(n as i32);
    d.run("bits", 16, 128, &p);
    let got = d.download::<u32>(out, n * 24);
    for t in 0..n {
        let (a, b) = (x[t], y[t]);
        let (p, l) = (b & 63, b >> 8 & 63);
        let (sa, sb) = (a as i32, b as i32);
        let both = u64::from(b) << 32 | u64::from(a);
        let byte = |v: u32, i: u32| (v >> (8 * i)) as u8;
        let sel = a ^ b;
        let prmt = (0..4).fold(0, |r, i| {
            let s = sel >> (4 * i) & 15;
            let v = (both >> (8 * (s & 7))) as u8;
            let v = if s > 7 { if v > 127 { 255 } else { 0 } } else { v };
            r | u32::from(v) << (8 * i)
        });
        let c = a.wrapping_add(b);
        let s24 = |v: u32| i64::from(((v << 8) as i32) >> 8);
        let u24 = |v: u32| u64::from(v & 0xff_ffff);
        let dp4 = (0..4)
            .fold(5i32, |s, i| s.wrapping_add(i32::from(byte(a, i) as i8) * i32::from(byte(b, i))));
        let dp2 = (0..2).fold(5i32, |s, i| {
            s.wrapping_add(i32::from((a >> (16 * i)) as u16) * i32::from(byte(b, i + 2) as i8))
        });
        let fns = {
            let (base, off) = (b & 31, (b >> 8 & 7) as i32 - 3);
            let set: Vec<u32> = (0..32).filter(|i| a >> i & 1 == 1).collect();
            let found = match off {
                0 => set.iter().find(|i| **i == base),
                o if o > 0 => set.iter().filter(|i| **i >= base).nth(o as usize - 1),
                o => set.iter().rev().filter(|i| **i <= base).nth(-o as usize - 1),
            };
            found.copied().unwrap_or(u32::MAX)
        };
        let (pos, width) = ((a & 63).min(32), (b & 63).min(32));
        let bmsk = (0..32).filter(|i| *i >= pos && *i < pos + width).fold(0u32, |m, i| m | 1 << i);
        let ext = {
            let w = b & 31;
            if w == 0 { 0 } else { field(a.into(), 0, w, 32, true) as u32 }
        };
        let find = {
            let v = a >> (b & 31);
            let m = if (v as i32) < 0 { !v } else { v };
            if m == 0 { u32::MAX } else { 31 - m.leading_zeros() }
        };
        let want = [
            field(a.into(), p, l, 32, false) as u32,
            field(a.into(), p, l, 32, true) as u32,
            insert(a.into(), (!a).into(), p, l, 32) as u32,
            prmt,
            (0..32).fold(0, |r, i| {
                r | (0x1eu32 >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i
            }),
            (both >> (a & 63).min(32)) as u32,
            ((both << (a & 31)) >> 32) as u32,
            sa.abs_diff(sb).wrapping_add(7),
            (s24(a) * s24(b)) as u32,
            ((u24(a) * u24(b)) >> 16) as u32 + 1,
            dp4 as u32,
            dp2 as u32,
            fns,
            bmsk,
            ext,
            find,
            sa.saturating_add(sb) as u32,
            sa.saturating_sub(sb) as u32,
            (i64::from(sa) >> p) as u32,
            if p > 31 { 0 } else { a << p },
            if (a.wrapping_sub(b) as i32) >= 0 { a } else { b },
            if sa < sb { u32::MAX } else { 0 },
            (((i64::from(sa) * i64::from(sb)) >> 32) as u32).wrapping_add(9),
            if a > b { 1 } else { 2 },
        ];
        for (i, want) in want.into_iter().enumerate() {
            assert_eq!(got[t * 24 + i], want, "operation {i} of {a:#x}, {b:#x}");
        }
    }
}

#[test]
fn wide_and_narrow() {
    let d = Device::new("integer.80");
    let mut rnd = Random(83);
    let n = 2000;
    let long = |rnd: &mut Random| -> Vec<u64> {
        let (a, b) = (words(rnd, n), words(rnd, n));
        a.iter().zip(b).map(|(a, b)| u64::from(*a) << 32 | u64::from(b)).collect()
    };
    let (x, y) = (long(&mut rnd), long(&mut rnd));
    let out = d.alloc::<u64>(n * 12);
    let p = Params::default().arg(d.upload(&x)).arg(d.upload(&y)).arg(out).arg(n as i32);
    d.run("wide", 16, 128, &p);
    let got = d.download::<u64>(out, n * 12);
    for t in 0..n {
        let (a, b) = (x[t], y[t]);
        let (p, l) = (b as u32 & 127, (b >> 8) as u32 & 127);
        let (sa, sb) = (a as i64, b as i64);
        let ffs = if b == 0 { 0 } else { b.trailing_zeros() + 1 };
        let bits = a.reverse_bits()
            ^ u64::from(b.count_ones())
            ^ u64::from(a.leading_zeros())
            ^ u64::from(ffs);
        let sum = u128::from(a) + u128::from(b);
        let mad = u128::from(a as u32) * u128::from(b as u32)
            + u128::from(a >> 32)
            + (u128::from(b >> 32) << 32);
        let want = [
            ((u128::from(a) * u128::from(b)) >> 64) as u64,
            ((i128::from(sa) * i128::from(sb)) >> 64) as u64,
            a.checked_div(b).unwrap_or(0),
            if b == 0 { 0 } else { sa.wrapping_rem(sb) as u64 },
            bits,
            field(a, p, l, 64, true),
            insert(a, !a, p, l, 64),
            sum as u64 ^ ((sum >> 64) as u64) << 60,
            a.wrapping_sub(b),
            mad as u64,
            (sa >> if p > 63 { 63 } else { p }) as u64,
            if p > 63 { 0 } else { a >> p },
        ];
        for (i, want) in want.into_iter().enumerate().filter(|(i, _)| *i != 10) {
            assert_eq!(got[t * 12 + i], want, "operation {i} of {a:#x}, {b:#x}");
        }
    }

    let short = |rnd: &mut Random| {
        (0..n).map(|_| rnd.next() as i16 >> (rnd.next() % 12)).collect::<Vec<_>>()
    };
    let (x, y) = (short(&mut rnd), short(&mut rnd));
    let out = d.alloc::<i32>(n * 10);
    let p = Params::default().arg(d.upload(&x)).arg(d.upload(&y)).arg(out).arg(n as i32);
    d.run("narrow", 16, 128, &p);
    let got = d.download::<i32>(out, n * 10);
    for t in 0..n {
        let (a, b) = (x[t], y[t]);
        let (wa, wb) = (i32::from(a), i32::from(b));
        let u = |v: i16| i32::from(v as u16);
        let want = [
            u(((wa * wb) >> 16) as i16),
            u((wa >> (wb & 31)) as i16),
            u(a.min(b)),
            u(a).max(u(b)),
            u(a.wrapping_mul(b).wrapping_add(a)),
            u(a.wrapping_neg()),
            i32::from(a < b),
            i32::from(u(a) < u(b)),
            wa * wb + t as i32,
            i32::from(a as i8) / if wb == 0 { 1 } else { wb },
        ];
        for (i, want) in want.into_iter().enumerate() {
            assert_eq!(got[t * 10 + i], want, "operation {i} of {a}, {b}");
        }
    }
}

#[test]
fn exchanges() {
    for arch in ARCHS {
        let d = Device::new(&format!("integer.{arch}"));
        let mut rnd = Random(89);
        let x: Vec<i32> = (0..32).map(|_| (rnd.next() % 100) as i32).collect();
        let rows = 6 * 9 * 4 + 3;
        let out = d.alloc::<i32>(rows * 32);
        d.run("exchange", 1, 32, &Params::default().arg(d.upload(&x)).arg(out));
        let got = d.download::<i32>(out, rows * 32);
        for l in 0..32usize {
            let mut at = 0;
            let mut next = |want: usize, what: &str| {
                assert_eq!(got[at * 32 + l], x[want], "{what} in lane {l}");
                at += 1;
            };
            for w in [1, 2, 4, 8, 16, 32usize] {
                let base = l / w * w;
                for s in 0..9 {
                    let up = l.wrapping_sub(s);
                    next(if up >= base && up < 32 { up } else { l }, "up");
                    next(if l + s < base + w { l + s } else { l }, "down");
                    // A partner in a later part of the warp is out of reach.
                    next(if (l ^ s) < base + w { l ^ s } else { l }, "xor");
                    next(base + (s + l) % w, "idx");
                }
            }
            let same = (0..32).fold(0, |m, o| m | u32::from(x[o] % 5 == x[l] % 5) << o);
            assert_eq!(got[at * 32 + l] as u32, same);
            assert_eq!(got[(at + 1) * 32 + l], 0);
            assert_eq!(got[(at + 2) * 32 + l], if l % 3 == 0 { x[6] } else { x[7] });
        }
    }
}
