//! Our kernels, as NVRTC compiles them, against independent references on the CPU.

use crate::common::{ARCHS, Device, Params, Random};

fn close(got: &[f32], want: &[f32], tolerance: f32) {
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let scale = w.abs().max(1.0);
        assert!((g - w).abs() <= tolerance * scale, "element {i}: {g}, not {w}");
    }
}

fn each_arch(name: &str, f: impl Fn(&Device)) {
    for arch in ARCHS {
        f(&Device::new(&format!("{name}.{arch}")));
    }
}

#[test]
fn vectors() {
    each_arch("vadd", |d| {
        let mut r = Random(7);
        let n = 10_007;
        let (x, y) = (r.floats(n), r.floats(n));
        let (a, b, c) = (d.upload(&x), d.upload(&y), d.alloc::<f32>(n));
        let p = Params::default().arg(a).arg(b).arg(c).arg(n as i32);
        d.run("vector_add", 40, 256, &p);
        let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        assert_eq!(d.download::<f32>(c, n), want);
        let p = Params::default().arg(0.75f32).arg(a).arg(b).arg(n as i64);
        d.run("saxpy_gs", 3, 128, &p);
        let want: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 0.75f32.mul_add(*x, *y)).collect();
        assert_eq!(d.download::<f32>(b, n), want);
        let m = n / 4;
        let p = Params::default().arg(a).arg(b).arg(c).arg(m as i32);
        d.run("vadd4", 40, 64, &p);
        let sum: Vec<f32> = x.iter().zip(&want).map(|(x, y)| x + y).collect();
        assert_eq!(d.download::<f32>(c, 4 * m), sum[..4 * m]);
    });
}

#[test]
fn matrices() {
    each_arch("matmul", |d| {
        let mut rnd = Random(3);
        let (m, n, k) = (50, 37, 70);
        let (a, b) = (rnd.floats(m * k), rnd.floats(k * n));
        let (da, db, dc) = (d.upload(&a), d.upload(&b), d.alloc::<f32>(m * n));
        let p = Params::default().arg(da).arg(db).arg(dc);
        let p = p.arg(m as i32).arg(n as i32).arg(k as i32);
        d.try_run("matmul_tiled", [3, 4, 1], [16, 16, 1], 0, &p).unwrap();
        let mut want = vec![0f32; m * n];
        for i in 0..m {
            for j in 0..n {
                // Beyond K the tiles hold zeros, which change nothing.
                want[i * n + j] = (0..k).fold(0f32, |s, x| a[i * k + x].mul_add(b[x * n + j], s));
            }
        }
        assert_eq!(d.download::<f32>(dc, m * n), want);

        let s = 64;
        let (a, b) = (rnd.floats(s * s), rnd.floats(s * s));
        let (da, db, dc) = (d.upload(&a), d.upload(&b), d.alloc::<f32>(s * s));
        let p = Params::default().arg(da).arg(db).arg(dc).arg(s as i32);
        d.try_run("matmul_dyn", [8, 8, 1], [8, 8, 1], 2 * 64 * 4, &p).unwrap();
        let got = d.download::<f32>(dc, s * s);
        for (i, got) in got.iter().enumerate() {
            let (r, c) = (i / s, i % s);
            let want = (0..s).fold(0f32, |v, x| a[r * s + x].mul_add(b[x * s + c], v));
            assert_eq!(*got, want);
        }

        let (w, h) = (100, 75);
        let x = rnd.floats(w * h);
        let (i, o) = (d.upload(&x), d.alloc::<f32>(w * h));
        let p = Params::default().arg(o).arg(i).arg(w as i32).arg(h as i32);
        d.try_run("transpose", [4, 3, 1], [32, 8, 1], 0, &p).unwrap();
        let t = d.download::<f32>(o, w * h);
        assert!((0..w * h).all(|n| t[(n % w) * h + n / w] == x[n]));
    });
}

