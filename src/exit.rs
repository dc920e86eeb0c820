//! Exit codes of the program. [`Exit`] contains the codes of all commands except the gate, and
//! [`GateExit`] contains the codes of the gate. `docs/cli.md` contains the table.
//!
//! The codes are stable, because scripts and continuous integration rely on them. A mistake of the
//! caller, a problem of the environment and a bug in warpgauge have different codes.

use std::process::ExitCode;

use warpgauge_client::ClientError;
use warpgauge_gate::SuiteVerdict;
use warpgauge_model::{DeviceKind, FailureCode};
use warpgauge_report::{
    CandidateReport, CompareResponse, EvaluateResponse, KernelVerdict, SweepResponse, SweepStatus,
};
use warpgauge_service::{ExecError, Problem, ServiceError};

/// Outcome of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The kernel ran, and its outputs are correct or are not checked; or the command succeeded.
    Success = 0,
    /// A problem of the environment: no device, no compiler, no server, a file that cannot be
    /// written.
    Environment = 1,
    /// A mistake of the caller: the command line, the configuration, or the contract.
    Usage = 2,
    /// The kernel does not compile.
    NotCompiled = 3,
    /// The kernel produced a wrong result, crashed, hung, or ran out of memory.
    KernelFailed = 4,
    /// The service is full or is shutting down. The same command may succeed later.
    Busy = 5,
    /// The kernel passes, but a useless kernel would pass too.
    Weak = 6,
    /// A bug in warpgauge.
    Internal = 70,
    /// SIGINT ended the program.
    Interrupted = 130,
}

