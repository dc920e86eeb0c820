//! Atomics and reductions (PTX ISA, "atom" and "red").

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::Ty;

/// Operation, type, register, architecture.
fn operations() -> Vec<(String, Ty, u32)> {
    let mut out = Vec::new();
    for t in ["b32", "b64"] {
        for op in ["and", "or", "xor", "exch", "cas"] {
            out.push((format!("{op}.{t}"), if t == "b32" { Ty::B32 } else { Ty::B64 }, 75));
        }
    }
    out.push(("cas.b16".into(), Ty::B16, 75));
    for (t, ty) in [("u32", Ty::U32), ("s32", Ty::S32), ("u64", Ty::U64), ("s64", Ty::S64)] {
        if t != "s64" {
            out.push((format!("add.{t}"), ty, 75));
        }
        out.push((format!("min.{t}"), ty, 75));
        out.push((format!("max.{t}"), ty, 75));
    }
    out.push(("inc.u32".into(), Ty::U32, 75));
    out.push(("dec.u32".into(), Ty::U32, 75));
    out.push(("add.f32".into(), Ty::F32, 75));
    out.push(("add.f64".into(), Ty::F64, 75));
    out.push(("add.noftz.f16".into(), Ty::F16, 75));
    out.push(("add.noftz.f16x2".into(), Ty::F16x2, 75));
    out.push(("add.noftz.bf16".into(), Ty::Bf16, 90));
    out.push(("add.noftz.bf16x2".into(), Ty::Bf16x2, 90));
    out
}

/// Spaces: name, declarations, the cell of a thread (16 bytes), how to name it.
const SPACES: [(&str, &str, &str, &str); 4] = [
    (".global", "", "", "%m"),
    ("", "", "", "%m"),
    (
        ".shared",
        ".shared .align 16 .b8 @_s[4096];\n",
        "mul.lo.u32 %r1, %x, 16;\nmov.u32 %r2, @_s;\nadd.u32 %r1, %r1, %r2;\n",
        "%r1",
    ),
    (
        " ",
        ".shared .align 16 .b8 @_s[4096];\n",
        "mul.wide.u32 %d1, %x, 16;\nmov.u64 %d2, @_s;\ncvta.shared.u64 %d2, %d2;\n\
         add.u64 %d1, %d1, %d2;\n",
        "%d1",
    ),
];

pub fn add(s: &mut Set) {
    for (op, ty, sm) in operations() {
        for place in SPACES {
            alone(s, &op, ty, sm, place);
        }
    }
    scopes(s);
    together(s);
    vectors(s);
}

/// Each thread on a cell of its own: what it was, and what it is then.
fn alone(s: &mut Set, op: &str, ty: Ty, sm: u32, place: (&str, &str, &str, &str)) {
    let (space, locals, setup, at) = place;
    let (space, name) = (space.trim(), if space == " " { "generic to shared" } else { space });
    let b = ty.register();
    let mut body = format!("{setup}st{space}.{b} [{at}], %a0;\n");
    if op.starts_with("cas") {
        // The comparison succeeds half of the time.
        let keep = match b {
            "b16" => "%h1",
            "b32" => "%r4",
            _ => "%d4",
        };
        body += &format!("selp.{b} {keep}, %a0, %a1, %a3;\n");
        body += &format!("atom{space}.{op} %o0, [{at}], {keep}, %a2;\n");
        body += &format!("ld{space}.{b} %o1, [{at}];");
        let form = Form::new(format!("atom.{op} {name}"), body).sm(sm);
        let form = form.ins(&[ty, ty, ty, Ty::P]).outs(ty, 2).memory(16);
        s.push(form.locals(locals));
        return;
    }
    let red = format!("{body}red{space}.{op} [{at}], %a1;\nld{space}.{b} %o0, [{at}];");
    body += &format!("atom{space}.{op} %o0, [{at}], %a1;\nld{space}.{b} %o1, [{at}];");
    let form = Form::new(format!("atom.{op} {name}"), body).sm(sm);
    s.push(form.ins(&[ty, ty]).outs(ty, 2).memory(16).locals(locals));
    if !op.starts_with("exch") {
        let form = Form::new(format!("red.{op} {name}"), red).sm(sm);
        s.push(form.ins(&[ty, ty]).outs(ty, 1).memory(16).locals(locals));
    }
}

