//! Work that would hold up the async threads.

use super::error::ApiError;

/// Bodies above this size are parsed, and answers above it written, off the async threads.
pub(super) const HEAVY_BYTES: usize = 1 << 20;

/// Does work that takes long on a thread for such. `doing` says what, as in "parsing the body"; `id` is
/// that of the error if it panics.
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
