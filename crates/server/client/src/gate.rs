//! Runs a suite of the gate on a server. It is one job, which the client follows to its end across
//! broken connections and restarts of the server.

use std::sync::Arc;

use serde::Deserialize;

use warpgauge_gate::GateRequest;
use warpgauge_gate::report::GateReport;
use warpgauge_job_views::{JobEvent, JobView};
use warpgauge_model::ErrorCode;

use crate::attend::{JobWaiter, Message, Tell, WaitEvent, attended};
use crate::call::Call;
use crate::connection::{ANSWER_TIMEOUT, Connection, json};
use crate::error::{ClientError, EndedJob};
use crate::follow::follow;
use crate::jobs::RemoteJobs;
use crate::patience::RetryPolicy;

/// The part of the response of `POST /gate?wait=false` that the client needs.
#[derive(Deserialize)]
struct Accepted {
    job_id: String,
}

/// Runs a suite, and returns its report.
pub(crate) fn gate<E: From<ClientError>>(
    connection: &Connection,
    request: &GateRequest,
    mut patience: RetryPolicy,
    attendant: JobWaiter<'_, E>,
) -> Result<GateReport, E> {
    let cases = request.cases.len();
    let call = Call::new(connection, "/gate?wait=false", json("suite", request)?, ANSWER_TIMEOUT);
    let work = move |call: &Arc<Call>, tell: &Tell<GateReport>| {
        carry_out(call, cases, &mut patience, tell)
    };
    attended(call, work, attendant)
}

/// Submits the job, follows it, and fetches its report.
fn carry_out(
    call: &Call,
    cases: usize,
    patience: &mut RetryPolicy,
    tell: &Tell<GateReport>,
) -> Result<GateReport, ClientError> {
    let accepted = patience.with(|| call.post::<Accepted>());
    let id = accepted.map_err(|error| refused(error, cases))?.value.job_id;
    call.found(id.clone());
    // After an interrupt, the receiver has been dropped.
    let tell = |news| tell.send(Message::Told(news)).map_err(|_| ClientError::Interrupted);
    tell(WaitEvent::Accepted(id.clone()))?;
    let server = call.connection.base();
    let lost = |error| match error {
        ClientError::Interrupted => error,
        source => {
            let (job, server) = (id.clone(), server.to_owned());
            ClientError::GateLost { job, server, source: Box::new(source) }
        }
    };
    let on_event = &mut |event: &JobEvent, _: &str| tell(WaitEvent::Job(event.clone()));
    follow(&call.connection, &id, None, patience, on_event).map_err(lost)?;
    let jobs = RemoteJobs { connection: &call.connection };
    let fetched = patience.with(|| jobs.get(&id)).map_err(lost)?;
    report(fetched.value, server)
}

/// Returns the report of a job that has ended.
fn report(view: JobView, server: &str) -> Result<GateReport, ClientError> {
    let Some(report) = view.gate else {
        return Err(ClientError::GateEnded(Box::new(EndedJob {
            job: view.job_id,
            server: server.to_owned(),
            how: view.state.name(),
            code: view.code.unwrap_or(ErrorCode::Unknown),
            message: view.error.unwrap_or_else(|| "the server gives no reason".to_owned()),
        })));
    };
    Ok(*report)
}

/// Converts a rejection. If the suite is too large, the new error contains a remedy.
fn refused(error: ClientError, cases: usize) -> ClientError {
    match error {
        ClientError::Refused { status: 413, .. } => {
            ClientError::SuiteTooLarge { cases, source: Box::new(error) }
        }
        other => other,
    }
}
