//! Wire types of the run of a whole program. The main type is [`ProgramReport`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a whole program (`kernel_type: program`) did when it was run. Its times are its own affair: it
/// decides what it does and how often, so no `runtime` follows from them, and nothing is ranked by them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramReport {
    /// Its exit code; absent if it did not end by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it, e.g. `SIGSEGV`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// What it printed.
    pub stdout: PrintedText,
    /// What it printed of errors.
    pub stderr: PrintedText,
    /// From its start to its end by the server's clock, without any tool round it, milliseconds. The driver's
    /// start is in it.
    pub wall_ms: f64,
    /// Its kernels and how often each was launched. On a GPU as the timeline has them, with their times
    /// there; on the emulated device as it counted them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<ProgramKernel>,
    /// What the emulated device has to say of kernels that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// What it could reach of the machine while it ran.
    pub confinement: String,
}

impl ProgramReport {
    /// Describes the end of the program.
    pub fn end(&self) -> String {
        match (&self.exit_code, &self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("ended by {signal}"),
            (None, None) => "it did not end".to_owned(),
        }
    }
}

/// Text of a program, the middle of which is left out where it is too long.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrintedText {
    /// The beginning and the end of it; what is not UTF-8 is replaced.
    pub text: String,
    /// Bytes that are left out.
    #[serde(default)]
    pub left_out_bytes: u64,
}

/// A kernel of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramKernel {
    /// Its name.
    pub name: String,
    /// How often it was launched.
    pub launches: u64,
    /// Time of all launches by the timeline, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<f64>,
    /// Share of the time of all listed kernels, %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_pct: Option<f64>,
}
