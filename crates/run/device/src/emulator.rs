//! What the emulator offers beyond the driver's interface.

use std::ffi::{CStr, c_char, c_uint};

use cudarc::driver::sys::CUmodule;
use libloading::Library;
use serde::Deserialize;

use super::{DeviceError, Module};
use warpgauge_model::{FailureCode, LaunchCounts};

/// Largest report that is read, bytes.
const MAX_REPORT_BYTES: usize = 16 << 20;

/// The emulator's own switches.
#[derive(Clone, Copy)]
pub struct EmulatorControl {
    set_sanitize: unsafe extern "C" fn(c_uint) -> c_uint,
    set_counting: unsafe extern "C" fn(c_uint) -> c_uint,
    version: unsafe extern "C" fn() -> *const c_char,
    take_report: unsafe extern "C" fn(*mut u8, usize) -> usize,
    module_variables: unsafe extern "C" fn(CUmodule, *mut u8, usize) -> usize,
}

/// What a module keeps between launches.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EmulatedVariables {
    /// Its variables, all of them.
    pub variables: Vec<EmulatedVariable>,
    /// Functions that it declares and does not define.
    pub imports: Vec<String>,
}

/// A variable of a module.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EmulatedVariable {
    /// Its name in the PTX.
    pub name: String,
    /// Where it is on the device.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// Whether it is declared constant.
    pub constant: bool,
    /// Whether it is declared managed.
    pub managed: bool,
}

impl EmulatorControl {
    /// The switches of an opened emulator; `None` for a library that is not one.
    ///
    /// # Safety
    /// `library` stays open for the rest of the process.
    pub(super) unsafe fn look_up(library: &Library) -> Option<Self> {
        // SAFETY: the emulator exports these names with these types, and nothing else uses them.
        unsafe {
            Some(Self {
                set_sanitize: *library.get(b"wgEmulatorSetSanitize").ok()?,
                set_counting: *library.get(b"wgEmulatorSetCounting").ok()?,
                version: *library.get(b"wgEmulatorVersion").ok()?,
                take_report: *library.get(b"wgEmulatorTakeReport").ok()?,
                module_variables: *library.get(b"wgEmulatorModuleVariables").ok()?,
            })
        }
    }

    /// Turns the checks that do not stop a kernel on or off, for launches and allocations from now
    /// on.
    ///
    /// # Errors
    /// The emulator's answer, a `CUresult`.
    pub fn set_sanitize(&self, on: bool) -> Result<(), DeviceError> {
        // SAFETY: any number is accepted.
        let number = unsafe { (self.set_sanitize)(c_uint::from(on)) };
        answered(number, "switch the memory checks")
    }

    /// Turns the counts of memory traffic on or off for launches from now on. They cost time.
    ///
    /// # Errors
    /// The emulator's answer, a `CUresult`.
    pub fn set_counting(&self, on: bool) -> Result<(), DeviceError> {
        // SAFETY: any number is accepted.
        let number = unsafe { (self.set_counting)(c_uint::from(on)) };
        answered(number, "switch the counts")
    }

    /// What is counted in the one launch that `launch` makes and waits for. What was found before it is
    /// forgotten.
    ///
    /// # Errors
    /// Those of the launch, or the emulator's answer.
    pub fn count(
        &self,
        launch: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<Option<LaunchCounts>, DeviceError> {
        let _ = self.take_report();
        self.set_counting(true)?;
        let launched = launch();
        self.set_counting(false)?;
        launched?;
        Ok(self.take_launch())
    }

    /// The counts of the only launch since the last report, which is taken with it. `None`: there
    /// was no launch, or more than one.
    pub fn take_launch(&self) -> Option<LaunchCounts> {
        let report = self.take_report()?;
        let [kernel] = &report["kernels"].as_array()?[..] else { return None };
        if kernel["launches"] != 1 {
            return None;
        }
        // SAFETY: the emulator's version is a constant text that ends with a NUL.
        let version = unsafe { CStr::from_ptr((self.version)()) };
        Some(LaunchCounts {
            kernel: kernel["name"].as_str()?.to_owned(),
            version: version.to_string_lossy().into_owned(),
            counts: serde_json::from_value(kernel["counts"].clone()).ok()?,
        })
    }

    /// Counts and findings since the last call, which are forgotten with it. `None`: there is no
    /// report, it is larger than 16 MiB, or it is not JSON.
    pub fn take_report(&self) -> Option<serde_json::Value> {
        // SAFETY: the emulator writes at most the length given, and with no buffer tells the length.
        read(|buffer, room| unsafe { (self.take_report)(buffer, room) })
    }

    /// All that a module keeps between launches. `None`: the list is larger than 16 MiB.
    pub fn variables(&self, module: &Module) -> Option<EmulatedVariables> {
        // SAFETY: as above; the module is loaded.
        read(|buffer, room| unsafe { (self.module_variables)(module.handle(), buffer, room) })
    }
}

/// Reads JSON that `write` writes to a buffer of some length, and whose length it tells without one.
fn read<T: serde::de::DeserializeOwned>(write: impl Fn(*mut u8, usize) -> usize) -> Option<T> {
    let bytes = write(std::ptr::null_mut(), 0);
    if bytes > MAX_REPORT_BYTES {
        return None;
    }
    let mut buffer = vec![0u8; bytes];
    let bytes = write(buffer.as_mut_ptr(), buffer.len());
    serde_json::from_slice(buffer.get(..bytes)?).ok()
}

fn answered(number: c_uint, operation: &str) -> Result<(), DeviceError> {
    if number == 0 {
        return Ok(());
    }
    let text = format!("the emulator answered {number}");
    Err(DeviceError::local(operation, FailureCode::NotSupported, text))
}
