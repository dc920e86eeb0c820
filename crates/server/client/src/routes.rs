//! Routes that answer at once, or whose answer nobody watches the making of.

use serde::Deserialize;
use ureq::http::Method;

use warpgauge_contract::{CompareRequest, CompileRequest};
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::{Baseline, BaselineSummary, NewBaseline, Promotion};
use warpgauge_job_views::{CancelReport, JobList, JobView};
use warpgauge_report::{CompareResponse, CompileResponse};

use crate::connection::{Client, Reply};
use crate::error::ClientError;

/// Which jobs to list, and how many.
#[derive(Debug, Clone, Default)]
pub struct JobFilter<'a> {
    /// In one of these states, as the API names them; none: in any.
    pub states: &'a [String],
    /// Of this kind.
    pub kind: Option<&'a str>,
    /// With this label.
    pub label: Option<&'a str>,
    /// After the page that gave this.
    pub cursor: Option<&'a str>,
    /// At most so many; a server gives 200 at most.
    pub limit: u32,
}

impl JobFilter<'_> {
    fn route(&self) -> String {
        let mut route = format!("/jobs?limit={}", self.limit);
        let mut add = |name: &str, value: &str| {
            route.push_str(&format!("&{name}={}", encoded(value)));
        };
        for state in self.states {
            add("state", state);
        }
        for (name, value) in [("kind", self.kind), ("label", self.label), ("cursor", self.cursor)] {
            if let Some(value) = value {
                add(name, value);
            }
        }
        route
    }
}

/// Answer of `GET /baselines`.
#[derive(Deserialize)]
struct Baselines {
    baselines: Vec<BaselineSummary>,
}

/// Answer of `DELETE /baselines/{name}`.
#[derive(Deserialize)]
struct Removed {
    name: String,
}

/// Every method fails where the server does not answer, refuses, or answers something else.
impl Client {
    /// Compiles a kernel.
    pub fn compile(&self, request: &CompileRequest) -> Result<Reply<CompileResponse>, ClientError> {
        self.post("/compile", "request", request)
    }

    /// Makes a comparison that nobody watches.
    pub fn compare_unwatched(
        &self,
        request: &CompareRequest,
    ) -> Result<Reply<CompareResponse>, ClientError> {
        self.post("/compare", "comparison", request)
    }

    /// A page of the caller's jobs, the youngest first.
    pub fn jobs(&self, filter: &JobFilter<'_>) -> Result<Reply<JobList>, ClientError> {
        self.ask(Method::GET, &filter.route())
    }

    /// A job and, once it ended, its report.
    pub fn job(&self, job_id: &str) -> Result<Reply<JobView>, ClientError> {
        self.ask(Method::GET, &job_route(job_id, ""))
    }

    /// Cancels a job; one that runs is stopped.
    pub fn cancel(&self, job_id: &str) -> Result<Reply<CancelReport>, ClientError> {
        self.ask(Method::DELETE, &job_route(job_id, ""))
    }

    /// The caller's baselines.
    pub fn baselines(&self) -> Result<Vec<BaselineSummary>, ClientError> {
        let reply = self.ask::<Baselines>(Method::GET, "/baselines")?;
        Ok(reply.value.baselines)
    }

    /// A baseline, with its code.
    pub fn baseline(&self, name: &str) -> Result<Baseline, ClientError> {
        Ok(self.ask(Method::GET, &baseline_route(name, ""))?.value)
    }

    /// Keeps a baseline; each of its cases is run once before.
    pub fn store_baseline(&self, new: &NewBaseline) -> Result<BaselineSummary, ClientError> {
        Ok(self.post("/baselines", "baseline", new)?.value)
    }

    /// Makes the candidate of a run of the gate that passed the baseline of this name.
    pub fn promote(&self, name: &str, job_id: &str) -> Result<BaselineSummary, ClientError> {
        let body = Promotion { job_id: job_id.to_owned() };
        Ok(self.post(&baseline_route(name, "/promote"), "promotion", &body)?.value)
    }

    /// Removes the baselines of a name; gives the name.
    pub fn remove_baseline(&self, name: &str) -> Result<String, ClientError> {
        let reply = self.ask::<Removed>(Method::DELETE, &baseline_route(name, ""))?;
        Ok(reply.value.name)
    }

    /// How a case fared, or all of them; the newest `limit` points.
    pub fn history(&self, case: Option<&str>, limit: u32) -> Result<HistoryAnswer, ClientError> {
        let route = match case {
            Some(case) => format!("/history?limit={limit}&case={}", encoded(case)),
            None => format!("/history?limit={limit}"),
        };
        Ok(self.ask(Method::GET, &route)?.value)
    }
}

/// A job's route, and what is `below` it.
pub(crate) fn job_route(job_id: &str, below: &str) -> String {
    format!("/jobs/{}{below}", encoded(job_id))
}

fn baseline_route(name: &str, below: &str) -> String {
    format!("/baselines/{}{below}", encoded(name))
}

/// A piece of a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_path_stays_one_piece() {
        assert_eq!(encoded("a-b_c.d~9"), "a-b_c.d~9");
        assert_eq!(encoded("../ä?b=c&d#%"), "..%2F%C3%A4%3Fb%3Dc%26d%23%25");
        assert_eq!(job_route("a/b", "/events"), "/jobs/a%2Fb/events");
    }

    #[test]
    fn lists_ask_for_what_is_named_only() {
        assert_eq!(JobFilter { limit: 7, ..JobFilter::default() }.route(), "/jobs?limit=7");
        let states = ["queued".to_owned(), "failed".to_owned()];
        let filter = JobFilter {
            states: &states,
            kind: Some("gate"),
            label: Some("a b"),
            cursor: Some("c="),
            limit: 50,
        };
        let expected = "/jobs?limit=50&state=queued&state=failed&kind=gate&label=a%20b&cursor=c%3D";
        assert_eq!(filter.route(), expected);
    }
}
