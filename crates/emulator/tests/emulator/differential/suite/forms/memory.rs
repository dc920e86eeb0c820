//! Loads, stores and address conversions (PTX ISA, "Data Movement and Conversion Instructions").

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::{Random, Ty};

/// Types of loads and stores with their bytes.
const TYPES: [(&str, u32); 14] = [
    ("b8", 1),
    ("u8", 1),
    ("s8", 1),
    ("b16", 2),
    ("u16", 2),
    ("s16", 2),
    ("b32", 4),
    ("u32", 4),
    ("s32", 4),
    ("f32", 4),
    ("b64", 8),
    ("u64", 8),
    ("s64", 8),
    ("f64", 8),
];

/// A thread's 32 bytes in some space: how to get there, given `%d0` as the address of its part of
/// the inputs, and how the instructions name space and address.
struct Place {
    name: &'static str,
    globals: String,
    locals: &'static str,
    /// Puts the address of the bytes in `%d1` (or `%r1`) and fills them with the inputs.
    setup: &'static str,
    space: &'static str,
    address: &'static str,
    writable: bool,
}

/// Copies 32 bytes from `[%d0]` to the place.
const FILL_SHARED: &str = "mul.lo.u32 %r1, %x, 32;\nmov.u32 %r2, @_s;\nadd.u32 %r1, %r1, %r2;\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0];\nst.shared.v2.b64 [%r1], {%d2, %d3};\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0+16];\nst.shared.v2.b64 [%r1+16], {%d2, %d3};\n";
const FILL_SHARED_GENERIC: &str = "mul.wide.u32 %d1, %x, 32;\nmov.u64 %d4, @_s;\n\
    cvta.shared.u64 %d4, %d4;\nadd.u64 %d1, %d1, %d4;\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0];\nst.v2.b64 [%d1], {%d2, %d3};\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0+16];\nst.v2.b64 [%d1+16], {%d2, %d3};\n";
const FILL_LOCAL: &str = "mov.u64 %d1, @_l;\nand.b32 %r1, %x, 1;\nmul.wide.u32 %d2, %r1, 32;\n\
    add.u64 %d1, %d1, %d2;\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0];\nst.local.v2.b64 [%d1], {%d2, %d3};\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0+16];\nst.local.v2.b64 [%d1+16], {%d2, %d3};\n";
const FILL_LOCAL_GENERIC: &str = "mov.u64 %d1, @_l;\ncvta.local.u64 %d1, %d1;\n\
    and.b32 %r1, %x, 1;\nmul.wide.u32 %d2, %r1, 32;\nadd.u64 %d1, %d1, %d2;\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0];\nst.v2.b64 [%d1], {%d2, %d3};\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0+16];\nst.v2.b64 [%d1+16], {%d2, %d3};\n";
const FILL_GLOBAL: &str = "mov.u64 %d1, %m;\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0];\nst.global.v2.b64 [%d1], {%d2, %d3};\n\
    ld.global.v2.b64 {%d2, %d3}, [%d0+16];\nst.global.v2.b64 [%d1+16], {%d2, %d3};\n";

const SHARED: &str = ".shared .align 16 .b8 @_s[8192];\n";
const LOCAL: &str = ".local .align 16 .b8 @_l[64];\n";

fn places() -> Vec<Place> {
    let place = |name, locals, setup, space, address, writable| Place {
        name,
        globals: String::new(),
        locals,
        setup,
        space,
        address,
        writable,
    };
    let mut r = Random::new(7);
    let words: Vec<String> = (0..128).map(|_| format!("{:#x}", r.next() as u32)).collect();
    let table = format!(".const .align 16 .b32 @_c[128] = {{{}}};\n", words.join(", "));
    let constant = "mov.u64 %d1, @_c;\nand.b32 %r1, %x, 15;\nmul.wide.u32 %d2, %r1, 32;\n\
                    add.u64 %d1, %d1, %d2;\n";
    let generic = "mov.u64 %d1, @_c;\ncvta.const.u64 %d1, %d1;\nand.b32 %r1, %x, 15;\n\
                   mul.wide.u32 %d2, %r1, 32;\nadd.u64 %d1, %d1, %d2;\n";
    let mut all = vec![
        place("global", "", FILL_GLOBAL, ".global", "%d1", true),
        place("generic to global", "", FILL_GLOBAL, "", "%d1", true),
        place("shared", SHARED, FILL_SHARED, ".shared", "%r1", true),
        place("generic to shared", SHARED, FILL_SHARED_GENERIC, "", "%d1", true),
        place("local", LOCAL, FILL_LOCAL, ".local", "%d1", true),
        place("generic to local", LOCAL, FILL_LOCAL_GENERIC, "", "%d1", true),
        place("const", "", constant, ".const", "%d1", false),
        place("generic to const", "", generic, "", "%d1", false),
    ];
    all.iter_mut().filter(|p| !p.writable).for_each(|p| p.globals = table.clone());
    all
}

