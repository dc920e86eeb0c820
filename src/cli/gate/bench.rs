//! Where comparisons are made: in this process, or at a server.

use std::sync::Arc;

use ureq::http::Method;

use super::patience::Patience;
use crate::cli::args::Target;
use crate::cli::local::{self, Session};
use crate::cli::remote::{self, RemoteError};
use crate::cli::terminal::Terminal;
use crate::cli::{CliError, json};
use crate::config::Config;
use crate::contract::CompareRequest;
use crate::gate::report::GateReport;
use crate::gate::{Baseline, GatePlan};
use crate::pipeline::{
    Caller, DeviceView, EvaluationService, GateBench, GateFault, GateProgress, Gravity,
    ServiceError, Submission, run_gate,
};
use crate::report::CompareResponse;
use crate::worker::protocol::DeviceKind;

/// A place that compares.
pub(super) enum Bench<'a> {
    /// This process.
    Local(Box<Session>),
    /// A server.
    Remote(RemoteBench<'a>),
}

impl<'a> Bench<'a> {
    /// Starts the pipeline here unless a server is named.
    pub(super) fn open(
        target: &'a Target,
        patience_s: f64,
        config: &Config,
        terminal: Terminal,
    ) -> Result<Self, CliError> {
        Ok(match &target.server {
            Some(server) => {
                // An address that is none is told before anything else is done.
                remote::endpoint(server, "/compare")?;
                let patience = Patience::new(patience_s, terminal);
                Self::Remote(RemoteBench { target, server, patience })
            }
            None => Self::Local(Box::new(Session::start(config)?)),
        })
    }

    /// Takes a suite to its report.
    pub(super) fn gate(
        &mut self,
        plan: GatePlan,
        progress: &mut dyn GateProgress,
    ) -> Result<GateReport, GateFault<CliError>> {
        match self {
            Self::Local(session) => {
                let gated = session.call(|service| async move {
                    let counts = only_counts(service.as_ref());
                    let mut bench = LocalBench(service);
                    Ok(run_gate(plan, &mut bench, counts, progress).await)
                });
                gated.unwrap_or_else(|error| Err(GateFault::Bench(error)))
            }
            Self::Remote(bench) => {
                let runtime = local::runtime().map_err(GateFault::Bench)?;
                runtime.block_on(run_gate(plan, bench, false, progress))
            }
        }
    }

    /// A stored baseline.
    pub(super) fn baseline(&mut self, name: &str) -> Result<Baseline, CliError> {
        let name = name.to_owned();
        match self {
            Self::Local(session) => session.call(|service| async move {
                Ok(service.baseline(&name, &Caller::local()).await?)
            }),
            Self::Remote(bench) => {
                let (target, server) = (bench.target, bench.server);
                let route = format!("/baselines/{name}");
                Ok(bench.patience.with(|| remote::ask(target, server, Method::GET, &route))?.1)
            }
        }
    }

    /// Keeps the run in this machine's history. A server has the history of its own jobs.
    pub(super) fn remember(&mut self, report: &GateReport) -> Result<(), CliError> {
        match self {
            Self::Local(session) => {
                let report = report.clone();
                session.call(|service| async move {
                    Ok(service.remember(report, &Caller::local()).await?)
                })
            }
            Self::Remote(_) => Ok(()),
        }
    }

    /// Makes one comparison.
    pub(super) fn compare(&mut self, request: CompareRequest) -> Result<CompareResponse, CliError> {
        match self {
            Self::Local(session) => {
                session.call(|service| async move { LocalBench(service).compare(request).await })
            }
            Self::Remote(bench) => bench.post(&request),
        }
    }
}

/// Whether it is known already that there is nothing but the emulated device.
fn only_counts(service: &dyn EvaluationService) -> bool {
    let status = service.status();
    let emulated = |view: &DeviceView| view.device.kind == DeviceKind::Emulator;
    !status.devices.is_empty() && status.devices.iter().all(emulated)
}

/// The pipeline of this process.
struct LocalBench(Arc<dyn EvaluationService>);

impl GateBench for LocalBench {
    type Error = CliError;

    async fn compare(&mut self, request: CompareRequest) -> Result<CompareResponse, CliError> {
        Ok(self.0.compare(request, Submission::local()).await?)
    }

    fn gravity(error: &CliError) -> Gravity {
        gravity(error)
    }

    fn quoted(error: &CliError) -> String {
        error.render()
    }
}

/// A server.
pub(super) struct RemoteBench<'a> {
    target: &'a Target,
    server: &'a str,
    patience: Patience,
}

impl RemoteBench<'_> {
    fn post(&mut self, request: &CompareRequest) -> Result<CompareResponse, CliError> {
        let body = json::tree("comparison", request)?;
        let (target, server) = (self.target, self.server);
        Ok(self.patience.with(|| remote::post(target, server, "/compare", &body))?.1)
    }
}

impl GateBench for RemoteBench<'_> {
    type Error = CliError;

    /// It blocks: there is nothing else for this process to do meanwhile.
    async fn compare(&mut self, request: CompareRequest) -> Result<CompareResponse, CliError> {
        self.post(&request)
    }

    fn gravity(error: &CliError) -> Gravity {
        gravity(error)
    }

    fn quoted(error: &CliError) -> String {
        error.render()
    }
}

/// What an error says beyond its case.
fn gravity(error: &CliError) -> Gravity {
    match error {
        CliError::Interrupted => Gravity::Run,
        CliError::Remote(RemoteError::Refused {
            status: 401 | 403 | 404 | 429 | 502..=504,
            ..
        }) => Gravity::Suite,
        CliError::Remote(RemoteError::Refused { .. }) => Gravity::Case,
        CliError::Remote(_) => Gravity::Suite,
        CliError::Service(ServiceError::Unavailable(_) | ServiceError::ShuttingDown) => {
            Gravity::Suite
        }
        _ => Gravity::Case,
    }
}
