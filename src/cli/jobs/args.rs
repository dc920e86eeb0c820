//! Types into which clap parses the command line of `warpgauge jobs`.

use std::ffi::OsString;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use crate::cli::html_file::HtmlFlag;
use crate::cli::{CliError, args};
use warpgauge_client::Client;
use warpgauge_gate::SuiteVerdict;
use warpgauge_report::KernelVerdict;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum JobsCommand {
    /// List the jobs of a server or of this machine, the newest first
    #[command(after_help = "Examples:\n  \
        warpgauge jobs list\n  \
        warpgauge jobs list --server http://gpu-host:8000\n  \
        warpgauge jobs list --server $URL --state queued --state profiling\n  \
        warpgauge jobs list --kind gate --decision regression\n  \
        warpgauge jobs list --server $URL --label nightly --limit 500 --json")]
    List(ListArgs),
    /// Show a job and, once it has ended, its report
    Show(ShowArgs),
    /// Cancel a job, or stop a job that runs
    Cancel(JobArgs),
    /// Wait for a job and show its report; the exit code is the report's
    #[command(
        after_help = "The exit code is that of `warpgauge eval`, `compare`, `sweep` or `gate run`; \
        1 if the job has no report, 5 if it has not ended after --timeout."
    )]
    Wait(WaitArgs),
    /// Print the events of a job until it ends
    Events(JobArgs),
}

/// Message of a command that needs a server if none is given.
const NO_SERVER: &str = "name the server that has the job: --server URL, or WARPGAUGE_SERVER; for jobs of this machine, use \
                         `warpgauge jobs list`";

/// Flags that select the server on which the jobs are.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server options")]
pub(in crate::cli) struct ServerArgs {
    /// Server, as a URL; without a server, `list` lists the jobs of this machine
    #[arg(long, value_name = "URL", env = "WARPGAUGE_SERVER")]
    pub server: Option<String>,
    /// API key for the server; the environment variable is safer, because other users can list arguments
    #[arg(long, value_name = "KEY", env = "WARPGAUGE_API_KEY", hide_env_values = true)]
    pub api_key: Option<String>,
    /// Certificate authorities for https:// (PEM), in place of the system's
    #[arg(long, value_name = "FILE", env = "WARPGAUGE_CA_CERT")]
    pub ca_cert: Option<OsString>,
}

impl ServerArgs {
    /// Returns a client for the given server.
    ///
    /// # Errors
    /// No server is given, or its URL is not valid or contains a user name or password.
    pub(super) fn client(&self) -> Result<Client, CliError> {
        let named = self.named()?;
        named.ok_or_else(|| CliError::Usage(NO_SERVER.to_owned()))
    }

    /// Returns a client for the given server; `None` if no server is given.
    ///
    /// # Errors
    /// The URL is not valid, or contains a user name or password.
    pub(super) fn named(&self) -> Result<Option<Client>, CliError> {
        let server = self.server.as_deref().filter(|server| !server.is_empty());
        let client =
            server.map(|server| args::client(server, self.api_key.as_ref(), self.ca_cert.as_ref()));
        Ok(client.transpose()?)
    }
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    /// State of the jobs; may be repeated
    #[arg(long, value_name = "STATE", value_parser = STATES)]
    pub state: Vec<String>,
    /// Kind of the jobs
    #[arg(long, value_name = "KIND", value_parser = ["evaluate", "execute", "compare", "sweep", "gate"])]
    pub kind: Option<String>,
    /// Verdict on the kernel, or the worst verdict on several kernels
    #[arg(long, value_name = "VERDICT", value_parser = verdict())]
    pub verdict: Option<KernelVerdict>,
    /// Decision of a gate
    #[arg(long, value_name = "DECISION", ignore_case = true, value_parser = decision())]
    pub decision: Option<SuiteVerdict>,
    /// Label of the jobs
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Maximum number of jobs to list
    #[arg(long, value_name = "N", default_value_t = 50, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,
    /// Print the jobs of all pages as one JSON list
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Returns the parser of verdicts by their names in the API.
fn verdict() -> impl TypedValueParser<Value = KernelVerdict> {
    let names = PossibleValuesParser::new(KernelVerdict::ALL.map(KernelVerdict::name));
    names.try_map(|name| KernelVerdict::named(&name).ok_or("there is no such verdict"))
}

/// Returns the parser of decisions by their names in reports, in capital or small letters.
fn decision() -> impl TypedValueParser<Value = SuiteVerdict> {
    let names = PossibleValuesParser::new(SuiteVerdict::ALL.map(SuiteVerdict::name));
    names.try_map(|name| {
        SuiteVerdict::named(&name.to_uppercase()).ok_or("there is no such decision")
    })
}

/// Names of the job states in the API.
const STATES: [&str; 9] = [
    "submitted",
    "queued",
    "compiling",
    "profiling",
    "validating",
    "completed",
    "failed",
    "cancelled",
    "timed_out",
];

#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArgs {
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub html: HtmlFlag,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct JobArgs {
    /// `job_id` that the server returned
    #[arg(value_name = "JOB")]
    pub job_id: String,
    /// Print the response as JSON, unchanged
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct WaitArgs {
    #[command(flatten)]
    pub job: JobArgs,
    /// Maximum time to wait, seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub timeout: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::STATES;
    use warpgauge_model::JobState;

    #[test]
    fn states_are_those_of_the_api() {
        assert_eq!(STATES, JobState::ALL.map(JobState::name));
    }
}
