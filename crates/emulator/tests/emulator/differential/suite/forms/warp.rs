//! Instructions among the threads of a warp or a block (PTX ISA, "shfl", "vote", "match", "redux",
//! "activemask", "elect", "bar").

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::Ty;

pub fn add(s: &mut Set) {
    shuffles(s);
    votes(s);
    matches(s);
    reductions(s);
    partial(s);
    barriers(s);
}

fn shuffles(s: &mut Set) {
    for mode in ["up", "down", "bfly", "idx"] {
        // Any distance, clamp and segment mask.
        let body = format!(
            "and.b32 %r0, %a2, 0x1f1f;\nshfl.sync.{mode}.b32 %o0|%o1, %a0, %a1, %r0, -1;\n\
             shfl.sync.{mode}.b32 %o2, %a0, %a2, %a1, 0xffffffff;"
        );
        let form = Form::new(format!("shfl.sync.{mode} any"), body);
        let form = form.ins(&[Ty::B32, Ty::Below(40), Ty::B32]).outs(Ty::B32, 1);
        s.push(form.outs(Ty::P, 1).outs(Ty::B32, 1));
        // The segments of CUDA C++, with literals.
        let mut form = Form::new(format!("shfl.sync.{mode} segments"), "").ins(&[Ty::B32]);
        for (n, width) in [1u32, 2, 4, 8, 16, 32].into_iter().enumerate() {
            let low = if mode == "up" { 0 } else { 0x1f };
            let c = (32 - width) << 8 | low;
            let distance = [0, 1, 3, 5, 9, 17][n];
            let (d, p) = (2 * n, 2 * n + 1);
            form.body +=
                &format!("shfl.sync.{mode}.b32 %o{d}|%o{p}, %a0, {distance}, {c:#x}, -1;\n");
            form = form.outs(Ty::B32, 1).outs(Ty::P, 1);
        }
        s.push(form);
    }
}

/// A predicate in `%p0` that whole warps often agree on: lane 0 decides.
const OFTEN: &str = "shfl.sync.idx.b32 %r0, %a0, 0, 0x1f, -1;\nsetp.eq.u32 %p1, %r0, 0;\n\
    setp.eq.u32 %p2, %r0, 1;\nor.pred %p0, %a1, %p1;\nnot.pred %p3, %p2;\n\
    and.pred %p0, %p0, %p3;\n";

fn votes(s: &mut Set) {
    let body = format!(
        "{OFTEN}vote.sync.all.pred %o0, %p0, -1;\nvote.sync.any.pred %o1, %p0, -1;\n\
         vote.sync.uni.pred %o2, %p0, -1;\nvote.sync.ballot.b32 %o3, %p0, -1;\n\
         vote.sync.all.pred %o4, !%p0, -1;\nvote.sync.ballot.b32 %o5, !%p0, 0xffffffff;"
    );
    let form = Form::new("vote.sync", body).ins(&[Ty::Below(4), Ty::P]).outs(Ty::P, 3);
    s.push(form.outs(Ty::B32, 1).outs(Ty::P, 1).outs(Ty::B32, 1).block([256, 1, 1], 4));
}

fn matches(s: &mut Set) {
    for (t, ty) in [("b32", Ty::B32), ("b64", Ty::B64)] {
        let widen = if t == "b32" { "" } else { "mov.b64 %d0, {%r2, %r2};\n" };
        let value = if t == "b32" { "%r2" } else { "%d0" };
        let body = format!(
            "shfl.sync.idx.b32 %r0, %a0, 0, 0x1f, -1;\nand.b32 %r1, %r0, 1;\n\
             mul.lo.u32 %r2, %r1, %a1;\n{widen}match.any.sync.{t} %o0, {value}, -1;\n\
             match.all.sync.{t} %o1|%o2, {value}, -1;\nmatch.any.sync.{t} %o3, %a2, -1;"
        );
        let form = Form::new(format!("match.sync.{t}"), body);
        let form = form.ins(&[Ty::Below(4), Ty::Below(3), ty]).outs(Ty::B32, 2);
        s.push(form.outs(Ty::P, 1).outs(Ty::B32, 1));
    }
}

fn reductions(s: &mut Set) {
    let ops = ["add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32"];
    for op in ops.into_iter().chain(["and.b32", "or.b32", "xor.b32"]) {
        // `and` and `or` of 32 random numbers say little; of two kinds of lanes they do.
        let body = format!(
            "redux.sync.{op} %o0, %a0, -1;\nor.b32 %r0, %a0, 0xfffffff0;\n\
             redux.sync.{op} %o1, %r0, -1;\nand.b32 %r0, %a0, 0x10000;\n\
             redux.sync.{op} %o2, %r0, -1;"
        );
        let form = Form::new(format!("redux.sync.{op}"), body).sm(80);
        s.push(form.ins(&[Ty::B32]).outs(Ty::B32, 3));
    }
}

