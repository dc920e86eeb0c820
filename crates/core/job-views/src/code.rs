//! Source of a job's kernel side by side with its compiled code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use warpgauge_code::listing::{CodeLanguage, LinkedInstruction};

use super::counters::CodeCounters;

/// Source of a job's kernel, with the instructions that the compiler generated from each line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KernelCodeView {
    /// Id of the job.
    pub job_id: String,
    /// Kernel of the code: `kernel`, or in a comparison `reference` or the name of a candidate.
    pub kernel: String,
    /// Submitted files. The first contains the kernel.
    pub files: Vec<SourceText>,
    /// Listings of the compiled code, PTX before SASS.
    pub listings: Vec<CodeListing>,
    /// Counters of each line and instruction. Absent in answers of servers before this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CodeCounters>,
}

/// Source file as the caller submitted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceText {
    /// Name of the file, as in the `file` field of instructions.
    pub name: String,
    /// Whole text of the file.
    pub text: String,
}

/// Instructions in one language, or the reason why they are missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeListing {
    /// Language of the instructions.
    pub language: CodeLanguage,
    /// Instructions in the order of the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<LinkedInstruction>,
    /// Whether the code has more instructions than this list, which contains at most 16,384.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Reason why there are no instructions, with a remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
