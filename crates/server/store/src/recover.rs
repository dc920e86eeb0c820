//! Recovers jobs of dead processes: they are requeued, or fail after too many attempts. This module
//! also stores heartbeats.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use sqlx::Row;

use super::instance::Presence;
use super::lease::{HeldRow, LEASE, end, held_row};
use super::objects::cut;
use super::state::name;
use super::tally::Place;
use super::types::MAX_ERROR_BYTES;
use super::writer::{Batch, Write, locked};
use super::{Heartbeat, JobError, JobState, Requeued, StoreError};

use warpgauge_model::ErrorCode;

/// Maximum number of jobs of one process that a transaction requeues.
const MOST: i64 = 1_000;

/// Result of requeueing a job.
pub(super) enum PutBack {
    Queued,
    Exhausted,
    Cancelled,
}

/// Takes a job from its holder. The job is requeued, or ends.
pub(super) async fn put_back(
    job: &str,
    row: &HeldRow,
    counts: bool,
    why: Option<&str>,
    batch: &mut Batch<'_>,
) -> Result<PutBack, StoreError> {
    if row.cancel_requested {
        let error = JobError {
            code: ErrorCode::Cancelled,
            message: "it was cancelled while it ran".to_owned(),
        };
        end(job, row, JobState::Cancelled, Some(&error), None, batch).await?;
        return Ok(PutBack::Cancelled);
    }
    if counts && row.attempts >= row.max_attempts {
        let error = JobError {
            code: ErrorCode::AttemptsExhausted,
            message: match why {
                Some(why) => {
                    format!("it was started {} times; the last attempt: {why}", row.attempts)
                }
                None => format!(
                    "it was started {} times, and each time the process that ran it ended before \
                     the job did",
                    row.attempts
                ),
            },
        };
        end(job, row, JobState::Failed, Some(&error), None, batch).await?;
        return Ok(PutBack::Exhausted);
    }
    let attempts = if counts { row.attempts } else { (row.attempts - 1).max(0) };
    let updated = sqlx::query(
        "UPDATE jobs SET state = $1, holder = NULL, attempts = $2, started_at = NULL, error = $3 \
         WHERE id = $4",
    )
    .bind(name(JobState::Queued))
    .bind(attempts)
    .bind(why.map(|why| cut(why, MAX_ERROR_BYTES).replace('\0', "\u{fffd}")))
    .bind(job)
    .execute(&mut *batch.connection)
    .await;
    updated.map_err(batch.failed("queue a job again"))?;
    let (from, to) = (Place::held(row.state), Place::waiting(JobState::Queued));
    batch.tally.moved(&row.owner, Some(from), Some(to));
    Ok(PutBack::Queued)
}

/// Takes a job from a holder that is ending or has ended. If the job may run only once and its
/// kernel ran, the job ends too, because the kernel may hang.
pub(super) async fn put_back_of_ended(
    job: &str,
    row: &HeldRow,
    counts: bool,
    batch: &mut Batch<'_>,
) -> Result<PutBack, StoreError> {
    let has_run = matches!(row.state, JobState::Profiling | JobState::Validating);
    if row.cancel_requested || row.max_attempts > 1 || !has_run {
        return put_back(job, row, counts, None, batch).await;
    }
    let error = JobError {
        code: ErrorCode::Interrupted,
        message:
            "the process that ran it ended while its kernel ran, and the job may run only once: \
                  its kernel may hang"
                .to_owned(),
    };
    end(job, row, JobState::Failed, Some(&error), None, batch).await?;
    Ok(PutBack::Exhausted)
}

/// A write that stores this process's heartbeat. It returns the jobs that the process must stop.
pub(super) struct Beat {
    pub(super) presence: Arc<Presence>,
}

impl Write for Beat {
    type Out = Heartbeat;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Heartbeat, StoreError>> {
        Box::pin(async move {
            announce(&self.presence, batch).await?;
            let failed = batch.failed("renew leases");
            let rows =
                sqlx::query("SELECT id, epoch, cancel_requested FROM jobs WHERE holder = $1")
                    .bind(batch.context.instance.as_str())
                    .fetch_all(&mut *batch.connection)
                    .await
                    .map_err(&failed)?;
            let mut lost = locked(&batch.context.held).clone();
            // Leases that end in this transaction are removed after its commit.
            for (job, _) in batch.leases.iter().filter(|(_, epoch)| epoch.is_none()) {
                lost.remove(job);
            }
            let mut cancel = Vec::new();
            for row in rows {
                let id: String = row.try_get(0).map_err(&failed)?;
                let epoch: i64 = row.try_get(1).map_err(&failed)?;
                let asked = row.try_get::<i64, _>(2).map_err(&failed)? != 0;
                if lost.get(&id) == Some(&epoch) {
                    lost.remove(&id);
                    if asked {
                        cancel.push(id);
                    }
                }
            }
            let lost = lost.into_keys().collect();
            Ok(Heartbeat { cancel, lost })
        })
    }
}

/// Stores the expiry of this process's leases, and its capabilities.
pub(super) async fn announce(presence: &Presence, batch: &mut Batch<'_>) -> Result<(), StoreError> {
    let until = super::clock::now() + super::clock::span(LEASE);
    let written = sqlx::query(
        "INSERT INTO instances (instance, machine, lease_until, offers) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (instance) DO UPDATE SET lease_until = excluded.lease_until, \
         offers = excluded.offers",
    )
    .bind(batch.context.instance.as_str())
    .bind(presence.machine())
    .bind(until)
    .bind(batch.context.offered.text())
    .execute(&mut *batch.connection)
    .await;
    written.map(drop).map_err(batch.failed("renew leases"))
}

