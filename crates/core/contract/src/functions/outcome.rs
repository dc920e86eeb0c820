//! The result of a function call. The main type is [`FunctionOutcome`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::places::PlaceKind;

/// How a call came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Its process says that it is done; what it did is in its records.
    Ended,
    /// It did not end in time.
    TimedOut,
    /// Its process ended before.
    Died,
    /// It returned more than may be returned.
    TooLarge,
    /// What it said is no answer.
    Garbled,
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OutcomeHead {
    /// How it ended.
    pub status: CallStatus,
    /// Why, unless it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it ran on.
    pub place: PlaceKind,
    /// The GPU, by its `uuid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Milliseconds that it waited for its place, and that it ran for.
    pub queue_ms: f64,
    /// See `queue_ms`.
    pub run_ms: f64,
    /// Whether its process had made another call before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
    /// The beginning of what it printed.
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
