//! The life cycle of a job: it is accepted, claimed, advanced through states, and ended or
//! requeued. The main type is [`JobQueue`].

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::access::Access;
use super::history::Append;
use super::lease::{Finish, GiveBack, LeaseMaker, PackedReport};
use super::objects::{cut, folder};
use super::state::has_ended;
use super::submit::{Accepted, Entry, Group, check};
use super::types::{MAX_BATCH, MAX_CASE_BYTES, MAX_KERNEL_BYTES};
use super::writer::{Held, Message};
use super::{
    AcceptedJob, CancelResult, ClaimedJob, JobEnding, JobLease, JobState, NewJob, StoreError,
    Visibility,
};

/// Maximum time between two polls for jobs, because other processes may have submitted some.
const POLL: Duration = Duration::from_millis(250);

/// Queue of the jobs that wait or run.
pub struct JobQueue {
    pub(super) access: Access,
    /// Wakes waiting claims when a job becomes available.
    pub(super) work: Arc<Notify>,
    pub(super) held: Held,
}

impl JobQueue {
    /// Accepts a job, or returns the earlier job with the same idempotency key.
    pub async fn submit(&self, job: NewJob) -> Result<AcceptedJob, StoreError> {
        self.accept(vec![job], false).await?.jobs.pop().ok_or(StoreError::Closed)
    }

    /// Accepts either all jobs or none.
    pub async fn submit_all(&self, jobs: Vec<NewJob>) -> Result<Vec<AcceptedJob>, StoreError> {
        if jobs.len() > MAX_BATCH {
            let problem =
                format!("number {}; at most {MAX_BATCH} are allowed at a time", jobs.len());
            return Err(StoreError::Invalid { field: "jobs", problem });
        }
        Ok(self.accept(jobs, false).await?.jobs)
    }

    /// Accepts a job that this process runs at once for a waiting caller. Returns no lease if the
    /// job already exists.
    pub async fn submit_leased(
        &self,
        job: NewJob,
    ) -> Result<(AcceptedJob, Option<JobLease>), StoreError> {
        let mut accepted = self.accept(vec![job], true).await?;
        let submitted = accepted.jobs.pop().ok_or(StoreError::Closed)?;
        Ok((submitted, accepted.lease))
    }

    async fn accept(&self, jobs: Vec<NewJob>, leased: bool) -> Result<Accepted, StoreError> {
        jobs.iter().try_for_each(check)?;
        let mut entries = Vec::with_capacity(jobs.len());
        let mut files: Vec<(String, String)> = Vec::new();
        for mut job in jobs {
            let id = job.id.clone();
            let request = std::mem::take(&mut job.request);
            let bulk = std::mem::take(&mut job.bulk);
            let bytes = request.len() as u64 + bulk.iter().map(|part| part.bytes()).sum::<u64>();
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            let file = format!("{}/request", folder(&id));
            let kept = match bulk.is_empty() {
                true => self.access.objects.keep(&file, request).await,
                false => self.access.objects.keep_bulk(&file, request, bulk).await,
            };
            let body = match kept {
                Ok(body) => body,
                Err(error) => {
                    self.access.objects.remove(files.into_iter().map(|(_, file)| file)).await;
                    return Err(error);
                }
            };
            files.extend(body.object.clone().map(|file| (id.clone(), file)));
            entries.push(Entry { id, job, body, bytes, leased });
        }
        let lease = leased.then(|| LeaseMaker(self.access.writer.clone()));
        let group = |reply| Message::Submit(Group { entries, reply, lease });
        let outcome = self.access.writer.ask(group).await;
        // The files of entries for which no new job was accepted are removed.
        let named = |id: &str| {
            outcome.as_ref().is_ok_and(|a| a.jobs.iter().any(|s| s.id == id && !s.existing))
        };
        let refused = outcome.as_ref().err().is_none_or(StoreError::is_refusal);
        let unnamed =
            files.into_iter().filter(|(id, _)| refused && !named(id)).map(|(_, file)| file);
        self.access.objects.remove(unnamed).await;
        outcome
    }

    /// Claims the next job. The owner that has used the least device time goes first. Among its
    /// jobs, the oldest of the highest priority is claimed.
    pub async fn claim(&self) -> Result<Option<ClaimedJob>, StoreError> {
        self.claim_of_others(Vec::new()).await
    }

    /// Claims the next job that belongs to none of these owners.
    pub async fn claim_of_others(
        &self,
        not_of: Vec<String>,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let lease = LeaseMaker(self.access.writer.clone());
        let claiming = |reply| Message::Claim(super::claim::Claiming { reply, lease, not_of });
        let Some(taken) = self.access.writer.ask(claiming).await? else { return Ok(None) };
        let lease = taken.lease.ok_or(StoreError::Closed)?;
        // On failure, the dropped lease requeues the job.
        let request = self.access.objects.open_body(taken.body).await?;
        Ok(Some(ClaimedJob { job: taken.job, request, lease }))
    }

