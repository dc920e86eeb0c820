//! Moves, special registers, asynchronous copies, barrier objects, and what has no result.

use super::super::form::Form;
use super::super::set::Set;
use super::super::value::Ty;

pub fn add(s: &mut Set) {
    moves(s);
    registers(s);
    copies(s);
    barrier_objects(s);
    nothing(s);
}

fn moves(s: &mut Set) {
    let types = [
        ("b16", Ty::B16),
        ("u16", Ty::U16),
        ("s16", Ty::S16),
        ("b32", Ty::B32),
        ("u32", Ty::U32),
        ("s32", Ty::S32),
        ("b64", Ty::B64),
        ("u64", Ty::U64),
        ("s64", Ty::S64),
        ("f32", Ty::F32),
        ("f64", Ty::F64),
    ];
    for (t, ty) in types {
        let mut form = Form::new(format!("mov.{t}"), format!("mov.{t} %o0, %a0;\n"));
        let mut r = form.random();
        for n in 1..6 {
            let v = ty.literal(ty.draw(&mut r, None)).unwrap_or_default();
            form.body += &format!("mov.{t} %o{n}, {v};\n");
        }
        s.push(form.ins(&[ty]).outs(ty, 6));
    }
    let body = "mov.b32 {%h0, %h1}, %a0;\nmov.b32 %o0, {%h1, %h0};\nmov.b64 {%r0, %r1}, %a1;\n\
                mov.b64 %o1, {%r1, %r0};\nmov.b64 {%h2, %h3, %h4, %h5}, %a1;\n\
                mov.b64 %o2, {%h5, %h3, %h2, %h4};\nmov.b32 {_, %h6}, %a0;\n\
                mov.b32 %o3, {%h6, %h6};\nmov.b64 {%r2, _}, %a1;\nmov.b32 %o4, %r2;";
    let form = Form::new("mov, packing", body).ins(&[Ty::B32, Ty::B64]).outs(Ty::B32, 1);
    s.push(form.outs(Ty::B64, 2).outs(Ty::B32, 2));
    let body = "mov.b32 {%b0, %b1, %b2, %b3}, %a0;\nmov.b32 %o0, {%b3, %b1, %b0, %b2};\n\
                mov.b16 {%b0, %b1}, %a1;\nmov.b16 %o1, {%b1, %b0};";
    let form = Form::new("mov, bytes", body).ins(&[Ty::B32, Ty::B16]).outs(Ty::B32, 1);
    s.push(form.outs(Ty::B16, 1).locals(".reg .b8 %b<4>;\n"));
    let body = "mov.b128 %q0, {%a0, %a1};\nmov.b128 %q1, %q0;\nmov.b128 {%o0, %o1}, %q1;\n\
                st.global.b128 [%m], %q1;\nld.global.b128 %q0, [%m];\nmov.b128 {%d0, %o2}, %q0;\n\
                mov.b64 %o3, %d0;";
    let form = Form::new("mov, 128 bits", body).ins(&[Ty::B64; 2]).outs(Ty::B64, 2).memory(16);
    let mut form = form.locals(".reg .b128 %q<2>;\n");
    // The memory stands between the registers.
    form.body = form.body.replace("%o3", "%o4").replace("%o2", "%o3");
    s.push(form.outs(Ty::B64, 2));
}

fn registers(s: &mut Set) {
    let plain = [
        "tid.x",
        "tid.y",
        "tid.z",
        "ntid.x",
        "ntid.y",
        "ntid.z",
        "ctaid.x",
        "ctaid.y",
        "ctaid.z",
        "nctaid.x",
        "nctaid.y",
        "nctaid.z",
        "laneid",
        "warpid",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
        "dynamic_smem_size",
    ];
    let read = |names: &[&str]| {
        let lines = names.iter().enumerate().map(|(n, r)| format!("mov.u32 %o{n}, %{r};\n"));
        lines.collect::<String>()
    };
    for block in [[256, 1, 1], [8, 4, 2], [5, 3, 7]] {
        let name = format!("special registers in blocks of {block:?}");
        let form = Form::new(name, read(&plain)).outs(Ty::B32, plain.len());
        // A GPU counts the warps of a multiprocessor's other blocks too.
        let warp = plain.iter().position(|r| *r == "warpid").unwrap_or(plain.len());
        s.push(form.block(block, 3).free(warp));
    }
    let cluster = [
        "cluster_ctaid.x",
        "cluster_ctaid.y",
        "cluster_nctaid.x",
        "cluster_nctaid.z",
        "clusterid.x",
        "clusterid.y",
        "nclusterid.x",
        "nclusterid.z",
        "cluster_ctarank",
        "cluster_nctarank",
    ];
    let form = Form::new("special registers of clusters", read(&cluster)).sm(90);
    s.push(form.outs(Ty::B32, cluster.len()).block([64, 1, 1], 3));
    // Values that differ between devices, but not what holds for them.
    let body = "mov.u32 %r0, %smid;\nmov.u32 %r1, %nsmid;\nsetp.lt.u32 %o0, %r0, %r1;\n\
                mov.u32 %r0, %warpid;\nmov.u32 %r1, %nwarpid;\nsetp.lt.u32 %o1, %r0, %r1;\n\
                mov.u64 %d0, %clock64;\nmov.u32 %r2, %clock;\nmov.u32 %r3, %clock_hi;\n\
                mov.u64 %d1, %clock64;\nsetp.ge.u64 %o2, %d1, %d0;\nmov.u64 %d2, %globaltimer;\n\
                mov.u64 %d3, %globaltimer;\nsetp.ge.u64 %o3, %d3, %d2;\n\
                mov.u32 %r4, %globaltimer_hi;\nsetp.ne.u32 %o4, %r4, 0;\n\
                mov.u32 %r5, %total_smem_size;\nmov.u32 %r6, %dynamic_smem_size;\n\
                setp.ge.u32 %o5, %r5, %r6;\nmov.u64 %d4, %gridid;\nmov.u32 %r7, %globaltimer_lo;";
    s.push(Form::new("special registers that vary", body).outs(Ty::P, 6));
    let body = "mov.u32 %r0, %aggr_smem_size;\nmov.u32 %r1, %total_smem_size;\n\
                setp.ge.u32 %o0, %r0, %r1;";
    s.push(Form::new("aggr_smem_size", body).sm(90).outs(Ty::P, 1));
}