#[test]
fn reductions() {
    each_arch("reduce", |d| {
        let mut rnd = Random(11);
        let n = 100_000;
        // Small integers, so that the order of the additions does not matter.
        let x: Vec<f32> = (0..n).map(|_| (rnd.next() % 17) as f32).collect();
        let (a, o) = (d.upload(&x), d.upload(&[0f32]));
        d.run("reduce_sum", 16, 256, &Params::default().arg(a).arg(o).arg(n));
        assert_eq!(d.download::<f32>(o, 1)[0], x.iter().sum::<f32>());

        let x = rnd.floats(5000);
        let (a, o) = (d.upload(&x), d.upload(&[0i32]));
        d.run("argmax", 1, 32, &Params::default().arg(a).arg(o).arg(5000));
        let best = (0..5000).rev().max_by(|i, j| x[*i].total_cmp(&x[*j])).unwrap();
        assert_eq!(d.download::<i32>(o, 1)[0], best as i32);

        let x: Vec<i32> = (0..700).map(|_| (rnd.next() % 100) as i32 - 50).collect();
        let (a, o) = (d.upload(&x), d.alloc::<i32>(700));
        d.run("scan_block", 1, 1024, &Params::default().arg(a).arg(o).arg(700));
        let mut sum = 0;
        let want: Vec<i32> = x
            .iter()
            .map(|v| {
                sum += v;
                sum
            })
            .collect();
        assert_eq!(d.download::<i32>(o, 700), want);

        let x: Vec<u32> = (0..32).map(|_| (rnd.next() % 5) as u32).collect();
        let (a, o) = (d.upload(&x), d.upload(&[0u32; 4]));
        d.run("reduce_int_redux", 1, 32, &Params::default().arg(a).arg(o));
        let got = d.download::<u32>(o, 4);
        let m = (0..32).fold(0u32, |m, l| m | (x[l] & 1) << l);
        if d.module.function("reduce_int_redux").unwrap().target_sm() >= 80 {
            assert_eq!(got[0], x.iter().sum::<u32>());
        }
        let ffs = m.trailing_zeros() + 1;
        assert_eq!(got[1], m.count_ones() + ffs + m.leading_zeros() + m.reverse_bits());
        assert_eq!(got[2], u32::MAX);
        // Every lane stores the mask of its own value; the last one wins.
        let all: Vec<u32> =
            (0..32).map(|l| (0..32).fold(0, |m, o| m | u32::from(x[o] == x[l]) << o)).collect();
        assert_eq!(got[3], all[31]);
    });
}

#[test]
fn softmax_and_functions() {
    each_arch("softmax", |d| {
        let mut rnd = Random(5);
        let (rows, cols) = (7, 333);
        let x = rnd.floats(rows * cols);
        let (a, o) = (d.upload(&x), d.alloc::<f32>(rows * cols));
        let p = Params::default().arg(a).arg(o).arg(rows as i32).arg(cols as i32);
        d.run("softmax", rows as u32, 128, &p);
        let want: Vec<f32> = x
            .chunks(cols)
            .flat_map(|r| {
                let sum: f64 = r.iter().map(|v| f64::from(*v).exp()).sum();
                r.iter().map(move |v| (f64::from(*v).exp() / sum) as f32)
            })
            .collect();
        close(&d.download(o, rows * cols), &want, 1e-7);

        let n = 500;
        let x: Vec<f32> = (0..n).map(|_| rnd.float().abs() * 4.0 + 0.01).collect();
        let w: Vec<f64> = x.iter().map(|v| f64::from(*v) * 1.3).collect();
        let (a, o) = (d.upload(&x), d.alloc::<f32>(n));
        let (b, e) = (d.upload(&w), d.alloc::<f64>(n));
        let p = Params::default().arg(a).arg(o).arg(b).arg(e).arg(n as i32);
        d.run("math", 4, 128, &p);
        let erf = |x: f64| {
            let mut sum = 0.0;
            let mut term = x;
            for k in 0..200 {
                sum += term / f64::from(2 * k + 1);
                term *= -x * x / f64::from(k + 1);
            }
            sum * 2.0 / std::f64::consts::PI.sqrt()
        };
        let want: Vec<f32> = x
            .iter()
            .map(|v| {
                let v = f64::from(*v);
                (v.sin()
                    + v.cos()
                    + v.tanh()
                    + v.ln()
                    + v.powf(1.7)
                    + 1.0 / v.sqrt()
                    + v.sqrt()
                    + erf(v)
                    + v.abs()
                    + v.floor()
                    + v.round()
                    + v % 3.0
                    + v.exp2()
                    + v.ln_1p()
                    + 1.0 / v) as f32
            })
            .collect();
        close(&d.download(o, n), &want, 2e-6);
        let got = d.download::<f64>(e, n);
        for (g, w) in got.iter().zip(&w) {
            let want = w.exp() + w.ln() + w.sqrt() + w.sin() + w.powf(0.3) + w / 3.0;
            assert!((g - want).abs() < 1e-12 * want.abs().max(1.0), "{g}, not {want}");
        }
        d.run("gelu", 4, 128, &Params::default().arg(a).arg(o).arg(n as i32));
        let want: Vec<f32> = x
            .iter()
            .map(|v| {
                let v = f64::from(*v);
                (0.5 * v * (1.0 + (0.79788456 * (v + 0.044715 * v * v * v)).tanh())) as f32
            })
            .collect();
        close(&d.download(o, n), &want, 1e-6);
    });
}

