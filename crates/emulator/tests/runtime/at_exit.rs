//! What a program leaves behind when it ends. The tests that are ignored are such programs, which
//! the others start.

use std::ffi::c_void;

use serde_json::Value;

use crate::program::{ONE, Program, again, launch, memory};
use crate::ptx::{PRINT, PROGRAM};
use crate::sys::*;

const DESCRIPTOR: &str = "WARPGAUGE_EMULATOR_REPORT_FD";

#[test]
#[ignore = "runs in processes that other tests start"]
fn a_program_that_does_not_wait() {
    let add_one = Program::new(PROGRAM).kernel("add_one");
    let at = memory(4);
    for _ in 0..5 {
        assert_eq!(launch(add_one, 1024, at, 0, 0), 0);
    }
}

#[test]
fn the_report_is_written_once_with_all_that_was_launched() {
    let (_, error) = again("at_exit::a_program_that_does_not_wait", &[(DESCRIPTOR, "2")]);
    let report: Value = serde_json::from_str(&error).unwrap();
    assert_eq!(report["kernels"][0]["name"], "add_one");
    assert_eq!(report["kernels"][0]["launches"], 5);
    assert!(report["findings"].is_array() && report["messages"].is_array());
}

#[test]
fn a_descriptor_that_is_not_open_is_no_matter() {
    for descriptor in ["777", "none"] {
        let (_, error) =
            again("at_exit::a_program_that_does_not_wait", &[(DESCRIPTOR, descriptor)]);
        assert_eq!(error, "");
    }
}

#[test]
#[ignore = "runs in processes that other tests start"]
fn a_program_that_prints() {
    let say = Program::new(PRINT).kernel("say");
    let (number, line) = (5u32, c"before\n");
    let arguments = [(&raw const number).cast::<c_void>()];
    // SAFETY: the C library's own, as a program in C calls it.
    unsafe { libc::printf(line.as_ptr()) };
    assert_eq!(unsafe { cudaLaunchKernel(say, ONE, ONE, arguments.as_ptr(), 0, 0) }, 0);
    assert_eq!(unsafe { cudaDeviceSynchronize() }, 0);
    // SAFETY: as above.
    unsafe { libc::printf(c"after\n".as_ptr()) };
    // No parent waits for this process, so its output is lost.
    assert_eq!(unsafe { cudaLaunchKernel(say, ONE, ONE, arguments.as_ptr(), 0, 0) }, 0);
}

#[test]
fn what_kernels_print_stands_in_order_with_what_the_program_prints() {
    let (out, _) = again("at_exit::a_program_that_prints", &[(DESCRIPTOR, "2")]);
    let lines: Vec<&str> =
        out.lines().filter(|line| ["before", "value is 5", "after"].contains(line)).collect();
    assert_eq!(lines, ["before", "value is 5", "after"], "{out}");
}
