//! Repeated requests with an idempotency key. They receive the job that has the key. If that job
//! ended without an answer, the key may be used again.

use sqlx::Row;

use super::state::parse;
use super::submit::{Entry, Group};
use super::writer::Batch;
use super::{AcceptedJob, Idempotency, JobState, StoreError};

use warpgauge_model::ErrorCode;

/// Returns whether a job ended for a reason outside its request: the server lacked something,
/// failed or shut down, or the caller left. A caller that repeats such a request expects it to run.
fn is_no_answer(code: &ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::Unavailable
            | ErrorCode::UnmetRequirements
            | ErrorCode::QueueFull
            | ErrorCode::Internal
            | ErrorCode::ShuttingDown
            | ErrorCode::CallerGone
            | ErrorCode::AttemptsExhausted
            | ErrorCode::UnreadableRequest
    )
}

/// Result of looking up an entry's idempotency key.
pub(super) enum Earlier {
    /// There is no job, or the entry has no key.
    None,
    /// A job with this key that ended without an answer to its request.
    Spent { id: String },
    /// A job with this key and the same request.
    Same(AcceptedJob),
    /// A job with this key and another request.
    Differs(StoreError),
}

/// Looks up the job that has an entry's key.
pub(super) async fn earlier(entry: &Entry, batch: &mut Batch<'_>) -> Result<Earlier, StoreError> {
    let Some(Idempotency { key, request_hash }) = &entry.job.idempotency else {
        return Ok(Earlier::None);
    };
    let failed = batch.failed("find a job by its idempotency key");
    let row = sqlx::query(
        "SELECT id, state, request_hash, error_code FROM jobs \
         WHERE owner = $1 AND idempotency_key = $2",
    )
    .bind(entry.job.owner.as_str())
    .bind(key.as_str())
    .fetch_optional(&mut *batch.connection)
    .await;
    let Some(row) = row.map_err(&failed)? else { return Ok(Earlier::None) };
    let id: String = row.try_get(0).map_err(&failed)?;
    let state: String = row.try_get(1).map_err(&failed)?;
    let hash: Vec<u8> = row.try_get(2).map_err(&failed)?;
    let code: Option<String> = row.try_get(3).map_err(&failed)?;
    let state = parse(&state).ok_or_else(|| StoreError::Odd {
        place: batch.context.database.place.clone(),
        what: format!("job {id} in state `{}`", super::objects::cut(&state, 32)),
    })?;
    let ended = matches!(state, JobState::Failed | JobState::Cancelled);
    if ended && code.is_some_and(|code| is_no_answer(&ErrorCode::from(code))) {
        return Ok(Earlier::Spent { id });
    }
    if hash != request_hash {
        return Ok(Earlier::Differs(StoreError::Conflict { key: key.clone(), existing: id }));
    }
    // If a job was committed and the connection was lost, the caller did not receive its id: to the
    // caller, the job is new.
    let existing = id != entry.id;
    Ok(Earlier::Same(AcceptedJob { id, state, existing }))
}

/// Returns the existing jobs of a group, provided that all its jobs exist.
pub(super) async fn repetitions(
    group: &Group,
    batch: &mut Batch<'_>,
) -> Result<Option<Vec<AcceptedJob>>, StoreError> {
    let mut found = Vec::new();
    for entry in &group.entries {
        match earlier(entry, batch).await? {
            Earlier::Same(submitted) => found.push(submitted),
            _ => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// Removes the keys of jobs that ended without an answer. Returns the entries that have these keys.
pub(super) async fn free_keys<'a>(
    entries: Vec<&'a Entry>,
    batch: &mut Batch<'_>,
) -> Result<Vec<&'a Entry>, StoreError> {
    let mut freed = Vec::new();
    for entry in entries {
        let Earlier::Spent { id } = earlier(entry, batch).await? else { continue };
        let free = sqlx::query("UPDATE jobs SET idempotency_key = NULL WHERE id = $1").bind(id);
        let done = free.execute(&mut *batch.connection).await;
        done.map_err(batch.failed("free an idempotency key"))?;
        freed.push(entry);
    }
    Ok(freed)
}
