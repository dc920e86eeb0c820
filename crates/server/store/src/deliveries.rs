//! Webhooks that announce the ends of jobs. The transaction that ends a job also stores its
//! webhook, so each end is announced. The row remains until the webhook is delivered or given up.
//! The main type is [`DeliveryQueue`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use sqlx::{AssertSqlSafe, Row};
use tokio::sync::Notify;

use super::objects::cut;
use super::read::Reader;
use super::writer::{Batch, Write, Writer};
use super::{Delivery, DeliveryOutcome, StoreError};

/// Time for which a process owns a delivery that it took, microseconds. Afterwards another process
/// may take it.
const TAKEN_FOR: i64 = 60_000_000;

/// Wakes the delivery task when a transaction with a new webhook has committed. Before the commit,
/// the task would find nothing.
#[derive(Debug, Default)]
pub(super) struct Bell {
    entered: AtomicBool,
    rung: Notify,
    /// Number of queries for due webhooks.
    looks: AtomicU64,
}

impl Bell {
    /// Records a commit. Wakes the task if the transaction stored a webhook.
    pub(super) fn committed(&self) {
        if self.entered.swap(false, Ordering::AcqRel) {
            self.rung.notify_one();
        }
    }

    /// Waits for the next wake-up, or returns at once if one is pending.
    pub(super) async fn heard(&self) {
        self.rung.notified().await;
    }
}

/// Webhooks that wait for delivery.
pub struct DeliveryQueue {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) bell: Arc<Bell>,
}

impl DeliveryQueue {
    /// Returns the time until the next webhook is due, zero if one is due, or `None` if none is
    /// pending.
    pub async fn next_due(&self) -> Result<Option<Duration>, StoreError> {
        self.bell.looks.fetch_add(1, Ordering::SeqCst);
        let failed = self.reader.failed("read webhooks");
        let row = sqlx::query("SELECT MIN(next_at) FROM deliveries WHERE state = 'pending'")
            .fetch_one(&self.reader.pool)
            .await
            .map_err(&failed)?;
        let next: Option<i64> = row.try_get(0).map_err(&failed)?;
        let wait = |next: i64| {
            u64::try_from(next - super::clock::now()).map_or(Duration::ZERO, Duration::from_micros)
        };
        Ok(next.map(wait))
    }

    /// Waits until a job with a webhook has ended in this process since the last call. Webhooks of
    /// other processes, and retries, do not end the wait: see [`Self::next_due`].
    pub async fn wait(&self) {
        self.bell.heard().await;
    }

    /// Returns the number of calls of [`Self::next_due`].
    pub fn looks(&self) -> u64 {
        self.bell.looks.load(Ordering::SeqCst)
    }

    /// Takes webhooks that are due. Each belongs to this process for a minute. If its result is not
    /// stored by then, it is due again.
    pub async fn take_due(&self, limit: usize) -> Result<Vec<Delivery>, StoreError> {
        self.writer.write(TakeDue { limit }).await
    }

    /// Stores the result of a delivery.
    pub async fn settle(&self, job: &str, outcome: DeliveryOutcome) -> Result<(), StoreError> {
        self.writer.write(Settle { job: job.to_owned(), outcome }).await
    }
}

/// Stores a webhook for delivery.
pub(super) async fn enter(job: &str, url: &str, batch: &mut Batch<'_>) -> Result<(), StoreError> {
    let entered = sqlx::query(
        "INSERT INTO deliveries (job_id, url, state, attempts, next_at) \
         VALUES ($1, $2, 'pending', 0, $3) ON CONFLICT (job_id) DO NOTHING",
    )
    .bind(job)
    .bind(url)
    .bind(super::clock::now())
    .execute(&mut *batch.connection)
    .await;
    entered.map_err(batch.failed("enter a webhook"))?;
    batch.context.bell.entered.store(true, Ordering::Release);
    Ok(())
}

/// A write that takes due webhooks.
pub(super) struct TakeDue {
    pub(super) limit: usize,
}

impl Write for TakeDue {
    type Out = Vec<Delivery>;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, StoreError>> {
        Box::pin(async move {
            let failed = batch.failed("take webhooks that are due");
            let skip = if batch.is_postgres() { " FOR UPDATE SKIP LOCKED" } else { "" };
            let sql = format!(
                "UPDATE deliveries SET attempts = attempts + 1, next_at = $1 WHERE job_id IN \
                 (SELECT job_id FROM deliveries WHERE state = 'pending' AND next_at <= $2 \
                 ORDER BY next_at LIMIT $3{skip}) RETURNING job_id, url, attempts"
            );
            let now = super::clock::now();
            let rows = sqlx::query(AssertSqlSafe(sql))
                .bind(now + TAKEN_FOR)
                .bind(now)
                .bind(self.limit.clamp(1, 1_000) as i64)
                .fetch_all(&mut *batch.connection)
                .await
                .map_err(&failed)?;
            let delivery = |row: &sqlx::any::AnyRow| -> Result<Delivery, sqlx::Error> {
                Ok(Delivery {
                    job: row.try_get(0)?,
                    url: row.try_get(1)?,
                    attempt: u32::try_from(row.try_get::<i64, _>(2)?).unwrap_or(u32::MAX),
                })
            };
            rows.iter().map(delivery).collect::<Result<_, _>>().map_err(failed)
        })
    }
}

/// A write that stores the result of a delivery.
pub(super) struct Settle {
    pub(super) job: String,
    pub(super) outcome: DeliveryOutcome,
}

impl Write for Settle {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let (state, at, error) = match &self.outcome {
                DeliveryOutcome::Delivered => ("delivered", SystemTime::now(), None),
                DeliveryOutcome::RetryAt(at, why) => ("pending", *at, Some(why)),
                DeliveryOutcome::GivenUp(why) => ("failed", SystemTime::now(), Some(why)),
            };
            let settled = sqlx::query(
                "UPDATE deliveries SET state = $1, next_at = $2, error = $3 WHERE job_id = $4 \
                 AND state = 'pending'",
            )
            .bind(state)
            .bind(super::clock::micros(at))
            .bind(error.map(|why| cut(why, 1_024).replace('\0', "\u{fffd}")))
            .bind(self.job.as_str())
            .execute(&mut *batch.connection)
            .await;
            settled.map(drop).map_err(batch.failed("write the result of a webhook"))
        })
    }
}
