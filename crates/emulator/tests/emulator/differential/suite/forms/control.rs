//! Control flow, calls and the stack (PTX ISA, "Control Flow Instructions" and "Stack Manipulation
//! Instructions").

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::Ty;

pub fn add(s: &mut Set) {
    branches(s);
    calls(s);
    stack(s);
}

fn branches(s: &mut Set) {
    let body = "mov.b32 %o0, 0;\nand.b32 %r0, %a0, 1023;\n$@_loop:\nsetp.le.u32 %p0, %r0, 1;\n\
                @%p0 bra $@_end;\nadd.u32 %o0, %o0, 1;\nand.b32 %r1, %r0, 1;\n\
                setp.eq.u32 %p1, %r1, 0;\n@%p1 bra $@_even;\nmad.lo.u32 %r0, %r0, 3, 1;\n\
                bra $@_loop;\n$@_even:\nshr.u32 %r0, %r0, 1;\nbra.uni $@_loop;\n$@_end:";
    s.push(Form::new("bra in loops", body).ins(&[Ty::B32]).outs(Ty::B32, 1));
    let body = "mov.b32 %o0, %a0;\n@%a1 add.u32 %o0, %o0, 5;\n@!%a1 xor.b32 %o0, %o0, 9;\n\
                @%a2 bra $@_skip;\n@%a1 mul.lo.u32 %o0, %o0, 3;\n{\n.reg .b32 %r0;\n\
                mov.b32 %r0, 77;\n@!%a1 sub.u32 %o0, %o0, %r0;\n}\n$@_skip:\n\
                mov.b32 %o1, %o0;\n@%a2 neg.s32 %o1, %o1;";
    s.push(Form::new("guards", body).ins(&[Ty::B32, Ty::P, Ty::P]).outs(Ty::B32, 2));
    let body = "mov.b32 %o0, 1;\n$@_ts: .branchtargets $@_t0, $@_t1, $@_t2, $@_t3;\n\
                @%a2 brx.idx %a1, $@_ts;\nadd.u32 %o0, %a0, 4;\nbra $@_end;\n\
                $@_t0:\nadd.u32 %o0, %o0, %a0;\n$@_t1:\nxor.b32 %o0, %o0, %a0;\n\
                bra $@_end;\n$@_t2:\nmul.lo.u32 %o0, %a0, %a0;\n$@_t3:\nsub.u32 %o0, %a0, %o0;\n\
                $@_end:";
    let form = Form::new("brx.idx", body).ins(&[Ty::B32, Ty::Below(4), Ty::P]);
    s.push(form.outs(Ty::B32, 1));
    // Threads that leave early have written already; the others write once more.
    let body = "st.global.v2.b32 [%m], {%a0, %a0};\n@%a1 exit;\nst.global.b32 [%m+8], %a0;\n\
                @%a2 ret;\nst.global.b32 [%m+12], %x;";
    let form = Form::new("exit and ret", body).ins(&[Ty::B32, Ty::P, Ty::P]);
    s.push(form.memory(16));
}

