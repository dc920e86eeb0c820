//! Wire types of the choice among the configurations of a kernel. The main type is
//! [`TuningReport`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::types::EvaluateResponse;
use warpgauge_statistics::Counted;

/// The choice of a configuration (`@triton.autotune`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TuningReport {
    /// The configurations that were tried, in the order of the source.
    pub configurations: Vec<TunedConfiguration>,
    /// `index` of the one that was chosen, and that the rest of the report is about.
    pub chosen: u32,
    /// What decided.
    pub decided_by: TunedBy,
    /// Configurations that the kernel's own pruning left out.
    pub pruned: u32,
    /// Whether an earlier choice was taken over: for the same source, arguments and device.
    pub from_cache: bool,
    /// Time that the choice took, milliseconds, compilations included.
    pub total_ms: f64,
}

/// What decided between configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TunedBy {
    /// Medians of timed launches; in each round the slower half was left out.
    Times,
    /// Exact counts of one launch, on the emulated device: its times say nothing.
    Counts,
    /// Nothing: no configuration ran and was right, and the first stands for all.
    Nothing,
}

/// One configuration, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TunedConfiguration {
    /// Its place among all that the source lists, from 0: `metadata.configuration` takes it.
    pub index: u32,
    /// Compile-time constants.
    pub meta: BTreeMap<String, serde_json::Value>,
    /// Warps of a block.
    pub num_warps: u32,
    /// Pipeline stages.
    pub num_stages: u32,
    /// Blocks of a cluster.
    pub num_ctas: u32,
    /// Most registers of a thread, if they are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxnreg: Option<u32>,
    /// What came of it.
    pub outcome: TunedOutcome,
    /// Why it was left out, where that is not for its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Median of its timed launches in the last round that it took part in, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<f64>,
    /// Timed launches of that round.
    #[serde(default)]
    pub launches: u32,
    /// Rounds that it took part in.
    #[serde(default)]
    pub rounds: u32,
    /// What one launch does, on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
}

/// What came of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TunedOutcome {
    /// It was chosen.
    Chosen,
    /// Another one was faster, or does less work.
    Outdone,
    /// Its outputs were wrong.
    Wrong,
    /// It did not compile.
    NotCompiled,
    /// It did not run.
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