    /// Waits until a job may have become available, but at most 250 ms.
    pub async fn wait_for_work(&self) {
        let _ = tokio::time::timeout(POLL, self.work.notified()).await;
    }

    /// Advances a job to its next state, and waits until the state is written.
    pub async fn advance(&self, lease: &JobLease, to: JobState) -> Result<(), StoreError> {
        let step = lease.step(to)?;
        self.access.writer.write(step).await
    }

    /// Advances a job to its next state without waiting for the write. The write is queued before
    /// any later one.
    pub fn advance_behind(&self, lease: &JobLease, to: JobState) -> Result<(), StoreError> {
        let step = lease.step(to)?;
        self.access.writer.write_behind(step);
        Ok(())
    }

    /// Ends a job, and stores its report and its points of the history, in one transaction. Only
    /// the holder of the lease can do so.
    ///
    /// # Errors
    /// Returns `LeaseLost` if another process holds the job; its results are then discarded. If the
    /// database fails, the job is requeued and runs again.
    pub async fn finish(&self, mut lease: JobLease, ending: JobEnding) -> Result<(), StoreError> {
        self.try_finish(&mut lease, ending).await
    }

    /// Works like [`Self::finish`], but a failure keeps the lease, so that the caller can retry.
    pub async fn try_finish(
        &self,
        lease: &mut JobLease,
        ending: JobEnding,
    ) -> Result<(), StoreError> {
        if !has_ended(ending.state) {
            let (job, from) = (lease.job().to_owned(), lease.state());
            return Err(StoreError::IllegalTransition { job, from, to: ending.state });
        }
        let job = lease.job().to_owned();
        let report = match ending.report {
            None => None,
            Some(report) => {
                let bytes = report.body.len() as i64;
                let key = format!("{}/report-{}", folder(&job), uuid::Uuid::new_v4());
                let body = self.access.objects.keep(&key, report.body).await?;
                let kind = cut(&report.kind, 64).into_owned();
                let (version, verdict) = (report.version, report.verdict);
                let kernel = report
                    .kernel
                    .map(|name| cut(&name, MAX_KERNEL_BYTES).replace('\0', "\u{fffd}"));
                let median_ns = report.median_ns;
                let decision = report.decision;
                let worst_case = report.worst_case.filter(|case| case.len() <= MAX_CASE_BYTES);
                Some(PackedReport {
                    version,
                    kind,
                    verdict,
                    decision,
                    worst_case,
                    kernel,
                    median_ns,
                    body,
                    bytes,
                })
            }
        };
        let file = report.as_ref().and_then(|report| report.body.object.clone());
        let (state, error) = (ending.state, ending.error);
        let (points, epoch) = (Append::what_fits(ending.points), lease.epoch());
        let from = lease.state();
        let finish = Finish { job, epoch, from, state, error, report, points };
        let outcome = self.access.writer.write(finish).await;
        match &outcome {
            Ok(()) => lease.disarm(),
            Err(error) if error.is_refusal() => self.access.objects.remove(file).await,
            // The commit may have succeeded, so the file remains until the clean-up.
            Err(_) => {}
        }
        outcome
    }

    /// Requeues a job that was not really started. The attempt does not count.
    pub async fn release(&self, lease: JobLease) -> Result<(), StoreError> {
        self.give_back(lease, false, None).await
    }

    /// Requeues a job that was started but cannot run here. Callers see the reason. The attempt
    /// counts.
    pub async fn return_to_queue(&self, lease: JobLease, why: String) -> Result<(), StoreError> {
        self.give_back(lease, true, Some(why)).await
    }

    async fn give_back(
        &self,
        mut lease: JobLease,
        counts: bool,
        why: Option<String>,
    ) -> Result<(), StoreError> {
        let (job, epoch) = (lease.job().to_owned(), lease.epoch());
        lease.disarm();
        let back = GiveBack { job: job.clone(), epoch, counts, why };
        let outcome = self.access.writer.write(back).await;
        if outcome.as_ref().is_err_and(|error| !error.is_refusal()) {
            // The next heartbeat retries the requeueing.
            super::writer::locked(&self.access.writer.dropped).insert(job, epoch);
        }
        outcome
    }

    /// Cancels a waiting job, or asks the process that runs the job to stop it.
    pub async fn cancel(
        &self,
        id: &str,
        owner: Visibility<'_>,
    ) -> Result<CancelResult, StoreError> {
        let owner = owner.owner().map(str::to_owned);
        self.access.writer.write(super::cancel::CancelJob { job: id.to_owned(), owner }).await
    }

    /// Returns the number of leases that this process holds.
    pub fn held(&self) -> usize {
        super::writer::locked(&self.held).len()
    }
}
