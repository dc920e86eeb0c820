//! Ends of jobs that somebody wants to be told of, until they were.
//!
//! A row is there from the moment at which its job ends: a trigger of the database writes it in the
//! same transaction, however the job ends. It goes when it was delivered or given up.

use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use sqlx::Row;

use super::clock::{now, span, time};
use super::state::parse;
use super::writer::{Batch, Write};
use super::{JobId, JobState, Store, StoreError};

/// An end to tell of, handed out for one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct DueWebhook {
    /// The job.
    pub job_id: JobId,
    /// Where to tell.
    pub url: String,
    /// How it ended.
    pub state: JobState,
    /// When it ended.
    pub ended_at: SystemTime,
    /// Which attempt this is, from 1.
    pub attempt: u32,
}

impl Store {
    /// When the next attempt is due: how long from now, zero if it is; `None` if there is nothing to
    /// tell.
    pub async fn next_webhook(&self) -> Result<Option<Duration>, StoreError> {
        let failed = self.reader.failed("look for webhooks");
        let row = sqlx::query("SELECT MIN(due_at) FROM webhooks")
            .fetch_one(&self.reader.pool)
            .await
            .map_err(&failed)?;
        let due: Option<i64> = row.try_get(0).map_err(&failed)?;
        let wait =
            |due: i64| u64::try_from(due - now()).map_or(Duration::ZERO, Duration::from_micros);
        Ok(due.map(wait))
    }

    /// Hands out at most `limit` of those that are due. Nobody else gets them within `hold`; who was
    /// given one says what came of it, or it is due again after that time.
    pub async fn claim_webhooks(
        &self,
        limit: usize,
        hold: Duration,
    ) -> Result<Vec<DueWebhook>, StoreError> {
        self.writer.write(Claim { limit: limit as i64, hold: span(hold) }).await
    }

    /// An end was told, or will not be told any more.
    pub async fn webhook_done(&self, job_id: &str) -> Result<(), StoreError> {
        self.writer.write(Done { job_id: job_id.to_owned() }).await
    }

    /// An attempt failed; the next one is due after `wait`.
    pub async fn webhook_failed(&self, job_id: &str, wait: Duration) -> Result<(), StoreError> {
        self.writer.write(Again { job_id: job_id.to_owned(), wait: span(wait) }).await
    }
}

struct Claim {
    limit: i64,
    hold: i64,
}

impl Write for Claim {
    type Out = Vec<DueWebhook>;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Vec<DueWebhook>, StoreError>> {
        Box::pin(async move {
            let failed = batch.failed("take webhooks");
            let now = now();
            let claim = if batch.is_postgres() {
                "UPDATE webhooks SET due_at = $1, attempts = attempts + 1 WHERE job_id IN (\
                 SELECT job_id FROM webhooks WHERE due_at <= $2 ORDER BY due_at LIMIT $3 \
                 FOR UPDATE SKIP LOCKED) RETURNING job_id, url, state, ended_at, attempts"
            } else {
                "UPDATE webhooks SET due_at = $1, attempts = attempts + 1 WHERE job_id IN (\
                 SELECT job_id FROM webhooks WHERE due_at <= $2 ORDER BY due_at LIMIT $3) \
                 RETURNING job_id, url, state, ended_at, attempts"
            };
            let rows = sqlx::query(claim)
                .bind(now.saturating_add(self.hold))
                .bind(now)
                .bind(self.limit)
                .fetch_all(&mut *batch.connection)
                .await
                .map_err(&failed)?;
            let mut due = Vec::with_capacity(rows.len());
            for row in rows {
                let job_id: String = row.try_get("job_id").map_err(&failed)?;
                let state: String = row.try_get("state").map_err(&failed)?;
                let odd = || StoreError::Odd {
                    place: batch.context.database.place.clone(),
                    what: format!("a webhook of job {job_id} in an unknown state"),
                };
                let state = parse(&state).ok_or_else(odd)?;
                due.push(DueWebhook {
                    state,
                    url: row.try_get("url").map_err(&failed)?,
                    ended_at: time(row.try_get("ended_at").map_err(&failed)?),
                    attempt: u32::try_from(row.try_get::<i64, _>("attempts").map_err(&failed)?)
                        .unwrap_or(u32::MAX),
                    job_id,
                });
            }
            Ok(due)
        })
    }
}

struct Done {
    job_id: String,
}

impl Write for Done {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let delete = sqlx::query("DELETE FROM webhooks WHERE job_id = $1");
            let deleted = delete.bind(&self.job_id).execute(&mut *batch.connection).await;
            deleted.map(drop).map_err(batch.failed("strike a webhook"))
        })
    }
}

struct Again {
    job_id: String,
    wait: i64,
}

impl Write for Again {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let update = sqlx::query("UPDATE webhooks SET due_at = $1 WHERE job_id = $2");
            let due = now().saturating_add(self.wait);
            let updated = update.bind(due).bind(&self.job_id).execute(&mut *batch.connection).await;
            updated.map(drop).map_err(batch.failed("put off a webhook"))
        })
    }
}
