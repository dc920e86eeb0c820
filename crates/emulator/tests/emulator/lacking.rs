//! Messages distinguish what the emulator lacks from what no device accepts, and the emulator has what the
//! compiler's headers need.

use std::sync::Arc;

use crate::common::{Device, Params};
use warpgauge_emulator::{LoadError, Memory, Module};

fn text(body: &str) -> String {
    format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry f(.param .u64 out) {{\n\
         .reg .b32 %r<64>;\n.reg .b64 %rd<16>;\n.reg .pred %p<4>;\n.reg .f32 %f<4>;\n\
         .reg .b16 %h<4>;\nld.param.u64 %rd1, [out];\n{body}\nret;\n}}\n"
    )
}

fn load(body: &str) -> Result<(), LoadError> {
    Module::load(&text(body), &Arc::new(Memory::new()), 0).map(drop)
}

/// What one thread per block and lane stores: `count` words from the address in `%rd1`.
fn words(body: &str, threads: u32, count: usize) -> Vec<u32> {
    let device = Device::from_ptx(&text(body));
    let out = device.upload(&vec![0u32; count]);
    device.run("f", 1, threads, &Params::default().arg(out));
    device.download(out, count)
}

#[test]
fn what_the_emulator_lacks_is_a_gap() {
    for body in [
        "vavrg4.u32.u32.u32 %r1, %r2, %r3, %r4;",
        "tcgen05.wait::ld.sync.aligned;",
        "wgmma.fence.sync.aligned;",
        "tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd2, {%f0, %f1, %f2, %f3}];",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%rd2, %rd3, {%f0, %f1}];",
        "sust.p.2d.v4.b32.trap [%rd2, {%r1, %r2}], {%r1, %r2, %r3, %r4};",
        "sured.b.add.2d.u32.trap [%rd2, {%r1, %r2}], %r3;",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes \
         [%r1], [%rd2, {%r3, %r4}], [%r5];",
        "mapa.u64 %rd2, %rd3, %r1;",
        "cvt.rn.satfinite.e2m1x2.f32 %h1, %f1, %f2;",
        "vset2.u32.u32.eq %r1, %r2, %r3, %r4;",
        "max.f32 %f0, %f1, %f2, %f3;",
        "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r1}, {%r2}, {%r3}, {%r4}, %r5, 0;",
        "atom.global.exch.b128 %rd2, [%rd1], %rd3;",
        "redux.sync.min.f32 %f0, %f1, -1;",
    ] {
        let error = load(body).expect_err(body);
        assert!(error.gap, "{body}: {error}");
    }
}

#[test]
fn what_no_device_takes_is_not() {
    for body in [
        "frobnicate.b32 %r1, %r2;",
        "add.u32 %r1, %r2",
        "add.u32 %r1, %r2, %r99;",
        "add.foo.u32 %r1, %r2, %r3;",
        "add.u8 %r1, %r2, %r3;",
        "add.u32 %rd1, %r2, %r3;",
        "add.u32 %r1, %r2;",
        "ld.global.u32 %r1, [%rd1, %rd2];",
        "mov.u32 %r1, nowhere;",
        "mov.u32 %r1, %nosuchregister;",
        "mov.u32 %r1, %envreg32;",
        "bra nowhere;",
        "cp.frobnicate [%rd1], [%rd2];",
        "mma.sync.aligned.m16n8k32.foo.row.f32.f16.f16.f32 {%r1}, {%r2}, {%r3}, {%r4};",
        ".frobnicate 3;",
        "mov.u32 %r1, 1 +;",
        ".shared .b8 big[50000]; mov.u32 %r1, big;",
    ] {
        let error = load(body).expect_err(body);
        assert!(!error.gap, "{body}: {error}");
    }
}

