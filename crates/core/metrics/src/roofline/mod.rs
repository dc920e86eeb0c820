//! The hierarchical roofline: a kernel's operations and bytes compared with the device's peaks. The
//! main type is [`Roofline`].
//!
//! After Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
//! Multicore Architectures" (CACM 52(4), 2009). It has one line per memory level, as in Yang,
//! Kurth, Williams, "Hierarchical Roofline Analysis for GPUs" (CCPE 32(20), 2020). It uses the
//! counters of the roofline sections of Nsight Compute.

mod bound;
mod peaks;
mod work;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Values};
pub(super) use bound::{LAUNCH_FACTOR, dram_throughput};
use warpgauge_model::DeviceKind;

/// Roofline: the rates of a kernel compared with the peaks of the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Roofline {
    /// Resource that limits the kernel. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<BoundBy>,
    /// Rule and numbers behind `bound_by`, or the reason why it is absent.
    pub bound_reason: String,
    /// Time from which rates are computed. Absent if no time is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<RatesOver>,
    /// Floating-point operations by precision, with the known peaks.
    pub compute: Vec<ComputeRoof>,
    /// Memory traffic by level, with the known peaks.
    pub memory: Vec<MemoryRoof>,
    /// Points of the roofline: one for each precision that the kernel uses and each level of the
    /// memory.
    pub points: Vec<RooflinePoint>,
    /// Notes on the reliability of the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Resource that limits a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BoundBy {
    /// Arithmetic, or the issue of instructions.
    Compute,
    /// L1 cache and shared memory.
    L1,
    /// L2 cache, which all multiprocessors share.
    L2,
    /// Device memory.
    Dram,
    /// No resource is near its peak, because warps wait.
    Latency,
    /// Overhead of the launch: the kernel takes hardly longer than an empty one.
    Launch,
}

/// Time from which rates are computed, with the unprofiled time for comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatesOver {
    /// Launches whose time is used: profiled or unprofiled.
    pub basis: TimeBasis,
    /// Time of one launch from which rates are computed, seconds.
    pub seconds: f64,
    /// Clock of the multiprocessors during that time, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_hz: Option<f64>,
    /// Median time of the timed launches, which were not profiled, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprofiled_seconds: Option<f64>,
    /// Clock of the timed launches, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprofiled_clock_hz: Option<f64>,
}

/// Origin of the time from which rates are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeBasis {
    /// Time of the profiled launch, to which the counters belong.
    Profiled,
    /// Median time of the unprofiled launches. It is used if the time of the profiled launch is not known.
    Unprofiled,
}

/// Precision of floating-point arithmetic, and the units that execute it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// binary64, outside tensor cores.
    Fp64,
    /// binary32, outside tensor cores.
    Fp32,
    /// float16 and bfloat16, outside tensor cores.
    Fp16,
    /// binary64, on tensor cores.
    TensorFp64,
    /// TF32, on tensor cores.
    TensorTf32,
    /// float16 and bfloat16, on tensor cores.
    TensorHalf,
    /// Floating-point types of 8 bits and fewer, on tensor cores.
    TensorFp8,
    /// All types on tensor cores, if the source does not distinguish them.
    Tensor,
}

/// Level of the memory hierarchy.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// L1 cache and shared memory.
    L1,
    /// L2 cache, which all multiprocessors share.
    L2,
    /// Device memory.
    Dram,
}

/// Floating-point operations of one precision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComputeRoof {
    /// Precision of the operations.
    pub precision: Precision,
    /// Number of operations in the launch; a fused multiply-add counts as two. Absent if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<f64>,
    /// Rate, floating-point operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Peak of the device, operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// Rate divided by the peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

/// Memory traffic at one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRoof {
    /// Level of the memory hierarchy.
    pub level: Level,
    /// Bytes that the launch transferred at this level, or as `bytes_note` defines them. Absent if they are not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Definition of the bytes, if they are not the bytes that this level transferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_note: Option<String>,
    /// Rate, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Peak of the level, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// Rate divided by the peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

/// Peak rate of the device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Peak rate, operations or bytes per second.
    pub per_second: f64,
    /// Origin of the peak.
    pub source: CeilingSource,
    /// Derivation of the peak, with its numbers.
    pub derivation: String,
}

/// Origin of a peak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CeilingSource {
    /// Peak per cycle as reported by the profiler, times the measured clock.
    Profiler,
    /// Properties of the device from the driver and from NVIDIA's documentation.
    DeviceFacts,
}

/// Point of the roofline, for one precision and one level of the memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RooflinePoint {
    /// Precision of the operations.
    pub precision: Precision,
    /// Level of the memory hierarchy.
    pub level: Level,
    /// Arithmetic intensity: operations per byte of this level.
    pub intensity: f64,
    /// Rate, floating-point operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// Attainable rate at this intensity, operations per second: the peak of the precision, or the peak of the level
    /// times the intensity, whichever is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attainable: Option<f64>,
    /// Rate divided by the attainable rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

const EMULATED: &str =
    "the emulated device has no times: there are intensities, but no rates and no ceilings";

