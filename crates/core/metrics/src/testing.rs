//! Shared parts of the analyses' tests: a device, and metrics as in reports.

use std::collections::BTreeMap;

use super::catalogue::CATALOGUE;
use super::types::{Metric, MetricSource};
use warpgauge_model::{DeviceInfo, DeviceKind, SmLimits, Target};

/// Limits of an H200's multiprocessor.
pub(crate) const H200_SM: SmLimits = SmLimits {
    threads: 2048,
    blocks: 32,
    registers: 65_536,
    shared_bytes: 228 << 10,
    reserved_shared_bytes: 1024,
};

/// Returns an H200 as its driver describes it.
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
        sm: H200_SM,
        unmonitored: None,
    }
}

/// Returns an emulated device of the size of an H200.
pub(crate) fn emulated_h200() -> DeviceInfo {
    DeviceInfo { kind: DeviceKind::Emulator, ..h200() }
}

/// Returns metrics of the catalogue with these values.
pub(super) fn metrics(values: &[(&str, f64)]) -> BTreeMap<String, Metric> {
    let metric = |(id, value): &(&str, f64)| {
        let info = CATALOGUE.iter().find(|info| info.id == *id);
        let info = info.unwrap_or_else(|| panic!("{id} is not in the catalogue"));
        let metric = Metric {
            value: Some(*value),
            unit: Some(info.unit.name().to_owned()),
            source: Some(MetricSource::Ncu),
            note: None,
            reason: None,
        };
        ((*id).to_owned(), metric)
    };
    values.iter().map(metric).collect()
}