/// Registers that may hold a value of the type.
fn registers(t: &str, bytes: u32) -> Vec<Ty> {
    let all = [Ty::B16, Ty::B32, Ty::B64];
    let exact = t.starts_with('f');
    all.into_iter().filter(|r| r.bits() >= 8 * bytes && (!exact || r.bits() == 8 * bytes)).collect()
}

const INPUT: &str = "mul.wide.u32 %d0, %t, 32;\nadd.u64 %d0, %d0, %din;\n";

pub fn add(s: &mut Set) {
    for p in places() {
        for (t, bytes) in TYPES {
            for reg in registers(t, bytes) {
                load(s, &p, t, bytes, reg);
                if p.writable {
                    store(s, &p, t, bytes, reg);
                }
            }
        }
    }
    qualified(s);
    parameters(s);
    parameter_addresses(s);
    addresses(s);
    hints(s);
}

fn load(s: &mut Set, p: &Place, t: &str, bytes: u32, reg: Ty) {
    let (space, at) = (p.space, p.address);
    let mut body = format!("{INPUT}{}", p.setup);
    let mut n = 0;
    let mut take = |count: usize| {
        let list: Vec<String> = (n..n + count).map(|i| format!("%o{i}")).collect();
        n += count;
        list.join(", ")
    };
    body += &format!("ld{space}.{t} {}, [{at}+8];\n", take(1));
    body += &format!("ld{space}.v2.{t} {{{}}}, [{at}+16];\n", take(2));
    if bytes < 8 {
        body += &format!("ld{space}.v4.{t} {{{}}}, [{at}];\n", take(4));
    }
    let width = reg.register();
    let form = Form::new(format!("ld {}.{t} to {width}", p.name), body);
    let form = form.ins(&[Ty::B64; 4]).outs(reg, n).memory(32);
    s.push(form.globals(p.globals.clone()).locals(p.locals));
}

fn store(s: &mut Set, p: &Place, t: &str, bytes: u32, reg: Ty) {
    let (space, at, width) = (p.space, p.address, reg.register());
    let (x, y) = match reg.bits() {
        16 => ("%h0", "%h1"),
        32 => ("%r10", "%r11"),
        _ => ("%d10", "%d11"),
    };
    let mut body =
        format!("{INPUT}ld.global.{width} {x}, [%d0+8];\nld.global.{width} {y}, [%d0];\n");
    body += p.setup;
    body += &format!("st{space}.{t} [{at}+8], {x};\n");
    body += &format!("st{space}.v2.{t} [{at}+16], {{{x}, {y}}};\n");
    if bytes < 8 {
        body += &format!("st{space}.v4.{t} [{at}], {{{y}, {x}, {x}, {y}}};\n");
    }
    body += &format!("ld{space}.v2.b64 {{%o0, %o1}}, [{at}];\n");
    body += &format!("ld{space}.v2.b64 {{%o2, %o3}}, [{at}+16];\n");
    let form = Form::new(format!("st {}.{t} from {width}", p.name), body);
    s.push(form.ins(&[Ty::B64; 4]).outs(Ty::B64, 4).memory(32).locals(p.locals));
}

/// Orders, scopes and cache operators, which change nothing that one thread can see.
fn qualified(s: &mut Set) {
    let loads = [
        "ld.global.nc",
        "ld.global.ca",
        "ld.global.cg",
        "ld.global.cs",
        "ld.global.lu",
        "ld.global.cv",
        "ld.volatile.global",
        "ld.weak.global",
        "ld.relaxed.cta.global",
        "ld.relaxed.gpu.global",
        "ld.relaxed.sys.global",
        "ld.acquire.cta.global",
        "ld.acquire.gpu",
        "ld.acquire.sys.global",
        "ld.volatile",
        "ld.global.L1::evict_last",
        "ld.global.L1::no_allocate.L2::128B",
        "ld.global.nc.L1::evict_first.L2::64B",
        "ldu.global",
    ];
    for op in loads {
        let sm = if op.contains("::") { 80 } else { 75 };
        let mut body =
            format!("{INPUT}{op}.u32 %o0, [%d0];\n{op}.s8 %o1, [%d0+5];\n{op}.f32 %o2, [%d0+8];\n");
        if !op.contains("acquire") && !op.contains("relaxed") {
            body += &format!("{op}.v4.u32 {{%o3, %o4, %o5, %o6}}, [%d0+16];\n");
        } else {
            body += &format!("{op}.u16 %o3, [%d0+18];\nmov.b32 %o4, 0;\nmov.b32 %o5, 0;\n");
            body += "mov.b32 %o6, 0;\n";
        }
        s.push(Form::new(op, body).sm(sm).ins(&[Ty::B64; 4]).outs(Ty::B32, 7));
    }
    let stores = [
        "st.global.wb",
        "st.global.cg",
        "st.global.cs",
        "st.global.wt",
        "st.volatile.global",
        "st.weak.global",
        "st.relaxed.cta.global",
        "st.relaxed.gpu.global",
        "st.release.sys.global",
        "st.release.gpu",
        "st.global.L1::no_allocate",
    ];
    for op in stores {
        let body = format!("{op}.u32 [%m], %a0;\n{op}.u8 [%m+5], %a1;\n{op}.b64 [%m+8], %a2;\n");
        let ins = [Ty::B32, Ty::B32, Ty::B64];
        s.push(Form::new(op, body).ins(&ins).memory(16));
    }
}

