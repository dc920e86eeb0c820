//! Converts a job's state to an answer.

use super::{Fault, Outcome, TEXT_BYTES, Verdict, comparison, evaluation, plain};
use crate::resources::Part;
use warpgauge_job_views::JobView;
use warpgauge_model::JobState;

/// Returns the answer about a job.
pub(crate) fn answer(job: &JobView) -> Outcome {
    let mut outcome = match (&job.comparison, &job.result) {
        (Some(response), _) => comparison::answer(response),
        (None, Some(response)) => evaluation::answer(response),
        (None, None) => without_report(job),
    };
    outcome.kind = Some(job.kind);
    outcome.state = Some(job.state);
    outcome.status = job.status.or(outcome.status);
    outcome
}

fn without_report(job: &JobView) -> Outcome {
    let id = &job.job_id;
    let outcome = match job.state {
        JobState::Cancelled => Outcome::new(Verdict::Cancelled, "the job was cancelled"),
        JobState::Completed | JobState::TimedOut => {
            Outcome::new(Verdict::Completed, "the job has ended; see its report")
        }
        JobState::Failed => {
            let message = job.error.as_deref().unwrap_or("the service gives no reason");
            let code = job.code.as_ref().map_or_else(|| "internal".to_owned(), ToString::to_string);
            let message = plain(message, TEXT_BYTES);
            let summary = format!("{message} [{code}]");
            let error = Fault { code, message, path: None };
            Outcome { error: Some(error), ..Outcome::new(Verdict::JobFailed, summary) }
        }
        state => {
            let summary = format!("the job is {} and continues", state.name());
            let mut outcome = Outcome::new(Verdict::Running, summary);
            outcome
                .fact(format!("to wait for its end, call get_job with job_id {id:?} and wait_s"));
            if job.trials_done > 0 {
                outcome.fact(format!("{} launches timed so far", job.trials_done));
            }
            if let Some(error) = &job.error {
                outcome.fact(format!("meanwhile: {error}"));
            }
            outcome
        }
    };
    if job.state == JobState::Completed {
        return outcome.of_job(id, &[]);
    }
    Outcome { job_id: Some(id.clone()), ..outcome }
}

/// Returns a note that precedes a truncated part of a job.
pub(crate) fn cut(part: &Part, job_id: &str, shown: usize, all: usize) -> String {
    let path = part.http_path(job_id);
    format!("[the first {shown} of {all} bytes; GET {path} of the HTTP API returns all of it]\n")
}
