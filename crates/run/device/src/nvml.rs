//! Information about a GPU from the driver's management library: clocks, throttling, power, other
//! processes.

use std::ffi::OsStr;

use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use serde::{Deserialize, Serialize};

use warpgauge_model::{DeviceInfo, DeviceKind};

/// File name of the library. It has another name, which exists only if development files are
/// installed.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Settings of a GPU at one moment. Values that the library does not provide are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuSettings {
    /// Version of the driver, e.g. `580.159.03`.
    pub driver: Option<String>,
    /// Maximum SM clock, MHz.
    pub max_sm_clock_mhz: Option<u32>,
    /// Maximum memory clock, MHz.
    pub max_memory_clock_mhz: Option<u32>,
    /// Enforced power limit, W.
    pub power_limit_w: Option<f64>,
    /// Whether the driver stays loaded when no process uses the GPU (persistence mode).
    pub persistent: Option<bool>,
}

/// State of a GPU at one moment. Values that the library does not provide are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuHealth {
    /// SM clock, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Memory clock, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Reasons why clocks are below their maximum: bits of `nvmlClocksThrottleReasons`.
    pub throttle_reasons: Option<u64>,
    /// Temperature of the chip, °C.
    pub temperature_c: Option<u32>,
    /// Power that NVML reports for the GPU, W.
    pub power_w: Option<f64>,
    /// Number of compute processes on the GPU that this server did not start.
    pub other_processes: Option<u32>,
}

/// Reads a GPU's state through the driver's management library (NVML).
pub struct GpuMonitor {
    nvml: Nvml,
    uuid: String,
}

impl GpuMonitor {
    /// Opens the monitor of a device.
    ///
    /// # Errors
    /// Fails like [`Self::open`], and for an emulated device.
    pub fn of(device: &DeviceInfo) -> Result<Self, String> {
        match device.kind {
            DeviceKind::Cuda => Self::open(&device.uuid),
            DeviceKind::Emulator => Err("an emulated device has no clocks".to_owned()),
        }
    }

    /// Opens the library for the GPU with this UUID.
    ///
    /// # Errors
    /// Returns why the library cannot be used, for example because it is not installed or does not
    /// know the GPU.
    pub fn open(uuid: &str) -> Result<Self, String> {
        Self::open_in(LIBRARY.as_ref(), uuid)
    }

    /// Like [`Self::open`], with a library of a different name.
    pub(super) fn open_in(library: &OsStr, uuid: &str) -> Result<Self, String> {
        let nvml = Nvml::builder().lib_path(library).init();
        let nvml = nvml.map_err(|error| format!("cannot open {}: {error}", library.display()))?;
        // CUDA names a GPU and a partition of a GPU in the same way; NVML distinguishes them.
        let part = uuid.replacen("GPU-", "MIG-", 1);
        let uuid = match nvml.device_by_uuid(uuid) {
            Ok(_) => uuid.to_owned(),
            Err(_) if nvml.device_by_uuid(part.as_str()).is_ok() => part,
            Err(error) => return Err(format!("NVML does not find {uuid}: {error}")),
        };
        Ok(Self { nvml, uuid })
    }

    pub(super) fn nvml(&self) -> &Nvml {
        &self.nvml
    }

    pub(super) fn gpu(&self) -> Result<Device<'_>, NvmlError> {
        self.nvml.device_by_uuid(self.uuid.as_str())
    }

    /// Returns the GPU's current settings.
    pub fn settings(&self) -> GpuSettings {
        let Ok(gpu) = self.gpu() else { return GpuSettings::default() };
        GpuSettings {
            driver: self.nvml.sys_driver_version().ok(),
            max_sm_clock_mhz: gpu.max_clock_info(Clock::SM).ok(),
            max_memory_clock_mhz: gpu.max_clock_info(Clock::Memory).ok(),
            power_limit_w: gpu.enforced_power_limit().ok().map(watts),
            persistent: gpu.is_in_persistent_mode().ok(),
        }
    }

    /// Returns the GPU's current state.
    pub fn health(&self) -> GpuHealth {
        let Ok(gpu) = self.gpu() else { return GpuHealth::default() };
        let others = |processes: Vec<nvml_wrapper::struct_wrappers::device::ProcessInfo>| {
            processes.iter().filter(|process| !is_ours(process.pid)).count() as u32
        };
        GpuHealth {
            sm_clock_mhz: gpu.clock_info(Clock::SM).ok(),
            memory_clock_mhz: gpu.clock_info(Clock::Memory).ok(),
            throttle_reasons: gpu.current_throttle_reasons().ok().map(|reasons| reasons.bits()),
            temperature_c: gpu.temperature(TemperatureSensor::Gpu).ok(),
            power_w: gpu.power_usage().ok().map(watts),
            other_processes: gpu.running_compute_processes().ok().map(others),
        }
    }

    /// Returns only the reasons why clocks are reduced, which is fast enough for every batch.
    ///
    /// # Errors
    /// Returns the library's error.
    pub fn throttle_reasons(&self) -> Result<u64, NvmlError> {
        let gpu = self.gpu()?;
        Ok(gpu.current_throttle_reasons()?.bits())
    }
}

fn watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) * 1e-3
}

/// Returns whether a process is this process or has the same parent, like the server's other
/// workers.
///
/// A process that cannot be looked up is in another process namespace or has ended. It counts as
/// foreign while it is on the GPU.
fn is_ours(process: u32) -> bool {
    let parent = std::os::unix::process::parent_id();
    process == std::process::id() || parent_of(process) == Some(parent)
}

/// Returns the parent of a process from `/proc/<pid>/stat`. The second field of that file is in
/// parentheses and may contain anything.
fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_the_same_server_are_told_apart() {
        assert!(is_ours(std::process::id()));
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
        assert!(!is_ours(1) || std::os::unix::process::parent_id() == 0);
    }

    #[test]
    fn a_machine_without_the_library_is_told_why() {
        if let Err(reason) = GpuMonitor::open("GPU-00000000-0000-0000-0000-000000000000") {
            assert!(reason.contains(LIBRARY) || reason.contains("NVML"), "{reason}");
        }
    }
}