/// Computes the roofline of a launch. Returns `None` if its metrics include neither operations nor bytes.
pub fn roofline(values: Values<'_>, facts: &Facts<'_>) -> Option<Roofline> {
    let emulated = facts.device.kind == DeviceKind::Emulator;
    let time = if emulated { None } else { over(values, facts) };
    let (mut compute, mut memory) = (work::compute(values), work::memory(values));
    let told = compute.iter().any(|roof| roof.operations.is_some())
        || memory.iter().any(|roof| roof.bytes.is_some());
    if !told {
        return None;
    }
    let mut notes = Vec::new();
    if emulated {
        notes.push(EMULATED.to_owned());
    } else {
        peaks::put(values, facts.device, time.as_ref(), &mut compute, &mut memory);
        match &time {
            Some(time) => work::rates(time.seconds, &mut compute, &mut memory),
            None => {
                notes.push("the time of the launch is not known: there are no rates".to_owned())
            }
        }
        notes.extend(time.as_ref().and_then(note_on_time));
    }
    // A precision without any value is left out.
    compute.retain(|roof| roof.operations.is_some() || roof.ceiling.is_some());
    memory.retain(|roof| roof.bytes.is_some() || roof.ceiling.is_some());
    let points = work::points(&compute, &memory);
    let (bound_by, bound_reason) = match emulated {
        true => (None, "the emulated device has no times".to_owned()),
        false => bound::classify(values, facts, &compute, &memory),
    };
    Some(Roofline { bound_by, bound_reason, time, compute, memory, points, notes })
}

/// Returns the resource that limits a launch whose operations and bytes are not known, and the
/// evidence.
pub(super) fn bound_by(values: Values<'_>, facts: &Facts<'_>) -> (Option<BoundBy>, String) {
    bound::classify(values, facts, &[], &[])
}

/// Returns the profiled time with its clock, or else the unprofiled time with its clock.
fn over(values: Values<'_>, facts: &Facts<'_>) -> Option<RatesOver> {
    let timed = facts.timed;
    let positive = |value: &f64| *value > 0.0;
    let profiled = values.get("duration").filter(positive);
    let (basis, seconds, clock_hz) = match (profiled, timed.median_s.filter(positive)) {
        (Some(seconds), _) => (TimeBasis::Profiled, seconds, profiled_clock(values)),
        (None, Some(seconds)) => (TimeBasis::Unprofiled, seconds, timed.clock_hz),
        (None, None) => return None,
    };
    Some(RatesOver {
        basis,
        seconds,
        clock_hz,
        unprofiled_seconds: timed.median_s,
        unprofiled_clock_hz: timed.clock_hz,
    })
}

/// Returns the clock of the multiprocessors during the profiled launch, Hz.
pub(super) fn profiled_clock(values: Values<'_>) -> Option<f64> {
    let by_cycles = || {
        let seconds = values.get("duration").filter(|seconds| *seconds > 0.0)?;
        Some(values.get("elapsed_cycles")? / seconds)
    };
    values.get("sm_clock").or_else(by_cycles).filter(|clock| *clock > 0.0)
}

fn note_on_time(time: &RatesOver) -> Option<String> {
    let clocks = time.clock_hz.zip(time.unprofiled_clock_hz);
    match (time.basis, clocks) {
        (TimeBasis::Unprofiled, _) => Some(
            "the profiled launch's time is not known: rates are computed from the unprofiled median"
                .to_owned(),
        ),
        (TimeBasis::Profiled, Some((profiled, timed)))
            if (profiled / timed - 1.0).abs() > CLOCKS_DIFFER =>
        {
            Some(format!(
                "the profiled launch ran at {:.0} MHz, the timed ones at {:.0} MHz: rates and \
                 ceilings refer to the profiled launch",
                profiled / 1e6,
                timed / 1e6
            ))
        }
        _ => None,
    }
}

/// Minimum relative difference of the clocks for a note. Between runs they differ by a percent or
/// two.
const CLOCKS_DIFFER: f64 = 0.03;

impl BoundBy {
    /// Returns the resource's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            BoundBy::Compute => "compute",
            BoundBy::L1 => "l1",
            BoundBy::L2 => "l2",
            BoundBy::Dram => "dram",
            BoundBy::Latency => "latency",
            BoundBy::Launch => "launch",
        }
    }

    /// Returns a phrase for readers, e.g. `bound by latency`.
    pub fn sentence(self) -> &'static str {
        match self {
            BoundBy::Compute => "bound by arithmetic",
            BoundBy::L1 => "bound by L1 and shared memory",
            BoundBy::L2 => "bound by L2",
            BoundBy::Dram => "bound by device memory",
            BoundBy::Latency => "bound by latency",
            BoundBy::Launch => "bound by its launch",
        }
    }
}

impl Precision {
    /// Returns a label for readers, e.g. `tensor FP16`.
    pub fn label(self) -> &'static str {
        match self {
            Precision::Fp64 => "FP64",
            Precision::Fp32 => "FP32",
            Precision::Fp16 => "FP16",
            Precision::TensorFp64 => "tensor FP64",
            Precision::TensorTf32 => "tensor TF32",
            Precision::TensorHalf => "tensor FP16",
            Precision::TensorFp8 => "tensor FP8",
            Precision::Tensor => "tensor",
        }
    }
}

impl Level {
    /// Returns a label for readers, e.g. `L1`.
    pub fn label(self) -> &'static str {
        match self {
            Level::L1 => "L1",
            Level::L2 => "L2",
            Level::Dram => "DRAM",
        }
    }
}

#[cfg(test)]
mod tests;
