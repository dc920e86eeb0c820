//! What of a report is counted for the operator.

use warpgauge_report::{EvaluateResponse, ResponseStatus, ValidationStatus};
use warpgauge_telemetry::{EvaluationOutcome, Stage, telemetry};

/// Counts one kernel that was evaluated, on its own or as part of something larger.
pub(crate) fn evaluation(report: &EvaluateResponse) {
    let telemetry = telemetry();
    let outcome = outcome(report);
    telemetry.evaluated(outcome);
    let timings = &report.timings;
    let worker = timings.h2d + timings.execute + timings.d2h + timings.verify;
    if let Some(device) = report.device.as_ref().filter(|_| report.kernel_exec_result.compiled) {
        let ended = !matches!(outcome, EvaluationOutcome::KernelFailed | EvaluationOutcome::Error);
        telemetry.ran(device.id, worker, ended, report.kernel_exec_result.correctness);
        // A worker that had to be killed tells no times.
        if worker > 0.0 {
            telemetry.stage(Stage::Worker, worker);
            telemetry.stage(Stage::Measure, timings.execute);
            telemetry.stage(Stage::Validate, timings.verify);
        }
    }
    if timings.profile > 0.0 {
        telemetry.stage(Stage::Profile, timings.profile);
    }
}

fn outcome(report: &EvaluateResponse) -> EvaluationOutcome {
    let result = &report.kernel_exec_result;
    if report.status == ResponseStatus::Error {
        EvaluationOutcome::Error
    } else if !result.compiled {
        EvaluationOutcome::NotCompiled
    } else if report.failure.is_some() {
        EvaluationOutcome::KernelFailed
    } else if result.correctness == Some(false) {
        EvaluationOutcome::Wrong
    } else if report.validation.status == ValidationStatus::Passed {
        EvaluationOutcome::Correct
    } else {
        EvaluationOutcome::NotChecked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_told_apart() {
        let report: EvaluateResponse =
            serde_json::from_str(include_str!("../../../../../openapi/examples/report.json"))
                .expect("a report");
        let with = |change: &dyn Fn(&mut EvaluateResponse)| {
            let mut report = report.clone();
            change(&mut report);
            outcome(&report)
        };
        assert_eq!(outcome(&report), EvaluationOutcome::Correct);
        assert_eq!(with(&|r| r.status = ResponseStatus::Error), EvaluationOutcome::Error);
        assert_eq!(
            with(&|r| r.kernel_exec_result.compiled = false),
            EvaluationOutcome::NotCompiled
        );
        assert_eq!(
            with(&|r| r.kernel_exec_result.correctness = Some(false)),
            EvaluationOutcome::Wrong
        );
        let unchecked = with(&|r| {
            r.kernel_exec_result.correctness = None;
            r.validation.status = ValidationStatus::NotChecked;
        });
        assert_eq!(unchecked, EvaluationOutcome::NotChecked);
    }
}
