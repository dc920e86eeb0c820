//! Cancellation of jobs.

use futures_util::future::BoxFuture;

use super::lease::{end, held_row};
use super::state::has_ended;
use super::writer::{Batch, Write};
use super::{CancelResult, JobError, JobState, StoreError};

use warpgauge_model::ErrorCode;

/// A write that cancels a job, or requests its cancellation.
pub(super) struct CancelJob {
    pub(super) job: String,
    /// Owner of the job, or `None` for any owner.
    pub(super) owner: Option<String>,
}

impl Write for CancelJob {
    type Out = CancelResult;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<CancelResult, StoreError>> {
        Box::pin(async move {
            let row = held_row(&self.job, batch).await?;
            let visible =
                row.filter(|row| self.owner.as_ref().is_none_or(|owner| *owner == row.owner));
            let Some(row) = visible else { return Ok(CancelResult::NotFound) };
            if has_ended(row.state) {
                return Ok(CancelResult::Ended(row.state));
            }
            if row.holder.is_none() {
                let error = JobError {
                    code: ErrorCode::Cancelled,
                    message: "it was cancelled while it waited".to_owned(),
                };
                end(&self.job, &row, JobState::Cancelled, Some(&error), None, batch).await?;
                return Ok(CancelResult::Cancelled);
            }
            let asked = sqlx::query("UPDATE jobs SET cancel_requested = 1 WHERE id = $1")
                .bind(self.job.as_str())
                .execute(&mut *batch.connection)
                .await;
            asked.map_err(batch.failed("cancel a job"))?;
            Ok(CancelResult::Asked)
        })
    }
}
