//! The mathematics library, against the standard library's, and directed rounding.

use super::{args, go, on};
use crate::common::{Device, Params, Plain, Random};

/// `erf` by its series, for small arguments.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, 0.0);
    for n in 1..60 {
        sum += term;
        term *= 2.0 * x * x / f64::from(2 * n + 1);
    }
    2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp() * sum
}

/// What `EACH` of math.cu computes. The last three are exact, and of the type that is tested.
fn functions(a: f64, b: f64) -> [f64; 29] {
    let m = a.abs();
    [
        a.sin(),
        a.cos(),
        a.tan(),
        b.asin(),
        b.acos(),
        a.atan(),
        a.atan2(b),
        b.sinh(),
        b.cosh(),
        b.tanh(),
        a.asinh(),
        (m + 1.0).acosh(),
        b.atanh(),
        (b * 20.0).exp(),
        (b * 9.0).exp2(),
        10f64.powf(b),
        b.exp_m1(),
        m.ln(),
        m.log2(),
        m.log10(),
        b.ln_1p(),
        m.powf(b * 3.0),
        a.cbrt(),
        a.hypot(b),
        a % b,
        a.round_ties_even(),
        b * 32.0,
        erf(b),
        1.0 / m.sqrt(),
    ]
}

/// Arguments of all sizes, and between −1 and 1.
fn arguments(n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut r = Random(281);
    let mut a: Vec<f64> =
        (0..n).map(|i| f64::from(r.float() * 2f32.powi(i as i32 % 24 - 8))).collect();
    let b: Vec<f64> = r.floats(n).into_iter().map(|v| f64::from(v) * 0.99).collect();
    // Where reductions of the argument are long.
    a[..4].copy_from_slice(&[1e6, -3e9, 2.5, -0.5]);
    (a, b)
}

fn run<T: Plain>(d: &Device, kernel: &str, a: &[T], b: &[T]) -> Vec<T> {
    let out = d.alloc::<T>(32 * a.len());
    let p: Params = args![d.upload(a), d.upload(b), out, a.len() as i32];
    go(d, kernel, a.len().div_ceil(64), 64, 0, &p);
    d.download(out, 32 * a.len())
}

#[test]
fn doubles() {
    on("math", &["80"], |d| {
        let (a, b) = arguments(300);
        for (i, got) in run(d, "double_functions", &a, &b).chunks(32).enumerate() {
            for (k, want) in functions(a[i], b[i]).into_iter().enumerate() {
                // A few units in the last place; the references have some too, and acosh near 1,
                // atanh and the logarithms lose a little where they are near 0.
                let error = (got[k] - want).abs();
                assert!(error <= 4e-15 * want.abs().max(0.1), "function {k} of {}, {}", a[i], b[i]);
            }
            let next = if a[i] < b[i] { a[i].next_up() } else { a[i].next_down() };
            assert_eq!(got[29], next);
            assert_eq!(got[30], a[i].round() + a[i].trunc() * 3.0);
            let want = (a[i] - b[i]).max(0.0) + a[i].max(b[i]) * 1f64.copysign(b[i]);
            assert!((got[31] - want).abs() <= 1e-15 * want.abs());
        }
    });
}

#[test]
fn floats() {
    on("math", &["80"], |d| {
        let (a, b) = arguments(300);
        let (a, b): (Vec<f32>, Vec<f32>) =
            a.iter().zip(b).map(|(a, b)| (*a as f32, b as f32)).unzip();
        for (i, got) in run(d, "float_functions", &a, &b).chunks(32).enumerate() {
            let (p, q) = (f64::from(a[i]), f64::from(b[i]));
            // The arguments of these are rounded before the function sees them.
            let mut want = functions(p, q);
            want[11] = (f64::from(a[i].abs() + 1.0)).acosh();
            want[13] = f64::from(b[i] * 20.0).exp();
            want[14] = f64::from(b[i] * 9.0).exp2();
            want[21] = p.abs().powf(f64::from(b[i] * 3.0));
            for (k, want) in want.into_iter().enumerate() {
                let error = (f64::from(got[k]) - want).abs();
                assert!(error <= 1e-6 * want.abs().max(0.1), "function {k} of {p}, {q}");
            }
            assert_eq!(got[29], if a[i] < b[i] { a[i].next_up() } else { a[i].next_down() });
            assert_eq!(got[30], a[i].round() + a[i].trunc() * 3.0);
        }
    });
}

