//! Rates that a kernel achieved: its work divided by its time, compared with the peaks of the
//! device. The main function is [`rates`].
//!
//! The work is that declared by the contract. If the contract declares no bytes, each tensor is
//! assumed to be moved once. This is only an assumption, because a kernel may read part of an
//! input, or read all of it repeatedly. Therefore no kernel is rejected because of these rates.
//! Only [`super::speed_of_light`] can reject a kernel, and it uses only declared work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::floor::{FloorDevice, FloorLimit, compute_floor_ms, peak_bytes_per_second};
use warpgauge_model::Work;

/// Origin of the number of bytes from which a rate is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BytesFrom {
    /// `work.bytes` of the contract gives the number of bytes.
    Declared,
    /// Each tensor is assumed to be moved once.
    Buffers,
}

/// Rates of a launch: its work divided by the median time, and the device's peak rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Bytes that a launch moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Origin of `bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_from: Option<BytesFrom>,
    /// `bytes` divided by the median time, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// Peak of the device memory, bytes per second, from the driver's clock and bus width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes_per_second: Option<f64>,
    /// Floating-point operations of a launch: `work.flops` of the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<f64>,
    /// `flops` divided by the median time, operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops_per_second: Option<f64>,
    /// Time of this work at the device's peaks, milliseconds: the longer of the times for bytes and operations. All
    /// bytes are assumed to move through device memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_ms: Option<f64>,
    /// Resource (memory or arithmetic) that needs the longer time for the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<FloorLimit>,
    /// `least_ms` divided by the median time: the reached share of the speed of light. It exceeds 1 if caches hold
    /// part of the bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_speed_of_light: Option<f64>,
}

/// Returns the rates of the declared work, or of `buffer_bytes` if no bytes are declared. Returns `None` if neither
/// bytes nor operations are known, or if the time is not positive.
pub fn rates(
    work: Option<&Work>,
    buffer_bytes: Option<f64>,
    device: &FloorDevice,
    median_ms: f64,
) -> Option<Rates> {
    let positive = |value: Option<f64>| value.filter(|value| value.is_finite() && *value > 0.0);
    let declared = positive(work.and_then(|work| work.bytes));
    let flops = positive(work.and_then(|work| work.flops));
    let (bytes, bytes_from) = match (declared, positive(buffer_bytes)) {
        (Some(bytes), _) => (Some(bytes), Some(BytesFrom::Declared)),
        (None, Some(bytes)) => (Some(bytes), Some(BytesFrom::Buffers)),
        (None, None) => (None, None),
    };
    if (bytes.is_none() && flops.is_none()) || !(median_ms.is_finite() && median_ms > 0.0) {
        return None;
    }
    let peak = peak_bytes_per_second(device);
    let moved = bytes.zip(peak).map(|(bytes, peak)| (bytes / peak * 1e3, FloorLimit::Memory));
    let done = flops.and_then(|flops| compute_floor_ms(flops, device).ok());
    let done = done.map(|(ms, _)| (ms, FloorLimit::Compute));
    let least = [moved, done].into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0));
    Some(Rates {
        bytes,
        bytes_from,
        bytes_per_second: bytes.map(|bytes| bytes / median_ms * 1e3),
        peak_bytes_per_second: peak,
        flops,
        flops_per_second: flops.map(|flops| flops / median_ms * 1e3),
        least_ms: least.map(|(ms, _)| ms),
        limit: least.map(|(_, limit)| limit),
        of_speed_of_light: least.map(|(ms, _)| ms / median_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::floor::tests::H200;
    use crate::speed_of_light;
    use warpgauge_model::CacheState;

    const MEGA: f64 = 1_048_576.0;

    /// The sum of two vectors of 1 Mi floats takes 8.048 µs. Moving 12.6 MB at 4.9 TB/s takes 2.56
    /// µs of them, whether or not L2 could hold the data.
    #[test]
    fn small_kernels_have_a_share_of_the_peak_too() {
        let work = Work { bytes: Some(12.0 * MEGA), flops: Some(MEGA) };
        let found = rates(Some(&work), None, &H200, 0.008_048).unwrap();
        assert_eq!(
            (found.bytes_from, found.limit),
            (Some(BytesFrom::Declared), Some(FloorLimit::Memory))
        );
        assert!((found.of_speed_of_light.unwrap() - 0.3181).abs() < 0.001, "{found:?}");
        assert!((found.bytes_per_second.unwrap() - 1.5634e12).abs() < 1e9);
        assert!((found.flops_per_second.unwrap() - 1.3029e11).abs() < 1e8);
        // The floor below which kernels are rejected stays low.
        let floor = speed_of_light(&work, &H200, CacheState::Cold);
        assert!(floor.floor_ms.unwrap() < 1e-6);
    }

    #[test]
    fn undeclared_bytes_are_those_of_the_buffers_and_refuse_nothing() {
        let flops = Work { bytes: None, flops: Some(1.0) };
        for work in [None, Some(&flops)] {
            let found = rates(work, Some(12.0 * MEGA), &H200, 0.001).unwrap();
            assert_eq!(found.bytes_from, Some(BytesFrom::Buffers));
            assert!(found.of_speed_of_light.unwrap() > 1.0, "faster than moving it all");
        }
        let floor = speed_of_light(&flops, &H200, CacheState::Cold);
        assert!(!floor.excludes(0.001));
        let both = Work { bytes: Some(5.0), flops: None };
        assert_eq!(rates(Some(&both), Some(7.0), &H200, 1.0).unwrap().bytes, Some(5.0));
        assert_eq!(rates(None, None, &H200, 1.0), None);
        assert_eq!(rates(Some(&both), None, &H200, 0.0), None);
        let unknown = FloorDevice { memory_clock_khz: 0, ..H200 };
        let found = rates(Some(&both), None, &unknown, 1.0).unwrap();
        assert_eq!((found.least_ms, found.of_speed_of_light), (None, None));
        assert_eq!(found.bytes_per_second, Some(5e3), "what was achieved is known all the same");
    }
}
