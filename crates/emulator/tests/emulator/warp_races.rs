//! Races on global memory between the warps of one block.

use crate::common::{Device, Params};

/// A kernel of which each thread writes a word, does `between`, and reads the word of a thread of the next
/// warp, or of its own.
fn exchange(between: &str, distance: u32) -> Device {
    let mut device = Device::from_ptx(&format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 x, .param .u64 y)\n{{\n\
         .reg .pred %p<2>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<10>;\n.shared .align 8 .b64 object;\n\
         ld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [y];\n\
         mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n\
         mad.lo.u32 %r4, %r2, %r3, %r1;\nxor.b32 %r5, %r4, {distance};\n\
         mul.wide.u32 %rd3, %r4, 4;\nmul.wide.u32 %rd4, %r5, 4;\n\
         add.u64 %rd5, %rd1, %rd3;\nadd.u64 %rd6, %rd1, %rd4;\nadd.u64 %rd7, %rd2, %rd3;\n\
         add.u32 %r6, %r4, 1;\nst.global.u32 [%rd5], %r6;\n{between}\n\
         ld.global.u32 %r7, [%rd6];\nst.global.u32 [%rd7], %r7;\nret;\n}}\n"
    ));
    device.sanitize = true;
    device
}

/// What was found in launches of one block and of several, by check and message.
fn found(device: &Device) -> Vec<(&'static str, String)> {
    let (x, y) = (device.upload(&[0u32; 256]), device.alloc::<u32>(256));
    let params = Params::default().arg(x).arg(y);
    let runs = [1, 4].map(|blocks| device.run("k", blocks, 64, &params).findings);
    runs.into_iter().flatten().map(|finding| (finding.check, finding.message)).collect()
}

#[test]
fn what_no_barrier_orders_is_found() {
    for between in ["", "bar.warp.sync 0xffffffff;"] {
        let found = found(&exchange(between, 32));
        assert!(found.iter().all(|(check, _)| *check == "global_race"), "{found:?}");
        let reads = found.iter().filter(|(_, text)| text.contains("4-byte read at "));
        let beside = |text: &str| {
            text.contains("of global memory by") && text.contains("and write by warp ")
        };
        let reads = reads.collect::<Vec<_>>();
        assert!(!reads.is_empty() && reads.iter().all(|(_, text)| beside(text)), "{found:?}");
        let end = "of the same block with no barrier between";
        assert!(found.iter().all(|(_, text)| text.contains(end)), "{found:?}");
    }
}

#[test]
fn what_a_barrier_orders_is_not() {
    let barriers = ["bar.sync 0;", "barrier.sync 1, 64;", "bar.red.popc.u32 %r7, 0, %p1;"];
    for barrier in barriers {
        let between = format!("setp.eq.u32 %p1, %r1, 0;\n{barrier}");
        assert_eq!(found(&exchange(&between, 32)), [], "{barrier}");
    }
    // Lanes of one warp are not compared.
    assert_eq!(found(&exchange("", 1)), []);
}

/// The first warp writes, and says so in `flag`; the second waits for that, or does not.
fn handed_over(signal: &str, wait: &str) -> Device {
    let mut device = Device::from_ptx(&format!(
        ".version 7.0\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 x, .param .u64 y)\n{{\n\
         .reg .pred %p<3>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<10>;\n\
         ld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [y];\n\
         mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
         mul.wide.u32 %rd3, %r2, 8;\nadd.u64 %rd1, %rd1, %rd3;\nadd.u64 %rd2, %rd2, %rd3;\n\
         setp.eq.u32 %p1, %r1, 32;\n@%p1 bra SECOND;\n\
         setp.ne.u32 %p1, %r1, 0;\n@%p1 bra DONE;\n\
         st.global.u32 [%rd1], 42;\n{signal}\nbra DONE;\n\
         SECOND:\n{wait}\n\
         ld.global.u32 %r3, [%rd1];\nst.global.u32 [%rd2], %r3;\nDONE:\nret;\n}}\n"
    ));
    device.sanitize = true;
    device
}

#[test]
fn a_flag_in_global_memory_orders_what_was_done_before_it() {
    let waits = |load: &str| {
        format!("WAIT:\n{load} %r4, [%rd1+4];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra WAIT;")
    };
    let volatile = waits("ld.volatile.global.u32");
    let signals = [
        "membar.gl;\nst.volatile.global.u32 [%rd1+4], 1;",
        "membar.gl;\natom.global.exch.b32 %r5, [%rd1+4], 1;",
        "st.release.gpu.global.u32 [%rd1+4], 1;",
        "red.global.add.u32 [%rd1+4], 1;",
        // A plain store: it does not order the accesses of its writer.
        "membar.gl;\nst.global.u32 [%rd1+4], 1;",
    ];
    for signal in signals {
        assert_eq!(found(&handed_over(signal, &volatile)), [], "{signal}");
    }
    let atomic = "WAIT:\natom.global.add.u32 %r4, [%rd1+4], 0;\nsetp.eq.u32 %p2, %r4, 0;\n\
                  @%p2 bra WAIT;";
    let signal = signals[0];
    for wait in [&waits("ld.acquire.gpu.global.u32"), atomic] {
        assert_eq!(found(&handed_over(signal, wait)), [], "{wait}");
    }
    let found = found(&handed_over(signal, ""));
    assert!(!found.is_empty(), "nothing waits for the flag");
    assert!(found.iter().all(|(check, _)| *check == "global_race"), "{found:?}");
}
