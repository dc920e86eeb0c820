//! Opens the emulator before cudarc looks for a driver.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, CudaFunction, CudaModule, result, sys};
use cudarc::nvrtc::Ptx;
use libloading::Library;
use warpgauge_device::elf::shorten_soname;

/// Devices that the tests emulate, and the memory of each in MiB.
pub const DEVICES: usize = 4;
pub const MEMORY_MB: usize = 256;

/// The shared library that cargo built next to this test.
pub fn library_path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().join("libwarpgauge_emulator.so")
}

/// The emulator, open under the name by which cudarc looks first, so that these tests never reach
/// a real driver.
pub fn emulator() -> &'static Library {
    static EMULATOR: OnceLock<Library> = OnceLock::new();
    EMULATOR.get_or_init(|| {
        // SAFETY: every test comes here before it does anything else, so no other thread uses
        // the environment now.
        unsafe {
            std::env::set_var("WARPGAUGE_EMULATOR_DEVICES", DEVICES.to_string());
            std::env::set_var("WARPGAUGE_EMULATOR_MEMORY_MB", MEMORY_MB.to_string());
        }
        let dir = tempfile::tempdir().unwrap();
        let library = std::fs::read(library_path()).unwrap();
        let path = dir.path().join("libcuda.so");
        std::fs::write(&path, shorten_soname(&library, "libcuda.so").unwrap()).unwrap();
        // SAFETY: our own library; loading it runs no code of note. Its file may go once it is
        // mapped.
        let library = unsafe { Library::new(path).unwrap() };
        result::init().unwrap();
        let name = result::device::get_name(0).unwrap();
        assert_eq!(name, "warpgauge emulator (CPU)", "cudarc found another driver");
        library
    })
}

/// A context of its own on a device, so that tests in parallel do not see each other's errors.
pub fn own_context(device: usize) -> Arc<CudaContext> {
    emulator();
    CudaContext::new_non_primary(device, 0).unwrap()
}

pub fn load(context: &Arc<CudaContext>, ptx: &str) -> Arc<CudaModule> {
    context.load_module(Ptx::from_src(ptx)).unwrap()
}

pub fn function(context: &Arc<CudaContext>, ptx: &str, name: &str) -> CudaFunction {
    load(context, ptx).load_function(name).unwrap()
}

/// The code of a failed call.
pub fn code<T>(result: Result<T, result::DriverError>) -> sys::CUresult {
    result.err().expect("the call should fail").0
}

/// Switches something of the whole process on or off, by the name of its function.
fn switch(name: &[u8], on: bool) {
    // SAFETY: the type of all these functions as documented.
    let set: libloading::Symbol<unsafe extern "C" fn(u32) -> u32> =
        unsafe { emulator().get(name).unwrap() };
    // SAFETY: as above.
    assert_eq!(unsafe { set(on.into()) }, 0);
}

/// Whether launches are sanitised.
pub fn sanitizing(on: bool) {
    switch(b"wgEmulatorSetSanitize", on);
}

/// Whether launches are counted.
pub fn counting(on: bool) {
    switch(b"wgEmulatorSetCounting", on);
}

/// Runs this test program again with one test and an environment, and returns what it printed.
pub fn again(test: &str, variables: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}
