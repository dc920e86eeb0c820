//! Runs long work outside the async threads.

use super::error::ApiError;

/// Size in bytes above which bodies are parsed, and answers are written, outside the async threads.
pub(super) const HEAVY_BYTES: usize = 1 << 20;

/// Runs work on a thread for blocking work. `doing` describes the work in errors, such as "parsing
/// the body". If the work panics, the error has this `id`.
pub(super) async fn run_blocking<T: Send + 'static>(
    id: &'static str,
    doing: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "{doing} panicked");
        ApiError::internal(id, format!("{doing} failed"))
    })
}
