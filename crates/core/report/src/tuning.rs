//! Wire types of the choice among the configurations of a kernel. The main type is
//! [`TuningReport`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::types::EvaluateResponse;
use warpgauge_statistics::Counted;

/// Choice of one configuration among several (`@triton.autotune`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuningReport {
    /// Configurations that were tried, in the order of the source.
    pub configurations: Vec<TunedConfiguration>,
    /// `index` of the chosen configuration, which the rest of the report describes.
    pub chosen: u32,
    /// Basis of the choice.
    pub decided_by: TunedBy,
    /// Number of configurations that the kernel's pruning function removed.
    pub pruned: u32,
    /// Whether an earlier choice for the same source, arguments and device was reused.
    pub from_cache: bool,
    /// Time of the choice, milliseconds, including compilations.
    pub total_ms: f64,
}

/// Basis of the choice between configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TunedBy {
    /// Medians of timed launches. Each round drops the slower half.
    Times,
    /// Exact counts of one launch on the emulated device, because its times say nothing about a
    /// GPU.
    Counts,
    /// Nothing: no configuration ran correctly. The first configuration is reported.
    Nothing,
}

/// Configuration that was tried, with its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TunedConfiguration {
    /// Index among all configurations of the source, from 0. `metadata.configuration` takes this index.
    pub index: u32,
    /// Compile-time constants.
    pub meta: BTreeMap<String, serde_json::Value>,
    /// Number of warps per block.
    pub num_warps: u32,
    /// Number of pipeline stages.
    pub num_stages: u32,
    /// Number of blocks per cluster.
    pub num_ctas: u32,
    /// Maximum number of registers per thread. Absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxnreg: Option<u32>,
    /// Result of the configuration.
    pub outcome: TunedOutcome,
    /// Reason why the configuration was not chosen. Absent for the chosen configuration, and if the
    /// only reason is that another was better.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Median time of its launches in the last round that included it, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Number of timed launches in that round.
    #[serde(default)]
    pub launches: u32,
    /// Number of rounds that included the configuration.
    #[serde(default)]
    pub rounds: u32,
    /// Exact counts of one launch, on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}

/// Result of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TunedOutcome {
    /// The configuration was chosen.
    Chosen,
    /// Another configuration was faster, or does less work.
    Outdone,
    /// An output was wrong.
    Wrong,
    /// The configuration did not compile.
    NotCompiled,
    /// The configuration did not run.
    Failed,
}

impl TuningReport {
    /// Adds the choice to the report of its kernel.
    pub fn put_into(self, report: &mut EvaluateResponse) {
        let chosen = self.configurations.iter().find(|one| one.index == self.chosen);
        report.kernel_exec_result.metadata.configuration = chosen.map(TunedConfiguration::settings);
        report.tuning = Some(self);
    }
}

impl TunedConfiguration {
    /// Returns constants and compiler settings by name.
    fn settings(&self) -> BTreeMap<String, serde_json::Value> {
        let mut settings = self.meta.clone();
        settings.insert("num_warps".to_owned(), self.num_warps.into());
        settings.insert("num_stages".to_owned(), self.num_stages.into());
        settings.insert("num_ctas".to_owned(), self.num_ctas.into());
        if let Some(registers) = self.maxnreg {
            settings.insert("maxnreg".to_owned(), registers.into());
        }
        settings
    }

    /// Formats the configuration as `name=value`, for people.
    pub fn shown(&self) -> String {
        let meta = self.meta.iter().map(|(name, value)| match value {
            serde_json::Value::String(text) => format!("{name}={text}"),
            other => format!("{name}={other}"),
        });
        let mut settings = vec![
            format!("num_warps={}", self.num_warps),
            format!("num_stages={}", self.num_stages),
        ];
        if self.num_ctas > 1 {
            settings.push(format!("num_ctas={}", self.num_ctas));
        }
        settings.extend(self.maxnreg.map(|registers| format!("maxnreg={registers}")));
        meta.chain(settings).collect::<Vec<_>>().join(" ")
    }
}
