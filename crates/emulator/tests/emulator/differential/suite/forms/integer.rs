//! Integer arithmetic (PTX ISA, "Integer Arithmetic Instructions" and "Extended-Precision Integer
//! Arithmetic Instructions").

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::Ty;

const ALL: [(&str, Ty); 6] = [
    ("u16", Ty::U16),
    ("s16", Ty::S16),
    ("u32", Ty::U32),
    ("s32", Ty::S32),
    ("u64", Ty::U64),
    ("s64", Ty::S64),
];

pub fn add(s: &mut Set) {
    for (t, ty) in ALL {
        for op in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"] {
            s.op(75, &format!("{op}.{t}"), ty, &[ty, ty]);
        }
        for op in ["mad.lo", "mad.hi", "sad"] {
            s.op(75, &format!("{op}.{t}"), ty, &[ty, ty, ty]);
        }
        if t.starts_with('s') {
            s.plain(75, &format!("neg.{t}"), ty, &[ty]);
            s.plain(75, &format!("abs.{t}"), ty, &[ty]);
        }
    }
    let wide = [
        ("u16", Ty::U16, Ty::U32),
        ("s16", Ty::S16, Ty::S32),
        ("u32", Ty::U32, Ty::U64),
        ("s32", Ty::S32, Ty::S64),
    ];
    for (t, from, to) in wide {
        s.op(75, &format!("mul.wide.{t}"), to, &[from, from]);
        s.op(75, &format!("mad.wide.{t}"), to, &[from, from, to]);
    }
    for op in ["add.sat", "sub.sat", "min.relu", "max.relu"] {
        let sm = if op.ends_with("relu") { 90 } else { 75 };
        s.op(sm, &format!("{op}.s32"), Ty::S32, &[Ty::S32, Ty::S32]);
    }
    s.op(75, "mad.hi.sat.s32", Ty::S32, &[Ty::S32; 3]);
    for (t, ty) in [("u32", Ty::U32), ("s32", Ty::S32)] {
        for part in ["lo", "hi"] {
            s.op(75, &format!("mul24.{part}.{t}"), ty, &[ty, ty]);
            s.op(75, &format!("mad24.{part}.{t}"), ty, &[ty, ty, ty]);
        }
    }
    for op in ["add", "min", "max"] {
        for t in ["u16x2", "s16x2"] {
            s.plain(90, &format!("{op}.{t}"), Ty::B32, &[Ty::B32, Ty::B32]);
        }
    }
    for (t, ty) in &ALL[2..] {
        chains(s, t, *ty);
    }
}

/// Numbers of three limbs, the carry flag between them.
fn chains(s: &mut Set, t: &str, ty: Ty) {
    for op in ["add", "sub"] {
        let body = format!(
            "{op}.cc.{t} %o0, %a0, %a3;\n{op}c.cc.{t} %o1, %a1, %a4;\n{op}c.{t} %o2, %a2, %a5;"
        );
        let name = format!("{op}.cc {op}c.cc {op}c {t}");
        s.push(Form::new(name, body).ins(&[ty; 6]).outs(ty, 3));
        // A flag that a literal gives, read twice.
        let ones = if ty.bits() == 64 { "0xffffffffffffffff" } else { "0xffffffff" };
        let body =
            format!("{op}.cc.{t} %o0, %a0, {ones};\n{op}c.{t} %o1, %a1, 0;\n{op}c.{t} %o2, 0, 0;");
        let name = format!("{op}.cc {op}c {t} literals");
        s.push(Form::new(name, body).ins(&[ty; 2]).outs(ty, 3));
    }
    let body = format!(
        "mad.lo.cc.{t} %o0, %a0, %a1, %a2;\nmadc.hi.cc.{t} %o1, %a0, %a1, %a3;\n\
         madc.lo.cc.{t} %o2, %a2, %a3, %a4;\nmadc.hi.{t} %o3, %a2, %a3, %a5;\n\
         mad.hi.cc.{t} %o4, %a4, %a5, %a0;\nmadc.lo.{t} %o5, %a4, %a5, %a1;"
    );
    let name = format!("mad.cc madc.cc madc {t}");
    s.push(Form::new(name, body).ins(&[ty; 6]).outs(ty, 6));
}
