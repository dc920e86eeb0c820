//! The lease of a job: the right to work on it. Its holder may advance, end or requeue the job. The
//! main type is [`JobLease`].

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::{AssertSqlSafe, Row};

use super::history::Append;
use super::objects::{Body, cut};
use super::state::{has_ended, may_follow, name, parse};
use super::submit::ADVANCE_CHARGE;
use super::tally::Place;
use super::types::MAX_ERROR_BYTES;
use super::writer::{Batch, Held, Write, Writer, locked};
use super::{JobError, JobState, StoreError};

/// Time from an instance's latest heartbeat to the expiry of its leases.
pub const LEASE: Duration = Duration::from_secs(15);

/// Suggested interval of an instance's heartbeats. The service uses a shorter one.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// The right of this process to work on a job, until the process ends the job or counts as dead.
///
/// If the lease is dropped without [`JobQueue::finish`](super::JobQueue::finish), the job is
/// requeued, and the attempt counts.
#[derive(Debug)]
pub struct JobLease {
    job: String,
    epoch: i64,
    state: Mutex<JobState>,
    /// `None` after the job was ended or requeued.
    writer: Option<Writer>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writer")
    }
}

impl JobLease {
    /// Returns the id of the job.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Returns the state that the holder has reached.
    pub fn state(&self) -> JobState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the transition to the next state is allowed. Returns the write that stores the
    /// state.
    pub(super) fn step(&self, to: JobState) -> Result<Advance, StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let from = *state;
        if !may_follow(from, to) || has_ended(to) {
            return Err(StoreError::IllegalTransition { job: self.job.clone(), from, to });
        }
        *state = to;
        Ok(Advance { job: self.job.clone(), epoch: self.epoch, from, to })
    }

    /// Returns a number that distinguishes this lease from earlier leases of the same job.
    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Ends the lease without requeueing the job.
    pub(super) fn disarm(&mut self) {
        self.writer = None;
    }
}

impl Drop for JobLease {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            let (job, epoch) = (std::mem::take(&mut self.job), self.epoch);
            locked(&writer.dropped).insert(job.clone(), epoch);
            writer.write_behind(GiveBack { job, epoch, counts: true, why: None });
        }
    }
}

/// Requeues jobs whose leases were dropped while writes failed, for example because the disk was
/// full. In the database this process still holds the jobs, but no task works on them.
pub(super) fn give_back_again(writer: &Writer, held: &Held) {
    let mut dropped = locked(&writer.dropped);
    let held = locked(held);
    dropped.retain(|job, epoch| held.get(job) == Some(epoch));
    for (job, epoch) in &*dropped {
        writer.write_behind(GiveBack { job: job.clone(), epoch: *epoch, counts: true, why: None });
    }
}

/// Creates leases of jobs, which share one writer.
#[derive(Clone)]
pub(super) struct LeaseMaker(pub(super) Writer);

impl LeaseMaker {
    pub(super) fn lease(&self, job: String, epoch: i64, state: JobState) -> JobLease {
        JobLease { job, epoch, state: Mutex::new(state), writer: Some(self.0.clone()) }
    }
}

/// A write that moves a job from one state to another, neither of which ends it.
pub(super) struct Advance {
    job: String,
    epoch: i64,
    from: JobState,
    to: JobState,
}

impl Write for Advance {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let failed = batch.failed("write the state of a job");
            let row = sqlx::query(
                "UPDATE jobs SET state = $1 WHERE id = $2 AND holder = $3 AND epoch = $4 \
                 AND state = $5 RETURNING owner",
            )
            .bind(name(self.to))
            .bind(self.job.as_str())
            .bind(batch.context.instance.as_str())
            .bind(self.epoch)
            .bind(name(self.from))
            .fetch_optional(&mut *batch.connection)
            .await;
            let Some(row) = row.map_err(&failed)? else {
                return Err(StoreError::LeaseLost { job: self.job.clone() });
            };
            let owner: String = row.try_get(0).map_err(&failed)?;
            let (from, to) = (Place::held(self.from), Place::held(self.to));
            batch.tally.moved(&owner, Some(from), Some(to));
            Ok(())
        })
    }
}

