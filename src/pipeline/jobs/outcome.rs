//! What a job came to: its answer, or why there is none; and how the store keeps either.

use serde::Serialize;

use super::super::compare;
use super::super::error::{self, ServiceError};
use super::codec::{self, CodecError};
use super::live::Stop;
use crate::gate::report::GateReport;
use crate::report::{CompareResponse, EvaluateResponse, JobKind, JobState, SweepResponse};
use crate::store::{Ending, JobError, NewReport, StoredReport};

/// An answer.
#[derive(Debug, Clone)]
pub(in crate::pipeline) enum Outcome {
    /// Of an evaluation or of one untimed run.
    Evaluated(Box<EvaluateResponse>),
    /// Of a comparison.
    Compared(Box<CompareResponse>),
    /// Of a sweep.
    Swept(Box<SweepResponse>),
    /// Of a run of the gate.
    Gated(Box<GateReport>),
}

impl Outcome {
    pub(in crate::pipeline) fn evaluated(self) -> Result<EvaluateResponse, ServiceError> {
        match self {
            Self::Evaluated(report) => Ok(*report),
            _ => Err(another_kind()),
        }
    }

    pub(in crate::pipeline) fn compared(self) -> Result<CompareResponse, ServiceError> {
        match self {
            Self::Compared(report) => Ok(*report),
            _ => Err(another_kind()),
        }
    }

    pub(in crate::pipeline) fn swept(self) -> Result<SweepResponse, ServiceError> {
        match self {
            Self::Swept(report) => Ok(*report),
            _ => Err(another_kind()),
        }
    }

    pub(in crate::pipeline) fn gated(self) -> Result<GateReport, ServiceError> {
        match self {
            Self::Gated(report) => Ok(*report),
            _ => Err(another_kind()),
        }
    }

    /// Whether the end of the service, and not of the kernel, ended it.
    pub(super) fn was_stopped(&self) -> bool {
        let stopped = |report: &EvaluateResponse| {
            report.failure.as_ref().is_some_and(|failure| failure.code == "shutting_down")
        };
        match self {
            Self::Evaluated(report) => stopped(report),
            Self::Compared(report) => {
                stopped(&report.reference)
                    || report.candidates.iter().any(|one| stopped(&one.evaluation))
            }
            Self::Swept(_) | Self::Gated(_) => false,
        }
    }

    fn state(&self) -> JobState {
        match self {
            Self::Evaluated(report)
                if report.failure.as_ref().is_some_and(|failure| failure.code == "timeout") =>
            {
                JobState::TimedOut
            }
            _ => JobState::Completed,
        }
    }

    /// The report for the store. `whole`: with the content of outputs, and with the reports of a
    /// sweep's points; who waited has them already.
    fn report(&mut self, kind: JobKind, whole: bool) -> Result<NewReport, CodecError> {
        match self {
            Self::Evaluated(report) if whole => codec::report(kind, report),
            Self::Swept(report) if whole => codec::report(kind, report),
            Self::Compared(report) => codec::report(kind, report),
            Self::Gated(report) => codec::report(kind, report),
            Self::Evaluated(report) => without(kind, &mut **report, |report| {
                report.outputs.values_mut().map(|output| &mut output.data_b64).collect()
            }),
            Self::Swept(report) => without(kind, &mut **report, |report| {
                report.points.iter_mut().map(|point| &mut point.report).collect()
            }),
        }
    }

    /// An answer that was kept.
    pub(super) fn restore(kind: JobKind, stored: &StoredReport) -> Result<Self, CodecError> {
        Ok(match kind {
            JobKind::Evaluate | JobKind::Execute => Self::Evaluated(codec::read(stored)?),
            JobKind::Compare => Self::Compared(codec::read(stored)?),
            JobKind::Sweep => Self::Swept(codec::read(stored)?),
            JobKind::Gate => Self::Gated(codec::read(stored)?),
        })
    }

    /// The evaluation that stands for it where one is shown.
    pub(super) fn evaluation(&self) -> Option<EvaluateResponse> {
        match self {
            Self::Evaluated(report) => Some((**report).clone()),
            Self::Compared(report) => Some(compare::kept(report)),
            Self::Swept(_) | Self::Gated(_) => None,
        }
    }
}

/// A report without some of its parts. They are taken out meanwhile rather than left out of a copy: they
/// can be most of the memory.
fn without<R: Serialize, T>(
    kind: JobKind,
    report: &mut R,
    parts: impl Fn(&mut R) -> Vec<&mut Option<T>>,
) -> Result<NewReport, CodecError> {
    let taken: Vec<_> = parts(report).into_iter().map(Option::take).collect();
    let kept = codec::report(kind, report);
    for (part, taken) in parts(report).into_iter().zip(taken) {
        *part = taken;
    }
    kept
}

