//! Wire types of an evaluation's settings: tolerance, measurement, further checks, and returned
//! outputs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warpgauge_model::{CacheState, PresetName, Regime};

/// Tolerance of a comparison. An element passes if |actual − expected| ≤ atol + rtol·|expected|.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// Absolute tolerance, ≥ 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub atol: Option<f64>,
    /// Relative tolerance, ≥ 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtol: Option<f64>,
    /// Share of elements that must pass, 0–1; default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_matched_ratio: Option<f64>,
    /// Whether NaN matches NaN, and an infinity matches an equal infinity; default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_non_finite: Option<bool>,
}

/// Settings of the measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    /// Preset for the precision and the duration of the measurement.
    #[serde(default)]
    pub preset: PresetName,
    /// State of the L2 cache at each timed launch.
    #[serde(default)]
    pub cache: CacheState,
    /// Random inputs of the timed launches: fresh or the same.
    #[serde(default)]
    pub inputs: InputChoice,
    /// Whether a time has a rank even if a kernel could have kept results from one launch to the next. This concerns
    /// launches with repeated inputs, if `measurement.state.not_known` lists memory. The time of a kernel that reuses
    /// a result is then ranked as if it had computed it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rank_unlisted_state: bool,
    /// Load of the device between timed launches. Comparisons and the gate accept only `isolated`.
    #[serde(default)]
    pub regime: Regime,
    /// Minimum time of the warm-up, seconds, 0–10. Default: the preset's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_warmup_time: Option<f64>,
    /// Maximum time of the timed launches, seconds, 0.001–600. Default: the preset's, or no limit with `num_trials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time: Option<f64>,
}

/// Random inputs of the timed launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InputChoice {
    /// Each launch has inputs that no earlier launch had, from the same distribution, if the expectation can be
    /// computed for them.
    #[default]
    Fresh,
    /// Each launch has the contract's inputs. Variables and shared memory are restored between
    /// launches.
    Same,
}

/// Device metrics to collect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileSpec {
    /// Tools to use, in order of preference: `cupti`, `ncu`, `gpm`, `static`, `nsys`, `emulator`, or `auto`. If the
    /// list is empty, the best available tools are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Ids of metrics, or names of metric sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
}

/// Memory and race checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sanitize {
    /// No memory or race checks.
    #[default]
    Off,
    /// All memory and race checks that the device supports.
    All,
    /// One compute-sanitizer tool: memcheck, racecheck, initcheck or synccheck.
    Tool(String),
}

/// Outputs that the report contains.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReturnOutputs {
    /// No content. The report contains the hashes of all outputs.
    #[default]
    None,
    All,
    /// The outputs with these names.
    Names(Vec<String>),
}

impl ReturnOutputs {
    /// Returns whether the output of this name is returned.
    pub fn include(&self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Names(names) => names.iter().any(|one| one == name),
        }
    }
}

/// Processes that run and judge the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// A warm worker, which is cleaned between evaluations.
    #[default]
    Warm,
    /// A new process for this evaluation.
    Fresh,
    /// A process that contains only the kernel and its buffers launches the kernel. Another process, with a separate
    /// address space on the host and on the device, generates the inputs, keeps the expectations and decides.
    /// Reference kernels run in a third process. Each launch takes about 0.5 ms longer.
    Sealed,
}