#[test]
fn sparse_and_norms() {
    each_arch("spmv", |d| {
        let mut rnd = Random(9);
        let (rows, cols) = (300, 200);
        let (mut rp, mut ci, mut v) = (vec![0i32], Vec::new(), Vec::new());
        for _ in 0..rows {
            for _ in 0..rnd.next() % 70 {
                ci.push((rnd.next() % cols) as i32);
                v.push(rnd.float());
            }
            rp.push(ci.len() as i32);
        }
        let x = rnd.floats(cols as usize);
        let w: Vec<f64> = v.iter().map(|v| f64::from(*v)).collect();
        let z: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
        let (drp, dci) = (d.upload(&rp), d.upload(&ci));
        let p = Params::default().arg(rows).arg(drp).arg(dci);
        let y = d.alloc::<f32>(rows as usize);
        d.run("spmv_csr", 3, 128, &p.clone().arg(d.upload(&v)).arg(d.upload(&x)).arg(y));
        let dot = |r: usize| (rp[r] as usize..rp[r + 1] as usize).map(|j| w[j] * z[ci[j] as usize]);
        let want: Vec<f32> = (0..rows as usize).map(|r| dot(r).sum::<f64>() as f32).collect();
        close(&d.download(y, rows as usize), &want, 1e-5);
        let y = d.alloc::<f64>(rows as usize);
        d.run("spmv_vec", 75, 128, &p.arg(d.upload(&w)).arg(d.upload(&z)).arg(y));
        for (r, g) in d.download::<f64>(y, rows as usize).into_iter().enumerate() {
            assert!((g - dot(r).sum::<f64>()).abs() < 1e-12);
        }
    });
    each_arch("layernorm", |d| {
        let mut rnd = Random(13);
        let (rows, cols) = (5, 777);
        let (x, g, b) = (rnd.floats(rows * cols), rnd.floats(cols), rnd.floats(cols));
        let y = d.alloc::<f32>(rows * cols);
        let p = Params::default().arg(d.upload(&x)).arg(d.upload(&g)).arg(d.upload(&b)).arg(y);
        d.run("layernorm", rows as u32, 256, &p.arg(cols as i32).arg(1e-5f32));
        let want: Vec<f32> = x
            .chunks(cols)
            .flat_map(|r| {
                let n = cols as f64;
                let mean = r.iter().map(|v| f64::from(*v)).sum::<f64>() / n;
                let var = r.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / n - mean * mean;
                let (g, b) = (&g, &b);
                r.iter()
                    .enumerate()
                    .map(move |(i, v)| {
                        ((f64::from(*v) - mean) / (var + 1e-5).sqrt() * f64::from(g[i])
                            + f64::from(b[i])) as f32
                    })
                    .collect::<Vec<_>>()
            })
            .collect();
        close(&d.download(y, rows * cols), &want, 1e-5);
    });
}