/// Two requests of different kinds never have the same hash, so this is a fault of ours.
fn another_kind() -> ServiceError {
    let error = std::io::Error::other("the stored job is of another kind than the request");
    error::internal("reading a report", &error)
}

/// How a job ends in the store.
pub(super) fn ending(
    kind: JobKind,
    outcome: &mut Result<Outcome, ServiceError>,
    whole: bool,
) -> Result<Ending, CodecError> {
    Ok(match outcome {
        Ok(outcome) => Ending {
            state: outcome.state(),
            report: Some(outcome.report(kind, whole)?),
            error: None,
            points: Vec::new(),
        },
        Err(ServiceError::ShuttingDown) => {
            let message = "the server shut down before the job ended";
            without_report(JobState::Cancelled, "shutting_down", message)
        }
        Err(error) => without_report(JobState::Failed, code_of(error), &error.to_string()),
    })
}

/// How a job ends that was stopped.
pub(super) fn stopped(why: Stop) -> Ending {
    let (code, message) = match why {
        Stop::Cancelled => ("cancelled", "the job was cancelled"),
        Stop::CallerGone => ("caller_gone", "the caller went away before the job ended"),
        Stop::Lost => ("lease_lost", "another process took the job over"),
    };
    without_report(JobState::Cancelled, code, message)
}

/// How a job ends that cannot be run at all.
pub(super) fn unreadable(error: &CodecError) -> Ending {
    let message = format!("the stored request cannot be used: {error}");
    let code = match error {
        CodecError::Failed(_) => "unavailable",
        CodecError::Newer { .. } | CodecError::Unreadable(_) => "unreadable_request",
    };
    without_report(JobState::Failed, code, &message)
}

fn without_report(state: JobState, code: &str, message: &str) -> Ending {
    let error = JobError { code: code.to_owned(), message: message.to_owned() };
    Ending { state, report: None, error: Some(error), points: Vec::new() }
}

/// Stable code of why a job failed.
fn code_of(error: &ServiceError) -> &'static str {
    match error {
        ServiceError::Invalid(_) => "invalid_contract",
        ServiceError::QueueFull { .. } => "queue_full",
        ServiceError::Unavailable(_) => "unavailable",
        ServiceError::Conflict { code, .. } => code,
        ServiceError::NoSuchBaseline(_) => "no_such_baseline",
        _ => "internal",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> EvaluateResponse {
        let text = include_str!("../../api/examples/report.json");
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

    fn restored(ending: Ending) -> EvaluateResponse {
        let report = ending.report.unwrap();
        let stored = StoredReport { version: report.version, kind: report.kind, body: report.body };
        Outcome::restore(JobKind::Evaluate, &stored).unwrap().evaluated().unwrap()
    }

    #[test]
    fn content_stays_where_nobody_waited() {
        let mut outcome = Ok(Outcome::Evaluated(Box::new(report())));
        let whole = restored(ending(JobKind::Evaluate, &mut outcome, true).unwrap());
        assert_eq!(serde_json::to_value(&whole).unwrap(), serde_json::to_value(report()).unwrap());
        let rest = restored(ending(JobKind::Evaluate, &mut outcome, false).unwrap());
        assert!(!has_content(&rest));
        assert_eq!(rest.outputs.len(), whole.outputs.len());
        // Who waited gets it.
        let answer = outcome.unwrap().evaluated().unwrap();
        assert_eq!(serde_json::to_value(&answer).unwrap(), serde_json::to_value(report()).unwrap());
    }

    #[test]
    fn every_end_has_its_state_and_code() {
        let of = |mut outcome| {
            let ending = ending(JobKind::Evaluate, &mut outcome, true).unwrap();
            (ending.state, ending.error.map(|error| error.code))
        };
        assert_eq!(of(Ok(Outcome::Evaluated(Box::new(report())))), (JobState::Completed, None));
        let mut late = report();
        let failure = |code: &str| {
            let (stage, message) = ("execute".to_owned(), String::new());
            Some(crate::report::FailureReport { stage, code: code.to_owned(), message })
        };
        late.failure = failure("shutting_down");
        assert!(Outcome::Evaluated(Box::new(late.clone())).was_stopped());
        late.failure = failure("timeout");
        assert_eq!(of(Ok(Outcome::Evaluated(Box::new(late)))).0, JobState::TimedOut);
        let (state, code) = of(Err(ServiceError::ShuttingDown));
        assert_eq!((state, code.as_deref()), (JobState::Cancelled, Some("shutting_down")));
        let (state, code) = of(Err(ServiceError::Unavailable("x".to_owned())));
        assert_eq!((state, code.as_deref()), (JobState::Failed, Some("unavailable")));
        assert_eq!(stopped(Stop::CallerGone).state, JobState::Cancelled);
    }
}
