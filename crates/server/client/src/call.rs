//! One request to a server, identified by its idempotency key. The main type is [`Call`].

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use ureq::Body;
use ureq::http::{Method, Response};

use warpgauge_job_views::{CancelOutcome, CancelReport, JobList};

use crate::connection::{Connection, Reply, answer};
use crate::error::ClientError;
use crate::routes::job_route;

/// Time limit for short requests.
const SHORT: Duration = Duration::from_secs(10);

/// Maximum number of look-ups of a job that is being cancelled.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// A request that was sent or will be sent.
pub(crate) struct Call {
    pub(crate) connection: Connection,
    route: &'static str,
    /// Body of the request, as JSON.
    body: String,
    key: String,
    /// Id of the request's job, once the client knows it.
    job: Mutex<Option<String>>,
    /// Time limit for the answer.
    pub(crate) longest: Duration,
    /// Whether the caller has given up. The condition variable signals a change.
    over: Mutex<bool>,
    told: Condvar,
}

impl Call {
    pub(crate) fn new(
        connection: &Connection,
        route: &'static str,
        body: String,
        longest: Duration,
    ) -> Self {
        Self {
            connection: connection.clone(),
            route,
            body,
            key: uuid::Uuid::new_v4().to_string(),
            job: Mutex::default(),
            longest,
            over: Mutex::default(),
            told: Condvar::new(),
        }
    }

    /// Sends the request, and waits for the answer.
    pub(crate) fn post<T: DeserializeOwned>(&self) -> Result<Reply<T>, ClientError> {
        let url = self.url();
        let response = self.send(&url)?;
        answer(response, &url)
    }

    /// Returns the URL of the request.
    pub(crate) fn url(&self) -> String {
        self.connection.url_of(self.route)
    }

    /// Sends the request, and waits for the head of the response.
    pub(crate) fn send(&self, url: &str) -> Result<Response<Body>, ClientError> {
        self.connection.send(url, self.body.clone(), Some(&self.key), self.longest)
    }

    /// Looks up the job on the server. Returns `None` if the server does not have the job yet.
    ///
    /// # Errors
    /// `Refused` if the server does not list jobs, or cannot filter them by key.
    pub(crate) fn find(&self) -> Result<Option<String>, ClientError> {
        let route = format!("/jobs?limit=1&idempotency_key={}", self.key);
        let list: JobList = self.connection.ask_within(Method::GET, &route, SHORT)?.value;
        let Some(job) = list.jobs.into_iter().next() else { return Ok(None) };
        if job.idempotency_key.as_ref() != Some(&self.key) {
            // The server ignored the key and returned another job.
            return Err(ClientError::Refused {
                url: self.connection.url_of(&route),
                status: 404,
                message: "the server cannot find jobs by their key".to_owned(),
                problems: Vec::new(),
                retry_after: None,
            });
        }
        Ok(Some(job.job_id))
    }

    /// Records the job of the request. It may replace an earlier job that ended without a result.
    pub(crate) fn found(&self, id: String) {
        *self.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
    }

    pub(crate) fn job(&self) -> Option<String> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records that the caller no longer waits.
    pub(crate) fn is_over(&self) {
        *self.lock_over() = true;
        self.told.notify_all();
    }

    pub(crate) fn has_ended(&self) -> bool {
        *self.lock_over()
    }

    /// Waits until this time has passed, or until the caller no longer waits.
    pub(crate) fn rest(&self, time: Duration) {
        let waited = self.told.wait_timeout_while(self.lock_over(), time, |over| !*over);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock_over(&self) -> MutexGuard<'_, bool> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Converts an error. If the job may still end, the new error describes how to find it.
    pub(crate) fn lost(&self, error: ClientError) -> ClientError {
        match self.job() {
            Some(job) if error.is_broken() => {
                let server = self.connection.base().to_owned();
                ClientError::JobLost { job, server, source: Box::new(error) }
            }
            _ => error,
        }
    }

    /// Cancels the job. Returns a text that describes the result.
    pub(crate) fn cancel(&self) -> String {
        let server = self.connection.base();
        let Some(id) = self.sought() else {
            return format!(
                "no job of this request was found at {server}; if it arrives later, \
                 `warpgauge jobs list --server {server}` shows it"
            );
        };
        let route = job_route(&id, "");
        match self.connection.ask_within::<CancelReport>(Method::DELETE, &route, SHORT) {
            Ok(Reply { value: report, .. }) => match report.outcome {
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
                "job {id} may continue at {server}: {error}; `warpgauge jobs cancel {id} --server \
                 {server}` cancels it"
            ),
        }
    }

    /// Returns the job's id. If the client does not know the id yet, polls for it, because the
    /// server may have accepted the request only a moment ago.
    fn sought(&self) -> Option<String> {
        for look in 0..LOOKS {
            if look > 0 {
                self.rest(PAUSE);
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
