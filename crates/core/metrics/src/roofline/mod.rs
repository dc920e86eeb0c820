//! The hierarchical roofline: a kernel's operations and bytes against the device's peaks. The main
//! type is [`Roofline`].
//!
//! After Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for
//! Multicore Architectures" (CACM 52(4), 2009). It has one line per memory level, as in Yang,
//! Kurth, Williams, "Hierarchical Roofline Analysis for GPUs" (CCPE 32(20), 2020). It uses the
//! counters of the roofline sections of Nsight Compute. Pure.

mod bound;
mod peaks;
mod work;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::{Facts, Values};
pub(super) use bound::LAUNCH_FACTOR;
use warpgauge_model::DeviceKind;

/// Where a kernel stands below what the device can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Roofline {
    /// What limits the kernel. Absent where rates are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<BoundBy>,
    /// Why: the rule and the numbers it saw; or why it cannot be said.
    pub bound_reason: String,
    /// Which time the rates are taken over. Absent where there are no rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<RatesOver>,
    /// Floating-point work by precision: what the kernel does, and every known ceiling.
    pub compute: Vec<ComputeRoof>,
    /// Traffic by level of the memory: what the kernel moves, and every known ceiling.
    pub memory: Vec<MemoryRoof>,
    /// Each precision that the kernel computes in against each level.
    pub points: Vec<RooflinePoint>,
    /// What to know before trusting the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What limits a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BoundBy {
    /// Arithmetic, or issuing instructions.
    Compute,
    /// L1 and shared memory.
    L1,
    /// L2.
    L2,
    /// Device memory.
    Dram,
    /// Nothing is near its peak: warps wait.
    Latency,
    /// The launch itself: the kernel takes hardly longer than one that does nothing.
    Launch,
}

/// The time that rates are taken over, beside the unprofiled one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RatesOver {
    /// Whose time it is.
    pub basis: TimeBasis,
    /// Seconds.
    pub seconds: f64,
    /// Clock of the multiprocessors meanwhile, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_hz: Option<f64>,
    /// Median of the timed launches, which were not profiled, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprofiled_seconds: Option<f64>,
    /// Their clock, Hz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprofiled_clock_hz: Option<f64>,
}

/// Whose time rates are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeBasis {
    /// The profiled launch's, whose counters they are.
    Profiled,
    /// The median of the launches that were not profiled: the profiled one's is not known.
    Unprofiled,
}

/// A precision of floating-point arithmetic, and the units that do it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// f64.
    Fp64,
    /// f32.
    Fp32,
    /// f16 and bf16 outside tensor cores.
    Fp16,
    /// Tensor cores, f64.
    TensorFp64,
    /// Tensor cores, tf32.
    TensorTf32,
    /// Tensor cores, f16 and bf16.
    TensorHalf,
    /// Tensor cores, floats of 8 bits and fewer.
    TensorFp8,
    /// Tensor cores, where the source does not distinguish the types.
    Tensor,
}

/// A level of the memory.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// L1 and shared memory.
    L1,
    /// L2.
    L2,
    /// Device memory.
    Dram,
}

/// Work in one precision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComputeRoof {
    /// The precision.
    pub precision: Precision,
    /// Operations of the launch; a fused multiply-add is two. Absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<f64>,
    /// Operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The most operations per second that the device does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// `rate` over the ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

/// Traffic at one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryRoof {
    /// The level.
    pub level: Level,
    /// Bytes of the launch. Absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// What the bytes are, where they are not those that went over the level's wires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_note: Option<String>,
    /// Bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The most bytes per second that the level moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// `rate` over the ceiling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

/// The most that the device does per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// Per second.
    pub per_second: f64,
    /// Where it comes from.
    pub source: CeilingSource,
    /// How it was found.
    pub derivation: String,
}

/// Where a ceiling comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CeilingSource {
    /// The unit's peak per cycle, as the profiler reports it, times its measured clock.
    Profiler,
    /// The device's facts, from its driver and its documentation.
    DeviceFacts,
}

/// One precision against one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RooflinePoint {
    /// The precision.
    pub precision: Precision,
    /// The level.
    pub level: Level,
    /// Arithmetic intensity: operations per byte of this level.
    pub intensity: f64,
    /// Operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The most operations per second at this intensity: the precision's ceiling, or the level's
    /// bytes per second times the intensity, whichever is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attainable: Option<f64>,
    /// `rate` over `attainable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fraction: Option<f64>,
}

const EMULATED: &str =
    "the emulated device has no times: intensities without rates, and no ceilings";

/// Computes the roofline of a launch; `None` if its metrics have neither operations nor bytes.
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
            None => notes.push("no time of the launch is known: there are no rates".to_owned()),
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

/// Returns the profiled time with its clock, else the unprofiled time with its clock.
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
            "the profiled launch's time is not known: rates are over the unprofiled median"
                .to_owned(),
        ),
        (TimeBasis::Profiled, Some((profiled, timed)))
            if (profiled / timed - 1.0).abs() > CLOCKS_DIFFER =>
        {
            Some(format!(
                "the profiled launch ran at {:.0} MHz, the timed ones at {:.0} MHz: rates and \
                 ceilings are those of the profiled launch",
                profiled / 1e6,
                timed / 1e6
            ))
        }
        _ => None,
    }
}

/// Relative difference of clocks that gets a note; runs stay within a percent or two.
const CLOCKS_DIFFER: f64 = 0.03;

impl BoundBy {
    /// Phrase for people.
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
    /// Label for people.
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
    /// Label for people.
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