#[test]
fn the_threads_of_a_warp_are_a_constant() {
    let body = "mov.u32 %r1, WARP_SZ;\nst.global.u32 [%rd1], %r1;\n\
                add.u32 %r2, %r1, WARP_SZ-1;\nst.global.u32 [%rd1+4], %r2;\n\
                mov.u64 %rd2, WARP_SZ;\nst.global.u64 [%rd1+8], %rd2;\n\
                .shared .align 4 .b8 s[WARP_SZ];\nst.global.u32 [%rd1+WARP_SZ], WARP_SZ;\n\
                setp.eq.u32 %p1, %r1, WARP_SZ;\nselp.u32 %r3, WARP_SZ, 0, %p1;\n\
                shl.b32 %r3, %r3, WARP_SZ >> 4;\nst.global.u32 [%rd1+16], %r3;";
    assert_eq!(words(body, 1, 9), [32, 63, 32, 0, 128, 0, 0, 0, 32]);
}

/// The part of cooperative groups lies after the block's own shared memory, whatever that is, and
/// within what is reserved.
#[test]
fn reserved_shared_memory_is_beside_that_of_the_block() {
    let body = ".shared .align 4 .b8 own[100];\n\
                mov.u32 %r1, %reserved_smem_offset_begin;\nst.global.u32 [%rd1], %r1;\n\
                mov.u32 %r2, %reserved_smem_offset_end;\nst.global.u32 [%rd1+4], %r2;\n\
                mov.u32 %r3, %reserved_smem_offset_cap;\nst.global.u32 [%rd1+8], %r3;\n\
                mov.u32 %r4, %reserved_smem_offset_0;\nst.global.u32 [%rd1+12], %r4;\n\
                mov.u32 %r5, %reserved_smem_offset_1;\nst.global.u32 [%rd1+16], %r5;\n\
                mov.u32 %r6, %total_smem_size;\nst.global.u32 [%rd1+20], %r6;\n\
                mov.u32 %r7, %aggr_smem_size;\nst.global.u32 [%rd1+24], %r7;\n\
                mov.u32 %r8, 7;\nst.shared.u32 [own+96], %r8;\nmov.u32 %r9, 9;\n\
                st.shared.u32 [%r5+284], %r9;\nld.shared.u32 %r8, [own+96];\n\
                st.global.u32 [%rd1+28], %r8;\nld.shared.u32 %r9, [%r5+284];\n\
                st.global.u32 [%rd1+32], %r9;";
    let found = words(body, 1, 9);
    let [begin, end, bytes, first, groups, total, all, own, reserved] = found[..] else {
        panic!("{found:?}")
    };
    assert_eq!((bytes, end - begin, total, all), (1024, 1024, 100, 1124));
    assert!(begin >= 100 && (begin..=end - 288).contains(&groups) && first == begin, "{found:?}");
    assert_eq!((own, reserved), (7, 9));
}

#[test]
fn registers_of_the_driver_and_of_counters_can_be_read() {
    for name in ["%envreg0", "%envreg31", "%pm0", "%pm7", "%nwarpid", "%nsmid", "%clock_hi"] {
        load(&format!("mov.u32 %r1, {name};")).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    for name in ["%pm3_64", "%gridid", "%clock64", "%globaltimer"] {
        load(&format!("mov.u64 %rd2, {name};")).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// A policy is a hint: loads, stores and atomics with one do what they do without.
#[test]
fn cache_policies_change_no_result() {
    let body = "createpolicy.fractional.L2::evict_last.b64 %rd2, 1.0;\n\
                createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %rd3, [%rd1], 16, 32;\n\
                mov.u32 %r1, 5;\nst.global.L2::cache_hint.u32 [%rd1], %r1, %rd2;\n\
                ld.global.L2::cache_hint.u32 %r2, [%rd1], %rd3;\n\
                atom.global.add.L2::cache_hint.u32 %r3, [%rd1], %r2, %rd2;\n\
                red.global.add.L2::cache_hint.u32 [%rd1], 1, %rd2;\n\
                st.global.u32 [%rd1+4], %r3;\n\
                .shared .align 16 .b8 s[16];\nmov.u32 %r4, s;\n\
                cp.async.ca.shared.global.L2::cache_hint [%r4], [%rd1], 4, %rd2;\n\
                cp.async.ca.shared.global.L2::cache_hint [%r4+4], [%rd1], 4, 0, %rd2;\n\
                cp.async.wait_all;\nld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd1+8], %r5;\n\
                ld.shared.u32 %r6, [%r4+4];\nst.global.u32 [%rd1+12], %r6;";
    assert_eq!(words(body, 1, 4), [11, 5, 11, 0]);
}
