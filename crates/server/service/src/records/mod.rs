//! Jobs as they are stored: their rows, requests and reports.
//!
//! `codec` encodes and decodes requests and reports. `kinds` defines the types of both for each
//! kind of job.

mod codec;
mod kinds;

pub(super) use codec::{CodecError, decoded, encode, report, sweep_view};
pub(super) use kinds::{Compare, Evaluate, Execute, Gate, Sweep, TypedKind, response_of};

use super::error::{self, ServiceError, refused};
use super::submission::{Caller, JobRequest};
use warpgauge_executor::JobOutcome;
use warpgauge_gate::GateRequest;
use warpgauge_gate::report::GateReport;
use warpgauge_model::{ErrorCode, JobKind, JobState};
use warpgauge_store::{JobRow, Store, StoredReport, Visibility};

/// Returns the jobs that a caller may see.
pub(super) fn visibility(caller: &Caller) -> Visibility<'_> {
    if caller.admin { Visibility::All } else { Visibility::Owner(&caller.owner) }
}

/// Returns the row of a job that the caller may see.
///
/// # Errors
/// [`ServiceError::NoSuchJob`] if there is no such job.
pub(super) async fn row(store: &Store, id: &str, caller: &Caller) -> Result<JobRow, ServiceError> {
    let row = store.jobs().find(id, visibility(caller)).await.map_err(refused)?;
    row.ok_or_else(|| ServiceError::NoSuchJob(id.to_owned()))
}

/// Decodes the outcome in a stored report.
pub(super) fn restore(kind: JobKind, stored: &StoredReport) -> Result<JobOutcome, CodecError> {
    Ok(match kind {
        JobKind::Evaluate | JobKind::Execute => JobOutcome::Evaluated(codec::read(stored)?),
        JobKind::Compare => JobOutcome::Compared(codec::read(stored)?),
        JobKind::Sweep => JobOutcome::Swept(codec::read(stored)?),
        JobKind::Gate => JobOutcome::Gated(codec::read(stored)?),
    })
}

/// Returns the outcome of a job that has ended.
///
/// # Errors
/// The reason why the job has no report.
pub(super) async fn outcome(store: &Store, row: JobRow) -> Result<JobOutcome, ServiceError> {
    if let Some(stored) = store.jobs().report(&row.id).await.map_err(refused)? {
        return restore(row.kind, &stored)
            .map_err(|error| error::internal("reading a stored report", &error));
    }
    let job_id = row.id;
    match row.state {
        JobState::Cancelled if row.error_code == Some(ErrorCode::ShuttingDown) => {
            Err(ServiceError::shutting_down())
        }
        JobState::Cancelled => Err(ServiceError::Cancelled { job_id }),
        JobState::Failed | JobState::Completed | JobState::TimedOut => {
            Err(ServiceError::JobFailed {
                job_id,
                code: row.error_code.unwrap_or(ErrorCode::Failed),
                message: row.error.unwrap_or_else(|| "no reason was stored".to_owned()),
            })
        }
        // The events end before the job only if the service shuts down.
        _ => Err(ServiceError::shutting_down()),
    }
}

/// Returns the request and the report of a gate job, provided that the job has ended.
pub(super) async fn gate_job(
    store: &Store,
    id: &str,
    caller: &Caller,
) -> Result<(GateRequest, GateReport), ServiceError> {
    let row = row(store, id, caller).await?;
    let no = |why: &str| ServiceError::Conflict {
        code: ErrorCode::NotPromotable,
        message: format!("job {id} {why}"),
    };
    if row.kind != JobKind::Gate {
        return Err(no("is not a run of the gate"));
    }
    if !row.state.is_end() {
        return Err(no("has not ended"));
    }
    let report = response_of::<Gate>(outcome(store, row).await?)?;
    let request = store.jobs().request(id).await.map_err(refused)?;
    let request = request.ok_or_else(|| no("is no longer stored"))?;
    let request = codec::decoded(JobKind::Gate, request)
        .await
        .map_err(|error| error::internal("reading a stored request", &error))?;
    match request {
        JobRequest::Gate(request) => Ok((*request, report)),
        _ => Err(no("is not a run of the gate")),
    }
}
