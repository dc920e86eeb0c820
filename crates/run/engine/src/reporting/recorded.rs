//! Telemetry of evaluations, for the operator.

use warpgauge_report::{EvaluateResponse, KernelVerdict};
use warpgauge_telemetry::{EvaluationOutcome, Stage, telemetry};

/// Counts one evaluated kernel, whether it was evaluated alone or as part of a larger job.
pub(crate) fn evaluation(report: &EvaluateResponse) {
    let telemetry = telemetry();
    let outcome = outcome(report);
    telemetry.evaluated(outcome);
    let timings = &report.timings;
    let worker = timings.load + timings.h2d + timings.execute + timings.d2h + timings.verify;
    if let Some(device) = report.device.as_ref().filter(|_| report.kernel_exec_result.compiled) {
        let ended = !matches!(outcome, EvaluationOutcome::KernelFailed | EvaluationOutcome::Error);
        telemetry.ran(device.id, worker, ended, report.kernel_exec_result.correctness);
        // A report contains no times if the worker was killed.
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
    match report.kernel_verdict() {
        KernelVerdict::Correct => EvaluationOutcome::Correct,
        KernelVerdict::NotChecked => EvaluationOutcome::NotChecked,
        KernelVerdict::Weak => EvaluationOutcome::Weak,
        KernelVerdict::Wrong => EvaluationOutcome::Wrong,
        KernelVerdict::Failed => EvaluationOutcome::KernelFailed,
        KernelVerdict::NotCompiled => EvaluationOutcome::NotCompiled,
        KernelVerdict::Error => EvaluationOutcome::Error,
    }
}
