//! Conversions (PTX ISA, "cvt").

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::Ty;

/// Integer types with the registers that may hold them.
const INTS: [(&str, Ty, bool); 8] = [
    ("u8", Ty::B16, false),
    ("s8", Ty::B16, true),
    ("u16", Ty::U16, false),
    ("s16", Ty::S16, true),
    ("u32", Ty::U32, false),
    ("s32", Ty::S32, true),
    ("u64", Ty::U64, false),
    ("s64", Ty::S64, true),
];

const FLOATS: [(&str, Ty, u32); 4] =
    [("f16", Ty::F16, 75), ("bf16", Ty::Bf16, 90), ("f32", Ty::F32, 75), ("f64", Ty::F64, 75)];

const INTEGRAL: [&str; 4] = ["rni", "rzi", "rmi", "rpi"];
const ROUNDS: [&str; 4] = ["rn", "rz", "rm", "rp"];

pub fn add(s: &mut Set) {
    integers(s);
    for (f, fty, sm) in FLOATS {
        for (i, ity, _) in INTS {
            if f == "bf16" && i.ends_with('8') {
                continue;
            }
            for round in INTEGRAL {
                s.plain(sm, &format!("cvt.{round}.{i}.{f}"), ity, &[fty]);
                if f != "bf16" {
                    s.plain(sm, &format!("cvt.{round}.sat.{i}.{f}"), ity, &[fty]);
                }
                if f == "f32" {
                    s.plain(sm, &format!("cvt.{round}.ftz.{i}.{f}"), ity, &[fty]);
                    s.plain(sm, &format!("cvt.{round}.ftz.sat.{i}.{f}"), ity, &[fty]);
                }
            }
            for round in ROUNDS {
                s.plain(sm, &format!("cvt.{round}.{f}.{i}"), fty, &[ity]);
                if f != "bf16" {
                    s.plain(sm, &format!("cvt.{round}.sat.{f}.{i}"), fty, &[ity]);
                }
            }
        }
    }
    floats(s);
    packed(s);
    wide_registers(s);
}

