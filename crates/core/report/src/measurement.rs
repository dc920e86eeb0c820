//! Wire types of the measurement method and the reliability of the times. The main type is
//! [`MeasurementReport`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_model::{CacheState, Regime};
use warpgauge_statistics::{
    HealthFlag, Rates, RejectCount, SpeedOfLight, StopReason, Summary, ThrottleReason,
};

/// Method, samples and statistics of the timed launches.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct MeasurementReport {
    /// Method of one sample. `cuda_events_gated`: CUDA events around one launch, which is queued before the device
    /// reaches it. `emulated`: time of the emulation, which says nothing about a GPU. `cpu_wall_clock`: the judge's
    /// clock around one call of a torch kernel on the CPU; such times are not ranked. `torch_cuda_events`: CUDA
    /// events around one call of a torch kernel on a GPU. `torch_judge_clock`: the judge's clock around a batch of
    /// such calls, divided by their number.
    pub method: String,
    /// Version of the method. Times of different versions are not compared.
    pub method_version: u32,
    /// State of the L2 cache at each launch.
    pub cache: CacheState,
    /// Load of the device between timed launches. Times of different regimes are not compared.
    #[serde(default)]
    pub regime: Regime,
    /// Whether the random inputs of each launch are fresh or repeated.
    pub inputs: InputsShown,
    /// Number of input sets, which are assigned to launches in random order. Present only if a
    /// torch reference computed the expected outputs, for one secret seed per set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_sets: Option<u32>,
    /// Memory that could carry a result from one timed launch to the next. Absent if all inputs vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateReport>,
    /// Number of blocks of one launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_blocks: Option<u64>,
    /// Number of warm-up launches.
    pub warmup_launches: u32,
    /// Whether the warm-up ended because times were stable. Otherwise it reached its time limit.
    pub warmup_stable: bool,
    /// Reason why the measurement ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<StopReason>,
    /// Statistics of the valid samples, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Median time of an empty kernel, measured in the same way, milliseconds. It is not subtracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_launch_ms: Option<f64>,
    /// Whether the kernel is so short that its time consists mostly of launch overhead.
    pub at_floor: bool,
    /// Minimum time for the contract's declared `work` at the device's peak rates, without the bytes that L2 can
    /// hold. A shorter time indicates an incorrect measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_of_light: Option<SpeedOfLight>,
    /// Rates from the work and the median time, and the device's peak rates. If the contract declares no bytes, they
    /// are estimated, and the report names the assumption. Absent on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rates: Option<Rates>,
    /// Number of dropped samples, by reason. No rule depends on the measured time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectCount>,
    /// Number of timed launches whose outputs were verified.
    pub audited: u32,
    /// Sealed launches: timed launches that are judged by a process in which the kernel never runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<SealedReport>,
    /// Load before timed launches. Present only with the regime `sustained`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadReport>,
    /// Clock of the multiprocessors, measured on the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock: Option<ClockReport>,
    /// State of the GPU before the first timed launch and after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuReport>,
    /// Batches of launches that were queued together, in order.
    pub batches: Vec<BatchReport>,
    /// Reason why the time is not ranked, although the outputs may be right. `runtime` is then
    /// absent, and nothing is compared with the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unranked: Option<String>,
    /// Notes on the reliability of the times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Samples in launch order, including dropped ones, milliseconds.
    pub samples_ms: Vec<f32>,
}

/// Random inputs of the timed launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputsShown {
    /// Each launch has inputs that no earlier launch had.
    Fresh,
    /// Launches have the same inputs, or those of a few sets (`input_sets`). All memory in which a kernel could keep
    /// a result was restored between launches.
    SameStateWiped,
    /// Launches have the same inputs, or those of a few sets (`input_sets`). A kernel that keeps results in memory
    /// that was not restored would not be detected. `state` lists the restored memory and the rest.
    Same,
}

/// Memory that could carry a result from one timed launch to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateReport {
    /// Memory that was restored before each timed launch.
    pub put_back: Vec<String>,
    /// Memory that was checked after the verified launches and after the last. A kernel that keeps results there is
    /// rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looked_at: Vec<String>,
    /// Memory in which an adversarial kernel could still have kept results. Empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_known: Vec<String>,
}

/// Sealed launches: timed launches that are judged by a process in which the kernel never runs. The kernel cannot
/// reach their inputs, their fillings or the verdict. Their positions are random, and the kernel cannot recognise
/// them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SealedReport {
    /// Number of sealed launches.
    pub launches: u32,
    /// Median time of the sealed launches, milliseconds. Absent if all timed launches were sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Median time of the other launches, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_median_ms: Option<f64>,
    /// Whether both medians agree. If not, only the sealed launches count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agree: Option<bool>,
    /// Reason why there are no sealed launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// Load: launches of the same kernel that keep the device as busy as in continuous use. They run before each timed
/// launch; before the first one, they run until the clock has settled. They are prepared like timed launches, and
/// some are verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadReport {
    /// Number of load launches.
    pub launches: u64,
    /// Number of load launches whose outputs were verified.
    pub verified: u32,
    /// Share of the time from the first timed launch to the last in which the kernel ran or was about to be launched
    /// again, 0–1. Most of the rest is verification.
    pub share: f64,
    /// Median time of the load launches, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Whether timed launches take as long as load launches. If not, the kernel may do less work in load launches, or
    /// the clock recovers before a timed launch. Absent on the emulated device, and with a hot cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agree: Option<bool>,
}

/// Clock rate over the timed launches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockReport {
    /// Mean clock rate of the batches, Hz.
    pub mean_hz: f64,
    /// Clock rate of the slowest batch, Hz.
    pub min_hz: f64,
    /// Clock rate of the fastest batch, Hz.
    pub max_hz: f64,
}

/// Batch of launches that were queued together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BatchReport {
    /// Number of timed launches.
    pub trials: u32,
    /// Clock rate of the multiprocessors, Hz. Absent if the batch was too short to measure it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_hz: Option<f64>,
}

/// State of the GPU at the measurement. Values that the driver does not report are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GpuReport {
    /// Version of the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Maximum clock of the multiprocessors, MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sm_clock_mhz: Option<u32>,
    /// Power limit, W.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// Power before and after the timed launches, W.
    pub power_w: Vec<f64>,
    /// Temperature before and after the timed launches, °C.
    pub temperature_c: Vec<u32>,
    /// Reasons for clocks below the maximum, from all readings.
    pub throttle_reasons: Vec<ThrottleReason>,
    /// Conditions of the GPU that affect the times.
    pub flags: Vec<HealthFlag>,
    /// Number of compute processes on the GPU that this server did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_processes: Option<u32>,
}

/// State of a GPU when a worker read it last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceReading {
    /// Time of the reading, seconds since the Unix epoch.
    pub at: f64,
    /// Occasion of the reading.
    pub occasion: ReadingOccasion,
    /// Clock of the multiprocessors, MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<u32>,
    /// Maximum clock of the multiprocessors, MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sm_clock_mhz: Option<u32>,
    /// Clock of the memory, MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock_mhz: Option<u32>,
    /// Maximum clock of the memory, MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory_clock_mhz: Option<u32>,
    /// Power, W.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// Power limit, W.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// Temperature, °C.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<u32>,
    /// Reasons for clocks below the maximum. Absent if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_reasons: Option<Vec<ThrottleReason>>,
}

/// Occasion on which a worker reads the state of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadingOccasion {
    /// The timed launches of an evaluation had just ended.
    Evaluation,
    /// The worker started.
    Start,
}
