//! Matrix instructions against plain loops.

use crate::common::{Device, Params, Random};
use half::{bf16, f16};

/// Row and depth of 32-bit register `r` of a lane's A of 16 rows, `per` elements to a register:
/// the table of the PTX ISA.
fn a_at(lane: usize, r: usize, per: usize) -> (usize, usize) {
    (lane / 4 + [0, 8, 0, 8][r], [0, 0, 4, 4][r] * per + lane % 4 * per)
}

/// Puts a 16 × k and a k × 8 matrix into fragments: words of A (4 a lane) and of B (2 a lane).
fn fragments(a: &[u32], b: &[u32], k: usize, bits: u32) -> (Vec<u32>, Vec<u32>) {
    let per = (32 / bits) as usize;
    let (mut fa, mut fb) = (vec![0; 128], vec![0; 64]);
    for lane in 0..32 {
        for r in 0..4 {
            let (row, col) = a_at(lane, r, per);
            for e in 0..per {
                fa[lane * 4 + r] |= a[row * k + col + e] << (bits * e as u32 % 32);
            }
        }
        for r in 0..2 {
            for e in 0..per {
                let depth = r * 4 * per + lane % 4 * per + e;
                fb[lane * 2 + r] |= b[depth * 8 + lane / 4] << (bits * e as u32 % 32);
            }
        }
    }
    (fa, fb)
}

/// Elements of a lane's C, 16 × 8.
fn c_at(lane: usize, e: usize) -> usize {
    (lane / 4 + 8 * (e / 2)) * 8 + 2 * (lane % 4) + e % 2
}

fn check(kernel: &str, k: usize, bits: u32, make: impl Fn(f32) -> (u32, f64)) {
    for arch in ["80", "90"] {
        let d = Device::new(&format!("mma.{arch}"));
        let mut rnd = Random(31);
        let (a, av): (Vec<u32>, Vec<f64>) = (0..16 * k).map(|_| make(rnd.float())).unzip();
        let (b, bv): (Vec<u32>, Vec<f64>) = (0..k * 8).map(|_| make(rnd.float())).unzip();
        let c = rnd.floats(128);
        let (fa, fb) = fragments(&a, &b, k, bits);
        let mut fc = vec![0f32; 128];
        (0..128).for_each(|i| fc[i] = c[c_at(i / 4, i % 4)]);
        let dc = d.upload(&fc);
        let p = Params::default().arg(d.upload(&fa)).arg(d.upload(&fb)).arg(dc);
        let report = d.run(kernel, 1, 32, &p);
        let ops = report.counts.tensor_half_ops + report.counts.tensor_tf32_ops;
        assert_eq!(ops, 2 * 16 * 8 * k as u64);
        for (i, got) in d.download::<f32>(dc, 128).into_iter().enumerate() {
            let at = c_at(i / 4, i % 4);
            let (row, col) = (at / 8, at % 8);
            let sum: f64 = (0..k).map(|x| av[row * k + x] * bv[x * 8 + col]).sum();
            let want = sum + f64::from(c[at]);
            assert!(
                (f64::from(got) - want).abs() < 1e-6,
                "{kernel} {row},{col}: {got}, not {want}"
            );
        }
    }
}

#[test]
fn bf16_and_tf32() {
    check("mma_bf16", 16, 16, |v| (bf16::from_f32(v).to_bits().into(), bf16::from_f32(v).into()));
    check("mma_tf32", 8, 32, |v| {
        let bits = v.to_bits() & 0xffff_e000;
        (bits, f32::from_bits(bits).into())
    });
}

#[test]
fn integers() {
    let d = Device::new("mma.80");
    let mut rnd = Random(37);
    let a: Vec<i8> = (0..16 * 32).map(|_| rnd.next() as i8).collect();
    let b: Vec<u8> = (0..32 * 8).map(|_| rnd.next() as u8).collect();
    let words = |v: Vec<u8>| v.into_iter().map(u32::from).collect::<Vec<_>>();
    let (fa, fb) =
        fragments(&words(a.iter().map(|v| *v as u8).collect()), &words(b.clone()), 32, 8);
    let dc = d.upload(&(0..128).collect::<Vec<i32>>());
    d.run("mma_s8", 1, 32, &Params::default().arg(d.upload(&fa)).arg(d.upload(&fb)).arg(dc));
    for (i, got) in d.download::<i32>(dc, 128).into_iter().enumerate() {
        let at = c_at(i / 4, i % 4);
        let (row, col) = (at / 8, at % 8);
        let sum: i32 =
            (0..32).map(|x| i32::from(a[row * 32 + x]) * i32::from(b[x * 8 + col])).sum();
        assert_eq!(got, sum + i as i32);
    }
}