/// Kernel parameters, of which the last holds known bytes.
fn parameters(s: &mut Set) {
    for (t, bytes) in TYPES {
        for reg in registers(t, bytes) {
            let mut body = format!("ld.param.{t} %o0, [pdata];\nld.param.{t} %o1, [pdata+8];\n");
            body += &format!("ld.param.v2.{t} {{%o2, %o3}}, [pdata];\n");
            let width = reg.register();
            let form = Form::new(format!("ld.param.{t} to {width}"), body);
            s.push(form.outs(reg, 4).block([32, 1, 1], 1));
        }
    }
}

/// Parameters through a pointer.
fn parameter_addresses(s: &mut Set) {
    let body = "mov.b64 %d0, pdata;\nld.param.u32 %o0, [%d0+4];\ncvta.param.u64 %d1, %d0;\n\
                ld.u32 %o1, [%d1+8];\nld.s8 %o2, [%d1+3];\nisspacep.param %p0, %d1;\n\
                isspacep.global %p1, %d1;\nisspacep.param %p2, %din;\nselp.b32 %o3, 1, 0, %p0;\n\
                selp.b32 %o4, 1, 0, %p1;\nselp.b32 %o5, 1, 0, %p2;";
    let form = Form::new("parameters through a pointer", body).outs(Ty::B32, 6);
    s.push(form.block([32, 1, 1], 1));
}

/// Which space a generic address is in, and the way there and back.
fn addresses(s: &mut Set) {
    let locals = ".shared .align 16 .b8 @_s[64];\n.local .align 16 .b8 @_l[16];\n";
    let globals = ".const .align 4 .b32 @_c[4] = {1, 2, 3, 4};\n.global .align 4 .b32 @_g[4];\n";
    let mut body = String::from(
        "st.local.b32 [@_l], %a0;\nmov.u64 %d0, @_s;\ncvta.shared.u64 %d1, %d0;\n\
         cvta.to.shared.u64 %d2, %d1;\nsetp.eq.u64 %o0, %d0, %d2;\n\
         mov.u64 %d0, @_l;\ncvta.local.u64 %d3, %d0;\ncvta.to.local.u64 %d2, %d3;\n\
         setp.eq.u64 %o1, %d0, %d2;\nmov.u64 %d0, @_c;\ncvta.const.u64 %d4, %d0;\n\
         cvta.to.const.u64 %d2, %d4;\nsetp.eq.u64 %o2, %d0, %d2;\n\
         mov.u64 %d0, @_g;\ncvta.global.u64 %d5, %d0;\ncvta.to.global.u64 %d2, %d5;\n\
         setp.eq.u64 %o3, %d0, %d2;\n",
    );
    let mut n = 4;
    for space in ["global", "shared", "local", "const"] {
        for address in ["%d1", "%d3", "%d4", "%d5", "%din", "%m"] {
            body += &format!("isspacep.{space} %o{n}, {address};\n");
            n += 1;
        }
    }
    let form = Form::new("cvta and isspacep", body).ins(&[Ty::B32]).outs(Ty::P, n).memory(16);
    s.push(form.locals(locals).globals(globals));
}

/// Instructions that only advise.
fn hints(s: &mut Set) {
    let body = "prefetch.global.L1 [%din];\nprefetch.global.L2 [%din];\nprefetchu.L1 [%din];\n\
                prefetch.L2 [%din];\nmov.b32 %o0, %a0;";
    s.push(Form::new("prefetch", body).ins(&[Ty::B32]).outs(Ty::B32, 1));
    let body = "discard.global.L2 [%m], 128;\nst.global.v4.b32 [%m], {%a0, %a0, %a0, %a0};\n\
                st.global.v4.b32 [%m+16], {%a0, %a0, %a0, %a0};\n\
                st.global.v4.b32 [%m+32], {%a0, %a0, %a0, %a0};\n\
                st.global.v4.b32 [%m+48], {%a0, %a0, %a0, %a0};\n\
                st.global.v4.b32 [%m+64], {%a0, %a0, %a0, %a0};\n\
                st.global.v4.b32 [%m+80], {%a0, %a0, %a0, %a0};\n\
                st.global.v4.b32 [%m+96], {%a0, %a0, %a0, %a0};\n\
                st.global.v4.b32 [%m+112], {%a0, %a0, %a0, %a0};\n\
                applypriority.global.L2::evict_normal [%m], 128;\n\
                prefetch.global.L2::evict_last [%m];";
    let form = Form::new("discard and applypriority", body).sm(80);
    s.push(form.ins(&[Ty::B32]).memory(128));
}
