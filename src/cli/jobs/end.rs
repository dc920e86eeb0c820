//! Determines the exit codes of commands about jobs.

use crate::exit::{Exit, GateExit};
use warpgauge_job_views::JobView;
use warpgauge_model::JobState;

/// Returns the exit code for a job that has ended: that of its report, if there is one. For a gate
/// run, it is a code of the gate.
pub(super) fn exit(job: &JobView) -> u8 {
    match &job.gate {
        Some(report) => GateExit::of_verdict(report.verdict).code(),
        None => of_other(job).code(),
    }
}

fn of_other(job: &JobView) -> Exit {
    let report = job
        .comparison
        .as_ref()
        .map(Exit::of_comparison)
        .or_else(|| Some(Exit::of_sweep(job.sweep.as_ref()?.result.as_ref()?)))
        .or_else(|| job.result.as_ref().map(Exit::of_report));
    match (report, job.state) {
        (Some(exit), _) => exit,
        // This version may not know the kind of the job's report.
        (None, JobState::Completed) => Exit::Success,
        (None, JobState::TimedOut) => Exit::KernelFailed,
        (None, _) => Exit::Environment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_that_of_the_report() {
        let report: serde_json::Value =
            serde_json::from_str(include_str!("../../../openapi/examples/report.json"))
                .expect("JSON");
        let exit = |state: &str, result: Option<serde_json::Value>| {
            let mut job = serde_json::json!({
                "job_id": "j", "state": state, "created_at": 0.0, "trials_done": 0,
            });
            if let Some(result) = result {
                job["result"] = result;
            }
            of_other(&serde_json::from_value(job).expect("a job"))
        };
        assert_eq!(exit("completed", Some(report.clone())), Exit::Success);
        let mut wrong = report;
        wrong["verdict"] = "wrong".into();
        assert_eq!(exit("completed", Some(wrong)), Exit::KernelFailed);
        assert_eq!(exit("cancelled", None), Exit::Environment);
        assert_eq!(exit("failed", None), Exit::Environment);
        assert_eq!(exit("timed_out", None), Exit::KernelFailed);
    }

    #[test]
    fn a_gate_has_its_own_codes() {
        let mut gate: serde_json::Value =
            serde_json::from_str(include_str!("../../../openapi/examples/gate.json"))
                .expect("JSON");
        for (verdict, code) in [("PASS", 0), ("ERROR", 1), ("REGRESSION", 2), ("INVALID", 4)] {
            gate["verdict"] = verdict.into();
            let job = serde_json::json!({
                "job_id": "j", "kind": "gate", "state": "completed", "created_at": 0.0,
                "trials_done": 0, "gate": gate,
            });
            assert_eq!(exit(&serde_json::from_value(job).expect("a job")), code, "{verdict}");
        }
        let failed = serde_json::json!({
            "job_id": "j", "kind": "gate", "state": "failed", "created_at": 0.0, "trials_done": 0,
        });
        assert_eq!(exit(&serde_json::from_value(failed).expect("a job")), 1);
    }
}
