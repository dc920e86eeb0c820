//! Errors: names, the last one of a thread, and those that stay.

use std::ffi::CStr;
use std::sync::Mutex;
use std::thread;

use crate::program::{FAULTS, ONE, Program, begin, launch, memory, word};
use crate::ptx::PROGRAM;
use crate::sys::*;

/// Held while a test uses the device of faults.
static FAULTY: Mutex<()> = Mutex::new(());

#[test]
fn errors_have_names_and_texts() {
    let name = |code| unsafe { CStr::from_ptr(cudaGetErrorName(code)) }.to_str().unwrap();
    let text = |code| unsafe { CStr::from_ptr(cudaGetErrorString(code)) }.to_str().unwrap();
    assert_eq!((name(0), text(0)), ("cudaSuccess", "no error"));
    assert_eq!(name(INVALID_CONFIGURATION), "cudaErrorInvalidConfiguration");
    assert_eq!(text(INVALID_CONFIGURATION), "invalid configuration argument");
    assert_eq!(name(2), "cudaErrorMemoryAllocation");
    assert_eq!(text(2), "out of memory");
    assert_eq!(name(ILLEGAL_ADDRESS), "cudaErrorIllegalAddress");
    assert_eq!(text(ILLEGAL_ADDRESS), "an illegal memory access was encountered");
    assert_eq!(name(12345), "unrecognized error code");
}

#[test]
fn a_wrong_launch_is_the_last_error_until_it_is_taken() {
    let add_one = Program::new(PROGRAM).kernel("add_one");
    let at = memory(4);
    assert_eq!(unsafe { cudaGetLastError() }, 0);
    assert_eq!(launch(add_one, 2048, at, 0, 0), INVALID_CONFIGURATION);
    // What goes well in between does not take it away.
    assert_eq!(launch(add_one, 1, at, 0, 0), 0);
    assert_eq!(unsafe { cudaDeviceSynchronize() }, 0);
    assert_eq!(unsafe { cudaPeekAtLastError() }, INVALID_CONFIGURATION);
    let elsewhere = thread::spawn(|| unsafe { cudaPeekAtLastError() }).join().unwrap();
    assert_eq!(elsewhere, 0, "another thread has errors of its own");
    assert_eq!(unsafe { cudaGetLastError() }, INVALID_CONFIGURATION);
    assert_eq!(unsafe { cudaGetLastError() }, 0);
    let arguments = [(&raw const at).cast()];
    let launch = |grid, shared| unsafe {
        cudaLaunchKernel(add_one, grid, ONE, arguments.as_ptr(), shared, 0)
    };
    assert_eq!(launch(Dim3(1, 65536, 1), 0), INVALID_CONFIGURATION);
    assert_eq!(launch(Dim3(0, 1, 1), 0), INVALID_CONFIGURATION);
    assert_eq!(launch(ONE, 1 << 20), INVALID_VALUE);
    assert_eq!(launch(ONE, 1 << 40), INVALID_VALUE);
}

#[test]
fn a_fault_is_told_by_the_next_call_that_waits_and_stays_until_the_reset() {
    let _alone = FAULTY.lock().unwrap();
    let double = Program::new(PROGRAM).kernel("double");
    assert_eq!(unsafe { cudaSetDevice(FAULTS) }, 0);
    let at = memory(4);
    assert_eq!(launch(double, 1, 64, 0, 0), 0);
    assert_eq!(unsafe { cudaGetLastError() }, 0);
    assert_eq!(unsafe { cudaDeviceSynchronize() }, ILLEGAL_ADDRESS);
    assert_eq!(unsafe { cudaGetLastError() }, ILLEGAL_ADDRESS);
    for _ in 0..2 {
        assert_eq!(unsafe { cudaFree(at) }, ILLEGAL_ADDRESS);
        assert_eq!(launch(double, 1, at, 0, 0), ILLEGAL_ADDRESS);
        assert_eq!(unsafe { cudaGetLastError() }, ILLEGAL_ADDRESS);
    }
    // Other devices do not know of it.
    assert_eq!(unsafe { cudaSetDevice(0) }, 0);
    assert_eq!(unsafe { cudaDeviceSynchronize() }, 0);
    assert_eq!(unsafe { cudaSetDevice(FAULTS) }, 0);
    assert_eq!(unsafe { cudaDeviceReset() }, 0);
    let mut device = -1;
    assert_eq!(unsafe { cudaGetDevice(&mut device) }, 0);
    assert_eq!(device, FAULTS);
    let at = memory(4);
    assert_eq!(unsafe { cudaMemset(at, 1, 4) }, 0);
    assert_eq!(launch(double, 1, at, 0, 0), 0);
    assert_eq!(word(at), 0x0202_0202);
}

#[test]
fn a_reset_is_noticed_by_threads_that_use_the_device() {
    let _alone = FAULTY.lock().unwrap();
    begin();
    assert_eq!(unsafe { cudaSetDevice(FAULTS) }, 0);
    let before = memory(4);
    let reset = || unsafe { (cudaSetDevice(FAULTS), cudaDeviceReset()) };
    assert_eq!(thread::spawn(reset).join().unwrap(), (0, 0));
    let after = memory(4);
    let mut attributes =
        PointerAttributes { kind: 0, device: 0, device_pointer: 0, host_pointer: 0 };
    assert_eq!(unsafe { cudaPointerGetAttributes(&mut attributes, after) }, 0);
    assert_eq!((attributes.kind, attributes.device), (2, FAULTS));
    if before != after {
        assert_eq!(unsafe { cudaFree(before) }, INVALID_VALUE);
    }
}

#[test]
fn wrong_arguments_are_told() {
    begin();
    let mut out = 0;
    assert_eq!(unsafe { cudaSetDevice(99) }, INVALID_DEVICE);
    assert_eq!(unsafe { cudaMalloc(&mut out, 1 << 50) }, 2);
    assert_eq!(unsafe { cudaFree(0x1234) }, INVALID_VALUE);
    assert_eq!(unsafe { cudaMemcpy(out, out, 4, 9) }, INVALID_DIRECTION);
    assert_eq!(unsafe { cudaMemcpy2D(out, 3, out, 4, 4, 2, DEFAULT) }, INVALID_PITCH);
    assert_eq!(unsafe { cudaStreamDestroy(0x5555) }, 400);
    assert_eq!(unsafe { cudaEventRecord(0x5555, 0) }, 400);
    assert_eq!(unsafe { cudaFree(0) }, 0);
    assert_eq!(unsafe { cudaMalloc(&mut out, 0) }, 0);
    assert_eq!(out, 0);
}
