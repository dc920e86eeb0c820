//! One server, and what it is asked for.

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
use crate::routes::encoded;
use crate::unattended::UnattendedRequests;

/// A server. Clones are the same one.
#[derive(Clone)]
pub struct Client {
    connection: Connection,
}

impl fmt::Debug for Client {
    // Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// Answer of `GET /devices`.
#[derive(Deserialize)]
struct Devices<T> {
    devices: Vec<T>,
}

/// Every method that asks the server fails where it does not answer, refuses, or answers something else.
impl Client {
    /// The server at `url`, e.g. `https://gpu-host:8000`; nothing is sent yet. With `ca_cert` the
    /// authorities in that file (PEM) are trusted, and no others.
    ///
    /// # Errors
    /// Where `url` is no address, or has a login in it.
    pub fn new(
        url: &str,
        api_key: Option<String>,
        ca_cert: Option<PathBuf>,
    ) -> Result<Self, ClientError> {
        Ok(Self { connection: Connection::new(url, api_key, ca_cert)? })
    }

    /// The address, as it was given.
    pub fn url(&self) -> &str {
        self.connection.url()
    }

    /// Requests whose progress `attendant` receives until the answer is there.
    pub fn attended<'a, E>(&'a self, attendant: JobWaiter<'a, E>) -> AttendedRequests<'a, E> {
        AttendedRequests { connection: &self.connection, attendant }
    }

    /// Requests whose progress is not watched.
    pub fn unattended(&self) -> UnattendedRequests<'_> {
        UnattendedRequests { connection: &self.connection }
    }

    /// Lists, follows and cancels the caller's jobs.
    pub fn jobs(&self) -> RemoteJobs<'_> {
        RemoteJobs { connection: &self.connection }
    }

    /// Reads and keeps the caller's baselines of the gate.
    pub fn baselines(&self) -> RemoteBaselines<'_> {
        RemoteBaselines { connection: &self.connection }
    }

    /// Compiles a kernel.
    pub fn compile(&self, request: &CompileRequest) -> Result<Reply<CompileResponse>, ClientError> {
        self.connection.post("/compile", "request", request)
    }

    /// How a case fared, or all of them; the newest `limit` points.
    pub fn history(&self, case: Option<&str>, limit: u32) -> Result<HistoryAnswer, ClientError> {
        let route = match case {
            Some(case) => format!("/history?limit={limit}&case={}", encoded(case)),
            None => format!("/history?limit={limit}"),
        };
        Ok(self.connection.ask(Method::GET, &route)?.value)
    }

    /// The devices of the server, as it describes them.
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