/// Functions with values of every size, recursion, and pointers to functions.
fn calls(s: &mut Set) {
    let globals = ".func (.param .b64 ret) @_mix(.param .b32 a, .param .b64 b, \
        .param .align 4 .b8 c[8])\n{\n\
        .reg .b32 %i<4>; .reg .b64 %j<4>; .reg .s16 %k;\nld.param.b32 %i0, [a];\n\
        ld.param.b64 %j0, [b];\nld.param.u16 %i1, [c+2];\nld.param.s8 %i2, [c+5];\n\
        add.u32 %i0, %i0, %i1;\nxor.b32 %i0, %i0, %i2;\ncvt.s64.s32 %j1, %i0;\n\
        mul.lo.s64 %j0, %j0, %j1;\nst.param.b64 [ret], %j0;\nret;\n}\n";
    let body = "{\n.param .b32 x;\n.param .b64 y;\n.param .align 4 .b8 z[8];\n.param .b64 r;\n\
                st.param.b32 [x], %a0;\nst.param.b64 [y], %a1;\nst.param.b32 [z], %a0;\n\
                st.param.b32 [z+4], %a0;\ncall.uni (r), @_mix, (x, y, z);\nld.param.b64 %o0, \
                [r];\n}\n\
                mov.b64 %o1, 0;\n@!%a2 bra $@_end;\n{\n.param .b32 x;\n.param .b64 y;\n\
                .param .align 4 .b8 z[8];\n.param .b64 r;\nst.param.b32 [x], 7;\n\
                st.param.b64 [y], %o0;\nst.param.v2.b32 [z], {%a0, %a0};\n\
                call (r), @_mix, (x, y, z);\nld.param.b64 %o1, [r];\n}\n$@_end:";
    let form = Form::new("call", body).ins(&[Ty::B32, Ty::B64, Ty::P]).outs(Ty::B64, 2);
    s.push(form.globals(globals));

    let globals = ".func (.param .b32 ret) @_fib(.param .b32 n)\n{\n.reg .b32 %i<6>; \
        .reg .pred %q;\n\
        ld.param.b32 %i0, [n];\nsetp.lt.u32 %q, %i0, 2;\nmov.b32 %i3, %i0;\n@%q bra $out;\n\
        sub.u32 %i1, %i0, 1;\n{\n.param .b32 x;\n.param .b32 r;\nst.param.b32 [x], %i1;\n\
        call (r), @_fib, (x);\nld.param.b32 %i2, [r];\n}\nsub.u32 %i1, %i0, 2;\n{\n\
        .param .b32 x;\n.param .b32 r;\nst.param.b32 [x], %i1;\ncall (r), @_fib, (x);\n\
        ld.param.b32 %i3, [r];\n}\nadd.u32 %i3, %i3, %i2;\n$out:\nst.param.b32 [ret], %i3;\n\
        ret;\n}\n";
    let body = "{\n.param .b32 x;\n.param .b32 r;\nst.param.b32 [x], %a0;\ncall (r), @_fib, (x);\n\
                ld.param.b32 %o0, [r];\n}";
    let form = Form::new("call, recursive", body).ins(&[Ty::Below(9)]).outs(Ty::B32, 1);
    s.push(form.globals(globals));

    let two = |name: &str, op: &str| {
        format!(
            ".func (.param .b32 ret) {name}(.param .b32 a, .param .b32 b)\n{{\n.reg .b32 %i<3>;\n\
             ld.param.b32 %i0, [a];\nld.param.b32 %i1, [b];\n{op} %i2, %i0, %i1;\n\
             st.param.b32 [ret], %i2;\nret;\n}}\n"
        )
    };
    let globals = two("@_f", "add.u32") + &two("@_g", "mul.lo.u32");
    let body = "mov.u64 %d0, @_f;\nmov.u64 %d1, @_g;\nselp.b64 %d0, %d0, %d1, %a2;\n{\n\
                .param .b32 x;\n.param .b32 y;\n.param .b32 r;\nst.param.b32 [x], %a0;\n\
                st.param.b32 [y], %a1;\n\
                $@_proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n\
                call (r), %d0, (x, y), $@_proto;\nld.param.b32 %o0, [r];\n}";
    let form = Form::new("call, indirect", body).ins(&[Ty::B32, Ty::B32, Ty::P]);
    s.push(form.outs(Ty::B32, 1).globals(globals));
}

fn stack(s: &mut Set) {
    let body = "stacksave.u64 %d0;\nand.b32 %r0, %a1, 3;\nadd.u32 %r0, %r0, 1;\n\
                mul.wide.u32 %d1, %r0, 16;\nalloca.u64 %d2, %d1, 16;\n\
                st.local.b32 [%d2], %a0;\nst.local.b32 [%d2+12], %x;\nalloca.u64 %d3, 32;\n\
                st.local.b32 [%d3], %t;\nld.local.b32 %o0, [%d2];\nld.local.b32 %o1, [%d2+12];\n\
                ld.local.b32 %o2, [%d3];\nstackrestore.u64 %d0;";
    let form = Form::new("alloca", body).ins(&[Ty::B32, Ty::B32]).outs(Ty::B32, 3);
    s.push(form);
}
