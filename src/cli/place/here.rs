//! Runs commands on this machine: [`Here`].

use serde::Serialize;
use tokio::sync::mpsc;

use super::Place;
use crate::cli::contract_file::ContractFile;
use crate::cli::local::{self, Session};
use crate::cli::progress::Progress;
use crate::cli::terminal::Terminal;
use crate::cli::with_progress::{Expected, with_news, with_progress};
use crate::cli::{CliError, json};
use warpgauge_client::{Reply, WaitEvent};
use warpgauge_config::Config;
use warpgauge_contract::{CompareRequest, CompileRequest, EvaluateRequest, SweepRequest};
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::report::GateReport;
use warpgauge_gate::{Baseline, BaselineSummary, GateRequest, NewBaseline};
use warpgauge_job_views::JobEvent;
use warpgauge_report::{CompareResponse, CompileResponse, EvaluateResponse, SweepResponse};
use warpgauge_service::{
    Caller, EvaluationService, GateBaselines, HistoryQuery, JobSubmission, ServiceError,
    stored_history,
};

/// Note that a command prints if it would use a GPU but finds none.
const NO_GPU: &str = "note: no GPU found: using the emulator, whose times are not a GPU's";

/// Runs work in this process. The pipeline starts when work first needs it.
pub(super) struct Here<'c> {
    config: &'c Config,
    session: Option<Session>,
    terminal: Terminal,
}

impl<'c> Here<'c> {
    pub(super) fn new(config: &'c Config, terminal: Terminal) -> Self {
        Self { config, session: None, terminal }
    }

    /// Returns the pipeline. If necessary, starts it first.
    fn session(&mut self) -> Result<&mut Session, CliError> {
        if self.session.is_none() {
            let session = Session::start(self.config)?;
            if session.stands_in_for_a_gpu(self.config) {
                self.terminal.note(NO_GPU);
            }
            self.session = Some(session);
        }
        let none = || CliError::Internal("the started pipeline is missing".to_owned());
        self.session.as_mut().ok_or_else(none)
    }

    /// Queries the store on this machine without starting a device.
    fn stored<T>(
        &self,
        work: impl AsyncFnOnce(&GateBaselines) -> Result<T, ServiceError>,
    ) -> Result<T, CliError> {
        local::runtime()?.block_on(async {
            let baselines = GateBaselines::open(self.config).await?;
            let outcome = work(&baselines).await;
            baselines.close().await;
            Ok(outcome?)
        })
    }
}

/// Returns a value and its JSON, in the form in which a server would send it.
fn reply<T: Serialize>(value: T) -> Result<Reply<T>, CliError> {
    Ok(Reply { text: json::text("answer", &value)?, value })
}

impl Place for Here<'_> {
    fn stage(&self, _: &str, here: &str) -> String {
        here.to_owned()
    }

    fn flag(&self) -> String {
        String::new()
    }

    fn evaluate(
        &mut self,
        contract: ContractFile,
        progress: &Progress,
    ) -> Result<Reply<EvaluateResponse>, CliError> {
        let expected = Expected::of_body(&contract.fields);
        let request: EvaluateRequest = contract.compatible()?;
        reply(self.session()?.call(|service| async move {
            let work = |submission| service.evaluations.evaluate(request, submission);
            with_progress(&*service.jobs, expected, progress, work).await
        })?)
    }

    fn compare(
        &mut self,
        contract: ContractFile,
        progress: &Progress,
    ) -> Result<Reply<CompareResponse>, CliError> {
        let expected = Expected::of_body(&contract.fields);
        let request: CompareRequest = contract.compatible()?;
        reply(self.session()?.call(|service| async move {
            let work = |submission| service.evaluations.compare(request, submission);
            with_progress(&*service.jobs, expected, progress, work).await
        })?)
    }

    fn compare_unwatched(&mut self, request: CompareRequest) -> Result<CompareResponse, CliError> {
        self.session()?.call(|service| async move {
            Ok(service.evaluations.compare(request, JobSubmission::local()).await?)
        })
    }

    fn sweep(
        &mut self,
        contract: ContractFile,
        told: &mut dyn FnMut(WaitEvent) -> Result<(), CliError>,
    ) -> Result<Reply<SweepResponse>, CliError> {
        let request: SweepRequest = contract.typed()?;
        reply(self.session()?.call(|service| async move {
            stream_sweep(&*service.evaluations, request, told).await
        })?)
    }

    fn compile(&mut self, request: CompileRequest) -> Result<Reply<CompileResponse>, CliError> {
        let work = self.session()?.call(|service| async move {
            Ok(service.compiler.compile(request, &Caller::local()).await?)
        });
        reply(work?)
    }

    fn gate(
        &mut self,
        request: GateRequest,
        on_event: &mut (dyn FnMut(&JobEvent) + Send),
    ) -> Result<GateReport, CliError> {
        self.session()?.call(|service| async move {
            let work = |submission| service.gate.gate(request, submission);
            with_news(&*service.jobs, on_event, work).await
        })
    }

    fn baselines(&mut self) -> Result<Vec<BaselineSummary>, CliError> {
        self.stored(async |all| all.list(&Caller::local()).await)
    }

    fn baseline(&mut self, name: &str) -> Result<Baseline, CliError> {
        self.stored(async |all| all.named(name, &Caller::local().owner).await)
    }

    fn store_baseline(&mut self, new: NewBaseline) -> Result<BaselineSummary, CliError> {
        self.session()?.call(|service| async move {
            Ok(service.gate.put_baseline(new, &Caller::local()).await?)
        })
    }

    fn promote(&mut self, name: &str, job_id: &str) -> Result<BaselineSummary, CliError> {
        match &mut self.session {
            // The store of the session is open and contains the run.
            Some(session) => session.call(|service| async move {
                Ok(service.gate.promote(name, job_id, &Caller::local()).await?)
            }),
            None => self.stored(async |all| all.promote(name, job_id, &Caller::local()).await),
        }
    }

    fn remove_baseline(&mut self, name: &str) -> Result<String, CliError> {
        self.stored(async |all| all.remove(name, &Caller::local()).await)?;
        Ok(name.to_owned())
    }

    fn history(&mut self, query: &HistoryQuery) -> Result<HistoryAnswer, CliError> {
        // The query starts no device.
        let caller = Caller::local();
        Ok(local::runtime()?.block_on(stored_history(self.config, query, &caller))?)
    }
}

/// Runs a sweep, and passes each event to the caller.
async fn stream_sweep(
    service: &dyn EvaluationService,
    request: SweepRequest,
    told: &mut dyn FnMut(WaitEvent) -> Result<(), CliError>,
) -> Result<SweepResponse, CliError> {
    let mut take = |event| told(WaitEvent::Sweep(event));
    let (sender, mut events) = mpsc::unbounded_channel();
    // The receiver outlives the sweep, so no event is lost.
    let sweep = service.sweep(
        request,
        JobSubmission::local(),
        Box::new(move |event| drop(sender.send(event))),
    );
    tokio::pin!(sweep);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => take(event)?,
            outcome = &mut sweep => break outcome,
        }
    };
    while let Ok(event) = events.try_recv() {
        take(event)?;
    }
    Ok(outcome?)
}