/// `cp.async` from global to shared memory.
fn copies(s: &mut Set) {
    let begin = "mul.lo.u32 %r0, %x, 16;\nmov.u32 %r1, @_s;\nadd.u32 %r0, %r0, %r1;\n\
                 mul.wide.u32 %d0, %t, 16;\nadd.u64 %d0, %d0, %din;\n\
                 st.shared.v2.b64 [%r0], {-1, -1};\n";
    let end = "ld.shared.v2.b64 {%o0, %o1}, [%r0];";
    let wait = ["cp.async.wait_all;\n", "cp.async.commit_group;\ncp.async.wait_group 0;\n"];
    let forms = [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16), ("ca.shared::cta", 8)];
    for (n, (op, bytes)) in forms.into_iter().enumerate() {
        let op = if op.contains("shared") { "ca.shared::cta.global" } else { op };
        let op = if op.contains("shared") { op.into() } else { format!("{op}.shared.global") };
        let wait = wait[n % 2];
        let body = format!("{begin}cp.async.{op} [%r0], [%d0], {bytes};\n{wait}{end}");
        let locals = ".shared .align 16 .b8 @_s[4096];\n";
        let form = Form::new(format!("cp.async.{op} {bytes}"), body).sm(80);
        s.push(form.ins(&[Ty::B64; 2]).outs(Ty::B64, 2).locals(locals));
        // Fewer bytes from the source; the others become zeros.
        let body = format!(
            "{begin}rem.u32 %r2, %x, {};\ncp.async.{op} [%r0], [%d0], {bytes}, %r2;\n{wait}{end}",
            bytes + 1
        );
        let form = Form::new(format!("cp.async.{op} {bytes} with a source size"), body).sm(80);
        s.push(form.ins(&[Ty::B64; 2]).outs(Ty::B64, 2).locals(locals));
        if n < 3 {
            let body = format!("{begin}cp.async.{op}.L2::128B [%r0], [%d0], {bytes};\n{wait}{end}");
            let form = Form::new(format!("cp.async.{op}.L2::128B {bytes}"), body).sm(80);
            s.push(form.ins(&[Ty::B64; 2]).outs(Ty::B64, 2).locals(locals));
        }
    }
}