impl Exit {
    /// Every code with its meaning, for `--help` and the documentation.
    pub const TABLE: [(Exit, &'static str); 9] = [
        (Exit::Success, "success; the outputs are correct, or the contract checks none"),
        (Exit::Environment, "the environment: no device, no compiler, no server, unwritable file"),
        (Exit::Usage, "the command line, the configuration or the contract is not valid"),
        (Exit::NotCompiled, "the kernel does not compile"),
        (Exit::KernelFailed, "the kernel is wrong, crashed, hung or ran out of memory"),
        (Exit::Busy, "the service is full or shutting down; try again"),
        (Exit::Weak, "the kernel passes, but a useless one would pass too"),
        (Exit::Internal, "a bug in warpgauge"),
        (Exit::Interrupted, "interrupted"),
    ];

    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the name of the code in errors that are written as JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Exit::Success => "success",
            Exit::Environment => "environment",
            Exit::Usage => "usage",
            Exit::NotCompiled => "not_compiled",
            Exit::KernelFailed => "kernel_failed",
            Exit::Busy => "busy",
            Exit::Weak => "weak",
            Exit::Internal => "internal",
            Exit::Interrupted => "interrupted",
        }
    }

    /// Returns the code for the verdict of a report.
    pub fn of_report(report: &EvaluateResponse) -> Exit {
        Exit::of_verdict(report.kernel_verdict())
    }

    pub const fn of_verdict(verdict: KernelVerdict) -> Exit {
        match verdict {
            KernelVerdict::Correct | KernelVerdict::NotChecked => Exit::Success,
            KernelVerdict::Weak => Exit::Weak,
            KernelVerdict::Wrong | KernelVerdict::Failed => Exit::KernelFailed,
            KernelVerdict::NotCompiled => Exit::NotCompiled,
            KernelVerdict::Error => Exit::Environment,
        }
    }

    /// Returns the code of the first candidate that did not succeed; if there is none, returns
    /// success. The speed of the kernels does not matter. A broken reference is a mistake in the
    /// contract.
    pub fn of_comparison(response: &CompareResponse) -> Exit {
        if matches!(
            response.reference.kernel_verdict(),
            KernelVerdict::Wrong | KernelVerdict::Failed | KernelVerdict::NotCompiled
        ) {
            return Exit::Usage;
        }
        let of_candidate =
            |candidate: &CandidateReport| match Exit::of_report(&candidate.evaluation) {
                // The outputs of the candidate are correct. Only on the emulated device may the
                // comparison be absent.
                Exit::Success
                    if candidate.comparison.is_none()
                        && response
                            .device
                            .as_ref()
                            .is_some_and(|device| device.kind == DeviceKind::Cuda) =>
                {
                    Exit::KernelFailed
                }
                exit => exit,
            };
        let mut exits = response.candidates.iter().map(of_candidate);
        exits.find(|exit| *exit != Exit::Success).unwrap_or(Exit::Success)
    }

    /// Returns the code of the worst point.
    pub fn of_sweep(answer: &SweepResponse) -> Exit {
        match answer.points.iter().map(|point| point.status).max() {
            None | Some(SweepStatus::Correct | SweepStatus::NotChecked) => Exit::Success,
            Some(SweepStatus::Weak) => Exit::Weak,
            Some(SweepStatus::Wrong) => Exit::KernelFailed,
            Some(SweepStatus::NotCompiled) => Exit::NotCompiled,
            Some(SweepStatus::Invalid) => Exit::Usage,
            Some(SweepStatus::Error) => Exit::Environment,
        }
    }

    /// Returns the code for an error of the service in this process.
    pub fn of_service_error(error: &ServiceError) -> Exit {
        match error {
            // A missing component of this machine is not a mistake in the contract.
            ServiceError::Exec(ExecError::Invalid(problems)) if are_unmet(problems) => {
                Exit::Environment
            }
            ServiceError::Exec(error) => Self::of_exec_error(error),
            ServiceError::NoSuchJob(_)
            | ServiceError::NoSuchBaseline(_)
            | ServiceError::NoSuchMatrix(_)
            | ServiceError::NoSuchTensor(_)
            | ServiceError::Named { .. }
            | ServiceError::TensorGone { .. }
            | ServiceError::NoSuchLease(_)
            | ServiceError::Conflict { .. }
            | ServiceError::NoArtifact { .. }
            | ServiceError::IdempotencyConflict { .. }
            | ServiceError::Forbidden(_)
            | ServiceError::ArtifactGone { .. } => Exit::Usage,
            ServiceError::QueueFull { .. }
            | ServiceError::QuotaExceeded { .. }
            | ServiceError::Cancelled { .. } => Exit::Busy,
            ServiceError::JobFailed { .. } => Exit::Internal,
        }
    }

    fn of_exec_error(error: &ExecError) -> Exit {
        match error {
            ExecError::Invalid(_) | ExecError::ConditionsDiffer(_) => Exit::Usage,
            ExecError::QueueFull { .. } | ExecError::ShuttingDown => Exit::Busy,
            ExecError::Unavailable(_) | ExecError::RunnersLost(_) | ExecError::NotOffered(_) => {
                Exit::Environment
            }
            ExecError::Internal { .. } => Exit::Internal,
        }
    }

    /// Returns the code for an error of the client of a server.
    pub fn of_client_error(error: &ClientError) -> Exit {
        match error {
            ClientError::Url { .. }
            | ClientError::Login { .. }
            | ClientError::Certificates(_)
            | ClientError::SuiteTooLarge { .. } => Exit::Usage,
            ClientError::Refused { problems, .. } if lacks(problems) => Exit::Environment,
            ClientError::Refused { status, .. } => Exit::of_http_status(*status),
            ClientError::Tls { .. }
            | ClientError::Connect { .. }
            | ClientError::Broken { .. }
            | ClientError::Answer { .. }
            | ClientError::GateLost { .. }
            | ClientError::GateEnded(_) => Exit::Environment,
            ClientError::JobLost { source, .. } => Exit::of_client_error(source),
            ClientError::Interrupted => Exit::Interrupted,
            ClientError::Internal(_) => Exit::Internal,
        }
    }

    /// Returns the code for an HTTP status that is not a success.
    pub fn of_http_status(status: u16) -> Exit {
        match status {
            400..=428 | 430..=499 => Exit::Usage,
            429 | 503 => Exit::Busy,
            500 => Exit::Internal,
            _ => Exit::Environment,
        }
    }
}