#[test]
fn doubles() {
    let d = Device::new("mma.80");
    let mut rnd = Random(41);
    let f = |rnd: &mut Random, n| rnd.floats(n).into_iter().map(f64::from).collect::<Vec<_>>();
    // A is 8 × 4 with one element a lane; B is 4 × 8, one a lane, by columns.
    let (a, b, c) = (f(&mut rnd, 32), f(&mut rnd, 32), f(&mut rnd, 64));
    let dc = d.upload(&c);
    d.run("mma_f64", 1, 32, &Params::default().arg(d.upload(&a)).arg(d.upload(&b)).arg(dc));
    for (i, got) in d.download::<f64>(dc, 64).into_iter().enumerate() {
        let (row, col) = (i / 8, 2 * (i / 2 % 4) + i % 2);
        let want = (0..4).fold(c[i], |s, k| a[row * 4 + k].mul_add(b[col * 4 + k], s));
        assert_eq!(got, want);
    }
}

#[test]
fn half_accumulators_and_transposed_loads() {
    for arch in ["75", "80", "90"] {
        let d = Device::new(&format!("mma.{arch}"));
        let mut rnd = Random(43);
        let h =
            |rnd: &mut Random, n| (0..n).map(|_| f16::from_f32(rnd.float())).collect::<Vec<_>>();
        let (a, b, c) = (h(&mut rnd, 128), h(&mut rnd, 64), h(&mut rnd, 128));
        let pack = |x: f16, y: f16| u32::from(x.to_bits()) | u32::from(y.to_bits()) << 16;
        let (mut fa, mut fb, mut fc) = (vec![0u32; 64], vec![0u32; 32], vec![0u32; 64]);
        for l in 0..32 {
            let (g, t) = (l / 4, l % 4);
            for r in 0..2 {
                let at = (g + 8 * r) * 8 + 2 * t;
                fa[l * 2 + r] = pack(a[at], a[at + 1]);
                fc[l * 2 + r] = pack(c[at], c[at + 1]);
            }
            fb[l] = pack(b[2 * t * 8 + g], b[(2 * t + 1) * 8 + g]);
        }
        let dc = d.upload(&fc);
        d.run("mma_f16", 1, 32, &Params::default().arg(d.upload(&fa)).arg(d.upload(&fb)).arg(dc));
        for (i, got) in d.download::<u16>(dc, 128).into_iter().enumerate() {
            let (l, e) = (i / 4, i % 4);
            let (row, col) = (l / 4 + 8 * (e / 2), 2 * (l % 4) + e % 2);
            let f = |v: f16| f64::from(v);
            let sum: f64 = (0..8).map(|k| f(a[row * 8 + k]) * f(b[k * 8 + col])).sum();
            let want = sum + f(c[row * 8 + col]);
            let got = f64::from(f16::from_bits(got));
            assert!((got - want).abs() <= want.abs() / 2048.0 + 1e-7, "{got}, not {want}");
        }

        let m: Vec<u16> = (0..256).collect();
        let words: Vec<u32> =
            m.chunks(2).map(|w| u32::from(w[0]) | u32::from(w[1]) << 16).collect();
        let out = d.alloc::<u32>(128);
        d.run("transposed", 1, 32, &Params::default().arg(d.upload(&words)).arg(out));
        for (i, got) in d.download::<u32>(out, 128).into_iter().enumerate() {
            let (n, l) = (i / 32, i % 32);
            let at = |r: usize| u32::from(m[n * 64 + r * 8 + l / 4]);
            assert_eq!(got, at(2 * (l % 4)) | at(2 * (l % 4) + 1) << 16);
        }
    }
}

