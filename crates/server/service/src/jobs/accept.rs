//! Accepts requests as jobs, whether or not their callers wait for the result. The main type is
//! [`Intake`].

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use tokio::sync::oneshot;

use super::Needs;
use super::accepted::{Acceptance, Accepted};
use super::carry_out::{Keep, Runner, Task};
use super::live::{LiveJob, Stop};
use super::requirements::{Placement, Placements};
use super::service::EvaluationService;
use super::views::JobRecords;
use crate::admission::{Admission, Admitted};
use crate::error::{self, ServiceError, refused};
use crate::inputs::NamedInputs;
use crate::readiness::Readiness;
use crate::records::{self, TypedKind, response_of};
use crate::settings::{self, ProcessRole};
use crate::submission::{
    Caller, JobRequest, JobSubmission, ServiceFuture, SubmittedJob, SweepEvents,
};
use warpgauge_config::Config;
use warpgauge_contract::{CompareRequest, EvaluateRequest, NamesTensors, SweepRequest};
use warpgauge_executor::{Executor, JobOutcome};
use warpgauge_model::JobKind;
use warpgauge_report::{CompareResponse, EvaluateResponse, SweepResponse};
use warpgauge_store::{Idempotency, NewJob, Store};
use warpgauge_telemetry::telemetry;

/// Maximum number of attempts at a job before it fails.
const MAX_ATTEMPTS: u8 = 3;

/// Stops a job if its waiting caller disconnects.
struct WhileWaiting {
    job: Arc<LiveJob>,
    /// Whether the job continues without its caller, which can later fetch the result with the
    /// idempotency key.
    goes_on: bool,
}

impl Drop for WhileWaiting {
    fn drop(&mut self) {
        if !self.goes_on {
            // This has no effect on a job that has ended.
            self.job.stop(Stop::CallerGone);
        }
    }
}

/// Accepts requests as jobs.
pub(crate) struct Intake {
    store: Store,
    executor: Arc<dyn Executor>,
    runner: Arc<Runner>,
    records: Arc<JobRecords>,
    acceptance: Acceptance,
    inputs: Arc<NamedInputs>,
    admission: Arc<Admission>,
    readiness: Arc<Readiness>,
    role: ProcessRole,
    /// Whether the number of running jobs per key is limited.
    has_running_bound: bool,
}

