//! Floating-point arithmetic (PTX ISA, "Floating Point Instructions").

use super::super::form::Bound;
use super::super::set::{Set, absolute, relative, ulps};
use super::super::value::{F32, F64, Ty};

const ROUNDS: [&str; 4] = ["rn", "rz", "rm", "rp"];

pub fn add(s: &mut Set) {
    arithmetic(s);
    roots(s);
    extremes(s);
    approximations(s);
}

fn arithmetic(s: &mut Set) {
    for op in ["add", "sub", "mul", "fma"] {
        let n = if op == "fma" { 3 } else { 2 };
        for round in ROUNDS {
            for more in ["", ".ftz", ".sat", ".ftz.sat"] {
                s.op(75, &format!("{op}.{round}{more}.f32"), Ty::F32, &vec![Ty::F32; n]);
            }
            s.op(75, &format!("{op}.{round}.f64"), Ty::F64, &vec![Ty::F64; n]);
        }
        if op != "fma" {
            s.op(75, &format!("{op}.f32"), Ty::F32, &[Ty::F32; 2]);
            s.op(75, &format!("{op}.ftz.sat.f32"), Ty::F32, &[Ty::F32; 2]);
            s.op(75, &format!("{op}.f64"), Ty::F64, &[Ty::F64; 2]);
        }
    }
    for round in ROUNDS {
        s.op(75, &format!("mad.{round}.f32"), Ty::F32, &[Ty::F32; 3]);
        s.op(75, &format!("mad.{round}.ftz.sat.f32"), Ty::F32, &[Ty::F32; 3]);
        s.op(75, &format!("mad.{round}.f64"), Ty::F64, &[Ty::F64; 3]);
        s.op(75, &format!("div.{round}.f32"), Ty::F32, &[Ty::F32; 2]);
        s.op(75, &format!("div.{round}.ftz.f32"), Ty::F32, &[Ty::F32; 2]);
        s.op(75, &format!("div.{round}.f64"), Ty::F64, &[Ty::F64; 2]);
    }
}

fn roots(s: &mut Set) {
    for op in ["rcp", "sqrt"] {
        for round in ROUNDS {
            s.plain(75, &format!("{op}.{round}.f32"), Ty::F32, &[Ty::F32]);
            s.plain(75, &format!("{op}.{round}.ftz.f32"), Ty::F32, &[Ty::F32]);
            s.plain(75, &format!("{op}.{round}.f64"), Ty::F64, &[Ty::F64]);
        }
    }
}

fn extremes(s: &mut Set) {
    for op in ["neg", "abs"] {
        s.plain(75, &format!("{op}.f32"), Ty::F32, &[Ty::F32]);
        s.plain(75, &format!("{op}.ftz.f32"), Ty::F32, &[Ty::F32]);
        s.plain(75, &format!("{op}.f64"), Ty::F64, &[Ty::F64]);
    }
    for op in ["min", "max"] {
        for ftz in ["", ".ftz"] {
            s.op(75, &format!("{op}{ftz}.f32"), Ty::F32, &[Ty::F32; 2]);
            s.op(80, &format!("{op}{ftz}.NaN.f32"), Ty::F32, &[Ty::F32; 2]);
            for nan in ["", ".NaN"] {
                let inst = format!("{op}{ftz}{nan}.xorsign.abs.f32");
                s.plain(86, &inst, Ty::F32, &[Ty::F32; 2]);
            }
        }
        s.op(75, &format!("{op}.f64"), Ty::F64, &[Ty::F64; 2]);
    }
    for (t, ty) in [("f32", Ty::F32), ("f64", Ty::F64)] {
        s.op(75, &format!("copysign.{t}"), ty, &[ty; 2]);
        for class in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
            s.plain(75, &format!("testp.{class}.{t}"), Ty::P, &[ty]);
        }
    }
}

/// The bounds are those that the PTX ISA gives with each instruction.
fn approximations(s: &mut Set) {
    let each: [(&str, Bound); 6] = [
        // "rcp": "max ulp error over the full range of inputs is 1".
        ("rcp.approx", ulps(F32, 1.0)),
        // "sqrt": "a maximum relative error of 2^-23 over the entire positive finite range".
        ("sqrt.approx", relative(F32, exp2(-23.0))),
        // "rsqrt": "a maximum relative error of 2^-22.9".
        ("rsqrt.approx", relative(F32, exp2(-22.9))),
        // "ex2": "max ulp error over the full range is 2".
        ("ex2.approx", ulps(F32, 2.0)),
        // "lg2": absolute error 2^-22 for 0.5 < a < 2, relative error 2^-22 elsewhere.
        ("lg2.approx", Bound { relative: exp2(-22.0), ..absolute(F32, exp2(-22.0)) }),
        // "div": "a maximum of 2 ulp error".
        ("div.full", ulps(F32, 2.0)),
    ];
    for (op, bound) in each {
        let n = if op == "div.full" { 2 } else { 1 };
        s.approx(75, &format!("{op}.f32"), Ty::F32, &vec![Ty::F32; n], bound);
        s.approx(75, &format!("{op}.ftz.f32"), Ty::F32, &vec![Ty::F32; n], bound);
    }
    // "div.approx": 2 ulp for divisors from 2^-126 to 2^126, and zero beyond.
    s.approx(75, "div.approx.f32", Ty::F32, &[Ty::F32; 2], ulps(F32, 2.0));
    s.approx(75, "div.approx.ftz.f32", Ty::F32, &[Ty::F32; 2], ulps(F32, 2.0));
    // "ex2" where its results are neither zero nor infinite.
    s.approx(75, "ex2.approx.f32", Ty::F32, &[Ty::F32In(-150, 129)], ulps(F32, 2.0));
    s.approx(75, "ex2.approx.ftz.f32", Ty::F32, &[Ty::F32In(-150, 129)], ulps(F32, 2.0));
    // "sin", "cos": absolute error 2^-20.5 in [-2 pi, 2 pi], 2^-14.7 in [-100 pi, 100 pi].
    for op in ["sin.approx", "cos.approx"] {
        for ftz in ["", ".ftz"] {
            let inst = format!("{op}{ftz}.f32");
            s.approx(75, &inst, Ty::F32, &[Ty::F32In(-6, 6)], absolute(F32, exp2(-20.5)));
            s.approx(75, &inst, Ty::F32, &[Ty::EdgeF32], absolute(F32, exp2(-20.5)));
            s.approx(75, &inst, Ty::F32, &[Ty::F32In(-314, 314)], absolute(F32, exp2(-14.7)));
        }
    }
    // "tanh": "the maximum relative error is 2^-11".
    s.approx(75, "tanh.approx.f32", Ty::F32, &[Ty::F32], relative(F32, exp2(-11.0)));
    s.approx(75, "tanh.approx.f32", Ty::F32, &[Ty::F32In(-8, 8)], relative(F32, exp2(-11.0)));
    // "rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64": computed from and to the upper words, for
    // which 20 bits of significand are left; the ISA gives no bound.
    for op in ["rcp", "rsqrt"] {
        let inst = format!("{op}.approx.ftz.f64");
        s.approx(75, &inst, Ty::F64, &[Ty::F64], relative(F64, exp2(-19.0)));
    }
    // "rsqrt.approx.f64": no bound is given; it is an instruction of double precision.
    s.approx(75, "rsqrt.approx.f64", Ty::F64, &[Ty::F64], ulps(F64, 2.0));
}

pub fn exp2(x: f64) -> f64 {
    x.exp2()
}
