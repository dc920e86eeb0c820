//! Runs the worker program once for a single answer.

use std::time::Duration;

use serde::de::DeserializeOwned;

use warpgauge_sandbox::contained::{self, ProcessLaunch};

/// Maximum number of characters of a failed child's standard error that the error quotes.
const SAID: usize = 2000;

/// Reason why a child process gave no answer.
pub(super) enum Silence {
    /// The child did not answer in time.
    TimedOut,
    /// The child could not be started, or ended without an answer.
    Ended(String),
}

/// Runs a child and returns its answer: the last line of its output that parses as an answer. The
/// driver and libraries may print lines too.
pub(super) async fn ask<T: DeserializeOwned>(
    launch: &ProcessLaunch,
    limit: Duration,
) -> Result<T, Silence> {
    let end = contained::run(launch, limit).await;
    let end = end.map_err(|error| Silence::Ended(error.to_string()))?;
    if end.status.is_none() {
        return Err(Silence::TimedOut);
    }
    let answer = end.stdout.text.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    answer.ok_or_else(|| {
        let said: String = end.stderr.text.trim().chars().take(SAID).collect();
        Silence::Ended(format!("{}; its output: {said}", end.description()))
    })
}
