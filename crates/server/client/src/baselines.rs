//! Reads and stores baselines of the gate on a server. The main type is [`RemoteBaselines`].

use serde::Deserialize;
use ureq::http::Method;

use warpgauge_gate::{Baseline, BaselineSummary, NewBaseline, Promotion};

use crate::connection::Connection;
use crate::error::ClientError;
use crate::routes::encoded;

/// Response of `GET /baselines`.
#[derive(Deserialize)]
struct Baselines {
    baselines: Vec<BaselineSummary>,
}

/// Response of `DELETE /baselines/{name}`.
#[derive(Deserialize)]
struct Removed {
    name: String,
}

/// The baselines of a caller on a server.
///
/// Every method fails if the server does not answer, rejects the request, or returns an unexpected
/// response.
#[derive(Clone, Copy)]
pub struct RemoteBaselines<'a> {
    pub(crate) connection: &'a Connection,
}

impl RemoteBaselines<'_> {
    /// Lists the caller's baselines.
    pub fn list(&self) -> Result<Vec<BaselineSummary>, ClientError> {
        let reply = self.connection.ask::<Baselines>(Method::GET, "/baselines")?;
        Ok(reply.value.baselines)
    }

    /// Returns a baseline, including its code.
    pub fn get(&self, name: &str) -> Result<Baseline, ClientError> {
        Ok(self.connection.ask(Method::GET, &baseline_route(name, ""))?.value)
    }

    /// Stores a baseline, after the server has run each of its cases once.
    pub fn store(&self, new: &NewBaseline) -> Result<BaselineSummary, ClientError> {
        Ok(self.connection.post("/baselines", "baseline", new)?.value)
    }

    /// Makes the candidate of a passed gate job the baseline of this name.
    pub fn promote(&self, name: &str, job_id: &str) -> Result<BaselineSummary, ClientError> {
        let body = Promotion { job_id: job_id.to_owned() };
        Ok(self.connection.post(&baseline_route(name, "/promote"), "promotion", &body)?.value)
    }

    /// Removes all baselines of this name. Returns the name.
    pub fn remove(&self, name: &str) -> Result<String, ClientError> {
        let reply = self.connection.ask::<Removed>(Method::DELETE, &baseline_route(name, ""))?;
        Ok(reply.value.name)
    }
}

fn baseline_route(name: &str, below: &str) -> String {
    format!("/baselines/{}{below}", encoded(name))
}
