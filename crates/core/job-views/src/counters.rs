//! Counters of the instructions and lines of a kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warpgauge_code::listing::CodeLanguage;
use warpgauge_model::InstructionCounts;

/// Counters of a kernel's instructions in one launch on the emulated device, or the reason why there
/// are none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeCounters {
    /// Language of the listing whose instructions were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<CodeLanguage>,
    /// Counts of the launch. They are the sum of `lines` and `elsewhere`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<InstructionCounts>,
    /// Counts of each line of the submitted files with executed instructions, by file and line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineCounters>,
    /// Counts of the instructions that belong to no line of a submitted file, or are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<InstructionCounts>,
    /// Counts of each listed instruction that was executed, in the order of the listing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<ListedCounters>,
    /// Reason why there are no counters, with a remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Counters of the instructions that were generated from one source line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineCounters {
    /// Name of the submitted file.
    pub file: String,
    /// Line in the file, from 1.
    pub line: u32,
    /// Sum of the counts of the line's instructions.
    pub counts: InstructionCounts,
}

/// Counters of one instruction of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedCounters {
    /// Index of the instruction in the listing, from 0.
    pub index: usize,
    /// Counts of the instruction.
    pub counts: InstructionCounts,
}
