//! A backend for a service in this process. The main type is [`ServiceBackend`].

use std::time::Duration;

use futures_util::stream::BoxStream;

use super::backend::{ArtifactBytes, JobBackend, JobBackendError, JobBackendFuture, JobOrder};
use warpgauge_job_views::{JobEvent, JobView};
use warpgauge_service::{
    ArtifactKind, Caller, DeviceView, JobQuery, JobRequest, JobSubmission, ServiceError, Services,
    webhook::page_of_job,
};

/// Interval at which the store is checked for a submitted job.
const LOOK: Duration = Duration::from_millis(20);

/// Whether a job outlives the process of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobDurability {
    /// The job waits in the store and outlives this process. A server uses this.
    Durable,
    /// The job runs at once and ends with this process. The command line uses this, because its
    /// service claims no jobs from the store.
    WhileHere,
}

/// A service, used on behalf of one caller.
pub struct ServiceBackend {
    service: Services,
    caller: Caller,
    keeping: JobDurability,
    cancels: Box<dyn Fn() -> bool + Send + Sync>,
    /// Address at which users reach the server. Empty if it is not known.
    public_url: String,
}

impl ServiceBackend {
    /// Creates a backend for one caller.
    pub fn new(service: Services, caller: Caller, keeping: JobDurability) -> Self {
        let public_url = String::new();
        Self { service, caller, keeping, cancels: Box::new(|| true), public_url }
    }

    /// Adds links to pages of jobs at this address to answers, unless it is empty.
    pub fn linking_to(self, public_url: impl Into<String>) -> Self {
        Self { public_url: public_url.into(), ..self }
    }

    /// Cancels jobs only while `cancels` returns true. A server that shuts down ends its calls, but
    /// must not cancel the jobs that wait in the store.
    pub fn cancelling_while(self, cancels: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { cancels: Box::new(cancels), ..self }
    }

    fn submission(&self, order: &JobOrder) -> JobSubmission {
        JobSubmission {
            label: order.label.clone(),
            idempotency_key: order.idempotency_key.clone(),
            ..JobSubmission::of(self.caller.clone())
        }
    }

    /// Runs the job in a separate task. Returns its id once the job can be read.
    async fn begin(&self, order: JobOrder) -> Result<String, JobBackendError> {
        let (watched, id) = JobSubmission::local_watched();
        let submission = JobSubmission { job_id: watched.job_id, ..self.submission(&order) };
        let key = submission.idempotency_key.clone();
        let service = self.service.clone();
        let mut work = tokio::spawn(async move {
            match order.request {
                JobRequest::Evaluate(request) => service
                    .evaluations
                    .evaluate(*request, submission)
                    .await
                    .map(|report| report.job_id),
                JobRequest::Compare(request) => service
                    .evaluations
                    .compare(*request, submission)
                    .await
                    .map(|report| report.job_id),
                other => service.evaluations.submit(other, submission).await.map(|job| job.job_id),
            }
        });
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                biased;
                // With an idempotency key, the job may be an existing one.
                ended = &mut work => return match ended {
                    Ok(Ok(id)) => Ok(id),
                    Ok(Err(ServiceError::Cancelled { job_id } | ServiceError::JobFailed { job_id, .. }))
                        => Ok(job_id),
                    Ok(Err(error)) => Err(error.into()),
                    Err(_) => Err(JobBackendError::new("internal", "the job's task ended without a result")),
                },
                _ = looks.tick() => if let Some(id) = self.arrived(&id, key.as_deref()).await {
                    return Ok(id);
                },
            }
        }
    }
}

impl ServiceBackend {
    /// Returns the id of a job that can be read. It is the new job, or an existing job with the
    /// same key that has not ended. An existing job that has ended may not match the request; in
    /// that case the task returns the id.
    async fn arrived(&self, id: &str, key: Option<&str>) -> Option<String> {
        if self.service.jobs.job(id, &self.caller).await.is_ok() {
            return Some(id.to_owned());
        }
        let query =
            JobQuery { idempotency_key: Some(key?.to_owned()), limit: 1, ..JobQuery::default() };
        let found =
            self.service.jobs.jobs(query, &self.caller).await.ok()?.jobs.into_iter().next()?;
        (!found.state.is_end()).then_some(found.job_id)
    }
}

impl JobBackend for ServiceBackend {
    fn owner(&self) -> &str {
        &self.caller.owner
    }

    fn page_of(&self, job_id: &str) -> Option<String> {
        page_of_job(&self.public_url, job_id)
    }

    fn submit(&self, order: JobOrder) -> JobBackendFuture<'_, String> {
        Box::pin(async move {
            if self.keeping == JobDurability::WhileHere {
                return self.begin(order).await;
            }
            let submission = self.submission(&order);
            Ok(self.service.evaluations.submit(order.request, submission).await?.job_id)
        })
    }

    fn watch<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, BoxStream<'static, JobEvent>> {
        Box::pin(async move { Ok(self.service.jobs.watch(job_id, &self.caller).await?) })
    }

    fn job<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, JobView> {
        Box::pin(async move { Ok(self.service.jobs.job(job_id, &self.caller).await?) })
    }

    fn cancel<'a>(&'a self, job_id: &'a str) -> JobBackendFuture<'a, ()> {
        Box::pin(async move {
            if (self.cancels)() {
                self.service.jobs.cancel(job_id, &self.caller).await?;
            }
            Ok(())
        })
    }

    fn devices(&self) -> JobBackendFuture<'_, Vec<DeviceView>> {
        Box::pin(async move { Ok(self.service.machine.status().devices) })
    }

    fn artifact<'a>(
        &'a self,
        job_id: &'a str,
        kind: ArtifactKind,
        kernel: Option<&'a str>,
    ) -> JobBackendFuture<'a, ArtifactBytes> {
        Box::pin(async move {
            let content =
                self.service.artifacts.artifact(job_id, kind, kernel, &self.caller).await?;
            Ok(ArtifactBytes { bytes: content.content.to_vec() })
        })
    }
}