#[test]
fn half_precision() {
    use half::{bf16, f16};
    each_arch("half", |d| {
        let mut rnd = Random(17);
        let n = 1000;
        let h = |rnd: &mut Random| f16::from_f32(rnd.float() * 3.0);
        let x: Vec<f16> = (0..2 * n).map(|_| h(&mut rnd)).collect();
        let y: Vec<f16> = (0..2 * n).map(|_| h(&mut rnd)).collect();
        let bits = |v: &[f16]| v.iter().map(|v| v.to_bits()).collect::<Vec<u16>>();
        let (dx, dy) = (d.upload(&bits(&x)), d.upload(&bits(&y)));
        let a = f16::from_f32(1.37);
        let p = Params::default().arg(a.to_bits()).arg(dx).arg(dy).arg(n as i32);
        d.run("haxpy", 8, 128, &p);
        let got = d.download::<u16>(dy, 2 * n);
        for i in 0..2 * n {
            let exact = f64::from(a) * f64::from(x[i]) + f64::from(y[i]);
            // These magnitudes need 33 bits, which f64 holds: one rounding.
            assert_eq!(got[i], f16::from_f32(exact as f32).to_bits(), "{i}");
        }

        let b: Vec<u16> = (0..n).map(|_| bf16::from_f32(rnd.float()).to_bits()).collect();
        let (f, o, q) = (d.alloc::<f32>(n), d.alloc::<u16>(n), d.alloc::<u16>(n));
        let p = Params::default().arg(dx).arg(d.upload(&b)).arg(f).arg(o).arg(q).arg(n as i32);
        d.run("hmix", 8, 128, &p);
        let (f, o, q) = (d.download::<f32>(f, n), d.download::<u16>(o, n), d.download::<u16>(q, n));
        for i in 0..n {
            let v = f32::from(x[i]) + bf16::from_bits(b[i]).to_f32();
            assert_eq!(f[i], v);
            assert_eq!(q[i], bf16::from_f32(v).to_bits());
            if f32::from(x[i]) > 0.0 {
                let want = f32::from(x[i]).exp();
                let got = f16::from_bits(o[i]).to_f32();
                assert!((got - want).abs() <= want * 1.1e-3, "exp: {got}, not {want}");
            } else {
                assert_eq!(o[i], f16::from_f32(v).to_bits());
            }
        }

        let c = |rnd: &mut Random| bf16::from_f32(rnd.float() * 2.0);
        let x: Vec<bf16> = (0..64).map(|_| c(&mut rnd)).collect();
        let y: Vec<bf16> = (0..64).map(|_| c(&mut rnd)).collect();
        let bits = |v: &[bf16]| v.iter().map(|v| v.to_bits()).collect::<Vec<u16>>();
        let (dx, dy) = (d.upload(&bits(&x)), d.upload(&bits(&y)));
        d.run("bf2", 1, 32, &Params::default().arg(dx).arg(dy));
        for (i, got) in d.download::<u16>(dy, 64).into_iter().enumerate() {
            let (a, b) = (x[i].to_f32(), y[i].to_f32());
            let (s, m) = (bf16::from_f32(a + b), bf16::from_f32(a * b));
            assert_eq!(got, if s.to_f32() > m.to_f32() { s } else { m }.to_bits());
        }
    });
}

#[test]
fn histograms_and_atomics() {
    each_arch("hist", |d| {
        let mut rnd = Random(19);
        let x: Vec<u8> = (0..50_000).map(|_| (rnd.next() % 200) as u8).collect();
        let h = d.upload(&[0u32; 256]);
        d.run("hist", 13, 200, &Params::default().arg(d.upload(&x)).arg(h).arg(50_000));
        let mut want = [0u32; 256];
        x.iter().for_each(|v| want[*v as usize] += 1);
        assert_eq!(d.download::<u32>(h, 256), want);

        let a = d.upload(&[3i32, 100, 0, 0, 0, 0, 0, 0, 0]);
        let (b, e, f) = (d.upload(&[5u64]), d.upload(&[0.5f64]), d.upload(&[1f32]));
        d.run("atomics", 2, 64, &Params::default().arg(a).arg(b).arg(e).arg(f));
        let got = d.download::<i32>(a, 9);
        assert_eq!(got[..6], [63, 0, 1, 5, -1, 0]);
        assert_eq!(got[6], 128 % 8);
        assert_eq!(got[8], 128);
        assert_eq!(d.download::<u64>(b, 1)[0], 133);
        assert_eq!(d.download::<f64>(e, 1)[0], 128.5);
        assert_eq!(d.download::<f32>(f, 1)[0], 257.0);
    });
}

