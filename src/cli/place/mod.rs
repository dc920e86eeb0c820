//! Where a command's work is done. Commands are written once, against [`Place`]; [`open`] decides which
//! one it is.

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

/// Patience of commands that ask a server once, seconds.
pub(super) const NONE: f64 = 0.0;

/// A place that does the work of commands: this machine, or a server. Answers come as JSON, exactly as
/// a server sends them, and understood.
pub(super) trait Place {
    /// Name of the first stage that progress shows, at a server or on this machine.
    fn stage(&self, at_server: &str, here: &str) -> String;

    /// The flag that names this place to another command: ` --server URL`, or nothing.
    fn flag(&self) -> String;

    /// Evaluates a contract, showing how far that is.
    fn evaluate(
        &mut self,
        contract: ContractFile,
        progress: &Progress,
    ) -> Result<Reply<EvaluateResponse>, CliError>;

    /// Makes a comparison, showing how far that is.
    fn compare(
        &mut self,
        contract: ContractFile,
        progress: &Progress,
    ) -> Result<Reply<CompareResponse>, CliError>;

    /// Makes a comparison without progress.
    fn compare_unwatched(&mut self, request: CompareRequest) -> Result<CompareResponse, CliError>;

    /// Sweeps over the axes of a contract, telling of points as they come; of some only with the answer.
    fn sweep(
        &mut self,
        contract: ContractFile,
        told: &mut dyn FnMut(WaitEvent) -> Result<(), CliError>,
    ) -> Result<Reply<SweepResponse>, CliError>;

    /// Compiles a kernel.
    fn compile(&mut self, request: CompileRequest) -> Result<Reply<CompileResponse>, CliError>;

    /// Takes a suite to its report: one job.
    fn gate(
        &mut self,
        request: GateRequest,
        on_event: &mut (dyn FnMut(&JobEvent) + Send),
    ) -> Result<GateReport, CliError>;

    /// Baselines that are kept there.
    fn baselines(&mut self) -> Result<Vec<BaselineSummary>, CliError>;

    /// The baseline of this name, with its code.
    fn baseline(&mut self, name: &str) -> Result<Baseline, CliError>;

    /// Keeps a baseline; each of its cases is run once before.
    fn store_baseline(&mut self, new: NewBaseline) -> Result<BaselineSummary, CliError>;

    /// Makes the candidate of a run that passed the baseline of this name.
    fn promote(&mut self, name: &str, job_id: &str) -> Result<BaselineSummary, CliError>;

    /// Removes the baselines of this name; gives the name.
    fn remove_baseline(&mut self, name: &str) -> Result<String, CliError>;

    /// How cases fared over time.
    fn history(&mut self, query: &HistoryQuery) -> Result<HistoryAnswer, CliError>;
}

/// The place that the command line names: a server, or this machine. `patience_s`: how long to wait for
/// a server that is full, restarting or away, each time. Nothing is sent or started yet.
///
/// # Errors
/// Where the server's address is none.
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

/// Patience for so many seconds that says what it waits for.
pub(super) fn patience(seconds: f64, terminal: Terminal) -> RetryPolicy {
    RetryPolicy::new(duration(seconds), move |error, pause| {
        let (why, pause_s) = (error.brief(), pause.as_secs_f64());
        terminal.note(&format!("warpgauge: {why}; trying again in {pause_s:.1} s"));
        std::thread::sleep(pause);
    })
}

/// Seconds of the command line, which bounds them; what it lets through is a duration.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Prints remarks that are not events of the job.
pub(super) fn remark(told: &WaitEvent, terminal: Terminal) {
    match told {
        WaitEvent::Again(why) => terminal.note(&format!("warpgauge: {why}")),
        WaitEvent::Untold => terminal.note(
            "warpgauge: this server does not tell how far its jobs are, it is an older one; waiting \
             for its answer",
        ),
        WaitEvent::GivenUp(what) => write_error_stream(&format!("warpgauge: {what}")),
        WaitEvent::Accepted(_) | WaitEvent::Job(_) | WaitEvent::Sweep(_) => {}
    }
}
