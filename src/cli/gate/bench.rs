//! Where a suite is run: in this process, or at a server.

use super::at_server::AtServer;
use crate::cli::args::Target;
use crate::cli::local::Session;
use crate::cli::patience::Patience;
use crate::cli::terminal::Terminal;
use crate::cli::watched::with_news;
use crate::cli::{CliError, json, remote};
use crate::config::Config;
use crate::contract::CompareRequest;
use crate::gate::report::GateReport;
use crate::gate::{BaselineSummary, GateRequest, NewBaseline, Promotion};
use crate::pipeline::{Caller, Submission};
use crate::report::{CompareResponse, JobEvent};

/// A place that runs suites.
pub(in crate::cli) enum Bench<'a> {
    /// This process.
    Local(Box<Session>),
    /// A server.
    Remote { at: AtServer<'a>, patience: Patience },
}

impl<'a> Bench<'a> {
    /// Starts the pipeline here unless a server is named.
    pub(in crate::cli) fn open(
        target: &'a Target,
        patience_s: f64,
        config: &Config,
        terminal: Terminal,
    ) -> Result<Self, CliError> {
        Ok(match &target.server {
            Some(url) => {
                // An address that is none is told before anything else is done.
                let at = AtServer::new(target, url, patience_s, terminal)?;
                let patience = at.patience();
                Self::Remote { at, patience }
            }
            None => Self::Local(Box::new(Session::start(config)?)),
        })
    }

    /// Takes a suite to its report: one job, wherever it is.
    pub(super) fn gate(
        &mut self,
        request: GateRequest,
        on_event: &mut (dyn FnMut(&JobEvent) + Send),
    ) -> Result<GateReport, CliError> {
        match self {
            Self::Local(session) => session.call(|service| async move {
                let work = |submission| service.gate(request, submission);
                with_news(service.as_ref(), on_event, work).await
            }),
            Self::Remote { at, .. } => at.gate(&request, on_event),
        }
    }

    /// Makes the candidate of a run that passed a baseline.
    pub(super) fn promote(
        &mut self,
        name: &str,
        job_id: &str,
    ) -> Result<BaselineSummary, CliError> {
        let (name, job_id) = (name.to_owned(), job_id.to_owned());
        match self {
            Self::Local(session) => session.call(|service| async move {
                Ok(service.promote(&name, &job_id, &Caller::local()).await?)
            }),
            Self::Remote { at, patience } => {
                let body = json::tree("promotion", &Promotion { job_id })?;
                let route = format!("/baselines/{name}/promote");
                Ok(patience.with(|| remote::post(at.target, at.url, &route, &body))?.1)
            }
        }
    }

    /// Stores a baseline; each of its cases is run once before.
    pub(in crate::cli) fn store(&mut self, new: NewBaseline) -> Result<BaselineSummary, CliError> {
        match self {
            Self::Local(session) => session.call(|service| async move {
                Ok(service.put_baseline(new, &Caller::local()).await?)
            }),
            Self::Remote { at, patience } => {
                let body = json::tree("baseline", &new)?;
                Ok(patience.with(|| remote::post(at.target, at.url, "/baselines", &body))?.1)
            }
        }
    }

    /// Makes one comparison.
    pub(super) fn compare(&mut self, request: CompareRequest) -> Result<CompareResponse, CliError> {
        match self {
            Self::Local(session) => session.call(|service| async move {
                Ok(service.compare(request, Submission::local()).await?)
            }),
            Self::Remote { at, patience } => {
                let body = json::tree("comparison", &request)?;
                Ok(patience.with(|| remote::post(at.target, at.url, "/compare", &body))?.1)
            }
        }
    }
}
