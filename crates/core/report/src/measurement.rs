//! Wire types of the measurement method and the reliability of the times. The main type is
//! [`MeasurementReport`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_model::{CacheState, Regime};
use warpgauge_statistics::{
    HealthFlag, Rates, RejectCount, SpeedOfLight, StopReason, Summary, ThrottleReason,
};

/// How the times were taken.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MeasurementReport {
    /// What one sample is: `cuda_events_gated` (events round one launch, queued before the device
    /// comes to it), `emulated` (the emulation's own time, which says nothing about a GPU),
    /// `cpu_wall_clock` (the judge's clock round one call of a torch kernel on the CPU, which ranks
    /// nothing), `torch_cuda_events` (events round one call of a torch kernel on a GPU) or
    /// `torch_judge_clock` (the judge's clock round a batch of such calls, divided by their number).
    pub method: String,
    /// Version of the method: times of different versions are not compared.
    pub method_version: u32,
    /// State of L2 at each launch.
    pub cache: CacheState,
    /// What the device did between timed launches: times of different regimes are not compared.
    #[serde(default)]
    pub regime: Regime,
    /// What the random inputs of each launch were.
    pub inputs: InputsShown,
    /// Number of sets of inputs that launches found in a random order, where a torch reference computed what
    /// is expected for so many seeds that the kernel does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_sets: Option<u32>,
    /// What could carry a result from one timed launch to the next, where not all inputs vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateReport>,
    /// Blocks of one launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_blocks: Option<u64>,
    /// Warm-up launches.
    pub warmup_launches: u32,
    /// Whether the warm-up ended because times were stable; otherwise its time was up.
    pub warmup_stable: bool,
    /// Why no more launches were timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopReason>,
    /// Statistics of the samples that count, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Median time of a kernel that does nothing, taken the same way, milliseconds. Nothing is
    /// subtracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_launch_ms: Option<f64>,
    /// Whether the kernel is so short that the time is that of launching it.
    pub at_floor: bool,
    /// The least time that the contract's `work` takes at the device's peak rates, with all that L2
    /// can hold left out: a kernel that is faster is not measured right. Only declared work counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_of_light: Option<SpeedOfLight>,
    /// The work by the median time, beside the device's peaks. Where the contract declares no bytes
    /// it rests on an assumption, which it names. Absent on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// Samples that do not count, by reason. No rule looks at a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectCount>,
    /// Timed launches whose outputs were verified.
    pub audited: u32,
    /// Timed launches that were judged by a process in which the kernel never ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<SealedReport>,
    /// The load before timed launches; with the regime `sustained` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadReport>,
    /// Clock of the multiprocessors, measured on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock: Option<ClockReport>,
    /// The GPU before the first timed launch and after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuReport>,
    /// Launches queued together, in order.
    pub batches: Vec<BatchReport>,
    /// Why the time has no rank, though the outputs may be right: then `runtime` is absent, and nothing is
    /// compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unranked: Option<String>,
    /// What to know before trusting the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Every sample, rejected ones too, milliseconds, in launch order.
    pub samples_ms: Vec<f32>,
}

/// What the random inputs of each timed launch were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputsShown {
    /// Numbers that no launch before it saw.
    Fresh,
    /// The same each time, or those of a few sets (`input_sets`); all that a kernel can address and could keep
    /// a result in was put back in between.
    SameStateWiped,
    /// The same each time, or those of a few sets (`input_sets`). A kernel that keeps results where nothing was
    /// put back would not be noticed: `state` says what was, and what is not known.
    Same,
}

/// What could carry a result from one timed launch to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateReport {
    /// What each timed launch found as if it were the first.
    pub put_back: Vec<String>,
    /// What was looked at after the launches that were verified, and after the last: a kernel that
    /// had kept something there would have been rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked_at: Vec<String>,
    /// What a determined kernel could still have kept results in; empty: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_known: Vec<String>,
}

/// Timed launches that were judged by a process in which the kernel never ran: inputs, fillings and the
/// verdict are out of its reach. Which launches these are is random and unknown to the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SealedReport {
    /// How many.
    pub launches: u32,
    /// Their median time, milliseconds, where others were timed beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Median time of the others, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_median_ms: Option<f64>,
    /// Whether both agree. If not, the times of the sealed launches alone count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agree: Option<bool>,
    /// Why there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// Launches of the same kernel that put the device under the load of continuous use, before each timed
/// launch and at first until its clock had settled. They are prepared like timed ones, and some of them
/// are verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReport {
    /// How many.
    pub launches: u64,
    /// Of them, those whose outputs were verified.
    pub verified: u32,
    /// Part of the time from the first timed launch to the last in which the kernel ran, or was about to
    /// be launched again, 0–1. Verification is the rest, for the most part.
    pub share: f64,
    /// Their median time, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Whether timed launches took as long. If not, the kernel may spare itself in these launches, or
    /// the clock recovers before a timed one. Absent on the emulated device, and where the cache is hot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agree: Option<bool>,
}

/// A clock over the timed launches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReport {
    /// Mean over the batches, Hz.
    pub mean_hz: f64,
    /// Slowest batch, Hz.
    pub min_hz: f64,
    /// Fastest batch, Hz.
    pub max_hz: f64,
}

/// Launches queued together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchReport {
    /// How many.
    pub trials: u32,
    /// Clock of the multiprocessors, Hz, where the batch was long enough to measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_hz: Option<f64>,
}

/// The GPU while it was measured. Facts that the driver does not report are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuReport {
    /// Version of the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Largest SM clock, MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sm_clock_mhz: Option<u32>,
    /// Power limit, W.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// Power before and after, W.
    pub power_w: Vec<f64>,
    /// Temperature before and after, °C.
    pub temperature_c: Vec<u32>,
    /// Why clocks were below the largest, at any time that was looked at.
    pub throttle_reasons: Vec<ThrottleReason>,
    /// What of it bears on the times.
    pub flags: Vec<HealthFlag>,
    /// Compute processes on the GPU that this server did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<u32>,
}
