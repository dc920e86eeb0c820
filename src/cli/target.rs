//! Flags that select a server: [`Target`] and [`Patience`].

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use warpgauge_client::{Client, ClientError};

/// Flags that select where a command runs.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server options")]
pub(super) struct Target {
    /// Server to use instead of this machine, as a URL
    #[arg(long, value_name = "URL", env = "WARPGAUGE_SERVER")]
    pub server: Option<String>,
    /// API key for the server; the environment variable is safer, because other users can list arguments
    #[arg(long, value_name = "KEY", env = "WARPGAUGE_API_KEY", hide_env_values = true)]
    pub api_key: Option<String>,
    /// Certificate authorities for https:// (PEM), in place of the system's
    #[arg(long, value_name = "FILE", env = "WARPGAUGE_CA_CERT")]
    pub ca_cert: Option<OsString>,
}

impl Target {
    /// Returns a client for the given server; `None` if no server is given.
    ///
    /// # Errors
    /// The URL is not valid, or contains a user name or password.
    pub(super) fn client(&self) -> Result<Option<Client>, ClientError> {
        let Some(server) = &self.server else { return Ok(None) };
        client(server, self.api_key.as_ref(), self.ca_cert.as_ref()).map(Some)
    }

    /// Returns the URL of a job's page at the given server; `None` if no server is given.
    pub(super) fn page_of(&self, job_id: &str) -> Option<String> {
        let client = self.client().ok().flatten()?;
        Some(client.page_of(job_id))
    }
}

/// Returns a client for the server at this address. An empty path of a certificate file has the
/// same effect as none.
pub(super) fn client(
    server: &str,
    api_key: Option<&String>,
    ca_cert: Option<&OsString>,
) -> Result<Client, ClientError> {
    let ca_cert = ca_cert.filter(|path| !path.is_empty()).map(PathBuf::from);
    Client::new(server, api_key.cloned(), ca_cert)
}

/// Flag that sets how long a command retries an unavailable server.
#[derive(Debug, Clone, Copy, Args)]
#[command(next_help_heading = "Server options")]
pub(super) struct Patience {
    /// Seconds for which to retry, each time, while the server with the job restarts or cannot be
    /// reached, 0 to 3600
    #[arg(long = "patience", value_name = "SECONDS", default_value_t = 120.0, allow_negative_numbers = true, value_parser = seconds)]
    pub seconds: f64,
}

/// Parses a waiting time in seconds.
pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0 to 3600".to_owned()),
    }
}
