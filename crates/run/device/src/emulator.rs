//! Functions of the emulator beyond the driver's interface.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_uint};

use cudarc::driver::sys::CUmodule;
use libloading::Library;
use serde::Deserialize;

use super::{DeviceError, Module};
use warpgauge_model::{CountedInstruction, FailureCode, LaunchCounts};

/// Maximum size of a report, bytes.
const MAX_REPORT_BYTES: usize = 16 << 20;

/// The emulator's functions beyond the driver's interface.
#[derive(Clone, Copy)]
pub struct EmulatorControl {
    set_sanitize: unsafe extern "C" fn(c_uint) -> c_uint,
    set_counting: unsafe extern "C" fn(c_uint) -> c_uint,
    version: unsafe extern "C" fn() -> *const c_char,
    take_report: unsafe extern "C" fn(*mut u8, usize) -> usize,
    module_variables: unsafe extern "C" fn(CUmodule, *mut u8, usize) -> usize,
}

/// What the emulator counts, as its C interface numbers it.
#[derive(Debug, Clone, Copy)]
enum Counting {
    Off = 0,
    /// Counts of each launch.
    Launches = 1,
    /// Counts of each launch and of each instruction.
    Instructions = 2,
}

/// State that a module keeps between launches.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EmulatedVariables {
    /// All variables of the module.
    pub variables: Vec<EmulatedVariable>,
    /// Functions that the module declares but does not define.
    pub imports: Vec<String>,
}

/// A variable of a module.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct EmulatedVariable {
    /// Name of the variable in the PTX.
    pub name: String,
    /// Address of the variable on the device.
    pub address: u64,
    /// Size of the variable, bytes.
    pub bytes: u64,
    /// Whether the variable is declared constant.
    pub constant: bool,
    /// Whether the variable is declared managed.
    pub managed: bool,
}

impl EmulatorControl {
    /// Looks up the functions of an opened emulator. Returns `None` for any other library.
    ///
    /// # Safety
    /// `library` stays open for the rest of the process.
    pub(super) unsafe fn look_up(library: &Library) -> Option<Self> {
        // SAFETY: the emulator exports these names with these types, and no other library uses
        // them.
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

    /// Enables or disables the checks that do not stop a kernel. This affects later launches and
    /// allocations.
    ///
    /// # Errors
    /// Returns the emulator's error, a `CUresult`.
    pub fn set_sanitize(&self, on: bool) -> Result<(), DeviceError> {
        // SAFETY: any number is accepted.
        let number = unsafe { (self.set_sanitize)(c_uint::from(on)) };
        answered(number, "switch the memory checks on or off")
    }

    /// Enables or disables the counting of operations for later launches. Counting takes time.
    ///
    /// # Errors
    /// Returns the emulator's error, a `CUresult`.
    pub fn set_counting(&self, on: bool) -> Result<(), DeviceError> {
        self.count_at(if on { Counting::Launches } else { Counting::Off })
    }

    fn count_at(&self, level: Counting) -> Result<(), DeviceError> {
        // SAFETY: any number is accepted.
        let number = unsafe { (self.set_counting)(level as c_uint) };
        answered(number, "switch counting on or off")
    }

    /// Calls `launch` and returns the counts of the launch that it makes. `launch` must make one
    /// launch, or with `several` any number, and wait for it. Discards earlier findings.
    ///
    /// # Errors
    /// Returns errors of the launch and of the emulator.
    pub fn count(
        &self,
        several: bool,
        launch: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<Option<LaunchCounts>, DeviceError> {
        let _ = self.take_report();
        self.count_at(Counting::Instructions)?;
        let launched = launch();
        self.set_counting(false)?;
        launched?;
        Ok(self.take_launches(several))
    }

    /// Returns the counts of the launches since the last report, and removes the report. Returns
    /// `None` if there was no launch, or more than one without `several`.
    fn take_launches(&self, several: bool) -> Option<LaunchCounts> {
        let report = self.take_report()?;
        let kernels = report["kernels"].as_array()?;
        let first = kernels.first()?;
        if !several && (kernels.len() > 1 || first["launches"] != 1) {
            return None;
        }
        let mut counts = BTreeMap::<String, u64>::new();
        let (mut names, mut by_kernel) = (Vec::new(), BTreeMap::new());
        let mut instructions: Vec<CountedInstruction> = Vec::new();
        for kernel in kernels {
            let name = kernel["name"].as_str()?.to_owned();
            let own: BTreeMap<String, u64> =
                serde_json::from_value(kernel["counts"].clone()).ok()?;
            if let Some(rows) = kernel.get("instructions") {
                let rows: Vec<CountedInstruction> = serde_json::from_value(rows.clone()).ok()?;
                instructions.extend(rows);
            }
            for (name, count) in &own {
                let sum = counts.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
            if several {
                by_kernel.insert(name.clone(), own);
            }
            names.push(name);
        }
        // SAFETY: the emulator's version is a constant text that ends with a NUL.
        let version = unsafe { CStr::from_ptr((self.version)()) };
        Some(LaunchCounts {
            kernel: names.join(", "),
            kernels: by_kernel,
            version: version.to_string_lossy().into_owned(),
            counts,
            instructions,
        })
    }

    /// Returns and removes the counts and findings since the previous call. Returns `None` if there
    /// is no report, if it is larger than 16 MiB, or if it is not JSON.
    pub fn take_report(&self) -> Option<serde_json::Value> {
        // SAFETY: the emulator writes at most the given length, and without a buffer returns the
        // length.
        read(|buffer, room| unsafe { (self.take_report)(buffer, room) })
    }

    /// Returns all variables of a module, which keep their values between launches. Returns `None`
    /// if the list exceeds 16 MiB or cannot be parsed.
    pub fn variables(&self, module: &Module) -> Option<EmulatedVariables> {
        // SAFETY: as above; the module is loaded.
        read(|buffer, room| unsafe { (self.module_variables)(module.handle(), buffer, room) })
    }
}

/// Reads JSON that `write` writes to a buffer of the given length. If it is called without a
/// buffer, `write` returns the required length.
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
    let text = format!("the emulator returned {number}");
    Err(DeviceError::local(operation, FailureCode::NotSupported, text))
}