/// Least and greatest value.
fn range(name: &str) -> (i128, i128) {
    let bits: u32 = name[1..].parse().unwrap_or(0);
    if name.starts_with('s') {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

fn integers(s: &mut Set) {
    for (to, out) in INTS.map(|(n, ty, _)| (n, ty)) {
        for (from, ty) in INTS.map(|(n, ty, _)| (n, ty)) {
            s.plain(75, &format!("cvt.{to}.{from}"), out, &[ty]);
            // Saturation is allowed where it can happen.
            if range(from).0 < range(to).0 || range(from).1 > range(to).1 {
                s.plain(75, &format!("cvt.sat.{to}.{from}"), out, &[ty]);
            }
        }
    }
}

/// Operands and results in registers wider than their types.
fn wide_registers(s: &mut Set) {
    for (i, bits) in [("u8", 8), ("s8", 8), ("u16", 16), ("s16", 16), ("u32", 32), ("s32", 32)] {
        for reg in [Ty::B32, Ty::B64] {
            if bits >= reg.bits() {
                continue;
            }
            s.plain(75, &format!("cvt.{i}.s64"), reg, &[Ty::S64]);
            s.plain(75, &format!("cvt.sat.{i}.s64"), reg, &[Ty::S64]);
            s.plain(75, &format!("cvt.rzi.{i}.f32"), reg, &[Ty::F32]);
            s.plain(75, &format!("cvt.s64.{i}"), Ty::S64, &[reg]);
            s.plain(75, &format!("cvt.rn.f32.{i}"), Ty::F32, &[reg]);
        }
    }
}

fn floats(s: &mut Set) {
    for (t, ty, sm) in FLOATS {
        for round in INTEGRAL {
            s.plain(sm, &format!("cvt.{round}.{t}.{t}"), ty, &[ty]);
            if t != "bf16" {
                s.plain(sm, &format!("cvt.{round}.sat.{t}.{t}"), ty, &[ty]);
            }
            if t == "f32" {
                s.plain(sm, &format!("cvt.{round}.ftz.{t}.{t}"), ty, &[ty]);
                s.plain(sm, &format!("cvt.{round}.ftz.sat.{t}.{t}"), ty, &[ty]);
            }
        }
        s.plain(sm, &format!("cvt.{t}.{t}"), ty, &[ty]);
        if t != "bf16" {
            s.plain(sm, &format!("cvt.sat.{t}.{t}"), ty, &[ty]);
        }
    }
    s.plain(75, "cvt.ftz.f32.f32", Ty::F32, &[Ty::F32]);
    s.plain(75, "cvt.ftz.sat.f32.f32", Ty::F32, &[Ty::F32]);
    for (to, out, from, ty) in [
        ("f32", Ty::F32, "f16", Ty::F16),
        ("f64", Ty::F64, "f16", Ty::F16),
        ("f64", Ty::F64, "f32", Ty::F32),
    ] {
        s.plain(75, &format!("cvt.{to}.{from}"), out, &[ty]);
        s.plain(75, &format!("cvt.sat.{to}.{from}"), out, &[ty]);
    }
    s.plain(75, "cvt.ftz.f32.f16", Ty::F32, &[Ty::F16]);
    s.plain(75, "cvt.ftz.f64.f32", Ty::F64, &[Ty::F32]);
    s.plain(90, "cvt.f32.bf16", Ty::F32, &[Ty::Bf16]);
    s.plain(90, "cvt.f64.bf16", Ty::F64, &[Ty::Bf16]);
    for round in ROUNDS {
        for sat in ["", ".sat"] {
            s.plain(75, &format!("cvt.{round}{sat}.f32.f64"), Ty::F32, &[Ty::F64]);
            s.plain(75, &format!("cvt.{round}.ftz{sat}.f32.f64"), Ty::F32, &[Ty::F64]);
            s.plain(75, &format!("cvt.{round}{sat}.f16.f32"), Ty::F16, &[Ty::F32]);
            s.plain(75, &format!("cvt.{round}.ftz{sat}.f16.f32"), Ty::F16, &[Ty::F32]);
            s.plain(75, &format!("cvt.{round}{sat}.f16.f64"), Ty::F16, &[Ty::F64]);
        }
        s.plain(90, &format!("cvt.{round}.bf16.f16"), Ty::Bf16, &[Ty::F16]);
        s.plain(90, &format!("cvt.{round}.bf16.f64"), Ty::Bf16, &[Ty::F64]);
        s.plain(90, &format!("cvt.{round}.f16.bf16"), Ty::F16, &[Ty::Bf16]);
    }
    for round in ["rn", "rz"] {
        for more in ["", ".relu"] {
            s.plain(80, &format!("cvt.{round}{more}.f16.f32"), Ty::F16, &[Ty::F32]);
            s.plain(80, &format!("cvt.{round}{more}.bf16.f32"), Ty::Bf16, &[Ty::F32]);
            s.plain(90, &format!("cvt.{round}{more}.tf32.f32"), Ty::B32, &[Ty::F32]);
        }
    }
    for round in ["rn", "rz", "rn.relu", "rz.relu"] {
        s.plain(80, &format!("cvt.{round}.satfinite.f16.f32"), Ty::F16, &[Ty::F32]);
        s.plain(80, &format!("cvt.{round}.satfinite.bf16.f32"), Ty::Bf16, &[Ty::F32]);
    }
    s.plain(80, "cvt.rna.tf32.f32", Ty::B32, &[Ty::F32]);
    s.plain(80, "cvt.rna.satfinite.tf32.f32", Ty::B32, &[Ty::F32]);
}

fn packed(s: &mut Set) {
    for round in ["rn", "rz"] {
        for relu in ["", ".relu"] {
            for (t, ty) in [("f16x2", Ty::F16x2), ("bf16x2", Ty::Bf16x2)] {
                s.plain(80, &format!("cvt.{round}{relu}.{t}.f32"), ty, &[Ty::F32; 2]);
                let inst = format!("cvt.{round}{relu}.satfinite.{t}.f32");
                s.plain(80, &inst, ty, &[Ty::F32; 2]);
            }
        }
    }
    for relu in ["", ".relu"] {
        for t in ["e4m3x2", "e5m2x2"] {
            let inst = format!("cvt.rn.satfinite{relu}.{t}.f32");
            s.plain(89, &inst, Ty::B16, &[Ty::F32; 2]);
            s.plain(89, &format!("cvt.rn.satfinite{relu}.{t}.f16x2"), Ty::B16, &[Ty::F16x2]);
            s.plain(89, &format!("cvt.rn{relu}.f16x2.{t}"), Ty::F16x2, &[Ty::B16]);
        }
    }
    // Every 8-bit number there is.
    for t in ["e4m3x2", "e5m2x2"] {
        let body = format!("cvt.u16.u32 %h0, %x;\ncvt.rn.f16x2.{t} %o0, %h0;");
        s.push(Form::new(format!("all {t}"), body).sm(89).outs(Ty::F16x2, 1));
    }
}