/// The columns of a job's row that the holder of its lease needs.
pub(super) struct HeldRow {
    pub(super) owner: String,
    pub(super) state: JobState,
    pub(super) epoch: i64,
    pub(super) holder: Option<String>,
    pub(super) attempts: i64,
    pub(super) max_attempts: i64,
    pub(super) cancel_requested: bool,
    pub(super) started_at: Option<i64>,
    pub(super) webhook: Option<String>,
}

/// Reads a job's row, and locks it until the commit.
pub(super) async fn held_row(
    job: &str,
    batch: &mut Batch<'_>,
) -> Result<Option<HeldRow>, StoreError> {
    let lock = if batch.is_postgres() { " FOR UPDATE" } else { "" };
    let sql = format!(
        "SELECT owner, state, epoch, holder, attempts, max_attempts, cancel_requested, started_at, \
         webhook FROM jobs WHERE id = $1{lock}"
    );
    let failed = batch.failed("read a job");
    let query = sqlx::query(AssertSqlSafe(sql)).bind(job);
    let row = query.fetch_optional(&mut *batch.connection).await.map_err(&failed)?;
    let Some(row) = row else { return Ok(None) };
    let state: String = row.try_get(1).map_err(&failed)?;
    let state = parse(&state).ok_or_else(|| StoreError::Odd {
        place: batch.context.database.place.clone(),
        what: format!("job {job} in state `{}`", cut(&state, 32)),
    })?;
    let read = || -> Result<HeldRow, sqlx::Error> {
        Ok(HeldRow {
            owner: row.try_get(0)?,
            state,
            epoch: row.try_get(2)?,
            holder: row.try_get(3)?,
            attempts: row.try_get(4)?,
            max_attempts: row.try_get(5)?,
            cancel_requested: row.try_get::<i64, _>(6)? != 0,
            started_at: row.try_get(7)?,
            webhook: row.try_get(8)?,
        })
    };
    read().map(Some).map_err(failed)
}

/// A compressed report.
pub(super) struct PackedReport {
    pub(super) version: u32,
    pub(super) kind: String,
    pub(super) verdict: Option<&'static str>,
    pub(super) decision: Option<&'static str>,
    pub(super) worst_case: Option<String>,
    pub(super) kernel: Option<String>,
    pub(super) median_ns: Option<i64>,
    pub(super) body: Body,
    pub(super) bytes: i64,
}

/// A write that ends a job and stores its report.
pub(super) struct Finish {
    pub(super) job: String,
    pub(super) epoch: i64,
    /// State that the holder has reached. The state in the row may be an earlier one, because a
    /// failed transition is not retried.
    pub(super) from: JobState,
    pub(super) state: JobState,
    pub(super) error: Option<JobError>,
    pub(super) report: Option<PackedReport>,
    pub(super) points: Append,
}

impl Write for Finish {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let lost = || StoreError::LeaseLost { job: self.job.clone() };
            let row = held_row(&self.job, batch).await?.ok_or_else(lost)?;
            if row.epoch == self.epoch && row.holder.is_none() && row.state == self.state {
                // An earlier attempt was committed, but its connection was lost.
                batch.leases.push((self.job.clone(), None));
                return Ok(());
            }
            if row.epoch != self.epoch || row.holder.as_ref() != Some(&batch.context.instance) {
                batch.leases.push((self.job.clone(), None));
                return Err(lost());
            }
            if !may_follow(self.from, self.state) {
                let (job, from, to) = (self.job.clone(), self.from, self.state);
                return Err(StoreError::IllegalTransition { job, from, to });
            }
            let report = self.report.as_ref();
            end(&self.job, &row, self.state, self.error.as_ref(), report, batch).await?;
            if let Some(report) = report {
                insert_report(&self.job, report, batch).await?;
            }
            self.points.run(batch).await?;
            let took = row.started_at.map_or(0, |start| (super::clock::now() - start).max(0));
            batch.tally.served(&row.owner, took - ADVANCE_CHARGE);
            batch.leases.push((self.job.clone(), None));
            Ok(())
        })
    }
}

