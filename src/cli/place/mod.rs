//! The place where a command runs. A [`Place`] is this machine or a server, and [`open`] chooses
//! one. Commands use only this trait.

mod here;
mod server;

use std::time::Duration;

use self::here::Here;
use self::server::AtServer;
use super::CliError;
use super::args::Target;
use super::contract_file::ContractFile;
use super::progress::Progress;
use super::terminal::{Terminal, write_error_stream};
use warpgauge_client::{Reply, RetryPolicy, WaitEvent};
use warpgauge_config::Config;
use warpgauge_contract::{CompareRequest, CompileRequest};
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::report::GateReport;
use warpgauge_gate::{Baseline, BaselineSummary, GateRequest, NewBaseline};
use warpgauge_job_views::JobEvent;
use warpgauge_report::{CompareResponse, CompileResponse, EvaluateResponse, SweepResponse};
use warpgauge_service::HistoryQuery;

/// Time for retries of commands that send one short request, seconds.
pub(super) const NONE: f64 = 0.0;

/// A place where commands run. It returns results as typed values, together with their JSON.
pub(super) trait Place {
    /// Returns the name of the first stage in the progress display: `here` on this machine,
    /// `at_server` on a server.
    fn stage(&self, at_server: &str, here: &str) -> String;

    /// Returns the flag with which another command selects this place: ` --server URL`, or an empty
    /// text for this machine.
    fn flag(&self) -> String;

    /// Evaluates a contract. Shows the progress.
    fn evaluate(
        &mut self,
        contract: ContractFile,
        progress: &Progress,
    ) -> Result<Reply<EvaluateResponse>, CliError>;

    /// Compares kernels. Shows the progress.
    fn compare(
        &mut self,
        contract: ContractFile,
        progress: &Progress,
    ) -> Result<Reply<CompareResponse>, CliError>;

    /// Compares kernels. Shows no progress.
    fn compare_unwatched(&mut self, request: CompareRequest) -> Result<CompareResponse, CliError>;

    /// Evaluates the points of a contract's axes. Most points are passed to `told` when they end;
    /// the returned report contains all points.
    fn sweep(
        &mut self,
        contract: ContractFile,
        told: &mut dyn FnMut(WaitEvent) -> Result<(), CliError>,
    ) -> Result<Reply<SweepResponse>, CliError>;

    fn compile(&mut self, request: CompileRequest) -> Result<Reply<CompileResponse>, CliError>;

    /// Compares a suite with a baseline in one job. Returns the report.
    fn gate(
        &mut self,
        request: GateRequest,
        on_event: &mut (dyn FnMut(&JobEvent) + Send),
    ) -> Result<GateReport, CliError>;

    /// Returns the stored baselines.
    fn baselines(&mut self) -> Result<Vec<BaselineSummary>, CliError>;

    /// Returns the baseline with this name, including its code.
    fn baseline(&mut self, name: &str) -> Result<Baseline, CliError>;

    /// Stores a baseline, after each of its cases has run once.
    fn store_baseline(&mut self, new: NewBaseline) -> Result<BaselineSummary, CliError>;

    /// Makes the candidate of a passed gate run the baseline of this name.
    fn promote(&mut self, name: &str, job_id: &str) -> Result<BaselineSummary, CliError>;

    /// Removes all baselines of this name. Returns the name.
    fn remove_baseline(&mut self, name: &str) -> Result<String, CliError>;

    /// Returns the values of cases over time.
    fn history(&mut self, query: &HistoryQuery) -> Result<HistoryAnswer, CliError>;
}

/// Returns the place that the command line selects: a server, or this machine. `patience_s` is the
/// time for which each request is retried while the server is full, restarting or unreachable.
/// Nothing is sent or started yet.
///
/// # Errors
/// The URL of the server is not valid, or contains a user name or password.
pub(super) fn open<'c>(
    target: &Target,
    patience_s: f64,
    config: &'c Config,
    terminal: Terminal,
) -> Result<Box<dyn Place + 'c>, CliError> {
    Ok(match target.client()? {
        Some(client) => Box::new(AtServer::new(client, patience_s, terminal)),
        None => Box::new(Here::new(config, terminal)),
    })
}

/// Returns a retry policy that waits for up to `seconds` and prints the reason for each wait.
pub(super) fn patience(seconds: f64, terminal: Terminal) -> RetryPolicy {
    RetryPolicy::new(duration(seconds), move |error, pause| {
        let (why, pause_s) = (error.brief(), pause.as_secs_f64());
        terminal.note(&format!("warpgauge: {why}; trying again in {pause_s:.1} s"));
        std::thread::sleep(pause);
    })
}

/// Converts a number of seconds that the command line accepts.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Prints the events of a wait that are not events of the job.
pub(super) fn remark(told: &WaitEvent, terminal: Terminal) {
    match told {
        WaitEvent::Again(why) => terminal.note(&format!("warpgauge: {why}")),
        WaitEvent::Untold => terminal.note(
            "warpgauge: this server is older and reports no progress; waiting \
             for the result",
        ),
        WaitEvent::GivenUp(what) => write_error_stream(&format!("warpgauge: {what}")),
        WaitEvent::Accepted(_) | WaitEvent::Job(_) | WaitEvent::Sweep(_) => {}
    }
}
