//! The result of a function call. The main type is [`FunctionOutcome`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::places::PlaceKind;

/// End of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// The process reported the end. Its records have the result.
    Ended,
    /// The call exceeded its time limit.
    TimedOut,
    /// The process that ran the call died.
    Died,
    /// The returned value exceeds the size limit.
    TooLarge,
    /// The process sent an invalid answer.
    Garbled,
}

/// Head of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeHead {
    /// End of the call.
    pub status: CallStatus,
    /// Reason for the end. Absent if the call ended with a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Kind of device that the call ran on.
    pub place: PlaceKind,
    /// UUID of the GPU. Absent for the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Time for which the call waited for a device, milliseconds.
    pub queue_ms: f64,
    /// Time for which the call ran, milliseconds.
    pub run_ms: f64,
    /// Whether the process had already run an earlier call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// Beginning of the text that the call printed.
    pub printed: String,
}

/// An answer: its head, and the records of the process, concatenated.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionOutcome {
    /// The server's report of the call.
    pub head: OutcomeHead,
    /// Output of the process. Each record is its length (four bytes, little endian) and that many
    /// bytes.
    pub records: Vec<u8>,
}
