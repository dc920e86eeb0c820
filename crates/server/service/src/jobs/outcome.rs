//! Outcomes of jobs, and their conversion to end states, stored reports and error codes.

use std::time::Duration;

use serde::Serialize;

use super::live::Stop;
use crate::error::ServiceError;
use crate::records::{self, CodecError};
use warpgauge_executor::{ExecError, JobOutcome};
use warpgauge_gate::SuiteVerdict;
use warpgauge_model::{ErrorCode, FailureCode, JobKind, JobState};
use warpgauge_report::KernelVerdict;
use warpgauge_store::{JobEnding, JobError, NewReport};
use warpgauge_telemetry::{EndState, LabelKind, telemetry};

/// Returns the end state of a job with this outcome.
fn state(outcome: &JobOutcome) -> JobState {
    match outcome {
        JobOutcome::Evaluated(report)
            if report
                .failure
                .as_ref()
                .is_some_and(|failure| failure.code == FailureCode::Timeout) =>
        {
            JobState::TimedOut
        }
        _ => JobState::Completed,
    }
}

/// Returns the report for the store. If `whole` is set, it includes the content of outputs and the
/// reports of a sweep's points. Otherwise only the waiting caller receives these.
fn report(outcome: &mut JobOutcome, kind: JobKind, whole: bool) -> Result<NewReport, CodecError> {
    match outcome {
        JobOutcome::Evaluated(report) if whole => records::report(kind, report),
        JobOutcome::Swept(report) if whole => records::report(kind, report),
        JobOutcome::Compared(report) => records::report(kind, report),
        JobOutcome::Gated(report) => records::report(kind, report),
        JobOutcome::Evaluated(report) => without(kind, &mut **report, |report| {
            report.outputs.values_mut().map(|output| &mut output.data_b64).collect()
        }),
        JobOutcome::Swept(report) => without(kind, &mut **report, |report| {
            report.points.iter_mut().map(|point| &mut point.report).collect()
        }),
    }
}

/// Encodes a report without some of its parts. The parts are moved out while the report is encoded,
/// because they can take most of the memory, and a copy would double it.
fn without<R: Serialize, T>(
    kind: JobKind,
    report: &mut R,
    parts: impl Fn(&mut R) -> Vec<&mut Option<T>>,
) -> Result<NewReport, CodecError> {
    let taken: Vec<_> = parts(report).into_iter().map(Option::take).collect();
    let kept = records::report(kind, report);
    for (part, taken) in parts(report).into_iter().zip(taken) {
        *part = taken;
    }
    kept
}

/// Returns the stored end of a job with this outcome.
pub(super) fn ending(
    kind: JobKind,
    outcome: &mut Result<JobOutcome, ServiceError>,
    whole: bool,
) -> Result<JobEnding, CodecError> {
    Ok(match outcome {
        Ok(outcome) => JobEnding {
            state: state(outcome),
            report: Some(NewReport {
                verdict: outcome.verdict().map(KernelVerdict::name),
                decision: outcome.decision().map(SuiteVerdict::name),
                worst_case: outcome.worst_case().and_then(|case| serde_json::to_string(&case).ok()),
                kernel: outcome.kernel().map(str::to_owned),
                median_ns: outcome.median_ms().map(|ms| (ms * 1e6).round() as i64),
                ..report(outcome, kind, whole)?
            }),
            error: None,
            points: Vec::new(),
        },
        Err(ServiceError::Exec(ExecError::ShuttingDown)) => {
            let message = "the server shut down before the job ended";
            without_report(JobState::Cancelled, ErrorCode::ShuttingDown, message)
        }
        Err(error) => without_report(JobState::Failed, code_of(error), &error.to_string()),
    })
}

/// Logs the end of a job in one line.
pub(super) fn log(job: &str, kind: JobKind, ending: &JobEnding, took: Duration) {
    let report = ending.report.as_ref();
    tracing::info!(
        job,
        kind = kind.name(),
        state = ending.state.name(),
        verdict = report.and_then(|report| report.verdict),
        decision = report.and_then(|report| report.decision),
        kernel = report.and_then(|report| report.kernel.as_deref()),
        median_ms = report.and_then(|report| report.median_ns).map(|ns| ns as f64 / 1e6),
        seconds = took.as_secs_f64(),
        code = ending.error.as_ref().map(|error| error.code.as_str()),
        "a job ended"
    );
}

/// Logs and counts the end of a job for which this process ran no task.
pub(super) fn ended_without_task(job: &str, state: EndState, age: Duration) {
    tracing::info!(job, state = state.name(), seconds = age.as_secs_f64(), "a job ended");
    telemetry().job_ended(state, age);
}

/// Returns the stored end of a stopped job. Returns `None` if another process holds the job and
/// writes its end.
pub(super) fn stopped(why: Stop) -> Option<JobEnding> {
    let (code, message) = match why {
        Stop::Cancelled => (ErrorCode::Cancelled, "the job was cancelled"),
        Stop::CallerGone => (ErrorCode::CallerGone, "the caller disconnected before the job ended"),
        Stop::Lost => return None,
    };
    Some(without_report(JobState::Cancelled, code, message))
}

/// Returns the stored end of a job whose request cannot be read.
pub(super) fn unreadable(error: &CodecError) -> JobEnding {
    let message = format!("the stored request cannot be used: {error}");
    let code = match error {
        CodecError::Failed(_) => ErrorCode::Unavailable,
        CodecError::Newer { .. } | CodecError::Unreadable(_) => ErrorCode::UnreadableRequest,
    };
    without_report(JobState::Failed, code, &message)
}

