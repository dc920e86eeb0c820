//! Lists, shows, follows and cancels jobs on a server, and fetches their artifacts. The main type
//! is [`RemoteJobs`].

use std::time::{Duration, Instant};

use ureq::http::{Method, Request};

use warpgauge_job_views::{CancelReport, JobEvent, JobList, JobView};

use crate::connection::{Connection, Reply};
use crate::error::{ClientError, Transport};
use crate::follow::follow;
use crate::patience::RetryPolicy;
use crate::routes::{encoded, job_route};

/// Time limit for an artifact. The server produces some artifacts on demand.
const ARTIFACT_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum size of an artifact, bytes.
const MAX_ARTIFACT_BYTES: u64 = 64 << 20;

/// Filter for a list of jobs, and its maximum length.
#[derive(Debug, Clone, Default)]
pub struct JobListQuery<'a> {
    /// Only jobs in one of these states, given by their names in the API; empty means any state.
    pub states: &'a [String],
    /// Only jobs of this kind.
    pub kind: Option<&'a str>,
    /// Only jobs with this verdict on the kernel.
    pub verdict: Option<&'a str>,
    /// Only gates with this decision.
    pub decision: Option<&'a str>,
    /// Only jobs with this label.
    pub label: Option<&'a str>,
    /// Cursor that the previous page returned.
    pub cursor: Option<&'a str>,
    /// Maximum number of jobs. A server returns at most 200.
    pub limit: u32,
}

impl JobListQuery<'_> {
    fn route(&self) -> String {
        let mut route = format!("/jobs?limit={}", self.limit);
        let mut add = |name: &str, value: &str| {
            route.push_str(&format!("&{name}={}", encoded(value)));
        };
        for state in self.states {
            add("state", state);
        }
        for (name, value) in [
            ("kind", self.kind),
            ("verdict", self.verdict),
            ("decision", self.decision),
            ("label", self.label),
            ("cursor", self.cursor),
        ] {
            if let Some(value) = value {
                add(name, value);
            }
        }
        route
    }
}

/// The jobs of a caller on a server.
///
/// Every method fails if the server does not answer, rejects the request, or returns an unexpected
/// response.
#[derive(Clone, Copy)]
pub struct RemoteJobs<'a> {
    pub(crate) connection: &'a Connection,
}

impl RemoteJobs<'_> {
    /// Returns a page of jobs, newest first.
    pub fn list(&self, filter: &JobListQuery<'_>) -> Result<Reply<JobList>, ClientError> {
        self.connection.ask(Method::GET, &filter.route())
    }

    /// Returns a job, with its report if it has ended.
    pub fn get(&self, job_id: &str) -> Result<Reply<JobView>, ClientError> {
        self.connection.ask(Method::GET, &job_route(job_id, ""))
    }

    /// Cancels a job. If the job is running, it is stopped.
    pub fn cancel(&self, job_id: &str) -> Result<Reply<CancelReport>, ClientError> {
        self.connection.ask(Method::DELETE, &job_route(job_id, ""))
    }

    /// Passes each event of a job to `on_event`, parsed and as text, until the last event. Returns
    /// whether the last event arrived before `until`.
    ///
    /// # Errors
    /// The server rejects the request, or does not answer before the retries end; or `on_event`
    /// fails.
    pub fn follow<E: From<ClientError>>(
        &self,
        job_id: &str,
        until: Option<Instant>,
        patience: &mut RetryPolicy,
        on_event: &mut dyn FnMut(&JobEvent, &str) -> Result<(), E>,
    ) -> Result<bool, E> {
        follow(self.connection, job_id, until, patience, on_event)
    }

    /// Returns an artifact of a job. In a comparison, it is the artifact of the named kernel.
    pub fn artifact(
        &self,
        job_id: &str,
        name: &str,
        kernel: Option<&str>,
    ) -> Result<Vec<u8>, ClientError> {
        let kernel = kernel.map_or(String::new(), |kernel| format!("?kernel={}", encoded(kernel)));
        let route = job_route(job_id, &format!("/artifacts/{}{kernel}", encoded(name)));
        let url = self.connection.url_of(&route);
        let request = Request::builder().method(Method::GET).uri(&url);
        let response = self.connection.call(&url, request, ARTIFACT_TIMEOUT)?;
        let content =
            response.into_body().into_with_config().limit(MAX_ARTIFACT_BYTES).read_to_vec();
        content.map_err(|source| ClientError::Broken { url, source: Transport(source) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_ask_for_what_is_named_only() {
        assert_eq!(JobListQuery { limit: 7, ..JobListQuery::default() }.route(), "/jobs?limit=7");
        let states = ["queued".to_owned(), "failed".to_owned()];
        let filter = JobListQuery {
            states: &states,
            kind: Some("gate"),
            verdict: Some("correct"),
            decision: Some("PASS"),
            label: Some("a b"),
            cursor: Some("c="),
            limit: 50,
        };
        let expected = "/jobs?limit=50&state=queued&state=failed&kind=gate&verdict=correct\
                        &decision=PASS&label=a%20b&cursor=c%3D";
        assert_eq!(filter.route(), expected);
    }
}
