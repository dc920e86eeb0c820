//! Devices, with their properties from the driver. The main type is [`DeviceInfo`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::requirements::DeviceOffer;
use super::target::Target;
use super::unavailable::Unavailable;

/// A device with its properties from the driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// CUDA ordinal.
    pub ordinal: u32,
    pub kind: DeviceKind,
    /// Product name.
    pub name: String,
    /// UUID, `GPU-…`.
    pub uuid: String,
    /// Compilation target of the device.
    pub target: Target,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Size of the device memory, bytes.
    pub memory_bytes: u64,
    /// Size of the L2 cache, bytes.
    pub l2_bytes: u64,
    /// Peak SM clock, kHz.
    pub clock_khz: u32,
    /// Peak memory clock, kHz.
    pub memory_clock_khz: u32,
    /// Memory bus width, bits.
    pub memory_bus_bits: u32,
    /// Maximum shared memory of a block that opts in to more than the default, bytes.
    pub max_shared_optin_bytes: u32,
    /// PCI address, `0000:1b:00.0`.
    pub pci_bus_id: String,
    /// Limits of one multiprocessor.
    pub sm: SmLimits,
    /// Reason why the driver's performance monitoring (GPM) does not support the device; `None` if
    /// it does.
    pub unmonitored: Option<Unavailable>,
}

impl DeviceInfo {
    /// Returns the properties of the device that requests can require.
    pub fn offer(&self) -> DeviceOffer {
        let compute_capability = self.target.compute_capability;
        DeviceOffer { kind: self.kind, compute_capability, name: self.name.clone() }
    }
}

/// Resources of one multiprocessor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmLimits {
    pub threads: u32,
    /// Maximum number of blocks; 0 if the driver does not report it.
    pub blocks: u32,
    /// Number of 32-bit registers.
    pub registers: u32,
    /// Size of the shared memory, bytes.
    pub shared_bytes: u32,
    /// Shared memory that the driver reserves for each block, bytes.
    pub reserved_shared_bytes: u32,
}

/// Kind of device. Times of different kinds are never compared.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// GPU that NVIDIA's driver controls.
    Cuda,
    /// Emulated device, which runs PTX on the CPU.
    Emulator,
}
