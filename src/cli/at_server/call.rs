//! One request at a server, known there by its key.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::CliError;
use crate::cli::args::Target;
use crate::cli::remote::{self, Method, RemoteError};
use crate::report::{CancelOutcome, CancelReport, JobList};

/// How long to wait for an answer to a short question.
const SHORT: Duration = Duration::from_secs(10);

/// How often a job that is to be cancelled is looked for, and the pause between.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// A request that was or is to be sent.
pub(in crate::cli) struct Call {
    pub(in crate::cli) target: Target,
    pub(in crate::cli) server: String,
    route: &'static str,
    body: String,
    key: String,
    /// Its job, once that is known.
    job: Mutex<Option<String>>,
    /// How long the answer may take.
    pub(super) longest: Duration,
    /// Whether nobody is interested any more.
    over: AtomicBool,
}

impl Call {
    /// # Errors
    /// Where `server` is no address.
    pub(in crate::cli) fn new(
        target: &Target,
        server: &str,
        route: &'static str,
        body: &Value,
        longest: Duration,
    ) -> Result<Self, RemoteError> {
        // Told before anything else is done.
        remote::endpoint(server, route)?;
        Ok(Self {
            target: target.clone(),
            server: server.trim_end_matches('/').to_owned(),
            route,
            body: body.to_string(),
            key: uuid::Uuid::new_v4().to_string(),
            job: Mutex::default(),
            longest,
            over: AtomicBool::new(false),
        })
    }

    /// Sends the request, and waits for the answer.
    pub(in crate::cli) fn post<T: DeserializeOwned>(&self) -> Result<(String, T), RemoteError> {
        let url = self.url()?;
        let response = self.send(&url)?;
        remote::answer(response, &url)
    }

    /// Where the request goes.
    pub(in crate::cli) fn url(&self) -> Result<String, RemoteError> {
        remote::endpoint(&self.server, self.route)
    }

    /// Sends the request, and waits for the head of the answer.
    pub(in crate::cli) fn send(
        &self,
        url: &str,
    ) -> Result<ureq::http::Response<ureq::Body>, RemoteError> {
        remote::send(&self.target, url, self.body.clone(), Some(&self.key), self.longest)
    }

    /// Asks the server for the job; `None` if it has none yet.
    ///
    /// # Errors
    /// `Refused` where the server knows no jobs, or not by key.
    pub(super) fn find(&self) -> Result<Option<String>, RemoteError> {
        let route = format!("/jobs?limit=1&idempotency_key={}", self.key);
        let (_, list): (_, JobList) =
            remote::ask_within(&self.target, &self.server, Method::GET, &route, SHORT)?;
        let Some(job) = list.jobs.into_iter().next() else { return Ok(None) };
        if job.idempotency_key.as_ref() != Some(&self.key) {
            // It did not look at the key, and listed any job.
            return Err(RemoteError::Refused {
                url: format!("{}{route}", self.server),
                status: 404,
                message: "jobs cannot be found by their key".to_owned(),
                retry_after: None,
            });
        }
        Ok(Some(job.job_id))
    }

    /// The request is this job: another one than before where that brought no answer.
    pub(in crate::cli) fn found(&self, id: String) {
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
    }

    pub(super) fn job(&self) -> Option<String> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Nobody waits any more.
    pub(super) fn is_over(&self) {
        self.over.store(true, Ordering::Release);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Why there is no answer; where there is a job whose end may still come, how to see it.
    pub(super) fn lost(&self, error: RemoteError) -> CliError {
        match self.job() {
            Some(job) if error.is_broken() => {
                CliError::JobLost { job, server: self.server.clone(), source: Box::new(error) }
            }
            _ => error.into(),
        }
    }

    /// Cancels the job; what came of it.
    pub(super) fn cancel(&self) -> String {
        let server = &self.server;
        let Some(id) = self.sought() else {
            return format!(
                "no job of this request was found at {server}; if it comes there after all, \
                 `warpgauge jobs list --server {server}` shows it"
            );
        };
        let route = remote::job_route(&id, "");
        match remote::ask_within::<CancelReport>(
            &self.target,
            server,
            Method::DELETE,
            &route,
            SHORT,
        ) {
            Ok((_, report)) => match report.outcome {
                CancelOutcome::Cancelled => format!("cancelled job {id} at {server}"),
                CancelOutcome::Stopping if report.state.is_end() => {
                    format!("cancelled job {id} at {server}")
                }
                CancelOutcome::Stopping => format!("job {id} is being stopped at {server}"),
                CancelOutcome::Ended => {
                    format!("job {id} had ended at {server}: {}", report.state.name())
                }
            },
            Err(error) => format!(
                "job {id} may go on at {server}: {error}; `warpgauge jobs cancel {id} --server \
                 {server}` cancels it"
            ),
        }
    }

    /// The job, looked for if it is not known yet: the server may just have taken the request.
    fn sought(&self) -> Option<String> {
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            if let Some(job) = self.job() {
                return Some(job);
            }
            match self.find() {
                Ok(Some(job)) => return Some(job),
                Ok(None) => {}
                Err(_) => return None,
            }
        }
        None
    }
}
