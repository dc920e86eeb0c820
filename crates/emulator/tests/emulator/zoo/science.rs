//! Simulation, linear algebra and statistics.

use super::{args, close, close64, everywhere, go};
use crate::common::{Device, Random};

#[test]
fn bodies() {
    everywhere("science", |d| {
        let mut r = Random(71);
        for n in [301usize, 1, 128] {
            let mut body = r.floats(4 * n);
            body.iter_mut().skip(3).step_by(4).for_each(|m| *m = m.abs() / n as f32);
            let out = d.alloc::<f32>(4 * n);
            let p = args![d.upload(&body), out, n as i32, 0.01f32];
            go(d, "n_body", n.div_ceil(128), 128, 0, &p);
            let at = |i: usize, k: usize| f64::from(body[4 * i + k]);
            let mut want = vec![0.0; 4 * n];
            for i in 0..n {
                for j in (0..n).filter(|j| *j != i) {
                    let gap = [0, 1, 2].map(|k| at(j, k) - at(i, k));
                    let square = gap.iter().map(|g| g * g).sum::<f64>() + f64::from(0.01f32);
                    (0..3).for_each(|k| want[4 * i + k] += gap[k] * at(j, 3) * square.powf(-1.5));
                }
            }
            close(&d.download(out, 4 * n), &want, 1e-5);
        }
    });
}

fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(c[0]) * 0xd251_1f53;
        let b = u64::from(c[2]) * 0xcd9e_8d57;
        let high = |v: u64| (v >> 32) as u32;
        c = [high(b) ^ c[1] ^ k[0], b as u32, high(a) ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9e37_79b9), k[1].wrapping_add(0xbb67_ae85)];
    }
    c
}