fn without_report(state: JobState, code: ErrorCode, message: &str) -> JobEnding {
    let error = JobError { code, message: message.to_owned() };
    JobEnding { state, report: None, error: Some(error), points: Vec::new() }
}

/// Returns the stable error code of a job that failed.
fn code_of(error: &ServiceError) -> ErrorCode {
    match error {
        ServiceError::Exec(error) => code_of_executor(error),
        ServiceError::QueueFull { .. } => ErrorCode::QueueFull,
        ServiceError::Conflict { code, .. } => code.clone(),
        ServiceError::NoSuchBaseline(_) => ErrorCode::NoSuchBaseline,
        ServiceError::NoSuchMatrix(_) => ErrorCode::NoSuchMatrix,
        ServiceError::NoSuchTensor(_) => ErrorCode::NoSuchTensor,
        ServiceError::TensorGone { code, .. } => code.clone(),
        ServiceError::Named { error, .. } => code_of(error),
        // These errors are answers to requests. If a job ends with one of them, there is a bug.
        ServiceError::NoSuchJob(_)
        | ServiceError::QuotaExceeded { .. }
        | ServiceError::IdempotencyConflict { .. }
        | ServiceError::Cancelled { .. }
        | ServiceError::JobFailed { .. }
        | ServiceError::Forbidden(_)
        | ServiceError::NoSuchLease(_)
        | ServiceError::NoArtifact { .. }
        | ServiceError::ArtifactGone { .. } => ErrorCode::Internal,
    }
}

fn code_of_executor(error: &ExecError) -> ErrorCode {
    match error {
        ExecError::Invalid(_) => ErrorCode::InvalidContract,
        ExecError::QueueFull { .. } => ErrorCode::QueueFull,
        ExecError::ConditionsDiffer(_) => ErrorCode::ConditionsDiffer,
        ExecError::NotOffered(_) => ErrorCode::UnmetRequirements,
        ExecError::Unavailable(_) | ExecError::RunnersLost(_) => ErrorCode::Unavailable,
        // A job that ends because of the shutdown is cancelled with a separate code, and does not
        // reach this point.
        ExecError::ShuttingDown | ExecError::Internal { .. } => ErrorCode::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{Evaluate, response_of, restore};
    use warpgauge_model::FailureStage;
    use warpgauge_report::EvaluateResponse;
    use warpgauge_store::StoredReport;

    fn report() -> EvaluateResponse {
        let text = include_str!("../../../../../openapi/examples/report.json");
        let mut report: EvaluateResponse = serde_json::from_str(text).unwrap();
        for output in report.outputs.values_mut() {
            output.data_b64 = Some("AAAA".to_owned());
        }
        assert!(has_content(&report));
        report
    }

    fn has_content(report: &EvaluateResponse) -> bool {
        report.outputs.values().any(|output| output.data_b64.is_some())
    }

    fn restored(ending: JobEnding) -> EvaluateResponse {
        let report = ending.report.unwrap();
        let stored = StoredReport { version: report.version, kind: report.kind, body: report.body };
        response_of::<Evaluate>(restore(JobKind::Evaluate, &stored).unwrap()).unwrap()
    }

    #[test]
    fn content_stays_where_nobody_waited() {
        let mut outcome = Ok(JobOutcome::Evaluated(Box::new(report())));
        let whole = restored(ending(JobKind::Evaluate, &mut outcome, true).unwrap());
        assert_eq!(serde_json::to_value(&whole).unwrap(), serde_json::to_value(report()).unwrap());
        let rest = restored(ending(JobKind::Evaluate, &mut outcome, false).unwrap());
        assert!(!has_content(&rest));
        assert_eq!(rest.outputs.len(), whole.outputs.len());
        // The waiting caller gets the content.
        let answer = response_of::<Evaluate>(outcome.unwrap()).unwrap();
        assert_eq!(serde_json::to_value(&answer).unwrap(), serde_json::to_value(report()).unwrap());
    }

    #[test]
    fn every_end_has_its_state_and_code() {
        let of = |mut outcome| {
            let ending = ending(JobKind::Evaluate, &mut outcome, true).unwrap();
            (ending.state, ending.error.map(|error| error.code))
        };
        assert_eq!(of(Ok(JobOutcome::Evaluated(Box::new(report())))), (JobState::Completed, None));
        let mut late = report();
        let failure = |code| {
            let (stage, message) = (FailureStage::Execute, String::new());
            Some(warpgauge_report::FailureReport { stage, code, message })
        };
        late.failure = failure(FailureCode::ShuttingDown);
        assert!(JobOutcome::Evaluated(Box::new(late.clone())).was_stopped());
        late.failure = failure(FailureCode::Timeout);
        assert_eq!(of(Ok(JobOutcome::Evaluated(Box::new(late)))).0, JobState::TimedOut);
        let (state, code) = of(Err(ServiceError::shutting_down()));
        assert_eq!((state, code), (JobState::Cancelled, Some(ErrorCode::ShuttingDown)));
        let (state, code) = of(Err(ServiceError::unavailable("x".to_owned())));
        assert_eq!((state, code), (JobState::Failed, Some(ErrorCode::Unavailable)));
        let gone =
            stopped(Stop::CallerGone).map(|ending| (ending.state, ending.error.unwrap().code));
        assert_eq!(gone, Some((JobState::Cancelled, ErrorCode::CallerGone)));
        assert_eq!(stopped(Stop::Lost), None);
    }
}
