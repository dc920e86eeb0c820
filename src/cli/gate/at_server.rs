//! A run of the gate at a server: one job there, followed until it ends, wherever connections break
//! and servers restart.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

use super::GateError;
use crate::cli::args::Target;
use crate::cli::jobs::stream;
use crate::cli::patience::Patience;
use crate::cli::remote::{self, Method, RemoteError};
use crate::cli::signals::EndSignals;
use crate::cli::terminal::Terminal;
use crate::cli::{CliError, json, local};
use crate::gate::GateRequest;
use crate::gate::report::GateReport;
use crate::report::{CancelReport, JobEvent, JobView};

/// How long an interrupted run waits for the server to have cancelled its job.
const CANCELLING: Duration = Duration::from_secs(10);

/// News between the thread that talks to the server and the one that shows them, at most.
const NEWS: usize = 64;

/// A server that gates.
#[derive(Debug, Clone)]
pub(in crate::cli) struct AtServer {
    target: Target,
    url: String,
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

impl AtServer {
    /// # Errors
    /// Where `url` is no address.
    pub(super) fn new(
        target: &Target,
        url: &str,
        patience_s: f64,
        terminal: Terminal,
    ) -> Result<Self, CliError> {
        remote::endpoint(url, "/gate")?;
        Ok(Self { target: target.clone(), url: url.to_owned(), patience_s, terminal })
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
        let body = json::tree("suite", request)?;
        let (tell, mut news) = mpsc::channel(NEWS);
        let runtime = local::runtime()?;
        let mut signals = runtime.block_on(async { EndSignals::listen() })?;
        let at = self.clone();
        // Its calls block; whoever interrupts them leaves them behind.
        let work = std::thread::spawn(move || at.carry_out(&body, &tell));
        let interrupted = runtime.block_on(async {
            let mut job = None;
            loop {
                tokio::select! {
                    biased;
                    () = signals.next() => break Some(job),
                    told = news.recv() => match told {
                        Some(News::Accepted(id)) => {
                            // Beside a bar it would stay; the report names it as well.
                            if !self.terminal.interactive {
                                let line = format!("warpgauge: job {id} at {}", self.url);
                                self.terminal.note(&line);
                            }
                            job = Some(id);
                        }
                        Some(News::Event(event)) => on_event(&event),
                        None => break None,
                    },
                }
            }
        });
        if let Some(job) = interrupted {
            runtime.block_on(self.cancel(job, &mut news, &mut signals));
            runtime.shutdown_background();
            return Err(CliError::Interrupted);
        }
        let panicked = |_| CliError::Internal("following a job panicked".to_owned());
        work.join().map_err(panicked)?
    }

    /// Hands the job in, follows it, and fetches its report.
    fn carry_out(&self, body: &Value, tell: &mpsc::Sender<News>) -> Result<GateReport, CliError> {
        let mut patience = self.patience();
        // Sent again after a broken connection, it is the same job again.
        let key = uuid::Uuid::new_v4().to_string();
        let route = "/gate?wait=false";
        let accepted: Accepted = patience
            .with(|| remote::post_once(&self.target, &self.url, route, body, &key))
            .map_err(|error| refused(error, body))?;
        let id = accepted.job_id;
        // Whoever is interrupted listens no more.
        let _ = tell.blocking_send(News::Accepted(id.clone()));
        let on_event = &mut |event: &JobEvent, _: &str| {
            let _ = tell.blocking_send(News::Event(event.clone()));
            Ok(())
        };
        let lost = |error| match error {
            CliError::Remote(source) => {
                let (job, server) = (id.clone(), self.url.clone());
                GateError::Lost { job, server, source: Box::new(source) }.into()
            }
            other => other,
        };
        stream::follow(&self.target, &self.url, &id, None, &mut patience, on_event)
            .map_err(lost)?;
        let route = remote::job_route(&id, "");
        let fetched = patience.with(|| remote::ask(&self.target, &self.url, Method::GET, &route));
        let (_, view): (_, JobView) = fetched.map_err(CliError::from).map_err(lost)?;
        self.report(view)
    }

    /// The report of a job that ended.
    fn report(&self, view: JobView) -> Result<GateReport, CliError> {
        let Some(report) = view.gate else {
            return Err(GateError::Ended {
                job: view.job_id,
                server: self.url.clone(),
                how: view.state.name(),
                code: view.code.unwrap_or_else(|| "unknown".to_owned()),
                message: view.error.unwrap_or_else(|| "the server gives no reason".to_owned()),
            }
            .into());
        };
        Ok(*report)
    }

    /// Cancels the job at the server, or says that it could not be. A second signal leaves it there.
    async fn cancel(
        &self,
        job: Option<String>,
        news: &mut mpsc::Receiver<News>,
        signals: &mut EndSignals,
    ) {
        let cancelled = async {
            let id = match job {
                Some(id) => id,
                // It is being handed in.
                None => loop {
                    match news.recv().await {
                        Some(News::Accepted(id)) => break id,
                        Some(News::Event(_)) => {}
                        // It never was a job.
                        None => return Ok(None),
                    }
                },
            };
            let (at, route) = (self.clone(), remote::job_route(&id, ""));
            let ask = move || {
                let (method, limit) = (Method::DELETE, CANCELLING);
                remote::ask_within(&at.target, &at.url, method, &route, limit)
            };
            let answer = tokio::task::spawn_blocking(ask).await;
            match answer {
                Ok(Ok((_, CancelReport { state, .. }))) => Ok(Some((id, state))),
                Ok(Err(error)) => Err(format!("could not cancel job {id}: {error}")),
                Err(error) => Err(format!("could not cancel job {id}: {error}")),
            }
        };
        let outcome = tokio::select! {
            biased;
            () = signals.next() => Err("interrupted again".to_owned()),
            outcome = tokio::time::timeout(CANCELLING, cancelled) => outcome.unwrap_or_else(|_| {
                Err(format!("no answer within {} s", CANCELLING.as_secs()))
            }),
        };
        let url = &self.url;
        match outcome {
            Ok(Some((id, state))) => {
                self.terminal.note(&format!("warpgauge: job {id} at {url} is {}", state.name()));
            }
            Ok(None) => {}
            Err(why) => self.terminal.note(&format!(
                "warpgauge: {why}; the run may go on there: `warpgauge jobs list --kind gate \
                 --server {url}` and `warpgauge jobs cancel JOB` end it"
            )),
        }
    }
}

/// Why a suite was not taken, and what to do where it is its size.
fn refused(error: RemoteError, body: &Value) -> CliError {
    let RemoteError::Refused { status: 413, .. } = &error else { return error.into() };
    let cases = body.get("cases").and_then(Value::as_array).map_or(0, Vec::len);
    GateError::TooLarge { cases, source: Box::new(error) }.into()
}