/// Returns whether unmet requirements are the only reasons for a rejection.
pub(crate) fn are_unmet(problems: &[Problem]) -> bool {
    let is_unmet = |problem: &Problem| problem.code == FailureCode::UnmetRequirements;
    !problems.is_empty() && problems.iter().all(is_unmet)
}

/// Works like [`are_unmet`], for the codes that a server returned.
fn lacks(codes: &[String]) -> bool {
    let unmet = FailureCode::UnmetRequirements.to_string();
    !codes.is_empty() && codes.iter().all(|code| *code == unmet)
}

/// Outcome of `warpgauge gate`. Its exit codes are those of a test, and differ from those of other
/// commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum GateExit {
    /// No case fails the suite.
    Pass = 0,
    /// The gate could not decide, because of the command line, the suite, the baseline, the device,
    /// the server, or a missing case.
    ToolError = 1,
    /// A case became slower.
    Regression = 2,
    /// The measurements of a case are inconclusive.
    Inconclusive = 3,
    /// A kernel is wrong.
    Invalid = 4,
    /// A bug in warpgauge.
    Internal = 70,
    /// SIGINT ended the program.
    Interrupted = 130,
}

impl GateExit {
    /// Every code with its meaning, for `--help` and the documentation.
    pub const TABLE: [(GateExit, &'static str); 7] = [
        (GateExit::Pass, "pass: no case fails"),
        (GateExit::ToolError, "tool error: usage, suite, baseline, device, server, missing case"),
        (GateExit::Regression, "regression: a case became slower, or a count increased"),
        (GateExit::Inconclusive, "inconclusive: the measurements of a case show no result"),
        (GateExit::Invalid, "invalid: a kernel is wrong, does not compile, or did not do the work"),
        (GateExit::Internal, "a bug in warpgauge"),
        (GateExit::Interrupted, "interrupted"),
    ];

    pub const fn code(self) -> u8 {
        self as u8
    }

    pub fn of_verdict(verdict: SuiteVerdict) -> Self {
        match verdict {
            SuiteVerdict::Pass => Self::Pass,
            SuiteVerdict::Error => Self::ToolError,
            SuiteVerdict::Regression => Self::Regression,
            SuiteVerdict::Inconclusive => Self::Inconclusive,
            SuiteVerdict::Invalid => Self::Invalid,
        }
    }

    /// Returns the exit code for a run without a verdict. An error is never a regression.
    pub fn of_error(exit: Exit) -> Self {
        match exit {
            Exit::Internal => Self::Internal,
            Exit::Interrupted => Self::Interrupted,
            _ => Self::ToolError,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn report(json: serde_json::Value) -> EvaluateResponse {
        let mut whole = serde_json::json!({
            "job_id": "j", "status": "success",
            "kernel_exec_result": {"compiled": true, "metadata": {}},
            "timings": {"queue": 0.0, "compile": 0.0, "h2d": 0.0, "execute": 0.0,
                        "device_busy": 0.0, "d2h": 0.0, "verify": 0.0, "total": 0.0},
            "validation": {"status": "passed"},
        });
        for (key, value) in json.as_object().expect("an object") {
            whole[key] = value.clone();
        }
        serde_json::from_value(whole).expect("a report")
    }

    #[test]
    fn the_numbers_are_stable() {
        let codes: Vec<u8> = Exit::TABLE.iter().map(|(exit, _)| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 70, 130]);
    }

    #[test]
    fn the_gates_numbers_are_stable_and_none_of_its_errors_is_a_regression() {
        let codes: Vec<u8> = GateExit::TABLE.iter().map(|(exit, _)| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 70, 130]);
        for (exit, _) in Exit::TABLE {
            assert!(matches!(GateExit::of_error(exit).code(), 1 | 70 | 130), "{exit:?}");
        }
        let verdicts = [
            (SuiteVerdict::Pass, 0),
            (SuiteVerdict::Error, 1),
            (SuiteVerdict::Regression, 2),
            (SuiteVerdict::Inconclusive, 3),
            (SuiteVerdict::Invalid, 4),
        ];
        for (verdict, code) in verdicts {
            assert_eq!(GateExit::of_verdict(verdict).code(), code, "{verdict:?}");
            assert_eq!(verdict.exit_code(), code, "{verdict:?}");
        }
    }

    #[test]
    fn reports_map_to_codes() {
        let failure = |stage| serde_json::json!({"stage": stage, "code": "c", "message": "m"});
        let cases = [
            (serde_json::json!({}), Exit::Success),
            (serde_json::json!({"validation": {"status": "not_checked"}}), Exit::Success),
            (serde_json::json!({"validation": {"status": "failed"}}), Exit::KernelFailed),
            (serde_json::json!({"validation": {"status": "not_run"}}), Exit::KernelFailed),
            (
                serde_json::json!({"kernel_exec_result":
                    {"compiled": true, "correctness": false, "metadata": {}}}),
                Exit::KernelFailed,
            ),
            (
                serde_json::json!({"kernel_exec_result": {"compiled": false, "metadata": {}},
                    "validation": {"status": "not_run"}, "failure": failure("compile")}),
                Exit::NotCompiled,
            ),
            (serde_json::json!({"failure": failure("execute")}), Exit::KernelFailed),
            (
                serde_json::json!({"status": "error", "failure": failure("execute")}),
                Exit::Environment,
            ),
        ];
        for (json, expected) in cases {
            assert_eq!(Exit::of_report(&report(json.clone())), expected, "{json}");
        }
    }

    #[test]
    fn comparisons_map_to_codes() {
        let right = report(serde_json::json!({}));
        let wrong = report(serde_json::json!({"validation": {"status": "failed"}}));
        let paired: serde_json::Value =
            serde_json::from_str(include_str!("../openapi/examples/comparison.json"))
                .expect("JSON");
        let exit = |kind: &str, candidates: &[(&EvaluateResponse, bool)]| {
            let candidate = |(index, (own, compared)): (usize, &(&EvaluateResponse, bool))| {
                let mut one = serde_json::json!({"name": index.to_string(), "evaluation": own});
                if *compared {
                    one["comparison"] = paired.clone();
                }
                one
            };
            let candidates = candidates.iter().enumerate().map(candidate).collect::<Vec<_>>();
            let response = serde_json::from_value(serde_json::json!({
                "job_id": "j", "status": "success", "reference": right, "candidates": candidates,
                "kernel_exec_result": right.kernel_exec_result, "timings": right.timings,
                "device": {"id": 0, "kind": kind, "name": "n", "uuid": "u",
                    "compute_capability": "9.0", "cuda_version": "13.0", "multiprocessors": 1,
                    "memory_bytes": 1, "l2_bytes": 1},
            }));
            Exit::of_comparison(&response.expect("a comparison"))
        };
        assert_eq!(exit("cuda", &[(&right, true), (&right, true)]), Exit::Success);
        assert_eq!(exit("cuda", &[(&right, true), (&wrong, false)]), Exit::KernelFailed);
        assert_eq!(exit("cuda", &[(&right, false)]), Exit::KernelFailed);
        assert_eq!(exit("emulator", &[(&right, false)]), Exit::Success);
    }

    #[test]
    fn errors_map_to_codes() {
        let full = ServiceError::QueueFull { waiting: 1, own: false, retry_after: Duration::ZERO };
        assert_eq!(Exit::of_service_error(&full), Exit::Busy);
        assert_eq!(Exit::of_service_error(&ServiceError::invalid(vec![])), Exit::Usage);
        let none = ServiceError::unavailable("");
        assert_eq!(Exit::of_service_error(&none), Exit::Environment);
        let statuses = [(400, 2), (401, 2), (413, 2), (429, 5), (500, 70), (502, 1), (503, 5)];
        for (status, code) in statuses {
            assert_eq!(Exit::of_http_status(status).code(), code, "{status}");
        }
    }
}
