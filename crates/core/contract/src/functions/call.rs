//! The request of a function call. The main type is [`CallHead`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::places::FunctionLimits;

/// Version of the format of calls that this server reads.
pub const FORMAT: u32 = 1;

/// Default timeout of a call, seconds.
const TIMEOUT_S: f64 = 300.0;

/// Head of a call: the device and the limits of the call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallHead {
    /// Version of the format of the data after the head: 1.
    pub format: u32,
    /// Time limit from the start on the device, seconds; default 300.
    #[serde(default = "timeout")]
    pub timeout: f64,
    /// Maximum memory that the call may allocate in addition to PyTorch's own memory, bytes. Default: the server's
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Number of threads for PyTorch. Default and maximum: `threads` of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// UUID of the GPU. Default: the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Whether the program contains pickled objects. They require a permission of the caller's key.
    #[serde(default)]
    pub pickles: bool,
    /// Whether, in a call on the CPU, tensors that the code moves to a GPU stay on the CPU.
    #[serde(default)]
    pub stand_in: bool,
    /// Name under which the process waits after the call for another call with this name, the same key and the same
    /// limits. Without a name the process ends with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
}

/// Maximum length of the name under which a process waits for another call, bytes.
const MAX_AGAIN_BYTES: usize = 64;

fn timeout() -> f64 {
    TIMEOUT_S
}

/// A problem in a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadProblem {
    pub path: &'static str,
    /// The expected and the actual value.
    pub message: String,
}

impl CallHead {
    /// Checks the head against the limits.
    ///
    /// # Errors
    /// The first problem.
    pub fn check(&self, limits: &FunctionLimits) -> Result<(), HeadProblem> {
        let problem = |path, message| Err(HeadProblem { path, message });
        if self.format != FORMAT {
            let message = format!("this server reads format {FORMAT}, and not {}", self.format);
            return problem("format", message);
        }
        let most = limits.max_timeout_s;
        if !(self.timeout > 0.0 && self.timeout <= most) {
            let message = format!(
                "a call may take more than 0 and at most {most} s, and not {}",
                self.timeout
            );
            return problem("timeout", message);
        }
        let most = limits.max_memory_bytes;
        if let Some(bytes) = self.memory_bytes.filter(|bytes| !(1..=most).contains(bytes)) {
            let message = format!("a call may have 1 to {most} bytes of memory, and not {bytes}");
            return problem("memory_bytes", message);
        }
        if self.threads == Some(0) {
            return problem("threads", "a call has at least one thread".to_owned());
        }
        if let Some(name) = self.again.as_ref().filter(|name| name.len() > MAX_AGAIN_BYTES) {
            let message =
                format!("a name has at most {MAX_AGAIN_BYTES} bytes, and not {}", name.len());
            return problem("again", message);
        }
        Ok(())
    }
}

/// A function call: the function with its data, and the settings of the call.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionCall {
    /// Name of the caller's key.
    pub owner: String,
    /// Device and limits of the call.
    pub head: CallHead,
    /// Function and data, as input of the process that runs the call.
    pub program: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(head: &str) -> Option<&'static str> {
        let limits = FunctionLimits {
            max_timeout_s: 60.0,
            max_memory_bytes: 1000,
            max_result_bytes: 1,
            max_body_bytes: 1,
            max_idle_s: 1.0,
        };
        let head: CallHead = serde_json::from_str(head).unwrap();
        head.check(&limits).err().map(|problem| problem.path)
    }

    #[test]
    fn heads_are_within_limits() {
        assert_eq!(problem(r#"{"format": 1, "timeout": 60, "memory_bytes": 1000}"#), None);
        for (field, head) in [
            ("format", r#"{"format": 2}"#),
            ("timeout", r#"{"format": 1}"#),
            ("timeout", r#"{"format": 1, "timeout": 0}"#),
            ("timeout", r#"{"format": 1, "timeout": -1}"#),
            ("memory_bytes", r#"{"format": 1, "timeout": 1, "memory_bytes": 1001}"#),
            ("memory_bytes", r#"{"format": 1, "timeout": 1, "memory_bytes": 0}"#),
            ("threads", r#"{"format": 1, "timeout": 1, "threads": 0}"#),
            ("again", &format!(r#"{{"format": 1, "timeout": 1, "again": "{}"}}"#, "n".repeat(65))),
        ] {
            assert_eq!(problem(head), Some(field), "{head}");
        }
    }
}