/// A write that requeues the jobs of dead processes, and jobs whose lease this process lost.
pub(super) struct Recover {
    pub(super) presence: Arc<Presence>,
}

impl Write for Recover {
    type Out = Requeued;

    fn run<'a>(
        &'a mut self,
        batch: &'a mut Batch<'_>,
    ) -> BoxFuture<'a, Result<Requeued, StoreError>> {
        Box::pin(async move {
            let mut requeued = Requeued::default();
            for instance in self.gone(batch).await? {
                if take_all(&instance, &HashSet::new(), batch, &mut requeued).await? {
                    let delete = sqlx::query("DELETE FROM instances WHERE instance = $1");
                    let deleted = delete.bind(&instance).execute(&mut *batch.connection).await;
                    deleted.map_err(batch.failed("remove a process"))?;
                    self.presence.forget(&instance);
                }
            }
            // A lease may be lost between the database and its claimer.
            let own = batch.context.instance.clone();
            let mut held: HashSet<String> = locked(&batch.context.held).keys().cloned().collect();
            // Leases that this transaction grants are recorded after its commit.
            let entered = batch.leases.iter().filter(|(_, epoch)| epoch.is_some());
            held.extend(entered.map(|(job, _)| job.clone()));
            take_all(&own, &held, batch, &mut requeued).await?;
            Ok(requeued)
        })
    }
}

impl Recover {
    /// Returns the processes that are known to be dead.
    async fn gone(&self, batch: &mut Batch<'_>) -> Result<Vec<String>, StoreError> {
        let failed = batch.failed("find dead processes");
        let rows = sqlx::query("SELECT instance, machine, lease_until FROM instances")
            .fetch_all(&mut *batch.connection)
            .await
            .map_err(&failed)?;
        let now = super::clock::now();
        let mut gone = Vec::new();
        for row in rows {
            let instance: String = row.try_get(0).map_err(&failed)?;
            let machine: String = row.try_get(1).map_err(&failed)?;
            let until: i64 = row.try_get(2).map_err(&failed)?;
            if instance == batch.context.instance {
                continue;
            }
            let dead = if machine == self.presence.machine() {
                self.presence.is_gone(&instance)
            } else {
                until < now
            };
            if dead {
                gone.push(instance);
            }
        }
        Ok(gone)
    }
}

/// Requeues the jobs of a process, except `keep`. Returns whether none is left.
async fn take_all(
    instance: &str,
    keep: &HashSet<String>,
    batch: &mut Batch<'_>,
    requeued: &mut Requeued,
) -> Result<bool, StoreError> {
    let failed = batch.failed("find lost jobs");
    let rows = sqlx::query("SELECT id FROM jobs WHERE holder = $1 LIMIT $2")
        .bind(instance)
        .bind(MOST)
        .fetch_all(&mut *batch.connection)
        .await
        .map_err(&failed)?;
    let all = rows.len() < MOST as usize;
    for row in rows {
        let id: String = row.try_get(0).map_err(&failed)?;
        if keep.contains(&id) {
            continue;
        }
        let held = held_row(&id, batch).await?;
        let Some(row) = held.filter(|row| row.holder.as_deref() == Some(instance)) else {
            continue;
        };
        let taken = match instance == batch.context.instance {
            true => put_back(&id, &row, true, None, batch).await?,
            false => put_back_of_ended(&id, &row, true, batch).await?,
        };
        match taken {
            PutBack::Queued => requeued.queued.push(id),
            PutBack::Exhausted => requeued.exhausted.push(id),
            PutBack::Cancelled => requeued.cancelled.push(id),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use crate::testing::{Fresh, job, on_both};
    use crate::{NewJob, Visibility};

    use super::*;

    on_both!(a_single_attempt_ends_where_its_kernel_ran);

    async fn a_single_attempt_ends_where_its_kernel_ran(fresh: Fresh) {
        let (other, store) = (fresh.store().await, fresh.store().await);
        let mut ids = Vec::new();
        for (attempts, has_run, is_killed) in [
            (1, true, true),
            (1, true, false),
            (1, false, true),
            (1, false, false),
            (2, true, true),
        ] {
            let new = NewJob { max_attempts: attempts, ..job("a") };
            let (submitted, lease) = other.queue().submit_leased(new).await.unwrap();
            let lease = lease.unwrap();
            other.queue().advance(&lease, JobState::Compiling).await.unwrap();
            if has_run {
                other.queue().advance(&lease, JobState::Profiling).await.unwrap();
            }
            if is_killed {
                std::mem::forget(lease);
            } else {
                other.queue().release(lease).await.unwrap();
            }
            ids.push(submitted.id);
        }
        let presence = Arc::clone(&other.membership().presence);
        other.close().await;
        drop(other);
        presence.release_lock();
        let requeued = store.membership().requeue_expired().await.unwrap();
        assert_eq!((requeued.queued, requeued.exhausted.len()), (vec![ids[4].clone()], 2));
        let mut codes = Vec::new();
        for id in &ids {
            let row = store.jobs().find(id, Visibility::All).await.unwrap().unwrap();
            codes.push(row.error_code);
        }
        let interrupted = Some(ErrorCode::Interrupted);
        let exhausted = Some(ErrorCode::AttemptsExhausted);
        assert_eq!(codes, [interrupted.clone(), interrupted, exhausted, None, None]);
    }
}
