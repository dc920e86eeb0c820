//! A run of the gate at a server: one job there, followed until it ends, wherever connections break
//! and servers restart.

use std::sync::Arc;

use serde::Deserialize;

use super::GateError;
use crate::cli::args::Target;
use crate::cli::at_server::{Call, Message, Tell, attended};
use crate::cli::jobs::stream;
use crate::cli::patience::Patience;
use crate::cli::remote::{self, ANSWER_TIMEOUT, Method, RemoteError};
use crate::cli::terminal::Terminal;
use crate::cli::{CliError, json};
use crate::gate::GateRequest;
use crate::gate::report::GateReport;
use crate::report::{JobEvent, JobView};

/// A server that gates.
pub(in crate::cli) struct AtServer<'a> {
    pub(super) target: &'a Target,
    pub(super) url: &'a str,
    patience_s: f64,
    terminal: Terminal,
}

/// What the thread tells that talks to the server.
enum News {
    /// The run is this job.
    Accepted(String),
    Event(JobEvent),
}

/// What of the answer of `POST /gate?wait=false` is needed.
#[derive(Deserialize)]
struct Accepted {
    job_id: String,
}

impl<'a> AtServer<'a> {
    /// # Errors
    /// Where `url` is no address.
    pub(super) fn new(
        target: &'a Target,
        url: &'a str,
        patience_s: f64,
        terminal: Terminal,
    ) -> Result<Self, CliError> {
        remote::endpoint(url, "/gate")?;
        Ok(Self { target, url, patience_s, terminal })
    }

    /// A new stretch of patience.
    pub(super) fn patience(&self) -> Patience {
        Patience::new(self.patience_s, self.terminal)
    }

    /// Takes a suite to its report. SIGINT and SIGTERM cancel the job.
    pub(super) fn gate(
        &self,
        request: &GateRequest,
        on_event: &mut dyn FnMut(&JobEvent),
    ) -> Result<GateReport, CliError> {
        let (body, cases) = (json::tree("suite", request)?, request.cases.len());
        let route = "/gate?wait=false";
        let call = Call::new(self.target, self.url, route, &body, ANSWER_TIMEOUT)?;
        let patience = self.patience();
        let work = move |call: &Arc<Call>, tell: &Tell<News, GateReport>| {
            carry_out(call, cases, patience, tell)
        };
        attended(call, work, &mut |news| {
            match news {
                // Beside a bar it would stay; the report names it as well.
                News::Accepted(id) if !self.terminal.interactive => {
                    self.terminal.note(&format!("warpgauge: job {id} at {}", self.url));
                }
                News::Accepted(_) => {}
                News::Event(event) => on_event(&event),
            }
            Ok(())
        })
    }
}

/// Hands the job in, follows it, and fetches its report.
fn carry_out(
    call: &Call,
    cases: usize,
    mut patience: Patience,
    tell: &Tell<News, GateReport>,
) -> Result<GateReport, CliError> {
    let accepted = patience.with(|| call.post());
    let (_, Accepted { job_id: id }) = accepted.map_err(|error| refused(error, cases))?;
    call.found(id.clone());
    // Whoever was interrupted listens no more.
    let tell = |news| tell.send(Message::Told(news)).map_err(|_| CliError::Interrupted);
    tell(News::Accepted(id.clone()))?;
    let (target, server) = (&call.target, &call.server);
    let lost = |error| match error {
        CliError::Remote(source) => {
            let (job, server) = (id.clone(), server.clone());
            GateError::Lost { job, server, source: Box::new(source) }.into()
        }
        other => other,
    };
    let on_event = &mut |event: &JobEvent, _: &str| tell(News::Event(event.clone()));
    stream::follow(target, server, &id, None, &mut patience, on_event).map_err(lost)?;
    let route = remote::job_route(&id, "");
    let fetched = patience.with(|| remote::ask(target, server, Method::GET, &route));
    let (_, view): (_, JobView) = fetched.map_err(CliError::from).map_err(lost)?;
    report(view, server)
}

/// The report of a job that ended.
fn report(view: JobView, server: &str) -> Result<GateReport, CliError> {
    let Some(report) = view.gate else {
        return Err(GateError::Ended {
            job: view.job_id,
            server: server.to_owned(),
            how: view.state.name(),
            code: view.code.unwrap_or_else(|| "unknown".to_owned()),
            message: view.error.unwrap_or_else(|| "the server gives no reason".to_owned()),
        }
        .into());
    };
    Ok(*report)
}

/// Why a suite was not taken, and what to do where it is its size.
fn refused(error: RemoteError, cases: usize) -> CliError {
    let RemoteError::Refused { status: 413, .. } = &error else { return error.into() };
    GateError::TooLarge { cases, source: Box::new(error) }.into()
}