fn scopes(s: &mut Set) {
    for order in ["relaxed", "acquire", "release", "acq_rel"] {
        for scope in ["cta", "gpu", "sys"] {
            let mut body = String::from("st.global.b32 [%m], %a0;\n");
            body += &format!("atom.{order}.{scope}.global.add.u32 %o0, [%m], %a1;\n");
            body += &format!("atom.{order}.{scope}.global.exch.b32 %o1, [%m], %a0;\n");
            if matches!(order, "relaxed" | "release") {
                body += &format!("red.{order}.{scope}.global.xor.b32 [%m], %a1;\n");
            }
            body += "ld.global.b32 %o2, [%m];";
            let form = Form::new(format!("atom.{order}.{scope}"), body);
            s.push(form.ins(&[Ty::B32; 2]).outs(Ty::B32, 3).memory(16));
        }
    }
}

/// Threads on common cells, with operations whose result does not depend on the order.
fn together(s: &mut Set) {
    let ops = ["and.b32", "or.b32", "xor.b32", "add.u32", "add.s32", "min.u32", "min.s32"];
    let more = ["max.u32", "max.s32", "inc.u32", "dec.u32"];
    let wide = ["and.b64", "or.b64", "xor.b64", "add.u64", "min.u64", "max.s64"];
    for op in ops.into_iter().chain(more).chain(wide) {
        let ty = if op.ends_with("64") { Ty::B64 } else { Ty::B32 };
        let (b, n) = (ty.register(), if ty == Ty::B64 { "%d" } else { "%r" });
        // The limit of a counter must be the same for all.
        let value = if op.contains("nc.") || op.contains("dec") { "77" } else { "%a1" };
        for how in ["atom", "red"] {
            let result = if how == "atom" { format!("{n}9, ") } else { String::new() };
            let body = format!(
                "and.b32 %r1, %x, 7;\nsub.u32 %r2, %t, %x;\nadd.u32 %r1, %r1, %r2;\n\
                 mul.wide.u32 %d1, %r1, 16;\nadd.u64 %d1, %d1, %dout;\n\
                 and.b32 %r3, %x, 7;\nmul.lo.u32 %r3, %r3, 16;\nmov.u32 %r4, @_s;\n\
                 add.u32 %r3, %r3, %r4;\nsetp.lt.u32 %p0, %x, 8;\n\
                 @%p0 st.global.{b} [%d1], %a0;\n@%p0 st.shared.{b} [%r3], %a0;\n\
                 membar.gl;\nbar.sync 0;\n{how}.global.{op} {result}[%d1], {value};\n\
                 {how}.shared.{op} {result}[%r3], {value};\nmembar.gl;\nbar.sync 0;\n\
                 ld.volatile.global.{b} %o1, [%d1];\nld.shared.{b} %o2, [%r3];"
            );
            let mut form = Form::new(format!("{how}.{op} by many threads"), body);
            form = form.ins(&[ty; 2]).memory(16).outs(ty, 2);
            s.push(form.locals(".shared .align 16 .b8 @_s[128];\n"));
        }
    }
}

/// Several elements at once; the whole is not one atomic operation.
fn vectors(s: &mut Set) {
    let forms = [("v2.f32", Ty::F32, 2), ("v4.f32", Ty::F32, 4), ("noftz.v2.f16", Ty::F16, 2)];
    let more = [
        ("noftz.v4.f16", Ty::F16, 4),
        ("noftz.v8.f16", Ty::F16, 8),
        ("noftz.v2.f16x2", Ty::F16x2, 2),
        ("noftz.v4.f16x2", Ty::F16x2, 4),
        ("noftz.v4.bf16", Ty::Bf16, 4),
        ("noftz.v2.bf16x2", Ty::Bf16x2, 2),
    ];
    for (t, ty, n) in forms.into_iter().chain(more) {
        let (b, bytes) = (ty.register(), ty.bits() as usize / 8);
        let list = |p: &str, from: usize| {
            let names: Vec<String> = (from..from + n).map(|i| format!("%{p}{i}")).collect();
            names.join(", ")
        };
        let fill: String =
            (0..n).map(|i| format!("st.global.{b} [%m+{}], %a{i};\n", i * bytes)).collect();
        let (hint, vector) = match t.strip_prefix("noftz.") {
            Some(v) => (".noftz", v),
            None => ("", t),
        };
        let body = format!(
            "{fill}atom.global.add{hint}.{vector} {{{}}}, [%m], {{{}}};\n\
             red.global.add{hint}.{vector} [%m], {{{}}};",
            list("o", 0),
            list("a", n),
            list("a", n)
        );
        let form = Form::new(format!("atom and red add.{t}"), body).sm(90);
        s.push(form.ins(&vec![ty; 2 * n]).outs(ty, n).memory(16));
    }
}