/// Whether `got` is the nearest number on one side of what `exact` says: `below(v)` is whether
/// `v` is less than the exact result or equal, `above(v)` greater or equal.
fn directed(got: f64, up: bool, below: impl Fn(f64) -> bool, above: impl Fn(f64) -> bool) -> bool {
    if up { above(got) && !above(got.next_down()) } else { below(got) && !below(got.next_up()) }
}

/// The sign of `x · y − v`, exactly: the products of parts of 26 bits are exact.
fn product_minus(x: f64, y: f64, v: f64) -> f64 {
    let p = x * y;
    let rest = x.mul_add(y, -p);
    (p - v) + rest
}

#[test]
fn rounding() {
    on("math", &["80"], |d| {
        let (a, mut b) = arguments(200);
        b.iter_mut().filter(|v| **v == 0.0).for_each(|v| *v = 0.5);
        let n = a.len();
        let (out, single) = (d.alloc::<f64>(8 * n), d.alloc::<f32>(8 * n));
        let p = args![d.upload(&a), d.upload(&b), out, single, n as i32];
        go(d, "directed", 4, 50, 0, &p);
        let (out, single) = (d.download::<f64>(out, 8 * n), d.download::<f32>(single, 8 * n));
        for i in 0..n {
            let (x, y, got) = (a[i], b[i], &out[8 * i..][..8]);
            // The rest of a sum, exactly (Knuth).
            let rest = |x: f64, y: f64, v: f64| {
                let s = x + y;
                let t = s - x;
                (s - v) + ((x - (s - t)) + (y - t))
            };
            let sum = |v| rest(x, y, v);
            assert!(directed(got[0], true, |v| sum(v) >= 0.0, |v| sum(v) <= 0.0), "{x} + {y}");
            assert!(directed(got[1], false, |v| sum(v) >= 0.0, |v| sum(v) <= 0.0), "{x} + {y}");
            let times = |v| product_minus(x, y, v);
            let up = x * y < 0.0;
            assert!(directed(got[2], up, |v| times(v) >= 0.0, |v| times(v) <= 0.0), "{x} * {y}");
            // v is at or above x / y where v · y is at or beyond x on the side of y's sign.
            let quotient = |v: f64| product_minus(v, y, x) * y.signum();
            assert!(
                directed(got[3], true, |v| quotient(v) <= 0.0, |v| quotient(v) >= 0.0),
                "{x} / {y}"
            );
            let root = |v: f64| product_minus(v, v, x.abs());
            assert!(directed(got[4], false, |v| root(v) <= 0.0, |v| root(v) >= 0.0), "√{x}");
            let inverse = |v: f64| product_minus(v, y, 1.0) * y.signum();
            assert!(
                directed(got[5], true, |v| inverse(v) <= 0.0, |v| inverse(v) >= 0.0),
                "1 / {y}"
            );
            let (p, q, got) = (x as f32, y as f32, &single[8 * i..][..8]);
            let (wp, wq) = (f64::from(p), f64::from(q));
            // Sums and products of floats are within an ulp of a double: exact but for ties.
            let up = |v: f64| if f64::from(v as f32) < v { (v as f32).next_up() } else { v as f32 };
            let down = |v: f64| -up(-v);
            let zero = |v: f64| if v < 0.0 { up(v) } else { down(v) };
            assert_eq!(got[2], zero(wp * wq), "{p} * {q}");
            assert_eq!(got[7], up(x), "{x}");
            let near = |got: f32, want: f64, other: f32| {
                // The double is rounded: where it is next to a float either may be right.
                got == other || (want - f64::from(got)).abs() < 1e-14 * want.abs()
            };
            assert!(near(got[0], wp + wq, up(wp + wq)) && near(got[1], wp + wq, down(wp + wq)));
            assert!(near(got[3], wp / wq, up(wp / wq)), "{p} / {q}");
            let root = wp.abs().sqrt();
            assert!(near(got[4], root, down(root)) && near(got[5], 1.0 / wq, up(1.0 / wq)));
            let fused = wp.mul_add(wq, wp);
            assert!(near(got[6], fused, down(fused)), "{p} * {q} + {p}");
        }
    });
}