async fn insert_report(
    job: &str,
    report: &PackedReport,
    batch: &mut Batch<'_>,
) -> Result<(), StoreError> {
    let insert = sqlx::query(
        "INSERT INTO reports (job_id, version, kind, codec, body, object) \
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(job)
    .bind(i64::from(report.version))
    .bind(report.kind.as_str())
    .bind(report.body.codec)
    .bind(report.body.inline.clone())
    .bind(report.body.object.clone())
    .execute(&mut *batch.connection)
    .await;
    insert.map(drop).map_err(batch.failed("store a report"))
}

/// Ends a job, regardless of its holder.
pub(super) async fn end(
    job: &str,
    row: &HeldRow,
    state: JobState,
    error: Option<&JobError>,
    report: Option<&PackedReport>,
    batch: &mut Batch<'_>,
) -> Result<(), StoreError> {
    let more_bytes = report.map_or(0, |report| report.bytes);
    let ended = sqlx::query(
        "UPDATE jobs SET state = $1, holder = NULL, ended_at = $2, error_code = $3, error = $4, \
         cancel_requested = 0, bytes = bytes + $5, verdict = $6, decision = $7, \
         worst_case = $8, kernel = $9, median_ns = $10 WHERE id = $11",
    )
    .bind(name(state))
    .bind(super::clock::now())
    .bind(error.map(|error| cut(error.code.as_str(), 64).into_owned()))
    .bind(error.map(|error| cut(&error.message, MAX_ERROR_BYTES).replace('\0', "\u{fffd}")))
    .bind(more_bytes)
    .bind(report.and_then(|report| report.verdict))
    .bind(report.and_then(|report| report.decision))
    .bind(report.and_then(|report| report.worst_case.clone()))
    .bind(report.and_then(|report| report.kernel.clone()))
    .bind(report.and_then(|report| report.median_ns))
    .bind(job)
    .execute(&mut *batch.connection)
    .await;
    ended.map_err(batch.failed("end a job"))?;
    let from = Place { state: row.state, held: row.holder.is_some() };
    batch.tally.moved(&row.owner, Some(from), Some(Place::waiting(state)));
    batch.tally.weighs(&row.owner, more_bytes);
    match &row.webhook {
        Some(url) => super::deliveries::enter(job, url, batch).await,
        None => Ok(()),
    }
}

/// A write that requeues a job.
pub(super) struct GiveBack {
    pub(super) job: String,
    pub(super) epoch: i64,
    /// Whether the attempt counts. It does not count if the job did not really start.
    pub(super) counts: bool,
    /// Reason that callers see while the job waits.
    pub(super) why: Option<String>,
}

impl Write for GiveBack {
    type Out = ();

    fn run<'a>(&'a mut self, batch: &'a mut Batch<'_>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            // The entry remains if this process has claimed the job again in the meantime.
            if locked(&batch.context.held).get(&self.job) == Some(&self.epoch) {
                batch.leases.push((self.job.clone(), None));
            }
            let row = held_row(&self.job, batch).await?;
            let mine = row.filter(|row| {
                row.epoch == self.epoch && row.holder.as_ref() == Some(&batch.context.instance)
            });
            let Some(row) = mine else {
                return Err(StoreError::LeaseLost { job: self.job.clone() });
            };
            let (job, why) = (self.job.as_str(), self.why.as_deref());
            let taken = match self.counts {
                true => super::recover::put_back(job, &row, true, why, batch).await,
                // The process is ending, or the job was not begun.
                false => super::recover::put_back_of_ended(job, &row, false, batch).await,
            };
            taken.map(drop)
        })
    }
}
