//! Runs commands on a server: [`AtServer`].

use std::time::Duration;

use super::{Place, duration, patience, remark};
use crate::cli::CliError;
use crate::cli::contract_file::ContractFile;
use crate::cli::progress::Progress;
use crate::cli::signals;
use crate::cli::terminal::Terminal;
use crate::cli::with_progress::{Expected, View};
use warpgauge_client::{Client, JobWaiter, Reply, RetryPolicy, WaitEvent};
use warpgauge_contract::{CompareRequest, CompileRequest};
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::report::GateReport;
use warpgauge_gate::{Baseline, BaselineSummary, GateRequest, NewBaseline};
use warpgauge_job_views::JobEvent;
use warpgauge_report::{CompareResponse, CompileResponse, EvaluateResponse, SweepResponse};
use warpgauge_service::HistoryQuery;

/// Runs work on a server. SIGINT and SIGTERM cancel the job if a long request is in progress.
pub(super) struct AtServer {
    client: Client,
    patience_s: f64,
    /// Retry policy for requests that create no job.
    patience: RetryPolicy,
    terminal: Terminal,
}

impl AtServer {
    pub(super) fn new(client: Client, patience_s: f64, terminal: Terminal) -> Self {
        Self { client, patience_s, patience: patience(patience_s, terminal), terminal }
    }

    fn limit(&self) -> Duration {
        duration(self.patience_s)
    }

    /// Shows an event that arrives before the report.
    fn show(&self, told: WaitEvent, view: &mut View, progress: &Progress) {
        match told {
            // The report follows the last event.
            WaitEvent::Job(event) if event.state.is_end() => {}
            WaitEvent::Job(event) => view.show(&event, progress),
            other => progress.beside(|| remark(&other, self.terminal)),
        }
    }
}

impl Place for AtServer {
    fn stage(&self, at_server: &str, _: &str) -> String {
        format!("{at_server} at {}", self.client.url())
    }

    fn flag(&self) -> String {
        format!(" --server {}", self.client.url())
    }

    fn evaluate(
        &mut self,
        contract: ContractFile,
        progress: &Progress,
    ) -> Result<Reply<EvaluateResponse>, CliError> {
        let mut view = View::new(Expected::of_body(&contract.fields));
        let told = &mut |told| -> Result<(), CliError> {
            self.show(told, &mut view, progress);
            Ok(())
        };
        let attendant = JobWaiter { told, interruptible: &signals::interrupts };
        self.client.attended(attendant).evaluate(&contract.fields, self.limit())
    }

    fn compare(
        &mut self,
        contract: ContractFile,
        progress: &Progress,
    ) -> Result<Reply<CompareResponse>, CliError> {
        let mut view = View::new(Expected::of_body(&contract.fields));
        let told = &mut |told| -> Result<(), CliError> {
            self.show(told, &mut view, progress);
            Ok(())
        };
        let attendant = JobWaiter { told, interruptible: &signals::interrupts };
        self.client.attended(attendant).compare(&contract.fields, self.limit())
    }

    fn compare_unwatched(&mut self, request: CompareRequest) -> Result<CompareResponse, CliError> {
        let Self { client, patience, .. } = self;
        Ok(patience.with(|| client.unattended().compare(&request))?.value)
    }

    fn sweep(
        &mut self,
        contract: ContractFile,
        told: &mut dyn FnMut(WaitEvent) -> Result<(), CliError>,
    ) -> Result<Reply<SweepResponse>, CliError> {
        let attendant = JobWaiter { told, interruptible: &signals::interrupts };
        self.client.attended(attendant).sweep(&contract.fields, self.limit())
    }

    fn compile(&mut self, request: CompileRequest) -> Result<Reply<CompileResponse>, CliError> {
        let Self { client, patience, .. } = self;
        Ok(patience.with(|| client.compile(&request))?)
    }

    fn gate(
        &mut self,
        request: GateRequest,
        on_event: &mut (dyn FnMut(&JobEvent) + Send),
    ) -> Result<GateReport, CliError> {
        let terminal = self.terminal;
        let told = &mut |told| -> Result<(), CliError> {
            match told {
                // On a terminal, the note would remain above the bar. The report contains the id as
                // well.
                WaitEvent::Accepted(id) if !terminal.interactive => {
                    terminal.note(&format!("warpgauge: job {id} at {}", self.client.page_of(&id)));
                }
                WaitEvent::Job(event) => on_event(&event),
                other => remark(&other, terminal),
            }
            Ok(())
        };
        let attendant = JobWaiter { told, interruptible: &signals::interrupts };
        let requested = self.client.attended(attendant);
        let mut report: GateReport =
            requested.gate(&request, patience(self.patience_s, terminal))?;
        report.page = report.job_id.as_deref().map(|id| self.client.page_of(id));
        Ok(report)
    }

    fn baselines(&mut self) -> Result<Vec<BaselineSummary>, CliError> {
        let Self { client, patience, .. } = self;
        Ok(patience.with(|| client.baselines().list())?)
    }

    fn baseline(&mut self, name: &str) -> Result<Baseline, CliError> {
        let Self { client, patience, .. } = self;
        Ok(patience.with(|| client.baselines().get(name))?)
    }

    fn store_baseline(&mut self, new: NewBaseline) -> Result<BaselineSummary, CliError> {
        let Self { client, patience, .. } = self;
        Ok(patience.with(|| client.baselines().store(&new))?)
    }

    fn promote(&mut self, name: &str, job_id: &str) -> Result<BaselineSummary, CliError> {
        let Self { client, patience, .. } = self;
        Ok(patience.with(|| client.baselines().promote(name, job_id))?)
    }

    fn remove_baseline(&mut self, name: &str) -> Result<String, CliError> {
        let Self { client, patience, .. } = self;
        Ok(patience.with(|| client.baselines().remove(name))?)
    }

    fn history(&mut self, query: &HistoryQuery) -> Result<HistoryAnswer, CliError> {
        let Self { client, patience, .. } = self;
        Ok(patience.with(|| client.history(query.case.as_deref(), query.limit))?)
    }
}
