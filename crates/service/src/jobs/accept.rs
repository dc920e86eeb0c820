//! Taking jobs in: those that somebody waits for, and those that nobody does.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::super::SweepEvents;
use super::super::error::{self, Problem, ServiceError};
use super::super::readiness;
use super::super::shared::{Admitted, Shared};
use super::super::start::Role;
use super::super::submission::{Caller, JobRequest, Submission, SubmittedJob};
use super::accepted::Accepted;
use super::carry_out::{Keep, Task};
use super::codec;
use super::kinds::{TypedKind, response_of};
use super::live::{LiveJob, Stop};
use super::requirements::Takers;
use warpgauge_executor::Outcome;
use warpgauge_model::{FailureCode, JobKind};
use warpgauge_store::{Idempotency, NewJob, StoreError, Visibility};
use warpgauge_telemetry::telemetry;

/// How often a job may be begun before it is given up.
const MAX_ATTEMPTS: u8 = 3;

/// When it is worth trying again after a quota.
const QUOTA_RETRY: Duration = Duration::from_secs(5);

/// Stops a job when its caller goes away.
struct WhileWaiting {
    job: Arc<LiveJob>,
    /// It goes on without its caller, who can ask again by its key.
    goes_on: bool,
}

impl Drop for WhileWaiting {
    fn drop(&mut self) {
        if !self.goes_on {
            // One that has ended does not care.
            self.job.stop(Stop::CallerGone);
        }
    }
}

impl Shared {
    /// Accepts a request as a job, and waits for its response.
    pub(crate) async fn respond<K: TypedKind>(
        self: &Arc<Self>,
        request: K::Request,
        submission: Submission,
        events: Option<SweepEvents>,
    ) -> Result<K::Response, ServiceError> {
        response_of::<K>(self.waited(K::request(request), submission, events).await?)
    }

    /// Takes a job in, runs it, and waits for what comes of it.
    async fn waited(
        self: &Arc<Self>,
        request: JobRequest,
        submission: Submission,
        events: Option<SweepEvents>,
    ) -> Result<Outcome, ServiceError> {
        readiness::database_works(self).await?;
        let mut left = self.limits.max_decoded_bytes;
        let short = self.has_short_copies(&request, &submission);
        let (request, takers) = self.accept(request, &submission, &mut left, short).await?;
        let job = self.new_job(&request, &submission).await?;
        if let Takers::Elsewhere = takers {
            // The answer comes through the store, from the process that carries it out.
            let submitted = self.store.submit(job).await.map_err(refused)?;
            telemetry().submitted();
            return self.follow(&submitted.id, &submission.caller).await;
        }
        let admitted = self.admit(&submission.caller.owner)?;
        // Whose answer may be another job's, or a refusal, has to be known before anything runs.
        let careful = job.idempotency.is_some()
            || request.request().kind() == JobKind::Sweep
            || self.config.limits.max_running_per_key > 0;
        if careful {
            let (submitted, lease) = self.store.submit_leased(job).await.map_err(refused)?;
            let Some(lease) = lease else {
                drop(admitted);
                return self.follow(&submitted.id, &submission.caller).await;
            };
            let live = self.live_job(submitted.id, &request, &submission);
            *live.lease() = Some(lease);
            return self.run_waited(live, request, &submission, events, admitted, None).await;
        }
        let live = self.live_job(job.id.clone(), &request, &submission);
        self.run_waited(live, request, &submission, events, admitted, Some(job)).await
    }

    /// Whether copies of shared tensors are needed only as long as a caller waits for a request. One with a key,
    /// which is compared with others, and goes on without its caller, gets copies that last; so does one that
    /// another process may carry out, or that may have to wait in the store.
    fn has_short_copies(&self, request: &JobRequest, submission: &Submission) -> bool {
        let (JobRequest::Evaluate(named) | JobRequest::Execute(named)) = request else {
            return false;
        };
        let may_wait = self.config.limits.max_running_per_key > 0;
        let lasts = submission.idempotency_key.is_some() || may_wait || self.role == Role::Command;
        !lasts && !named.tensor_names().is_empty()
    }

    fn live_job(&self, id: String, request: &Accepted, submission: &Submission) -> Arc<LiveJob> {
        let owner = &submission.caller.owner;
        LiveJob::new(id, request.request().kind(), owner, 1, self.run_dir.path())
    }

    async fn run_waited(
        self: &Arc<Self>,
        job: Arc<LiveJob>,
        request: Accepted,
        submission: &Submission,
        events: Option<SweepEvents>,
        admitted: Admitted,
        to_accept: Option<NewJob>,
    ) -> Result<Outcome, ServiceError> {
        let keyed = submission.idempotency_key.is_some();
        let (answer, answered) = oneshot::channel();
        let keep = if keyed { Keep::Whole } else { Keep::WithoutContent };
        let task = Task {
            job: Arc::clone(&job),
            request,
            events,
            admitted,
            place: None,
            to_accept,
            keep,
            returns: keyed,
            // Somebody is told.
            again: false,
            answer: Some(answer),
        };
        telemetry().submitted();
        let _waiting = WhileWaiting { job, goes_on: keyed };
        self.begin(task);
        answered.await.unwrap_or_else(|_| {
            let lost = std::io::Error::other("its task ended without an answer");
            Err(error::internal("running a job", &lost))
        })
    }

