//! Matrix instructions (PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions").
//!
//! Sums of small whole numbers are exact in any order. For others the ISA leaves order and
//! precision open; they are compared with the sums of compute capability 9.0, bit for bit as well.

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::Ty;

pub fn add(s: &mut Set) {
    rows(s);
    integers(s);
    halves(s);
    others(s);
    wmma(s);
}

fn list(prefix: &str, from: usize, n: usize) -> String {
    let names: Vec<String> = (from..from + n).map(|i| format!("%{prefix}{i}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// One warp's matrices in shared memory, four words from each lane, at `%r0`.
const STAGE: &str = "mov.u32 %r0, @_s;\nmad.lo.u32 %r1, %x, 16, %r0;\n\
    st.shared.v4.b32 [%r1], {%a0, %a1, %a2, %a3};\nbar.warp.sync -1;\n";

fn rows(s: &mut Set) {
    let locals = ".shared .align 16 .b8 @_s[512];\n";
    for n in [1, 2, 4] {
        for trans in ["", ".trans"] {
            let inst = format!("matrix.sync.aligned.m8n8.x{n}{trans}.shared.b16");
            // Rows in another order than they lie.
            let body = format!(
                "{STAGE}xor.b32 %r2, %x, 5;\nmad.lo.u32 %r2, %r2, 16, %r0;\n\
                 ld{inst} {}, [%r2];",
                list("o", 0, n)
            );
            let form = Form::new(format!("ld{inst}"), body).ins(&[Ty::B32; 4]);
            s.push(form.outs(Ty::B32, n).locals(locals).block([32, 1, 1], 8));
            let generic = inst.replace(".shared", "");
            let body = format!(
                "{STAGE}mul.wide.u32 %d0, %x, 16;\nmov.u64 %d1, @_s;\n\
                 cvta.shared.u64 %d1, %d1;\nadd.u64 %d0, %d0, %d1;\nld{generic} {}, [%d0];",
                list("o", 0, n)
            );
            let form = Form::new(format!("ld{generic}"), body).ins(&[Ty::B32; 4]);
            s.push(form.outs(Ty::B32, n).locals(locals).block([32, 1, 1], 8));
            let body = format!(
                "{STAGE}xor.b32 %r2, %x, 5;\nmad.lo.u32 %r2, %r2, 16, %r0;\n\
                 st{inst} [%r2], {};\nbar.warp.sync -1;\n\
                 ld.shared.v4.b32 {{%o0, %o1, %o2, %o3}}, [%r1];",
                list("a", 0, n)
            );
            let form = Form::new(format!("st{inst}"), body).sm(90).ins(&[Ty::B32; 4]);
            s.push(form.outs(Ty::B32, 4).locals(locals).block([32, 1, 1], 8));
        }
    }
}

/// Registers of A, B and C of a product.
struct Shape<'a> {
    name: &'a str,
    regs: [usize; 3],
    sm: u32,
}

fn shape(name: &str, regs: [usize; 3], sm: u32) -> Shape<'_> {
    Shape { name, regs, sm }
}

fn product(s: &mut Set, inst: &str, sh: &Shape<'_>, tys: [Ty; 4]) {
    let [na, nb, nc] = sh.regs;
    let [a, b, c, d] = tys;
    // Half as many registers where two elements share one.
    let packed = |t: Ty| t.format().is_some_and(|(_, n)| n == 2);
    let (nc, nd) = (if packed(c) { nc / 2 } else { nc }, if packed(d) { nc / 2 } else { nc });
    let body = format!(
        "{inst} {}, {}, {}, {};",
        list("o", 0, nd),
        list("a", 0, na),
        list("a", na, nb),
        list("a", na + nb, nc)
    );
    let ins = [vec![a; na], vec![b; nb], vec![c; nc]].concat();
    let kind = format!("{a:?}").to_lowercase();
    let form = Form::new(format!("{inst} of {kind}"), body).sm(sh.sm).ins(&ins);
    s.push(form.outs(d, nd).block([128, 1, 1], 2));
}

fn integers(s: &mut Set) {
    let bytes = [
        shape("m8n8k16", [1, 1, 2], 75),
        shape("m16n8k16", [2, 1, 4], 80),
        shape("m16n8k32", [4, 2, 4], 80),
    ];
    let nibbles = [
        shape("m8n8k32", [1, 1, 2], 75),
        shape("m16n8k32", [2, 1, 4], 80),
        shape("m16n8k64", [4, 2, 4], 80),
    ];
    for (shapes, bits) in [(&bytes, "8"), (&nibbles, "4")] {
        for sh in shapes {
            for a in ["s", "u"] {
                for b in ["s", "u"] {
                    for sat in ["", ".satfinite"] {
                        let inst = format!(
                            "mma.sync.aligned.{}.row.col{sat}.s32.{a}{bits}.{b}{bits}.s32",
                            sh.name
                        );
                        product(s, &inst, sh, [Ty::B32; 4]);
                    }
                }
            }
        }
    }
    let single = [
        shape("m8n8k128", [1, 1, 2], 75),
        shape("m16n8k128", [2, 1, 4], 80),
        shape("m16n8k256", [4, 2, 4], 80),
    ];
    for sh in single {
        for op in ["xor", "and"] {
            let sm = if op == "and" { 80 } else { sh.sm };
            let inst = format!("mma.sync.aligned.{}.row.col.s32.b1.b1.s32.{op}.popc", sh.name);
            product(s, &inst, &Shape { sm, ..sh }, [Ty::B32; 4]);
        }
    }
}

fn halves(s: &mut Set) {
    let f16 = [shape("m16n8k8", [2, 1, 4], 75), shape("m16n8k16", [4, 2, 4], 80)];
    for sh in &f16 {
        for (d, c) in [("f16", "f16"), ("f32", "f32")] {
            let inst = format!("mma.sync.aligned.{}.row.col.{d}.f16.f16.{c}", sh.name);
            let (small, unit, edge) = if d == "f16" {
                (Ty::SmallF16x2, Ty::UnitF16x2, Ty::EdgeF16x2)
            } else {
                (Ty::SmallF32, Ty::UnitF32, Ty::EdgeF32)
            };
            let ab = Ty::SmallF16x2;
            product(s, &inst, sh, [ab, ab, small, small]);
            let ab = Ty::EdgeF16x2;
            product(s, &inst, sh, [ab, ab, edge, edge_out(edge)]);
            let ab = Ty::UnitF16x2;
            product(s, &inst, sh, [ab, ab, unit, unit]);
        }
    }
    let bf16 = [shape("m16n8k8", [2, 1, 4], 80), shape("m16n8k16", [4, 2, 4], 80)];
    for sh in &bf16 {
        let inst = format!("mma.sync.aligned.{}.row.col.f32.bf16.bf16.f32", sh.name);
        let (small, edge, unit) = (Ty::SmallBf16x2, Ty::EdgeBf16x2, Ty::UnitBf16x2);
        product(s, &inst, sh, [small, small, Ty::SmallF32, Ty::SmallF32]);
        product(s, &inst, sh, [edge, edge, Ty::EdgeF32, Ty::F32]);
        product(s, &inst, sh, [unit, unit, Ty::UnitF32, Ty::F32]);
    }
}

/// Results of sums with infinities have the same register shape.
fn edge_out(ty: Ty) -> Ty {
    if ty == Ty::EdgeF16x2 { Ty::F16x2 } else { Ty::F32 }
}

fn others(s: &mut Set) {
    let tf32 = [shape("m16n8k4", [2, 1, 4], 80), shape("m16n8k8", [4, 2, 4], 80)];
    for sh in &tf32 {
        let inst = format!("mma.sync.aligned.{}.row.col.f32.tf32.tf32.f32", sh.name);
        let (small, edge) = (Ty::SmallTf32, Ty::EdgeF32);
        product(s, &inst, sh, [small, small, Ty::SmallF32, Ty::F32]);
        product(s, &inst, sh, [edge, edge, Ty::EdgeF32, Ty::F32]);
        let unit = Ty::UnitF32;
        product(s, &inst, sh, [unit, unit, unit, Ty::F32]);
    }
    let f64 = [
        shape("m8n8k4", [1, 1, 2], 80),
        shape("m16n8k4", [2, 1, 4], 90),
        shape("m16n8k8", [4, 2, 4], 90),
        shape("m16n8k16", [8, 4, 4], 90),
    ];
    for sh in &f64 {
        let inst = format!("mma.sync.aligned.{}.row.col.f64.f64.f64.f64", sh.name);
        product(s, &inst, sh, [Ty::SmallF64; 4]);
        product(s, &inst, sh, [Ty::UnitF64, Ty::UnitF64, Ty::UnitF64, Ty::F64]);
    }
    let eight = [shape("m16n8k16", [2, 1, 4], 89), shape("m16n8k32", [4, 2, 4], 89)];
    for sh in &eight {
        for (a, x, u) in
            [("e4m3", Ty::SmallE4m3x4, Ty::UnitE4m3x4), ("e5m2", Ty::SmallE5m2x4, Ty::UnitE5m2x4)]
        {
            for (b, y, v) in [
                ("e4m3", Ty::SmallE4m3x4, Ty::UnitE4m3x4),
                ("e5m2", Ty::SmallE5m2x4, Ty::UnitE5m2x4),
            ] {
                let inst = format!("mma.sync.aligned.{}.row.col.f32.{a}.{b}.f32", sh.name);
                product(s, &inst, sh, [x, y, Ty::SmallF32, Ty::F32]);
                product(s, &inst, sh, [u, v, Ty::UnitF32, Ty::F32]);
                let inst = format!("mma.sync.aligned.{}.row.col.f16.{a}.{b}.f16", sh.name);
                product(s, &inst, sh, [x, y, Ty::SmallF16x2, Ty::F16x2]);
                product(s, &inst, sh, [u, v, Ty::UnitF16x2, Ty::F16x2]);
            }
        }
    }
}

/// A `wmma` product: shape, element type, registers of A, B and C, words of each matrix for a lane.
struct Fragments {
    shape: &'static str,
    a: &'static str,
    /// Type of C and D, unless D has its own.
    acc: &'static str,
    d: Option<&'static str>,
    regs: [usize; 3],
    words: [usize; 3],
    ins: [Ty; 2],
    sm: u32,
}

fn fragments() -> Vec<Fragments> {
    let mut out = Vec::new();
    let mut add = |shape, a, acc, regs, words, ins, sm| {
        let (acc, d) = match acc {
            "f16 from f32" => ("f32", Some("f16")),
            "f32 from f16" => ("f16", Some("f32")),
            acc => (acc, None),
        };
        out.push(Fragments { shape, a, acc, d, regs, words, ins, sm });
    };
    let (h, f, b, w) = (Ty::SmallF16x2, Ty::SmallF32, Ty::SmallBf16x2, Ty::B32);
    for (shape, wa, wb) in [("m16n16k16", 4, 4), ("m32n8k16", 8, 2), ("m8n32k16", 2, 8)] {
        add(shape, "f16", "f32", [8, 8, 8], [wa, wb, 8], [h, f], 75);
        add(shape, "f16", "f16", [8, 8, 4], [wa, wb, 4], [h, h], 75);
        add(shape, "f16", "f16 from f32", [8, 8, 8], [wa, wb, 8], [h, f], 75);
        add(shape, "f16", "f32 from f16", [8, 8, 4], [wa, wb, 4], [h, h], 75);
        add(shape, "bf16", "f32", [wa, wb, 8], [wa, wb, 8], [b, f], 80);
        add(shape, "s8", "s32", [wa / 2, wb / 2, 8], [wa / 2, wb / 2, 8], [w, w], 75);
        add(shape, "u8", "s32", [wa / 2, wb / 2, 8], [wa / 2, wb / 2, 8], [w, w], 75);
    }
    add("m16n16k8", "tf32", "f32", [4, 4, 8], [4, 4, 8], [Ty::SmallTf32, f], 80);
    out
}

fn wmma(s: &mut Set) {
    for f in fragments() {
        for (la, lb, lc) in [("row", "col", "row"), ("col", "row", "col"), ("row", "row", "col")] {
            wmma_form(s, &f, [la, lb, lc], "");
            if f.acc == "s32" {
                wmma_form(s, &f, [la, lb, lc], ".satfinite");
            }
        }
    }
    let body = "mov.u64 %d0, @_s;\nmov.u32 %r0, @_s;\nmad.lo.u32 %r1, %x, 8, %r0;\n\
                st.shared.b64 [%r1], %a0;\nst.shared.b64 [%r1+256], %a1;\n\
                st.shared.b64 [%r1+512], %a2;\nst.shared.b64 [%r1+768], %a3;\nbar.warp.sync -1;\n\
                wmma.load.a.sync.aligned.row.m8n8k4.shared.f64 {%d1}, [%d0], 4;\n\
                wmma.load.b.sync.aligned.col.m8n8k4.shared.f64 {%d2}, [%d0+256], 4;\n\
                wmma.load.c.sync.aligned.row.m8n8k4.shared.f64 {%d3, %d4}, [%d0+512], 8;\n\
                wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64 {%d5, %d6}, {%d1}, {%d2}, \
                {%d3, %d4};\nshfl.sync.idx.b32 %r3, %t, 0, 0x1f, -1;\n\
                mul.wide.u32 %d7, %r3, 16;\nadd.u64 %d7, %d7, %dout;\n\
                wmma.store.d.sync.aligned.row.m8n8k4.global.f64 [%d7], {%d5, %d6}, 8;";
    let form = Form::new("wmma m8n8k4 f64", body).sm(80).ins(&[Ty::SmallF64; 4]).memory(16);
    s.push(form.locals(".shared .align 32 .b8 @_s[1024];\n").block([32, 1, 1], 8));
}

fn wmma_form(s: &mut Set, f: &Fragments, [la, lb, lc]: [&str; 3], sat: &str) {
    let (m, rest) = f.shape[1..].split_once('n').unwrap_or(("", ""));
    let (n, k) = rest.split_once('k').unwrap_or(("", ""));
    let stride = |layout: &str, rows, cols| if layout == "row" { cols } else { rows };
    let (sa, sb, sc) = (stride(la, m, k), stride(lb, k, n), stride(lc, m, n));
    let [wa, wb, wc] = f.words;
    let mut body = String::from("mov.u32 %r0, @_s;\nmov.u64 %d0, @_s;\n");
    for w in 0..wa + wb + wc {
        body += &format!("mad.lo.u32 %r1, %x, 4, {};\nadd.u32 %r1, %r1, %r0;\n", w * 128);
        body += &format!("st.shared.b32 [%r1], %a{w};\n");
    }
    let [na, nb, nc] = f.regs;
    let (at_b, at_c) = (wa * 128, (wa + wb) * 128);
    let types = match f.a {
        "f16" => format!("{}.{}", f.d.unwrap_or(f.acc), f.acc),
        a => format!("{}.{a}.{a}.{}", f.acc, f.acc),
    };
    let sync = "sync.aligned";
    let (shape, a, acc) = (f.shape, f.a, f.acc);
    let d = f.d.unwrap_or(acc);
    let (bytes, nd) = if d == "f16" { (2, 4) } else { (4, 8) };
    body += &format!(
        "bar.warp.sync -1;\nwmma.load.a.{sync}.{la}.{shape}.shared.{a} {}, [%d0], {sa};\n\
         wmma.load.b.{sync}.{lb}.{shape}.shared.{a} {}, [%d0+{at_b}], {sb};\n\
         wmma.load.c.{sync}.{lc}.{shape}.shared.{acc} {}, [%d0+{at_c}], {sc};\n\
         wmma.mma.{sync}.{la}.{lb}.{shape}.{types}{sat} {}, {}, {}, {};\n\
         shfl.sync.idx.b32 %r3, %t, 0, 0x1f, -1;\nmul.wide.u32 %d7, %r3, {};\n\
         add.u64 %d7, %d7, %dout;\n\
         wmma.store.d.{sync}.{lc}.{shape}.global.{d} [%d7], {}, {sc};",
        list("fa", 0, na),
        list("fb", 0, nb),
        list("fc", 0, nc),
        list("fd", 0, nd),
        list("fa", 0, na),
        list("fb", 0, nb),
        list("fc", 0, nc),
        8 * bytes,
        list("fd", 0, nd)
    );
    let name = format!("wmma.{la}.{lb}.{lc}.{shape}.{types}{sat}");
    let ins = [vec![f.ins[0]; wa + wb], vec![f.ins[1]; wc]].concat();
    let locals = ".reg .b32 %fa<8>, %fb<8>, %fc<8>, %fd<8>;\n.shared .align 32 .b8 @_s[4096];\n";
    let form = Form::new(name, body).sm(f.sm).ins(&ins).memory(8 * bytes);
    s.push(form.locals(locals).block([32, 1, 1], 8));
}
