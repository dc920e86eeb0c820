//! Verdicts on kernels, with the names that all answers and commands use. The main type is
//! [`KernelVerdict`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EvaluateResponse, ResponseStatus, ValidationStatus};
use warpgauge_model::FailureCode;
use warpgauge_validate::{ReasonCode, Weakness};

/// Verdict on a kernel, from best to worst. For several kernels, the worst verdict is reported.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum KernelVerdict {
    /// Every checked output is right.
    Correct,
    /// The kernel ran, and the contract gives no expectation.
    NotChecked,
    /// The kernel passes, but a useless kernel would pass too.
    Weak,
    /// An output is wrong, or another check failed.
    Wrong,
    /// The kernel crashed, hung or ran out of a resource.
    Failed,
    /// The kernel does not compile.
    NotCompiled,
    /// There is no verdict, because of a problem of the service or the machine.
    Error,
}

impl KernelVerdict {
    /// All verdicts, from best to worst.
    pub const ALL: [KernelVerdict; 7] = [
        KernelVerdict::Correct,
        KernelVerdict::NotChecked,
        KernelVerdict::Weak,
        KernelVerdict::Wrong,
        KernelVerdict::Failed,
        KernelVerdict::NotCompiled,
        KernelVerdict::Error,
    ];

    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            KernelVerdict::Correct => "correct",
            KernelVerdict::NotChecked => "not_checked",
            KernelVerdict::Weak => "weak",
            KernelVerdict::Wrong => "wrong",
            KernelVerdict::Failed => "failed",
            KernelVerdict::NotCompiled => "not_compiled",
            KernelVerdict::Error => "error",
        }
    }

    /// Returns the verdict with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// Returns the verdict in capital letters, as at the beginning of a report in text.
    pub const fn words(self) -> &'static str {
        match self {
            KernelVerdict::Correct => "CORRECT",
            KernelVerdict::NotChecked => "NOT CHECKED",
            KernelVerdict::Weak => "WEAK",
            KernelVerdict::Wrong => "WRONG",
            KernelVerdict::Failed => "FAILED",
            KernelVerdict::NotCompiled => "NOT COMPILED",
            KernelVerdict::Error => "ERROR",
        }
    }

    /// Returns the meaning of the verdict as a clause.
    pub const fn summary(self) -> &'static str {
        match self {
            KernelVerdict::Correct => "every checked output is right",
            KernelVerdict::NotChecked => "the contract does not say what the outputs must be",
            KernelVerdict::Weak => "the kernel passes, but a useless one would pass too",
            KernelVerdict::Wrong => "an output is wrong, or another check failed",
            KernelVerdict::Failed => "the kernel crashed, hung or ran out of a resource",
            KernelVerdict::NotCompiled => "the kernel does not compile",
            KernelVerdict::Error => {
                "there is no verdict, because of a problem of the service or \
                                     the machine"
            }
        }
    }

    /// Returns whether the verdict indicates no fault of the kernel or of its checks.
    pub const fn is_good(self) -> bool {
        matches!(self, KernelVerdict::Correct | KernelVerdict::NotChecked)
    }

    /// Derives the verdict from a report. With `allow_weak`, a weakness of the contract is only
    /// listed.
    pub fn of(report: &EvaluateResponse, allow_weak: bool) -> Self {
        let result = &report.kernel_exec_result;
        if report.status == ResponseStatus::Error {
            return Self::Error;
        }
        if !result.compiled {
            return Self::NotCompiled;
        }
        let reasons = &report.validation.reasons;
        // A failure of the reference says nothing about the kernel, whatever the code.
        if reasons.iter().any(|reason| reason.code == ReasonCode::ReferenceFailed) {
            return Self::Failed;
        }
        if let Some(failure) = &report.failure {
            return Self::of_failure(&failure.code);
        }
        let status = report.validation.status;
        match (result.correctness, status) {
            (Some(false), _) | (_, ValidationStatus::Failed) => Self::Wrong,
            (_, ValidationStatus::NotRun) => Self::Failed,
            _ if !allow_weak && report.blocking_weakness().is_some() => Self::Weak,
            (Some(true), _) => Self::Correct,
            (None, _) => Self::NotChecked,
        }
    }

    /// Returns the verdict on a kernel whose run ended early.
    fn of_failure(code: &FailureCode) -> Self {
        match ReasonCode::of_failure(code) {
            None
            | Some(
                ReasonCode::MemoryFault
                | ReasonCode::LaunchFailed
                | ReasonCode::Timeout
                | ReasonCode::OutOfMemory
                | ReasonCode::SanitizerFault
                | ReasonCode::ReferenceFailed
                | ReasonCode::EndedBySignal,
            ) => Self::Failed,
            Some(
                ReasonCode::OutputMismatch
                | ReasonCode::OutputUnwritten
                | ReasonCode::NonFiniteOutput
                | ReasonCode::InputModified
                | ReasonCode::GuardBandWritten
                | ReasonCode::OutputVariesBetweenTrials
                | ReasonCode::WrongForOtherSeeds
                | ReasonCode::DependsOnHistory
                | ReasonCode::Nondeterministic
                | ReasonCode::FasterThanLight
                | ReasonCode::NoValidSamples
                | ReasonCode::ExitCode,
            ) => Self::Wrong,
        }
    }
}

