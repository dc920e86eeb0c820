//! Half precision arithmetic (PTX ISA, "Half Precision Floating Point Instructions").

use super::super::form::Bound;
use super::super::set::{Set, absolute, relative};
use super::super::value::{BF16, F16, Ty};
use super::float::exp2;

pub fn add(s: &mut Set) {
    for (t, ty) in [("f16", Ty::F16), ("f16x2", Ty::F16x2)] {
        for op in ["add", "sub", "mul"] {
            for more in ["", ".rn", ".ftz", ".sat", ".rn.ftz.sat"] {
                s.plain(75, &format!("{op}{more}.{t}"), ty, &[ty; 2]);
            }
        }
        for more in ["", ".ftz", ".sat", ".ftz.sat"] {
            s.plain(75, &format!("fma.rn{more}.{t}"), ty, &[ty; 3]);
        }
        s.plain(80, &format!("fma.rn.relu.{t}"), ty, &[ty; 3]);
        s.plain(80, &format!("fma.rn.ftz.relu.{t}"), ty, &[ty; 3]);
        for op in ["neg", "abs"] {
            s.plain(75, &format!("{op}.{t}"), ty, &[ty]);
            s.plain(75, &format!("{op}.ftz.{t}"), ty, &[ty]);
        }
        extremes(s, t, ty, &["", ".ftz"]);
    }
    for (t, ty) in [("bf16", Ty::Bf16), ("bf16x2", Ty::Bf16x2)] {
        for op in ["add", "sub", "mul"] {
            s.plain(90, &format!("{op}.{t}"), ty, &[ty; 2]);
            s.plain(90, &format!("{op}.rn.{t}"), ty, &[ty; 2]);
        }
        s.plain(80, &format!("fma.rn.{t}"), ty, &[ty; 3]);
        s.plain(80, &format!("fma.rn.relu.{t}"), ty, &[ty; 3]);
        s.plain(80, &format!("neg.{t}"), ty, &[ty]);
        s.plain(80, &format!("abs.{t}"), ty, &[ty]);
        extremes(s, t, ty, &[""]);
    }
    approximations(s);
}

fn extremes(s: &mut Set, t: &str, ty: Ty, ftz: &[&str]) {
    for op in ["min", "max"] {
        for ftz in ftz {
            for nan in ["", ".NaN"] {
                s.plain(80, &format!("{op}{ftz}{nan}.{t}"), ty, &[ty; 2]);
                s.plain(86, &format!("{op}{ftz}{nan}.xorsign.abs.{t}"), ty, &[ty; 2]);
            }
        }
    }
}

/// The bounds are those that the PTX ISA gives with each instruction.
fn approximations(s: &mut Set) {
    // "ex2": relative error 2^-9.9 for f16, 2^-7 for bf16; "tanh": absolute error 2^-10.987 for
    // f16, 2^-8 for bf16.
    let f16 = [("ex2", relative(F16, exp2(-9.9))), ("tanh", absolute(F16, exp2(-10.987)))];
    let bf16 = [
        ("ex2.approx.ftz", relative(BF16, exp2(-7.0))),
        ("tanh.approx", absolute(BF16, exp2(-8.0))),
    ];
    let mut both = |sm, op: &str, t: &str, one, two, bound: Bound| {
        s.approx(sm, &format!("{op}.{t}"), one, &[one], bound);
        s.approx(sm, &format!("{op}.{t}x2"), two, &[two], bound);
    };
    for (op, bound) in f16 {
        both(75, &format!("{op}.approx"), "f16", Ty::F16, Ty::F16x2, bound);
    }
    for (op, bound) in bf16 {
        both(90, op, "bf16", Ty::Bf16, Ty::Bf16x2, bound);
    }
}
