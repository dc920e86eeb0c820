//! Wire types of an evaluation's settings: tolerance, measurement, further checks, and returned
//! outputs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warpgauge_model::{CacheState, PresetName, Regime};

/// An element passes if |actual − expected| ≤ atol + rtol·|expected|.
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
    /// Whether NaN matches NaN and an infinity an equal one; default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_non_finite: Option<bool>,
}

/// How to measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasureSpec {
    /// How precisely, and for how long at most.
    #[serde(default)]
    pub preset: PresetName,
    /// State of the L2 cache at each timed launch.
    #[serde(default)]
    pub cache: CacheState,
    /// What each timed launch finds in random inputs.
    #[serde(default)]
    pub inputs: InputChoice,
    /// Whether a time is ranked even where inputs stay the same and not all is known that a kernel could
    /// keep from one launch to the next (`measurement.state.not_known`): a result that was kept is then
    /// ranked as if it had been computed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rank_unlisted_state: bool,
    /// What the device does between timed launches. Comparisons and the gate know `isolated` alone.
    #[serde(default)]
    pub regime: Regime,
    /// Shortest warm-up, in seconds, 0–10; default: the preset's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_warmup_time: Option<f64>,
    /// Longest time of the timed launches, in seconds, 0.001–600; default: the preset's, or none
    /// with `num_trials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_time: Option<f64>,
}

/// What each timed launch finds in random inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InputChoice {
    /// Numbers of the same distribution that no launch before it saw, wherever what is expected can
    /// be computed for them.
    #[default]
    Fresh,
    /// The contract's own numbers, each time. Variables and shared memory are put back in between.
    Same,
}

/// Hardware metrics to collect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileSpec {
    /// Tools to use, best first: `cupti`, `ncu`, `gpm`, `static`, `nsys`, `emulator`, or `auto`;
    /// empty: whatever works here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Metric ids, or names of metric sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
}

/// Memory and race checks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sanitize {
    /// No checks.
    #[default]
    Off,
    /// All checks of the device.
    All,
    /// One compute-sanitizer tool: memcheck, racecheck, initcheck, synccheck.
    Tool(String),
}

/// Which outputs are returned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReturnOutputs {
    /// None; their hashes always are.
    #[default]
    None,
    All,
    /// The named outputs.
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

/// Which processes run the kernel, and judge it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// A warm worker, scrubbed between evaluations.
    #[default]
    Warm,
    /// A process of its own.
    Fresh,
    /// Every launch is made by a process that has nothing but the kernel and its buffers; another one,
    /// with an address space of its own on the host and on the device, generates the inputs, keeps what
    /// is expected and decides. Reference kernels run in a third. Some 0.5 ms more for each launch.
    Sealed,
}