/// In the lanes of one side of a branch.
fn partial(s: &mut Set) {
    let one = |name: &str, sm: u32, inside: &str| {
        let body = format!(
            "vote.sync.ballot.b32 %r0, %a1, -1;\nnot.b32 %r1, %r0;\nmov.b32 %o0, 0;\n\
             mov.b32 %o1, 0;\n@!%a1 bra $@_else;\n{}bra $@_done;\n$@_else:\n{}$@_done:\n\
             bar.warp.sync -1;",
            inside.replace("MASK", "%r0"),
            inside.replace("MASK", "%r1"),
        );
        let form = Form::new(format!("{name} in divergent lanes"), body).sm(sm);
        form.ins(&[Ty::B32, Ty::P, Ty::P]).outs(Ty::B32, 2)
    };
    // The source is the lowest lane of the mask, so that it takes part.
    let shuffle = "brev.b32 %r2, MASK;\nclz.b32 %r2, %r2;\n\
                   shfl.sync.idx.b32 %o0, %a0, %r2, 0x1f, MASK;\n";
    s.push(one("shfl.sync.idx", 75, shuffle));
    let votes = "vote.sync.ballot.b32 %o0, %a2, MASK;\nvote.sync.any.pred %p0, %a2, MASK;\n\
                 vote.sync.all.pred %p1, %a2, MASK;\nvote.sync.uni.pred %p2, %a2, MASK;\n\
                 @%p0 or.b32 %o1, %o1, 1;\n@%p1 or.b32 %o1, %o1, 2;\n@%p2 or.b32 %o1, %o1, 4;\n";
    s.push(one("vote.sync", 75, votes));
    let matches = "and.b32 %r2, %a0, 3;\nmatch.any.sync.b32 %o0, %r2, MASK;\n\
                   match.all.sync.b32 %o1, %r2, MASK;\n";
    s.push(one("match.sync", 75, matches));
    s.push(one(
        "redux.sync",
        80,
        "redux.sync.add.u32 %o0, %a0, MASK;\n\
                                  redux.sync.min.s32 %o1, %a0, MASK;\n",
    ));
    s.push(one("activemask", 75, "bar.warp.sync MASK;\nactivemask.b32 %o0;\n"));
    s.push(one("elect.sync", 90, "elect.sync %o0|%p0, MASK;\n@%p0 mov.b32 %o1, 1;\n"));
}

fn barriers(s: &mut Set) {
    for bar in ["bar", "barrier.cta", "barrier"] {
        let body = format!(
            "{OFTEN}{bar}.red.popc.u32 %o0, 0, %p0;\n{bar}.red.and.pred %o1, 1, %p0;\n\
             {bar}.red.or.pred %o2, 2, 256, !%p0;\n{bar}.red.popc.u32 %o3, 3, 256, !%p0;"
        );
        let form = Form::new(format!("{bar}.red"), body).ins(&[Ty::Below(2), Ty::P]);
        let form = form.outs(Ty::B32, 1).outs(Ty::P, 2).outs(Ty::B32, 1);
        s.push(form.block([256, 1, 1], 4));
        // Neighbours read what the other has written.
        let body = format!(
            "mul.lo.u32 %r0, %x, 4;\nmov.u32 %r1, @_s;\nadd.u32 %r0, %r0, %r1;\n\
             st.shared.b32 [%r0], %a0;\n{bar}.sync 0;\nxor.b32 %r2, %x, 255;\n\
             mul.lo.u32 %r2, %r2, 4;\nadd.u32 %r2, %r2, %r1;\nld.shared.b32 %o0, [%r2];\n\
             {bar}.sync 5, 256;\nst.shared.b32 [%r0], %o0;\n{bar}.sync 6;\n\
             ld.shared.b32 %o1, [%r2];"
        );
        let form = Form::new(format!("{bar}.sync"), body).ins(&[Ty::B32]).outs(Ty::B32, 2);
        s.push(form.locals(".shared .align 4 .b32 @_s[256];\n"));
        // Half of the block produces and does not wait.
        let body = format!(
            "and.b32 %r0, %x, 127;\nmul.lo.u32 %r0, %r0, 4;\nmov.u32 %r1, @_s;\n\
             add.u32 %r0, %r0, %r1;\nmov.b32 %o0, %a0;\nsetp.lt.u32 %p0, %x, 128;\n\
             @!%p0 bra $@_wait;\nst.shared.b32 [%r0], %a0;\n{bar}.arrive 1, 256;\n\
             bra $@_done;\n$@_wait:\n{bar}.sync 1, 256;\nld.shared.b32 %o0, [%r0];\n$@_done:"
        );
        let form = Form::new(format!("{bar}.arrive"), body).ins(&[Ty::B32]).outs(Ty::B32, 1);
        s.push(form.locals(".shared .align 4 .b32 @_s[128];\n"));
    }
    let body = "barrier.cluster.arrive;\nbarrier.cluster.wait;\nbarrier.cluster.arrive.aligned;\n\
                barrier.cluster.wait.aligned;\nmov.b32 %o0, %a0;";
    s.push(Form::new("barrier.cluster", body).sm(90).ins(&[Ty::B32]).outs(Ty::B32, 1));
}