/// `mbarrier`: what its tests and counts say. States themselves are opaque.
fn barrier_objects(s: &mut Set) {
    let locals = ".shared .align 8 .b64 @_b[4];\n";
    let init = "mov.u32 %r0, @_b;\nsetp.eq.u32 %p0, %x, 0;\n\
                @%p0 mbarrier.init.shared.b64 [%r0], 256;\n\
                @%p0 mbarrier.init.shared.b64 [%r0+8], 512;\nbar.sync 0;\n";
    let body = format!(
        "{init}mbarrier.test_wait.parity.shared.b64 %o0, [%r0], 0;\n\
         mbarrier.test_wait.parity.shared.b64 %o1, [%r0], 1;\nbar.sync 0;\n\
         mbarrier.arrive.shared.b64 %d0, [%r0];\n$@_w:\n\
         mbarrier.test_wait.shared.b64 %p1, [%r0], %d0;\n@!%p1 bra $@_w;\n\
         mbarrier.test_wait.parity.shared.b64 %o2, [%r0], 0;\nbar.sync 0;\n\
         mbarrier.arrive.noComplete.shared.b64 %d1, [%r0+8], 1;\nmov.pred %o3, %p1;"
    );
    // The emulator refuses `.noComplete`; two plain arrivals do the same.
    let body = body.replace(
        "mbarrier.arrive.noComplete.shared.b64 %d1, [%r0+8], 1;\n",
        "mbarrier.arrive.shared.b64 %d1, [%r0+8];\nmbarrier.arrive.shared.b64 _, [%r0+8];\n\
         bar.sync 0;\nmbarrier.test_wait.shared.b64 %p1, [%r0+8], %d1;\n",
    );
    let form = Form::new("mbarrier arrive and test_wait", body).sm(80).locals(locals);
    s.push(form.outs(Ty::P, 4));
    let body = "mov.u32 %r0, @_b;\nsetp.eq.u32 %p0, %x, 0;\n@!%p0 bra $@_end;\n\
                mbarrier.init.shared.b64 [%r0], 9;\nmbarrier.arrive.shared.b64 %d0, [%r0];\n\
                mbarrier.pending_count.b64 %r2, %d0;\nst.global.b32 [%m], %r2;\n\
                mbarrier.arrive.shared.b64 %d0, [%r0];\nmbarrier.pending_count.b64 %r2, %d0;\n\
                st.global.b32 [%m+4], %r2;\nmbarrier.arrive_drop.shared.b64 %d0, [%r0];\n\
                mbarrier.pending_count.b64 %r2, %d0;\nst.global.b32 [%m+8], %r2;\n\
                mbarrier.arrive.shared.b64 %d0, [%r0];\nmbarrier.pending_count.b64 %r2, %d0;\n\
                st.global.b32 [%m+12], %r2;\nmbarrier.inval.shared.b64 [%r0];\n$@_end:";
    let form = Form::new("mbarrier counts", body).sm(80).locals(locals).memory(16);
    s.push(form.block([64, 1, 1], 2));
    let body = format!(
        "{init}mbarrier.arrive.shared::cta.b64 %d0, [%r0], 1;\n$@_w:\n\
         mbarrier.try_wait.shared.b64 %p1, [%r0], %d0;\n@!%p1 bra $@_w;\n$@_v:\n\
         mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r0], 0;\n@!%p2 bra $@_v;\nbar.sync 0;\n\
         mbarrier.arrive.release.cta.shared::cta.b64 %d1, [%r0+8], 2;\n$@_u:\n\
         mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p3, [%r0+8], 0;\n\
         @!%p3 bra $@_u;\nand.pred %o0, %p1, %p2;\nmov.pred %o1, %p3;"
    );
    let form = Form::new("mbarrier try_wait", body).sm(90).locals(locals);
    s.push(form.outs(Ty::P, 2));
    for noinc in ["", ".noinc"] {
        // Without `.noinc` the arrivals of copies come on top of the count.
        let count = if noinc.is_empty() { 256 } else { 512 };
        let body = format!(
            "mov.u32 %r0, @_b;\nmov.u32 %r3, @_s;\nmad.lo.u32 %r3, %x, 16, %r3;\n\
             setp.eq.u32 %p0, %x, 0;\n@%p0 mbarrier.init.shared.b64 [%r0], {count};\nbar.sync 0;\n\
             mul.wide.u32 %d0, %t, 16;\nadd.u64 %d0, %d0, %din;\n\
             cp.async.ca.shared.global [%r3], [%d0], 16;\n\
             cp.async.mbarrier.arrive{noinc}.shared.b64 [%r0];\n\
             mbarrier.arrive.shared.b64 %d1, [%r0];\n$@_w:\n\
             mbarrier.test_wait.shared.b64 %p1, [%r0], %d1;\n@!%p1 bra $@_w;\n\
             xor.b32 %r4, %x, 1;\nmov.u32 %r3, @_s;\nmad.lo.u32 %r3, %r4, 16, %r3;\n\
             ld.shared.v2.b64 {{%o0, %o1}}, [%r3];"
        );
        let form = Form::new(format!("cp.async.mbarrier.arrive{noinc}"), body).sm(80);
        let locals = format!("{locals}.shared .align 16 .b8 @_s[4096];\n");
        s.push(form.ins(&[Ty::B64; 2]).outs(Ty::B64, 2).locals(locals));
    }
}

/// Instructions without a result leave everything else as it is.
fn nothing(s: &mut Set) {
    let body = "membar.cta;\nmembar.gl;\nmembar.sys;\nfence.acq_rel.cta;\nfence.acq_rel.gpu;\n\
                fence.sc.sys;\nnanosleep.u32 20;\npmevent 3;\nmov.b32 %o0, %a0;";
    s.push(Form::new("fences, nanosleep, pmevent", body).ins(&[Ty::B32]).outs(Ty::B32, 1));
    let body = "griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\n\
                fence.proxy.async;\nfence.mbarrier_init.release.cluster;\nmov.b32 %o0, %a0;";
    s.push(Form::new("griddepcontrol", body).sm(90).ins(&[Ty::B32]).outs(Ty::B32, 1));
}