impl std::fmt::Display for KernelVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl EvaluateResponse {
    /// Returns the verdict on the kernel: the stored one, or the derived one for reports that
    /// earlier versions stored.
    pub fn kernel_verdict(&self) -> KernelVerdict {
        self.verdict.unwrap_or_else(|| KernelVerdict::of(self, false))
    }

    /// Returns the first weakness of the contract that rules out the verdict `correct`. A kernel
    /// that must do the work for one of its outputs is not useless. Therefore every checked output
    /// must have such a weakness.
    pub fn blocking_weakness(&self) -> Option<&Weakness> {
        let mut blocking = self.validation.weaknesses.iter().filter(|weakness| weakness.blocks);
        let is_weak = |output: &String| blocking.clone().any(|weakness| weakness.output == *output);
        let all = self.validation.outputs.keys().all(is_weak);
        blocking.next().filter(|_| all)
    }

    /// Returns the reason for the verdict `weak` with a remedy, or `None` for other verdicts.
    pub fn why_weak(&self) -> Option<&str> {
        if self.kernel_verdict() != KernelVerdict::Weak {
            return None;
        }
        let weakness = self.blocking_weakness();
        Some(weakness.map_or(KernelVerdict::Weak.summary(), |weakness| &weakness.message))
    }

    /// Sets the derived verdict. A weak verdict removes `correctness`, because passing a weak check
    /// means nothing.
    pub fn set_verdict(&mut self, allow_weak: bool) {
        let verdict = KernelVerdict::of(self, allow_weak);
        self.verdict = Some(verdict);
        if verdict == KernelVerdict::Weak {
            self.kernel_exec_result.correctness = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(changes: serde_json::Value) -> EvaluateResponse {
        let mut whole = json!({
            "job_id": "j", "status": "success",
            "kernel_exec_result": {"compiled": true, "correctness": true, "metadata": {}},
            "timings": {"queue": 0.0, "compile": 0.0, "h2d": 0.0, "execute": 0.0,
                        "device_busy": 0.0, "d2h": 0.0, "verify": 0.0, "total": 0.0},
            "validation": {"status": "passed"},
        });
        whole.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn failed(code: &str) -> serde_json::Value {
        json!({"failure": {"stage": "execute", "code": code, "message": "m"}})
    }

    /// Returns the changes for a run that ended early because of the reference.
    fn of_reference(code: &str) -> serde_json::Value {
        let mut changes = failed(code);
        changes["validation"] = json!({
            "status": "not_run", "reasons": [{"code": "reference_failed", "message": "m"}]});
        changes["kernel_exec_result"] =
            json!({"compiled": true, "correctness": false, "metadata": {}});
        changes
    }

    fn weak(blocks: bool) -> serde_json::Value {
        json!({"validation": {"status": "passed", "weaknesses": [
            {"code": "zeros_pass", "output": "y", "message": "zeros pass", "blocks": blocks}]}})
    }

    #[test]
    fn names_are_those_on_the_wire_and_the_order_is_that_of_severity() {
        for verdict in KernelVerdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.name());
            assert_eq!(KernelVerdict::named(verdict.name()), Some(verdict));
            assert_eq!(verdict.words().to_lowercase().replace(' ', "_"), verdict.name());
        }
        assert!(KernelVerdict::ALL.is_sorted());
        assert!(KernelVerdict::Weak > KernelVerdict::NotChecked);
        assert!(KernelVerdict::Weak < KernelVerdict::Wrong);
    }

    #[test]
    fn a_report_comes_to_one_verdict() {
        let result = |compiled: bool, correctness: Option<bool>| {
            json!({"kernel_exec_result":
                {"compiled": compiled, "correctness": correctness, "metadata": {}}})
        };
        let cases = [
            (json!({}), KernelVerdict::Correct),
            (result(true, None), KernelVerdict::NotChecked),
            (result(true, Some(false)), KernelVerdict::Wrong),
            (json!({"validation": {"status": "failed"}}), KernelVerdict::Wrong),
            (json!({"validation": {"status": "not_run"}}), KernelVerdict::Failed),
            (result(false, None), KernelVerdict::NotCompiled),
            (json!({"status": "error"}), KernelVerdict::Error),
            (failed("illegal_address"), KernelVerdict::Failed),
            (failed("timeout"), KernelVerdict::Failed),
            (failed("launch_timeout"), KernelVerdict::Failed),
            (failed("out_of_memory"), KernelVerdict::Failed),
            (failed("ended_by_signal"), KernelVerdict::Failed),
            (failed("wrong_for_other_seeds"), KernelVerdict::Wrong),
            (failed("output_unwritten"), KernelVerdict::Wrong),
            (failed("guard_band_written"), KernelVerdict::Wrong),
            (of_reference("output_unwritten"), KernelVerdict::Failed),
            (of_reference("nondeterministic"), KernelVerdict::Failed),
            (weak(true), KernelVerdict::Weak),
            (weak(false), KernelVerdict::Correct),
        ];
        for (changes, verdict) in cases {
            assert_eq!(KernelVerdict::of(&report(changes.clone()), false), verdict, "{changes}");
        }
        assert_eq!(KernelVerdict::of(&report(weak(true)), true), KernelVerdict::Correct);
    }

    #[test]
    fn a_weak_report_says_why_and_that_it_passed_says_nothing() {
        let mut found = report(weak(true));
        found.set_verdict(false);
        assert_eq!(found.verdict, Some(KernelVerdict::Weak));
        assert_eq!(found.kernel_exec_result.correctness, None);
        assert_eq!(found.validation.status, ValidationStatus::Passed);
        assert_eq!(found.why_weak(), Some("zeros pass"));
        let mut allowed = report(weak(true));
        allowed.set_verdict(true);
        assert_eq!(allowed.kernel_exec_result.correctness, Some(true));
        assert_eq!((allowed.kernel_verdict(), allowed.why_weak()), (KernelVerdict::Correct, None));
    }

    #[test]
    fn a_report_of_an_earlier_version_has_the_verdict_that_it_comes_to() {
        let mut old = serde_json::to_value(report(weak(true))).unwrap();
        old["validation"]["weaknesses"][0].as_object_mut().unwrap().remove("blocks");
        let old: EvaluateResponse = serde_json::from_value(old).unwrap();
        assert_eq!((old.verdict, old.kernel_verdict()), (None, KernelVerdict::Correct));
    }
}
