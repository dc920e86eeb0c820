//! Counts of each PTX instruction.

use warpgauge_emulator::LaunchReport;
use warpgauge_emulator::counts::{INSTRUCTION_VALUES, InstructionCounts};

use crate::common::{Device, Params, Random, adds_up, ptx};

/// Returns the values that the instructions whose text begins with `opcode` have together.
fn of_opcode(text: &str, report: &LaunchReport, opcode: &str) -> [u64; INSTRUCTION_VALUES] {
    let mut sums = [0; INSTRUCTION_VALUES];
    let own = |one: &&InstructionCounts| text[one.at as usize..].starts_with(opcode);
    for one in report.instructions.iter().filter(own) {
        sums.iter_mut().zip(one.values()).for_each(|(sum, own)| *sum += own);
    }
    sums
}

#[test]
fn each_instruction_has_its_counts() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 4 .b8 tile[4096];\n\
        .func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 %a;\nld.param.u32 %a, [x];\n\
        shl.b32 %a, %a, 1;\nst.param.b32 [r], %a;\nret;\n}\n\
        .visible .entry k(.param .u64 p) {\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p1;\n\
        ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; // the second in the line\n\
        mul.wide.u32 %rd2, %r1, 128;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\n\
        shl.b32 %r3, %r1, 3;\nmov.u32 %r4, tile;\nadd.s32 %r4, %r4, %r3;\n\
        setp.lt.u32 %p1, %r1, 8;\n@%p1 st.shared.u32 [%r4], %r2;\n@!%p1 bra DONE;\n\
        {\n.param .b32 a;\n.param .b32 b;\nst.param.b32 [a], %r2;\ncall (b), twice, (a);\n\
        ld.param.b32 %r5, [b];\n}\nst.global.u32 [%rd1], %r5;\nDONE: ret;\n}\n";
    let mut d = Device::from_ptx(text);
    (d.count, d.by_instruction) = (true, true);
    let p = Params::default().arg(d.alloc::<u32>(32 * 32));
    let report = d.run("k", 2, 32, &p);
    adds_up("k", &report);
    let opcode = |name| of_opcode(text, &report, name);
    // Two blocks of one warp. Each lane of the load touches its own sector.
    assert_eq!(opcode("mov.u32 %r1"), [2, 64, 64, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(opcode("ld.global"), [2, 64, 64, 2, 64, 8, 0, 0, 0, 0]);
    // The guard holds for 8 of 32 lanes, whose words are in 8 banks.
    assert_eq!(opcode("@%p1 st.shared"), [2, 64, 16, 0, 0, 0, 2, 2, 0, 0]);
    // After the branch 8 lanes are left. They write to one address.
    assert_eq!(opcode("st.global"), [2, 16, 16, 2, 2, 2, 0, 0, 0, 0]);
    assert_eq!(opcode("shl.b32 %a"), [2, 16, 16, 0, 0, 0, 0, 0, 0, 0]);
    d.by_instruction = false;
    assert!(d.run("k", 2, 32, &p).instructions.is_empty());
}

#[test]
fn conflicts_belong_to_their_instructions() {
    let mut d = Device::new("matmul.80");
    (d.count, d.by_instruction) = (true, true);
    let (w, h) = (64, 64);
    let (i, o) = (d.upload(&Random(5).floats(w * h)), d.alloc::<f32>(w * h));
    let p = Params::default().arg(o).arg(i).arg(w as i32).arg(h as i32);
    let report = d.try_run("transpose", [2, 2, 1], [32, 8, 1], 0, &p).unwrap();
    adds_up("transpose", &report);
    let (loads, stores) = (
        of_opcode(&ptx("matmul.80"), &report, "ld.shared"),
        of_opcode(&ptx("matmul.80"), &report, "st.shared"),
    );
    let c = &report.counts;
    assert!(c.shared_load_requests > 0);
    assert_eq!(
        loads[6..9],
        [c.shared_load_requests, c.shared_load_wavefronts, c.shared_load_conflicts]
    );
    assert_eq!(
        stores[6..9],
        [c.shared_store_requests, c.shared_store_wavefronts, c.shared_store_conflicts]
    );
}
