//! A server and its operations. The main type is [`Client`].

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::Method;

use warpgauge_contract::CompileRequest;
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_report::CompileResponse;

use crate::attend::JobWaiter;
use crate::baselines::RemoteBaselines;
use crate::connection::{Connection, Reply};
use crate::delivery::AttendedRequests;
use crate::error::ClientError;
use crate::jobs::RemoteJobs;
use crate::routes::{encoded, job_route};
use crate::unattended::UnattendedRequests;

/// A client of one server. Clones share the settings of the connection.
#[derive(Clone)]
pub struct Client {
    connection: Connection,
}

impl fmt::Debug for Client {
    // The key is omitted from the output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// Response of `GET /devices`.
#[derive(Deserialize)]
struct Devices<T> {
    devices: Vec<T>,
}

/// Every method that sends a request fails if the server does not answer, rejects the request, or
/// returns an unexpected response.
impl Client {
    /// Creates a client for the server at `url`, e.g. `https://gpu-host:8000`. Nothing is sent yet.
    /// With `ca_cert`, the client trusts only the certificate authorities in that file (PEM).
    ///
    /// # Errors
    /// `url` is not the URL of a server, or contains a user name or password.
    pub fn new(
        url: &str,
        api_key: Option<String>,
        ca_cert: Option<PathBuf>,
    ) -> Result<Self, ClientError> {
        Ok(Self { connection: Connection::new(url, api_key, ca_cert)? })
    }

    /// Returns the URL as the caller gave it.
    pub fn url(&self) -> &str {
        self.connection.url()
    }

    /// Returns the URL of the page that shows a job in a browser.
    pub fn page_of(&self, job_id: &str) -> String {
        self.connection.url_of(&job_route(job_id, ""))
    }

    /// Returns an interface for requests whose progress `attendant` receives until the answer
    /// arrives.
    pub fn attended<'a, E>(&'a self, attendant: JobWaiter<'a, E>) -> AttendedRequests<'a, E> {
        AttendedRequests { connection: &self.connection, attendant }
    }

    /// Returns an interface for requests whose progress is not reported.
    pub fn unattended(&self) -> UnattendedRequests<'_> {
        UnattendedRequests { connection: &self.connection }
    }

    /// Returns an interface that lists, follows and cancels the caller's jobs.
    pub fn jobs(&self) -> RemoteJobs<'_> {
        RemoteJobs { connection: &self.connection }
    }

    /// Returns an interface that reads and stores the caller's baselines of the gate.
    pub fn baselines(&self) -> RemoteBaselines<'_> {
        RemoteBaselines { connection: &self.connection }
    }

    /// Compiles a kernel.
    pub fn compile(&self, request: &CompileRequest) -> Result<Reply<CompileResponse>, ClientError> {
        self.connection.post("/compile", "request", request)
    }

    /// Returns the newest `limit` points of the history, for one case or for all cases.
    pub fn history(&self, case: Option<&str>, limit: u32) -> Result<HistoryAnswer, ClientError> {
        let route = match case {
            Some(case) => format!("/history?limit={limit}&case={}", encoded(case)),
            None => format!("/history?limit={limit}"),
        };
        Ok(self.connection.ask(Method::GET, &route)?.value)
    }

    /// Lists the server's devices.
    pub fn devices<T: DeserializeOwned>(&self) -> Result<Vec<T>, ClientError> {
        Ok(self.connection.ask::<Devices<T>>(Method::GET, "/devices")?.value.devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown() {
        let client = Client::new("http://h:1/", Some("sesame".to_owned()), None).unwrap();
        let shown = format!("{client:?}");
        assert!(shown.contains("http://h:1/") && !shown.contains("sesame"), "{shown}");
        assert_eq!(client.url(), "http://h:1/");
    }
}
