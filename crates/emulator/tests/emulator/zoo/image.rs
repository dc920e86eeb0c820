//! Grids of pixels and cells.

use super::{args, close, everywhere, go};
use crate::common::Random;

#[test]
fn convolution() {
    everywhere("image", |d| {
        let mut r = Random(37);
        let weights = r.floats(49);
        let bytes: Vec<u8> = weights.iter().flat_map(|v| v.to_le_bytes()).collect();
        d.memory.write(d.module.global("weights").unwrap().0, &bytes).unwrap();
        for (w, h) in [(50usize, 29usize), (16, 8), (1, 3)] {
            let x = r.floats(w * h);
            let out = d.alloc::<f32>(w * h);
            let p = args![d.upload(&x), out, w as i32, h as i32];
            go(d, "convolve", (w.div_ceil(16), h.div_ceil(8)), (16, 8), 0, &p);
            let at = |y: isize, x0: isize| {
                let y = y.clamp(0, h as isize - 1) as usize;
                f64::from(x[y * w + x0.clamp(0, w as isize - 1) as usize])
            };
            let want: Vec<f64> = (0..(w * h) as isize)
                .map(|i| {
                    let (y, x) = (i / w as isize, i % w as isize);
                    let term = |k: isize| {
                        f64::from(weights[k as usize]) * at(y + k / 7 - 3, x + k % 7 - 3)
                    };
                    (0..49).map(term).sum()
                })
                .collect();
            // 49 products of at most 1, each rounded to 6e-8.
            close(&d.download(out, w * h), &want, 3e-6);
        }
    });
}

#[test]
fn transposes() {
    everywhere("image", |d| {
        let mut r = Random(41);
        for (rows, cols) in [(70usize, 45usize), (32, 32), (1, 33), (65, 1)] {
            let x = r.floats(rows * cols);
            let a = d.upload(&x);
            let grid = (cols.div_ceil(32), rows.div_ceil(32));
            for (name, block) in [
                ("transpose_naive", (32, 32)),
                ("transpose_padded", (32, 8)),
                ("transpose_swizzled", (32, 4)),
            ] {
                let o = d.alloc::<f32>(rows * cols);
                go(d, name, grid, block, 0, &args![a, o, rows as i32, cols as i32]);
                let got = d.download::<f32>(o, rows * cols);
                assert!(
                    (0..rows * cols).all(|i| got[i % cols * rows + i / cols] == x[i]),
                    "{name}"
                );
            }
        }
    });
}

#[test]
fn life() {
    everywhere("image", |d| {
        let mut r = Random(43);
        for (w, h) in [(37usize, 21usize), (8, 8)] {
            let mut cells: Vec<u8> =
                (0..w * h).map(|_| u8::from(r.next().is_multiple_of(3))).collect();
            let (mut a, mut b) = (d.upload(&cells), d.alloc::<u8>(w * h));
            for _ in 0..5 {
                let grid = (w.div_ceil(16), h.div_ceil(6));
                go(d, "life", grid, (16, 6), 0, &args![a, b, w as i32, h as i32]);
                std::mem::swap(&mut a, &mut b);
                // Every living cell counts at its neighbours.
                let mut near = vec![0; w * h];
                for i in (0..w * h).filter(|i| cells[*i] == 1) {
                    for k in (0..9).filter(|k| *k != 4) {
                        near[(i / w + h + k / 3 - 1) % h * w + (i % w + w + k % 3 - 1) % w] += 1;
                    }
                }
                let lives = |i: usize| u8::from(near[i] + cells[i] == 3 || near[i] == 3);
                cells = (0..w * h).map(lives).collect();
            }
            assert_eq!(d.download::<u8>(a, w * h), cells);
        }
    });
}