impl EvaluationService for Intake {
    fn evaluate(
        &self,
        request: EvaluateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, EvaluateResponse> {
        self.respond::<records::Evaluate>(request, submission, None).boxed()
    }

    fn compare(
        &self,
        request: CompareRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, CompareResponse> {
        self.respond::<records::Compare>(request, submission, None).boxed()
    }

    fn execute(
        &self,
        request: EvaluateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, EvaluateResponse> {
        self.respond::<records::Execute>(request, submission, None).boxed()
    }

    fn sweep(
        &self,
        request: SweepRequest,
        submission: JobSubmission,
        events: SweepEvents,
    ) -> ServiceFuture<'_, SweepResponse> {
        self.respond::<records::Sweep>(request, submission, Some(events)).boxed()
    }

    fn submit(
        &self,
        request: JobRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, SubmittedJob> {
        async move {
            let accepted = self.submit_jobs(vec![(request, submission)], false).await?;
            accepted.into_iter().next().ok_or(ServiceError::shutting_down())
        }
        .boxed()
    }

    fn submit_all(
        &self,
        jobs: Vec<(JobRequest, JobSubmission)>,
    ) -> ServiceFuture<'_, Vec<SubmittedJob>> {
        self.submit_jobs(jobs, true).boxed()
    }
}

impl Intake {
    /// Creates an intake whose jobs `runner` runs.
    pub(super) fn new(
        needs: &Needs,
        config: &Config,
        runner: Arc<Runner>,
        records: Arc<JobRecords>,
        placements: Arc<Placements>,
    ) -> Arc<Self> {
        let acceptance = Acceptance::new(needs, settings::limits(config), placements);
        let Needs { store, executor, admission, readiness, inputs, role, .. } = needs.clone();
        Arc::new(Self {
            store,
            executor,
            runner,
            records,
            acceptance,
            inputs,
            admission,
            readiness,
            role,
            has_running_bound: config.limits.max_running_per_key > 0,
        })
    }

    /// Accepts a request as a job, and waits for its response.
    pub(crate) async fn respond<K: TypedKind>(
        &self,
        request: K::Request,
        submission: JobSubmission,
        events: Option<SweepEvents>,
    ) -> Result<K::Response, ServiceError> {
        response_of::<K>(self.waited(K::request(request), submission, events).await?)
    }

    /// Accepts a job, runs it, and waits for its outcome.
    async fn waited(
        &self,
        request: JobRequest,
        submission: JobSubmission,
        events: Option<SweepEvents>,
    ) -> Result<JobOutcome, ServiceError> {
        self.readiness.database_works().await?;
        let mut left = self.inputs.max_bytes();
        let short = self.has_short_copies(&request, &submission);
        let (request, placement) =
            self.acceptance.accept(request, &submission, &mut left, short).await?;
        let job = self.new_job(&request, &submission).await?;
        if let Placement::Elsewhere = placement {
            // The process that runs the job writes the outcome to the store.
            let submitted = self.store.queue().submit(job).await.map_err(refused)?;
            telemetry().submitted();
            return self.follow(&submitted.id, &submission.caller).await;
        }
        let admitted = self.admission.admit(&submission.caller.owner)?;
        // These submissions may be rejected, or may return the outcome of another job. The store
        // decides this before the job runs.
        let careful = job.idempotency.is_some()
            || request.request().kind() == JobKind::Sweep
            || self.has_running_bound;
        if careful {
            let (submitted, lease) =
                self.store.queue().submit_leased(job).await.map_err(refused)?;
            let Some(lease) = lease else {
                drop(admitted);
                return self.follow(&submitted.id, &submission.caller).await;
            };
            let live = self.live_job(submitted.id, &request, &submission, events);
            *live.lease() = Some(lease);
            return self.run_waited(live, request, &submission, admitted, None).await;
        }
        let live = self.live_job(job.id.clone(), &request, &submission, events);
        self.run_waited(live, request, &submission, admitted, Some(job)).await
    }

    /// Returns whether copies of shared tensors may be released when the request ends. Requests
    /// with an idempotency key need lasting copies, because they are compared with other requests
    /// and continue without their callers. The same applies to requests that another process may
    /// run, or that may have to wait in the store.
    fn has_short_copies(&self, request: &JobRequest, submission: &JobSubmission) -> bool {
        let (JobRequest::Evaluate(named) | JobRequest::Execute(named)) = request else {
            return false;
        };
        let may_wait = self.has_running_bound;
        let lasts =
            submission.idempotency_key.is_some() || may_wait || self.role == ProcessRole::Command;
        !lasts && !named.tensor_names().is_empty()
    }

    fn live_job(
        &self,
        id: String,
        request: &Accepted,
        submission: &JobSubmission,
        events: Option<SweepEvents>,
    ) -> Arc<LiveJob> {
        let owner = &submission.caller.owner;
        self.runner.live_job(id, request.request().kind(), owner, 1, events)
    }

    async fn run_waited(
        &self,
        job: Arc<LiveJob>,
        request: Accepted,
        submission: &JobSubmission,
        admitted: Admitted,
        to_accept: Option<NewJob>,
    ) -> Result<JobOutcome, ServiceError> {
        let keyed = submission.idempotency_key.is_some();
        let (answer, answered) = oneshot::channel();
        let keep = if keyed { Keep::Whole } else { Keep::WithoutContent };
        let task = Task {
            job: Arc::clone(&job),
            request,
            admitted,
            place: None,
            to_accept,
            keep,
            returns: keyed,
            // The waiting caller receives the error instead of a retry.
            again: false,
            answer: Some(answer),
        };
        telemetry().submitted();
        let _waiting = WhileWaiting { job, goes_on: keyed };
        self.runner.begin(task);
        answered.await.unwrap_or_else(|_| {
            let lost = std::io::Error::other("its task ended without a result");
            Err(error::internal("running a job", &lost))
        })
    }

    /// Accepts jobs that then wait in the store: either all of them or none. In a `batch`, problems
    /// refer to the job by its position.
    async fn submit_jobs(
        &self,
        jobs: Vec<(JobRequest, JobSubmission)>,
        batch: bool,
    ) -> Result<Vec<SubmittedJob>, ServiceError> {
        if self.admission.is_closing() {
            return Err(ServiceError::shutting_down());
        }
        self.readiness.database_works().await?;
        if self.executor.offer().devices.is_empty() {
            self.executor.offer().default_device()?;
        }
        let mut rows = Vec::with_capacity(jobs.len());
        // The limit applies to the whole batch, which arrives as one body.
        let mut left = self.inputs.max_bytes();
        for (at, (request, submission)) in jobs.into_iter().enumerate() {
            let placed = |error: ServiceError| match batch {
                true => error.within(&format!("jobs[{at}].request")),
                false => error,
            };
            // The jobs wait in the store and outlive this process, so their copies must outlive it
            // too.
            let accepted = self.acceptance.accept(request, &submission, &mut left, false).await;
            let (request, _) = accepted.map_err(placed)?;
            rows.push(self.new_job(&request, &submission).await?);
        }
        let submitted = self.store.queue().submit_all(rows).await.map_err(refused)?;
        for _ in submitted.iter().filter(|job| !job.existing) {
            telemetry().submitted();
        }
        Ok(submitted
            .into_iter()
            .map(|job| SubmittedJob { job_id: job.id, state: job.state, existing: job.existing })
            .collect())
    }

    async fn new_job(
        &self,
        accepted: &Accepted,
        submission: &JobSubmission,
    ) -> Result<NewJob, ServiceError> {
        let request = accepted.request();
        let content = records::encode(request)
            .map_err(|error| error::internal("writing a request for the store", &error))?;
        let kind = request.kind();
        let mut job = NewJob::new(&submission.caller.owner, kind, Vec::new());
        // The store compares requests by their hash only if they have a key.
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
            ProcessRole::Server if !submission.once => MAX_ATTEMPTS,
            // The outcome is printed on a terminal, so a retry after the end of the command would
            // be useless.
            ProcessRole::Server | ProcessRole::Command => 1,
        };
        Ok(job)
    }

    /// Waits for the end of an existing job, and returns its outcome.
    async fn follow(&self, id: &str, caller: &Caller) -> Result<JobOutcome, ServiceError> {
        let mut news = self.records.watch_job(id, caller).await?;
        while news.next().await.is_some() {}
        self.records.outcome_of(id, caller).await
    }
}
