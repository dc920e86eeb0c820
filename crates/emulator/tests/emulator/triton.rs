//! What Triton's compiler writes and NVRTC does not.

use crate::common::{Device, Params};

fn device(body: &str) -> Device {
    Device::from_ptx(&format!(
        ".version 8.7\n.target sm_89\n.address_size 64\n\
         .extern .shared .align 16 .b8 global_smem[];\n\
         .visible .entry f(.param .u64 .ptr .global .align 1 out,\n\
         .param .u64 .ptr .global .align 1 scratch)\n.reqntid 64\n{{\n\
         .reg .pred %p<4>;\n.reg .b16 %rs<8>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n\
         ld.param.b64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n\
         add.s64 %rd3, %rd1, %rd2;\n{body}\nret;\n}}\n"
    ))
}

fn words(body: &str) -> Vec<u32> {
    let d = device(body);
    let out = d.upload(&[0u32; 64]);
    d.run("f", 1, 64, &Params::default().arg(out).arg(0u64));
    d.download(out, 64)
}

/// As in the conversion of e4m3 to bf16: `a` is one register, `a<2>` are two others.
#[test]
fn a_register_may_have_the_name_that_others_begin_with() {
    let body = "cvt.u16.u32 %rs1, %r1;\n{\n.reg .b32 a;\n.reg .f16 a<2>;\n.reg .f32 b<2>;\n\
                .reg .b16 c<2>;\ncvt.rn.f16x2.e4m3x2 a, %rs1;\nmov.b32 {a0, a1}, a;\n\
                cvt.f32.f16 b0, a0;\ncvt.f32.f16 b1, a1;\ncvt.rn.bf16.f32 c0, b0;\n\
                cvt.rn.bf16.f32 c1, b1;\nmov.b32 %r2, {c0, c1};\n}\nst.global.b32 [%rd3], %r2;";
    for (code, word) in words(body).into_iter().enumerate() {
        let value = float8::F8E4M3::from_bits(code as u8).to_f32();
        assert_eq!(word, value.to_bits() >> 16, "{code}");
    }
    // In the other order, too.
    let body = "{\n.reg .b32 a<2>;\n.reg .b32 a;\nmov.b32 a0, 1;\nmov.b32 a1, 2;\nmov.b32 a, 4;\n\
                add.u32 %r2, a0, a1;\nadd.u32 %r2, %r2, a;\n}\nst.global.b32 [%rd3], %r2;";
    assert_eq!(words(body), [7; 64]);
}

/// Where a layout has a value in several warps, all of them write it to the same place.
#[test]
fn warps_that_write_the_same_do_not_race() {
    let store = |value: &str, barrier: &str| {
        format!(
            "and.b32 %r2, %r1, 31;\nmov.u32 %r3, global_smem;\nmad.lo.u32 %r3, %r2, 8, %r3;\n\
             mov.u32 %r4, 5;\nst.shared.v2.b32 [%r3], {{ %r4, {value} }};\n{barrier}\n\
             ld.shared.b32 %r5, [%r3+4];\nst.global.b32 [%rd3], %r5;"
        )
    };
    let findings = |body: &str| {
        let mut d = device(body);
        d.sanitize = true;
        let out = d.upload(&[0u32; 64]);
        let p = Params::default().arg(out).arg(0u64);
        let report = d.try_run("f", [1, 1, 1], [64, 1, 1], 256, &p).unwrap();
        report.findings.iter().map(|f| (f.check, f.count)).collect::<Vec<_>>()
    };
    assert_eq!(findings(&store("%r2", "bar.sync 0;")), []);
    // One of the words differs.
    assert_eq!(findings(&store("%r1", "bar.sync 0;")), [("shared_race", 32)]);
    // Who reads must wait for all who write.
    let unordered = findings(&store("%r2", ""));
    assert!(!unordered.is_empty() && unordered.iter().all(|f| f.0 == "shared_race"));
}