#[test]
fn miscellaneous() {
    each_arch("misc", |d| {
        let mut rnd = Random(23);
        let n = 64;
        let (s, u): (Vec<i8>, Vec<u32>) =
            (0..n).map(|_| (rnd.next() as i8, rnd.next() as u32)).unzip();
        let ll: Vec<i64> = (0..n).map(|_| rnd.next() as i64).collect();
        let (o, h) = (d.alloc::<i32>(n), d.alloc::<i16>(n));
        let (ds, dl, du) = (d.upload(&s), d.upload(&ll), d.upload(&u));
        let (cc, bytes) = d.module.global("cc").unwrap();
        assert_eq!(bytes, 256);
        let c: Vec<f32> = (0..64).map(|i| i as f32 * 1.5).collect();
        d.memory.write(cc, &c.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>()).unwrap();
        let mut p = Params::default().arg(-7i32).arg(2.9f32);
        for v in [1.5f64, -2.5, 100.0] {
            p = p.arg(v);
        }
        d.run("misc", 1, n as u32, &p.arg(o).arg(ds).arg(h).arg(dl).arg(du));
        let (o, h) = (d.download::<i32>(o, n), d.download::<i16>(h, n));
        let (l, u2) = (d.download::<i64>(dl, n), d.download::<u32>(du, n));
        fn fib(n: i32) -> i32 {
            if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
        }
        for t in 0..n {
            let i = t as i32;
            let local = ((t * 7) & 15) as i32 * i;
            let mut v = fib(i & 7) + local + c[t & 63] as i32 - 7
                + 2
                + [1, -2, 100][t % 3]
                + i32::from(s[t]);
            assert_eq!(h[t], (v >> 2) as i16);
            match t & 7 {
                0 => v += 1,
                1 => v *= 3,
                2 => v ^= 5,
                3 => v -= 9,
                4 => v |= 6,
                5 => v &= 99,
                _ => {}
            }
            assert_eq!(o[t], v, "thread {t}");
            let high = ((i128::from(ll[t]) * 3) >> 64) as i64;
            assert_eq!(l[t], high + ll[t] / 7 + ll[t] % 11);
            let perm = u[t];
            let want = ((u64::from(u[t]) * 5) >> 32) as u32;
            let want = want.wrapping_add(u[t] / 7).wrapping_add(perm);
            // The funnel shift takes (1, u) left by 3; the clock adds a little.
            let want = want.wrapping_add(1 << 3 | u[t] >> 29);
            assert!(u2[t].wrapping_sub(want) < 100_000, "thread {t}");
        }
        assert_eq!(d.download::<i32>(d.module.global("counter").unwrap().0, 1)[0], n as i32);

        let (x, w) = (rnd.floats(300), rnd.floats(9));
        let y = d.alloc::<f32>(300);
        let p = Params::default().arg(d.upload(&x)).arg(d.upload(&w)).arg(y).arg(300).arg(9);
        d.run("conv1d", 3, 128, &p);
        let want: Vec<f32> = (0..300i32)
            .map(|i| {
                (0..9).fold(0f32, |s, j| {
                    let q = i + j - 4;
                    if (0..300).contains(&q) { x[q as usize].mul_add(w[j as usize], s) } else { s }
                })
            })
            .collect();
        assert_eq!(d.download::<f32>(y, 300), want);

        let (w, h) = (60, 40);
        let o = d.alloc::<u8>(w * h);
        let p = Params::default().arg(o).arg(w as i32).arg(h as i32);
        d.try_run("mandel", [8, 5, 1], [8, 8, 1], 0, &p).unwrap();
        let got = d.download::<u8>(o, w * h);
        let escape = |n: usize| {
            let (cr, ci) =
                (3.0 * (n % w) as f32 / w as f32 - 2.0, 2.0 * (n / w) as f32 / h as f32 - 1.0);
            let (mut a, mut b, mut i) = (0f32, 0f32, 0u8);
            while a * a + b * b < 4.0 && i < 255 {
                (a, b) = (a * a - b * b + cr, 2.0 * a * b + ci);
                i += 1;
            }
            i
        };
        // The compiler fuses multiplications with additions, which chaos shows at the border.
        let same = (0..w * h).filter(|n| got[*n] == escape(*n)).count();
        assert!(same * 100 >= w * h * 98, "{same} of {}", w * h);

        let n = 200;
        let a: Vec<i32> = (0..n).map(|_| (rnd.next() % 4) as i32).collect();
        let b: Vec<i32> = (0..n).map(|_| (rnd.next() % 4) as i32).collect();
        let m = d.upload(&[0i32]);
        let p = Params::default().arg(d.upload(&a)).arg(d.upload(&b)).arg(m).arg(n as i32);
        d.run("sw", 1, 256, &p);
        let got = d.download::<i32>(m, 1)[0];
        let mut best = 0;
        let mut row = vec![0i32; n + 1];
        for a in &a {
            let old = row.clone();
            for j in 0..n {
                let diagonal = old[j] + if *a == b[j] { 3 } else { -3 };
                row[j + 1] = diagonal.max(old[j + 1] - 2).max(row[j] - 2).max(0);
                best = best.max(row[j + 1]);
            }
        }
        assert_eq!(got, best);
    });
}