#[test]
fn medians_and_scaling() {
    everywhere("image", |d| {
        let mut r = Random(47);
        let (w, h) = (41usize, 23usize);
        let x: Vec<u8> = (0..w * h).map(|_| r.next() as u8).collect();
        let out = d.alloc::<u8>(w * h);
        let p = args![d.upload(&x), out, w as i32, h as i32];
        go(d, "median", (3, 3), (16, 8), 0, &p);
        for (i, got) in d.download::<u8>(out, w * h).into_iter().enumerate() {
            let (row, col) = (i / w, i % w);
            let border = row == 0 || col == 0 || row == h - 1 || col == w - 1;
            let mut near: Vec<u8> = if border {
                vec![x[i]; 9]
            } else {
                (0..9).map(|k| x[(row + k / 3 - 1) * w + col + k % 3 - 1]).collect()
            };
            near.sort_unstable();
            assert_eq!(got, near[4], "pixel {i}");
        }

        let (w, h, ow, oh) = (9usize, 7usize, 31usize, 18usize);
        let x: Vec<u8> = (0..w * h * 4).map(|_| r.next() as u8).collect();
        let out = d.alloc::<u8>(ow * oh * 4);
        let p = args![d.upload(&x), out, w as i32, h as i32, ow as i32, oh as i32];
        go(d, "resize", (4, 5), (8, 4), 0, &p);
        for (i, got) in d.download::<u8>(out, ow * oh * 4).into_iter().enumerate() {
            let (col, row, c) = (i / 4 % ow, i / 4 / ow, i % 4);
            // Positions in 256ths of a pixel, exactly, and then one division.
            let place = |v: usize, from: usize, to: usize| v * (from - 1) * 256 / (to - 1);
            let (px, py) = (place(col, w, ow), place(row, h, oh));
            let mut sum = 0;
            for k in 0..4 {
                let (sx, sy) = ((px / 256 + k % 2).min(w - 1), (py / 256 + k / 2).min(h - 1));
                let part = |p: usize, far: bool| if far { p % 256 } else { 256 - p % 256 };
                sum +=
                    usize::from(x[(sy * w + sx) * 4 + c]) * part(px, k % 2 == 1) * part(py, k > 1);
            }
            assert_eq!(usize::from(got), sum / 65536, "byte {i}");
        }
    });
}

#[test]
fn mandelbrot() {
    everywhere("image", |d| {
        let (w, h, most) = (45usize, 31usize, 300);
        let out = d.alloc::<u16>(w * h);
        let p = args![out, w as i32, h as i32, most];
        go(d, "mandelbrot", (w.div_ceil(32), h.div_ceil(2)), (32, 2), 0, &p);
        let stays = |i: usize| {
            let c = (3.0 * (i % w) as f64 / w as f64 - 2.0, 2.0 * (i / w) as f64 / h as f64 - 1.0);
            let mut z = (0.0f64, 0.0f64);
            let mut n = 0;
            // The compiler may fuse the test: that decides nothing unless |z| is 2 to the last bit.
            while n < most && z.0 * z.0 + z.1 * z.1 < 4.0 {
                z = (z.0 * z.0 - z.1 * z.1 + c.0, 2.0 * z.0 * z.1 + c.1);
                n += 1;
            }
            n as u16
        };
        assert_eq!(d.download::<u16>(out, w * h), (0..w * h).map(stays).collect::<Vec<u16>>());
    });
}

#[test]
fn jacobi() {
    everywhere("image", |d| {
        let mut r = Random(53);
        for (nx, ny, nz) in [(37usize, 19usize, 5usize), (32, 8, 3), (3, 3, 1)] {
            let n = nx * ny * nz;
            let mut x = r.floats(n);
            let (mut a, mut b) = (d.upload(&x), d.alloc::<f32>(n));
            for _ in 0..2 {
                let p = args![a, b, nx as i32, ny as i32, nz as i32];
                go(d, "jacobi3d", (nx.div_ceil(32), ny.div_ceil(8)), (32, 8), 0, &p);
                std::mem::swap(&mut a, &mut b);
                let edge = |i: usize, len: usize| i == 0 || i == len - 1;
                let next = |i: usize| {
                    let (z, y, x0) = (i / nx / ny, i / nx % ny, i % nx);
                    if edge(z, nz) || edge(y, ny) || edge(x0, nx) {
                        return f64::from(x[i]);
                    }
                    let near = [i - 1, i + 1, i - nx, i + nx, i - nx * ny, i + nx * ny];
                    near.iter().map(|k| f64::from(x[*k])).sum::<f64>() / 6.0
                };
                let want: Vec<f64> = (0..n).map(next).collect();
                let got = d.download::<f32>(a, n);
                close(&got, &want, 1e-6);
                x = got;
            }
        }
    });
}
