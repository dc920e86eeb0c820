//! Work that would hold up the async threads.

use super::error::ApiError;

/// Does work that takes long on a thread for such. `doing` says what, as in "parsing the body"; `id` is
/// that of the error if it panics.
pub(super) async fn aside<T: Send + 'static>(
    id: &'static str,
    doing: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "{doing} panicked");
        ApiError::internal(id, format!("{doing} failed"))
    })
}
