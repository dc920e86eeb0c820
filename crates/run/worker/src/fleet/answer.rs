//! Converts a worker's answer to the outcome type of the task.

use crate::protocol::{Blame, RunFailure, RunOutcome, TaskPlan};

use warpgauge_model::FailureCode;

/// A worker's outcome, or the failure if it gave none.
pub(super) type Answer = Result<RunOutcome, RunFailure>;

/// Returns the outcome of a task of one kind. An outcome of another kind is a defect and is
/// reported as a failure.
pub(super) fn outcome_of<P: TaskPlan>(answer: Answer) -> RunOutcome<P::Output> {
    let RunOutcome { failure, timings, printed, function, told } = match answer {
        Ok(outcome) => outcome,
        Err(failure) => return failure.into(),
    };
    let Some(told) = P::told(told) else {
        return RunOutcome::from(RunFailure {
            code: FailureCode::InternalError,
            message: "the worker answered a different task from the one it was given; this is a defect of \
                      warpgauge"
                .to_owned(),
            blame: Blame::Environment,
        });
    };
    RunOutcome { failure, timings, printed, function, told }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{EvaluatePlan, PairPlan, PairedRun, TaskOutcome};

    #[test]
    fn an_answer_to_another_task_is_a_failure_of_ours() {
        let told = TaskOutcome::Paired(PairedRun::default());
        let outcome = RunOutcome::<()>::default().map(|()| told);
        assert!(outcome_of::<PairPlan>(Ok(outcome.clone())).failure.is_none());
        let failure = outcome_of::<EvaluatePlan>(Ok(outcome)).failure.unwrap();
        assert_eq!((failure.code, failure.blame), (FailureCode::InternalError, Blame::Environment));
    }
}
