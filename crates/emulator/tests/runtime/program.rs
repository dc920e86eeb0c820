//! What a compiled program has: fat binaries, functions and variables that stand for those of the
//! device.

use std::ffi::{CString, c_void};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::Once;

use crate::sys::*;

/// Devices that the tests emulate: one for most tests, one for faults, which end everything that
/// is on it, two for what needs two, and one for each test whose streams hold up the device's
/// legacy stream.
pub const DEVICES: i32 = 6;
pub const FAULTS: i32 = 1;
pub const PAIR: (i32, i32) = (2, 3);
pub const HELD_UP: i32 = 4;
pub const CAPTURED: i32 = 5;

/// Chooses the devices, before the first call.
pub fn begin() {
    static BEGIN: Once = Once::new();
    BEGIN.call_once(|| {
        // SAFETY: every test comes here before it does anything else, so no other thread uses the
        // environment now.
        unsafe {
            std::env::set_var("WARPGAUGE_EMULATOR_DEVICES", DEVICES.to_string());
            std::env::set_var("WARPGAUGE_EMULATOR_CC", "80");
            std::env::set_var("WARPGAUGE_EMULATOR_MEMORY_MB", "64");
        }
    });
}

/// An image of a fat binary: the architecture, the flags, and PTX.
pub struct Image<'a>(pub u32, pub u64, pub &'a str);

/// Flags of PTX as nvcc writes them, and of PTX that it compressed.
pub const PLAIN: u64 = 0x11;
pub const COMPRESSED: u64 = 0x8011;

#[repr(C)]
struct Wrapper {
    magic: u32,
    version: u32,
    container: *const u8,
    linked: *const c_void,
}

/// A fat binary, laid out as nvcc does it.
fn container(images: &[Image<'_>]) -> Vec<u8> {
    let mut body = Vec::new();
    for Image(sm, flags, text) in images {
        let mut payload = text.as_bytes().to_vec();
        payload.resize((payload.len() + 1).next_multiple_of(8), 0);
        let mut header = [0u8; 72];
        header[..2].copy_from_slice(&1u16.to_le_bytes());
        header[4..8].copy_from_slice(&72u32.to_le_bytes());
        header[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        header[28..32].copy_from_slice(&sm.to_le_bytes());
        header[40..48].copy_from_slice(&flags.to_le_bytes());
        body.extend_from_slice(&header);
        body.extend_from_slice(&payload);
    }
    let mut out = 0xba55_ed50u32.to_le_bytes().to_vec();
    out.extend_from_slice(&[1, 0, 16, 0]);
    out.extend_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(&body);
    out
}

/// A registered fat binary. Its memory stays to the end of the process, as a program's does.
pub struct Program {
    pub unit: usize,
}

/// An address that nothing else has.
fn place() -> usize {
    Box::leak(Box::new(0u64)) as *mut u64 as usize
}

/// A name that stays.
fn text(name: &str) -> *const i8 {
    CString::new(name).unwrap().into_raw()
}

impl Program {
    pub fn of(images: &[Image<'_>]) -> Program {
        begin();
        let container = container(images).leak().as_ptr();
        let wrapper = Wrapper { magic: 0x4662_43b1, version: 1, container, linked: null() };
        let wrapper: *const Wrapper = Box::leak(Box::new(wrapper));
        let unit = unsafe { __cudaRegisterFatBinary(wrapper.cast()) };
        unsafe { __cudaRegisterFatBinaryEnd(unit) };
        assert_ne!(unit, 0);
        Program { unit }
    }

    /// A program with one PTX, which every device can run.
    pub fn new(ptx: &str) -> Program {
        Program::of(&[Image(75, PLAIN, ptx)])
    }

    /// The function of the host that stands for a kernel.
    pub fn kernel(&self, name: &str) -> usize {
        let (host, name) = (place(), text(name));
        unsafe {
            __cudaRegisterFunction(
                self.unit,
                host,
                name,
                name,
                -1,
                null(),
                null(),
                null(),
                null(),
                null(),
            );
        }
        host
    }

    /// The shadow of a variable.
    pub fn variable(&self, name: &str, bytes: usize) -> usize {
        let (host, name) = (place(), text(name));
        unsafe { __cudaRegisterVar(self.unit, host, name, name, 0, bytes, 0, 0) };
        host
    }

    /// Where the program keeps the address of a managed variable.
    pub fn managed(&self, name: &str, bytes: usize) -> *mut *mut c_void {
        let place: *mut *mut c_void = Box::leak(Box::new(null_mut()));
        let name = text(name);
        unsafe { __cudaRegisterManagedVar(self.unit, place, name, name, 0, bytes, 0, 0) };
        place
    }
}

pub const ONE: Dim3 = Dim3(1, 1, 1);

/// Launches one block of a kernel whose arguments are an address and perhaps a number.
pub fn launch(host: usize, threads: u32, at: u64, number: u32, stream: usize) -> u32 {
    let arguments = [(&raw const at).cast::<c_void>(), (&raw const number).cast()];
    let block = Dim3(threads, 1, 1);
    unsafe { cudaLaunchKernel(host, ONE, block, arguments.as_ptr(), 0, stream) }
}

/// Memory of the current device.
pub fn memory(bytes: usize) -> u64 {
    let mut at = 0;
    assert_eq!(unsafe { cudaMalloc(&mut at, bytes) }, 0);
    at
}

/// The first word at an address, after everything that was launched.
pub fn word(at: u64) -> u32 {
    let mut value = 0u32;
    assert_eq!(unsafe { cudaMemcpy(&raw mut value as u64, at, 4, TO_HOST) }, 0);
    value
}

/// Runs this test program again with one test and an environment; answers its standard output and
/// standard error.
pub fn again(test: &str, variables: &[(&str, &str)]) -> (String, String) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--include-ignored"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}{error}");
    (out, error)
}