    /// Takes in jobs that wait in the store for their turn: all, or none. Of a `batch` problems say
    /// in which of its jobs they are.
    pub(crate) async fn submit_jobs(
        self: &Arc<Self>,
        jobs: Vec<(JobRequest, Submission)>,
        batch: bool,
    ) -> Result<Vec<SubmittedJob>, ServiceError> {
        if self.is_closing() {
            return Err(ServiceError::ShuttingDown);
        }
        readiness::database_works(self).await?;
        if self.executor.offer().devices.is_empty() {
            self.default_device()?;
        }
        let mut rows = Vec::with_capacity(jobs.len());
        // Of all of them together: a batch comes as one body.
        let mut left = self.limits.max_decoded_bytes;
        for (at, (request, submission)) in jobs.into_iter().enumerate() {
            let placed = |error| if batch { in_batch(at, error) } else { error };
            // They wait in the store, and outlive this process.
            let accepted = self.accept(request, &submission, &mut left, false).await;
            let (request, _) = accepted.map_err(placed)?;
            rows.push(self.new_job(&request, &submission).await?);
        }
        let submitted = self.store.submit_all(rows).await.map_err(refused)?;
        for _ in submitted.iter().filter(|job| !job.existing) {
            telemetry().submitted();
        }
        Ok(submitted
            .into_iter()
            .map(|job| SubmittedJob { job_id: job.id, state: job.state, existing: job.existing })
            .collect())
    }

    /// Whether a request can be a job.
    pub(super) async fn check_request(
        &self,
        request: &JobRequest,
        owner: &str,
    ) -> Result<(), ServiceError> {
        match request {
            JobRequest::Evaluate(request) | JobRequest::Execute(request) => {
                self.check(request)?;
                self.check_kept(request)
            }
            JobRequest::Compare(request) => {
                warpgauge_contract::validate_compare(request, &self.limits).map_err(error::invalid)
            }
            JobRequest::Sweep(request) => {
                Ok(warpgauge_executor::check_sweep(&self.limits, (**request).clone()).await?)
            }
            JobRequest::Gate(request) => self.check_gate(request, owner).await,
        }
    }

    async fn new_job(
        &self,
        accepted: &Accepted,
        submission: &Submission,
    ) -> Result<NewJob, ServiceError> {
        let request = accepted.request();
        let content = codec::encode(request)
            .map_err(|error| error::internal("writing a request for the store", &error))?;
        let kind = request.kind();
        let mut job = NewJob::new(&submission.caller.owner, kind, Vec::new());
        // Without a key no other request is ever compared with this one.
        let content = if let Some(key) = submission.idempotency_key.clone() {
            let hashing = tokio::task::spawn_blocking(move || Ok((content.hash(kind)?, content)));
            let hashed = hashing.await.map_err(std::io::Error::other).flatten();
            let (request_hash, content) = hashed.map_err(|error: std::io::Error| {
                error::internal("reading a request's payloads", &error)
            })?;
            job.idempotency = Some(Idempotency { key, request_hash });
            content
        } else {
            content
        };
        (job.request, job.bulk) = (content.head, content.payloads);
        if let Some(id) = &submission.job_id {
            job.id.clone_from(id);
        }
        job.requires = accepted.requirements().key();
        job.priority = submission.priority;
        job.label.clone_from(&submission.label);
        job.webhook.clone_from(&submission.webhook);
        job.max_attempts = match self.role {
            Role::Server => MAX_ATTEMPTS,
            // The answer goes to a terminal. Nobody is to run it again once that is gone.
            Role::Command => 1,
        };
        Ok(job)
    }

    /// Waits for the end of a job that is there already, and answers as it did.
    async fn follow(&self, id: &str, caller: &Caller) -> Result<Outcome, ServiceError> {
        use futures_util::StreamExt;
        let mut news = self.watch_job(id, caller).await?;
        while news.next().await.is_some() {}
        self.outcome_of(id, caller).await
    }
}

/// Whose jobs a caller sees.
pub(crate) fn visibility(caller: &Caller) -> Visibility<'_> {
    if caller.admin { Visibility::All } else { Visibility::Owner(&caller.owner) }
}

/// Why the store did not take something.
pub(crate) fn refused(error: StoreError) -> ServiceError {
    match error {
        StoreError::Conflict { existing, .. } => {
            ServiceError::IdempotencyConflict { job_id: existing }
        }
        StoreError::Quota { .. } | StoreError::Full(_) => {
            ServiceError::QuotaExceeded { message: error.to_string(), retry_after: QUOTA_RETRY }
        }
        StoreError::Invalid { field, .. } => ServiceError::Invalid(vec![Problem {
            path: field.to_owned(),
            code: FailureCode::OutOfRange,
            message: error.to_string(),
        }]),
        StoreError::Closed => ServiceError::ShuttingDown,
        StoreError::DataDir { .. }
        | StoreError::Unreachable { .. }
        | StoreError::BadUrl { .. }
        | StoreError::Newer { .. }
        | StoreError::Older { .. }
        | StoreError::Foreign { .. }
        | StoreError::Gone { .. }
        | StoreError::Private(_)
        | StoreError::Migration { .. }
        | StoreError::Corrupt { .. }
        | StoreError::DiskFull { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Busy { .. } => {
            let text = error::chain(&error);
            tracing::error!(error = text, "the store failed");
            ServiceError::Unavailable(error.for_callers())
        }
        // It is away, and may come back.
        error if error.may_pass() => {
            let text = error::chain(&error);
            tracing::error!(error = text, "the store failed");
            ServiceError::Unavailable(error.for_callers())
        }
        other => error::internal("using the store", &other),
    }
}

/// A problem of one job among several.
fn in_batch(at: usize, error: ServiceError) -> ServiceError {
    match error {
        ServiceError::Invalid(problems) => ServiceError::Invalid(
            problems
                .into_iter()
                .map(|problem| Problem {
                    path: format!("jobs[{at}].request.{}", problem.path),
                    ..problem
                })
                .collect(),
        ),
        ServiceError::Named { path, error } => {
            ServiceError::Named { path: format!("jobs[{at}].request.{path}"), error }
        }
        other => other,
    }
}