#[test]
fn wmma() {
    for arch in ["75", "80", "90"] {
        let d = Device::new(&format!("mma.{arch}"));
        let mut rnd = Random(47);
        let h =
            |rnd: &mut Random, n| (0..n).map(|_| f16::from_f32(rnd.float())).collect::<Vec<_>>();
        let bits = |v: &[f16]| v.iter().map(|v| v.to_bits()).collect::<Vec<u16>>();
        // n = 48: A is 16 × 48, B 48 × 48 of which 16 columns are used, C 16 × 16 in rows of 48.
        let n = 48usize;
        let (a, b) = (h(&mut rnd, 16 * n), h(&mut rnd, n * n));
        let c = d.alloc::<f32>(16 * n);
        let p = Params::default().arg(d.upload(&bits(&a))).arg(d.upload(&bits(&b))).arg(c);
        d.run("wmma_k", 1, 32, &p.arg(n as i32));
        let got = d.download::<f32>(c, 16 * n);
        let f = |v: f16| f64::from(v);
        for (r, col) in (0..256).map(|i| (i / 16, i % 16)) {
            let want: f64 = (0..n).map(|k| f(a[r * n + k]) * f(b[k * n + col])).sum();
            let got = f64::from(got[r * n + col]);
            assert!((got - want).abs() < 1e-5, "{r},{col}: {got}, not {want}");
        }

        let (a, b, c) = (h(&mut rnd, 512), h(&mut rnd, 128), h(&mut rnd, 256));
        let byte = |rnd: &mut Random| (0..256).map(|_| rnd.next() as i8).collect::<Vec<_>>();
        let (p, q) = (byte(&mut rnd), byte(&mut rnd));
        let (dc, dr) = (d.upload(&bits(&c)), d.alloc::<i32>(256));
        let args = Params::default().arg(d.upload(&bits(&a))).arg(d.upload(&bits(&b))).arg(dc);
        d.run("wmma_mixed", 1, 32, &args.arg(d.upload(&p)).arg(d.upload(&q)).arg(dr));
        let got = d.download::<u16>(dc, 256);
        for (r, col) in (0..256).map(|i| (i / 8, i % 8)) {
            let sum: f64 = (0..16).map(|k| f(a[k * 32 + r]) * f(b[col * 16 + k])).sum();
            let want = 2.0 * (sum + f(c[r * 8 + col]));
            let got = f64::from(f16::from_bits(got[col * 32 + r]));
            assert!((got - want).abs() <= want.abs() / 1000.0 + 1e-6, "{got}, not {want}");
        }
        for (i, got) in d.download::<i32>(dr, 256).into_iter().enumerate() {
            let (r, c) = (i / 16, i % 16);
            let sum: i32 =
                (0..16).map(|k| i32::from(p[r * 16 + k]) * i32::from(q[c * 16 + k])).sum();
            assert_eq!(got, sum + 7);
        }
    }
}

/// `cp.async`, `ldmatrix` and `mma` together, as the compiler gives them from C++.
#[test]
fn asynchronous_copies_feed_a_product() {
    let d = Device::new("mma.80");
    let mut rnd = Random(53);
    let a: Vec<u16> = (0..1024).map(|_| f16::from_f32(rnd.float()).to_bits()).collect();
    let b: Vec<u16> = (0..128).map(|_| f16::from_f32(rnd.float()).to_bits()).collect();
    let words = |v: &[u16]| {
        v.chunks(2).map(|w| u32::from(w[0]) | u32::from(w[1]) << 16).collect::<Vec<_>>()
    };
    let c = d.alloc::<f32>(128);
    d.run(
        "mma_k",
        1,
        32,
        &Params::default().arg(d.upload(&words(&a))).arg(d.upload(&words(&b))).arg(c),
    );
    let f = |v: u16| f64::from(f16::from_bits(v));
    // The four 8 × 8 matrices are rows of 8 halves: lanes 0–7 the first, and so on; registers
    // 0 to 3 of the product's A are its quarters in the order of the ISA.
    let a_of = |row: usize, k: usize| a[((k / 8 * 2 + row / 8) * 8 + row % 8) * 8 + k % 8];
    let b_of = |k: usize, col: usize| b[(col * 4 + k % 8 / 2 + k / 8 * 32) * 2 + k % 2];
    for (i, got) in d.download::<f32>(c, 128).into_iter().enumerate() {
        let at = c_at(i / 4, i % 4);
        let (row, col) = (at / 8, at % 8);
        let want: f64 = (0..16).map(|k| f(a_of(row, k)) * f(b_of(k, col))).sum();
        assert!((f64::from(got) - want).abs() < 1e-5, "{row},{col}: {got}, not {want}");
    }
}
