//! Comparison and selection (PTX ISA, "Comparison and Selection Instructions" and the half
//! precision ones).

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::Ty;

const SIGNED: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const UNSIGNED: [&str; 10] = ["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"];
const FLOAT: [&str; 14] =
    ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];

/// Type, operands, comparisons, architecture.
const TYPES: [(&str, Ty, &[&str], u32); 18] = [
    ("b16", Ty::B16, &["eq", "ne"], 75),
    ("b32", Ty::B32, &["eq", "ne"], 75),
    ("b64", Ty::B64, &["eq", "ne"], 75),
    ("u16", Ty::U16, &UNSIGNED, 75),
    ("u32", Ty::U32, &UNSIGNED, 75),
    ("u64", Ty::U64, &UNSIGNED, 75),
    ("s16", Ty::S16, &SIGNED, 75),
    ("s32", Ty::S32, &SIGNED, 75),
    ("s64", Ty::S64, &SIGNED, 75),
    ("f32", Ty::F32, &FLOAT, 75),
    ("ftz.f32", Ty::F32, &FLOAT, 75),
    ("f64", Ty::F64, &FLOAT, 75),
    ("f16", Ty::F16, &FLOAT, 75),
    ("ftz.f16", Ty::F16, &FLOAT, 75),
    ("f16x2", Ty::F16x2, &FLOAT, 75),
    ("ftz.f16x2", Ty::F16x2, &FLOAT, 75),
    ("bf16", Ty::Bf16, &FLOAT, 90),
    ("bf16x2", Ty::Bf16x2, &FLOAT, 90),
];

pub fn add(s: &mut Set) {
    for (t, ty, cmps, sm) in TYPES {
        for cmp in cmps {
            setp(s, cmp, t, ty, sm);
            set(s, cmp, t, ty, sm);
        }
    }
    select(s);
}

/// `t` with the combination where it stands: before `.ftz`.
fn combined(cmp: &str, how: &str, t: &str) -> String {
    format!("{cmp}.{how}.{t}")
}

fn setp(s: &mut Set, cmp: &str, t: &str, ty: Ty, sm: u32) {
    let and = combined(cmp, "and", t);
    let (or, xor) = (combined(cmp, "or", t), combined(cmp, "xor", t));
    let body = format!(
        "setp.{cmp}.{t} %o0|%o1, %a0, %a1;\nsetp.{and} %o2|%o3, %a0, %a1, %a2;\n\
         setp.{or} %o4|%o5, %a0, %a1, !%a2;\nsetp.{xor} %o6|%o7, %a0, %a1, %a2;"
    );
    let name = format!("setp.{cmp}.{t} with and, or, xor");
    if matches!(ty, Ty::F16 | Ty::Bf16) {
        // These have no second result.
        let body = format!(
            "setp.{cmp}.{t} %o0, %a0, %a1;\nsetp.{and} %o1, %a0, %a1, %a2;\n\
             setp.{or} %o2, %a0, %a1, !%a2;\nsetp.{xor} %o3, %a0, %a1, %a2;"
        );
        s.push(Form::new(name, body).sm(sm).ins(&[ty, ty, Ty::P]).outs(Ty::P, 4));
        return;
    }
    s.push(Form::new(name, body).sm(sm).ins(&[ty, ty, Ty::P]).outs(Ty::P, 8));
    if ty.literal(0).is_some() {
        let mut form = Form::new(format!("setp.{cmp}.{t} literals"), "").ins(&[ty, Ty::P]);
        let mut r = form.random();
        let mut literal = || ty.literal(ty.draw(&mut r, None)).unwrap_or_default();
        form.body = format!(
            "setp.{cmp}.{t} %o0, %a0, {};\nsetp.{and} %o1|%o2, %a0, {}, !%a1;\n\
             setp.{or} %o3, {}, %a0, %a1;",
            literal(),
            literal(),
            literal()
        );
        s.push(form.outs(Ty::P, 4));
    }
}

fn set(s: &mut Set, cmp: &str, t: &str, ty: Ty, sm: u32) {
    let results: &[(&str, Ty)] = match ty {
        Ty::F16 => &[("f16", Ty::F16), ("u16", Ty::U16), ("s16", Ty::S16), ("u32", Ty::U32)],
        Ty::Bf16 => &[("bf16", Ty::Bf16), ("u16", Ty::U16), ("s16", Ty::S16), ("u32", Ty::U32)],
        Ty::F16x2 => &[("f16x2", Ty::F16x2), ("u32", Ty::U32), ("s32", Ty::S32)],
        Ty::Bf16x2 => &[("bf16x2", Ty::Bf16x2), ("u32", Ty::U32), ("s32", Ty::S32)],
        _ => &[("u32", Ty::U32), ("s32", Ty::S32), ("f32", Ty::F32)],
    };
    let (ftz, source) = match t.strip_prefix("ftz.") {
        Some(rest) => (".ftz", rest),
        None => ("", t),
    };
    let mut form = Form::new(format!("set.{cmp}.{t}"), "").sm(sm).ins(&[ty, ty, Ty::P]);
    for (n, (to, out)) in results.iter().enumerate() {
        let how = ["", ".and", ".or", ".xor"][n];
        let c = ["", ", %a2", ", !%a2", ", %a2"][n];
        form.body.push_str(&format!("set.{cmp}{how}{ftz}.{to}.{source} %o{n}, %a0, %a1{c};\n"));
        form = form.outs(*out, 1);
    }
    s.push(form);
}

fn select(s: &mut Set) {
    let types = [
        ("b16", Ty::B16),
        ("b32", Ty::B32),
        ("b64", Ty::B64),
        ("u16", Ty::U16),
        ("u32", Ty::U32),
        ("u64", Ty::U64),
        ("s16", Ty::S16),
        ("s32", Ty::S32),
        ("s64", Ty::S64),
        ("f32", Ty::F32),
        ("f64", Ty::F64),
    ];
    for (t, ty) in types {
        s.op(75, &format!("selp.{t}"), ty, &[ty, ty, Ty::P]);
        s.op(75, &format!("slct.{t}.s32"), ty, &[ty, ty, Ty::S32]);
        s.op(75, &format!("slct.{t}.f32"), ty, &[ty, ty, Ty::F32]);
        s.op(75, &format!("slct.ftz.{t}.f32"), ty, &[ty, ty, Ty::F32]);
    }
}
