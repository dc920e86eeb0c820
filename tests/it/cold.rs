//! What an evaluation without a GPU does when nothing is cached.

use std::path::Path;

use crate::server::{data_directory, program};
use crate::support::outcome;

/// `y[i] = 1` for one element.
const KERNEL: &str = ".version 7.0\n.target sm_75\n.address_size 64\n\
    .visible .entry one(.param .u64 one_y) {\n\
    .reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n\
    ld.param.u64 %rd1, [one_y];\ncvta.to.global.u64 %rd2, %rd1;\n\
    mov.u32 %r1, 1;\nst.global.u32 [%rd2], %r1;\nret;\n}\n";

const CONTRACT: &str = "\
kernel:
  kernel_type: ptx
  source_file: one.ptx
  io:
    args:
      - {name: y, type: tensor, role: output, tensor_spec: {shape: [1], dtype: int32}}
    launch: {grid: {x: 1}, block: {x: 1}}
expected: {y: {data: {data_b64: AQAAAA==}}}
";

/// The workers' own kernels are in the program: nothing is compiled for a kernel that is PTX already.
#[test]
fn a_first_evaluation_compiles_nothing_but_its_kernel() {
    let directory = data_directory();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("one.ptx", KERNEL);
    write("contract.yaml", CONTRACT);
    let data = directory.path().join("data");
    let mut command = program();
    command.args(["--device", "emulator", "eval", "contract.yaml", "--allow-weak"]);
    command.current_dir(directory.path()).env("WARPGAUGE_DATA_DIR", &data);
    let (code, out, error) = outcome(command.output().unwrap());
    assert_eq!(code, 0, "{out}{error}");
    assert!(out.starts_with("CORRECT"), "{out}");
    assert_eq!(files_below(&data.join("cubins/artifacts")), 0, "something was compiled");
}

fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files_below(&path) } else { 1 }).sum()
}
