//! Shared test data: a device.

use warpgauge_model::{DeviceInfo, DeviceKind, SmLimits, Target};

/// Returns the properties of an H200 as its driver reports them.
pub(crate) fn h200() -> DeviceInfo {
    DeviceInfo {
        ordinal: 0,
        kind: DeviceKind::Cuda,
        name: "NVIDIA H200".to_owned(),
        uuid: "GPU-0".to_owned(),
        target: Target { compute_capability: (9, 0), driver_version: 13_000, emulated: false },
        multiprocessors: 132,
        memory_bytes: 139 << 30,
        l2_bytes: 60 << 20,
        clock_khz: 1_980_000,
        memory_clock_khz: 3_201_000,
        memory_bus_bits: 6144,
        max_shared_optin_bytes: 227 << 10,
        pci_bus_id: String::new(),
        sm: SmLimits::default(),
        unmonitored: None,
    }
}
