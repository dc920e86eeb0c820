//! Wire types of the run of a whole program. The main type is [`ProgramReport`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Run of a whole program (`kernel_type: program`). The program determines what it does and how often. Its times
/// therefore give no `runtime`, and are not ranked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramReport {
    /// Exit code. Absent if the program did not exit normally.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Signal that ended the program, e.g. `SIGSEGV`. Absent if no signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Standard output.
    pub stdout: PrintedText,
    /// Standard error.
    pub stderr: PrintedText,
    /// Wall-clock time from the program's start to its end, milliseconds. It includes the start of the driver. No
    /// tool is attached in this run.
    pub wall_ms: f64,
    /// Kernels with their numbers of launches. On a GPU they come from the timeline and include times; on the
    /// emulated device they come from exact counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<ProgramKernel>,
    /// Messages of the emulated device about kernels that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    /// Confinement of the program: parts of the machine that it could access.
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

/// Text that a program printed. If it is too long, its middle part is omitted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrintedText {
    /// Beginning and end of the text. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Number of omitted bytes.
    #[serde(default)]
    pub left_out_bytes: u64,
}

/// Kernel of a program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramKernel {
    /// Name of the kernel.
    pub name: String,
    /// Number of launches.
    pub launches: u64,
    /// Time of all launches in the timeline, milliseconds. Absent without a timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<f64>,
    /// Share of the time of all listed kernels, %. Absent without a timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_pct: Option<f64>,
}