#[test]
fn random_numbers() {
    // The known answer that the authors of the generator give.
    let zero = [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
    assert_eq!(philox([0; 4], [0; 2]), zero);
    everywhere("science", |d| {
        let (n, key) = (333usize, [0xdead_beef, 0x0123_4567]);
        let packed = u64::from(key[1]) << 32 | u64::from(key[0]);
        let out = d.alloc::<u32>(4 * n);
        go(d, "philox_fill", 4, 96, 0, &args![out, n as i32, packed]);
        let want = (0..n as u32).flat_map(|i| philox([i, i * 3, i ^ 0x55, !i], key));
        assert_eq!(d.download::<u32>(out, 4 * n), want.collect::<Vec<u32>>());

        let (blocks, threads, rounds) = (3, 64, 20);
        let inside = d.upload(&[0u64]);
        go(d, "monte_carlo", blocks, threads, 0, &args![inside, rounds, packed]);
        let mut want = 0;
        for i in 0..(blocks * threads) as u32 {
            for r in 0..rounds as u32 {
                let v = philox([i, r, 0, 0], key).map(|v| (v >> 8) as f32 / (1 << 24) as f32);
                let hit = |x: f32, y: f32| u64::from(x.mul_add(x, y * y) < 1.0);
                want += hit(v[0], v[1]) + hit(v[2], v[3]);
            }
        }
        assert_eq!(d.download::<u64>(inside, 1)[0], want);
        let quarter = want as f64 / f64::from(2 * rounds * (blocks * threads) as i32);
        assert!((4.0 * quarter - std::f64::consts::PI).abs() < 0.08);
    });
}

#[test]
fn factors_of_small_matrices() {
    everywhere("science", |d| {
        let mut r = Random(73);
        for (n, batch, threads) in [(13usize, 4usize, 64usize), (1, 1, 32), (20, 2, 96)] {
            let m: Vec<f64> = r.floats(batch * n * n).into_iter().map(f64::from).collect();
            let mut a = vec![0.0; batch * n * n];
            for (i, a) in a.iter_mut().enumerate() {
                let (b, row, col) = (i / n / n * n * n, i / n % n, i % n);
                *a = (0..n).map(|k| m[b + row * n + k] * m[b + col * n + k]).sum();
                *a += if row == col { 0.5 } else { 0.0 };
            }
            let p = d.upload(&a);
            go(d, "cholesky", batch, threads, n * n * 8, &args![p, n as i32]);
            let l = d.download::<f64>(p, batch * n * n);
            // The factor is the only lower triangle with a positive diagonal whose square is A.
            let mut square = vec![0.0; batch * n * n];
            for (i, s) in square.iter_mut().enumerate() {
                let (b, row, col) = (i / n / n * n * n, i / n % n, i % n);
                *s = (0..n).map(|k| l[b + row * n + k] * l[b + col * n + k]).sum();
                assert!(if row == col { l[i] > 0.0 } else { col < row || l[i] == 0.0 });
            }
            close64(&square, &a, 1e-13);
        }
    });
}

#[test]
fn linear_systems() {
    everywhere("science", |d| {
        let mut r = Random(79);
        for (n, batch) in [(19usize, 5usize), (32, 1), (1, 2)] {
            let mut a = r.floats(batch * n * n);
            // Large elements off the diagonal, so that rows must be exchanged.
            for i in 0..batch * n {
                a[i * n + (i % n * 7 + 3) % n] += 6.0;
            }
            let b = r.floats(batch * n);
            let x = d.alloc::<f32>(batch * n);
            let p = args![d.upload(&a), d.upload(&b), x, n as i32, batch as i32];
            go(d, "lu_solve", batch.div_ceil(2), 64, 0, &p);
            let x = d.download::<f32>(x, batch * n);
            let product: Vec<f32> = (0..batch * n)
                .map(|i| (0..n).map(|k| a[i * n + k] * x[i / n * n + k]).sum())
                .collect();
            let want: Vec<f64> = b.iter().map(|v| f64::from(*v)).collect();
            close(&product, &want, 2e-5);
        }
        for (n, blocks) in [(100usize, 3usize), (1, 1), (64, 2)] {
            let total = n * blocks;
            let real = |r: &mut Random| r.floats(total).into_iter().map(f64::from);
            let (low, up): (Vec<f64>, Vec<f64>) = (real(&mut r).collect(), real(&mut r).collect());
            let mid: Vec<f64> = real(&mut r).map(|v| v + 3.5).collect();
            let right: Vec<f64> = real(&mut r).collect();
            let x = d.alloc::<f64>(total);
            let p = args![d.upload(&low), d.upload(&mid), d.upload(&up), d.upload(&right), x];
            go(d, "tridiagonal", blocks, n, n * 32, &p.arg(n as i32));
            let mut want = vec![0.0; total];
            for b in (0..total).step_by(n) {
                // Forward and backward, one after the other.
                let (mut c, mut e) = (vec![0.0; n], vec![0.0; n]);
                for i in 0..n {
                    let (lc, le) = if i == 0 { (0.0, 0.0) } else { (c[i - 1], e[i - 1]) };
                    let l = if i == 0 { 0.0 } else { low[b + i] };
                    let scale = mid[b + i] - l * lc;
                    (c[i], e[i]) = (up[b + i] / scale, (right[b + i] - l * le) / scale);
                }
                for i in (0..n).rev() {
                    let after = if i + 1 < n { c[i] * want[b + i + 1] } else { 0.0 };
                    want[b + i] = e[i] - after;
                }
            }
            close64(&d.download(x, total), &want, 1e-13);
        }
    });
}

#[test]
fn sparse_products() {
    everywhere("science", |d| {
        let mut r = Random(83);
        for (rows, cols) in [(101usize, 77usize), (1, 1), (12, 300)] {
            let (mut start, mut col, mut v) = (vec![0i32], vec![], vec![]);
            for _ in 0..rows {
                for c in (0..cols).filter(|_| r.next().is_multiple_of(6)).collect::<Vec<_>>() {
                    col.push(c as i32);
                    v.push(f64::from(r.float()));
                }
                start.push(col.len() as i32);
            }
            (col.is_empty()).then(|| (col.push(0), v.push(2.0), start[rows] = 1));
            let x: Vec<f64> = r.floats(cols).into_iter().map(f64::from).collect();
            let dx = d.upload(&x);
            let of = |row: usize| start[row] as usize..start[row + 1] as usize;
            let want: Vec<f64> =
                (0..rows).map(|row| of(row).map(|i| v[i] * x[col[i] as usize]).sum()).collect();
            let y = d.alloc::<f64>(rows);
            let p = args![d.upload(&start), d.upload(&col), d.upload(&v), dx, y, rows as i32];
            go(d, "spmv_csr8", (rows * 8).div_ceil(96), 96, 0, &p);
            close64(&d.download(y, rows), &want, 1e-13);

            let width = (0..rows).map(|row| of(row).len()).max().unwrap();
            let (mut ec, mut ev) = (vec![-1i32; width * rows], vec![0f64; width * rows]);
            for row in 0..rows {
                for (k, i) in of(row).enumerate() {
                    (ec[k * rows + row], ev[k * rows + row]) = (col[i], v[i]);
                }
            }
            let y = d.alloc::<f64>(rows);
            let p = args![d.upload(&ec), d.upload(&ev), dx, y, rows as i32, width as i32];
            go(d, "spmv_ell", rows.div_ceil(64), 64, 0, &p);
            close64(&d.download(y, rows), &want, 1e-13);
        }
    });
}

/// The cheapest alignment by trying what the last step can be, with a table of what is known.
fn align(a: &[u8], b: &[u8], gap: i32, miss: i32, known: &mut [Option<i32>], width: usize) -> i32 {
    let at = a.len() * width + b.len();
    if let Some(v) = known[at] {
        return v;
    }
    let v = match (a, b) {
        ([], _) => b.len() as i32 * gap,
        (_, []) => a.len() as i32 * gap,
        ([a1 @ .., x], [b1 @ .., y]) => {
            let both = align(a1, b1, gap, miss, known, width) + if x == y { 0 } else { miss };
            let one = align(a1, b, gap, miss, known, width);
            both.min(one.min(align(a, b1, gap, miss, known, width)) + gap)
        }
    };
    known[at] = Some(v);
    v
}

fn alignments(d: &Device, gap: i32, miss: i32) {
    let mut r = Random(89);
    let (pairs, most) = (6usize, 50usize);
    let mut text = || (0..pairs * most).map(|_| b"acgt"[(r.next() % 4) as usize]).collect();
    let (a, b): (Vec<u8>, Vec<u8>) = (text(), text());
    let lengths = [0, 0, 50, 50, 49, 1, 0, 33, 20, 45, 37, 31];
    let score = d.alloc::<i32>(pairs);
    let p = args![d.upload(&a), d.upload(&b), d.upload(&lengths), score, most as i32, gap, miss];
    go(d, "align", pairs, 64, 3 * (most + 1) * 4, &p);
    for (i, got) in d.download::<i32>(score, pairs).into_iter().enumerate() {
        let part = |s, len: i32| &<[u8]>::split_at(s, i * most).1[..len as usize];
        let (x, y) = (part(&a, lengths[2 * i]), part(&b, lengths[2 * i + 1]));
        let mut known = vec![None; (most + 1) * (most + 1)];
        assert_eq!(got, align(x, y, gap, miss, &mut known, most + 1), "pair {i}");
    }
}

#[test]
fn strings() {
    everywhere("science", |d| {
        // Edit distance, and an alignment with other costs.
        alignments(d, 1, 1);
        alignments(d, 2, 3);
    });
}

#[test]
fn clusters() {
    everywhere("science", |d| {
        let mut r = Random(97);
        for (n, k, threads) in [(1001usize, 7usize, 128usize), (1, 1, 32), (200, 40, 256)] {
            let (point, centre) = (r.floats(2 * n), r.floats(2 * k));
            let (near, sum) = (d.alloc::<i32>(n), d.upload(&vec![0f64; 2 * k]));
            let size = d.upload(&vec![0u32; k]);
            let p = args![d.upload(&point), d.upload(&centre), near, sum, size, n as i32, k as i32];
            go(d, "assign", n.div_ceil(threads), threads, 20 * k, &p);
            let near = d.download::<i32>(near, n);
            let (mut sums, mut sizes) = (vec![0f64; 2 * k], vec![0u32; k]);
            for (i, c) in near.iter().map(|c| *c as usize).enumerate() {
                let gap = |c: usize| -> f64 {
                    let axis =
                        |a: usize| f64::from(point[2 * i + a]) - f64::from(centre[2 * c + a]);
                    axis(0).powi(2) + axis(1).powi(2)
                };
                // Two centres may be equally far but for a rounding.
                assert!((0..k).all(|o| gap(c) <= gap(o) + 1e-6), "point {i}");
                (0..2).for_each(|a| sums[2 * c + a] += f64::from(point[2 * i + a]));
                sizes[c] += 1;
            }
            // Multiples of 2⁻²³ add up exactly in any order.
            assert_eq!(d.download::<f64>(sum, 2 * k), sums);
            assert_eq!(d.download::<u32>(size, k), sizes);
        }
    });
}
