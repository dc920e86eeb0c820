//! Evidence about one case, in the form that the decision needs. The main type is [`CaseEvidence`].

use std::collections::BTreeMap;

use super::GateMetric;
use warpgauge_model::DeviceKind;
use warpgauge_report::{
    CompareResponse, CountComparison, EvaluateResponse, KernelVerdict, ValidationStatus, VerdictBy,
};
use warpgauge_statistics::Counted;
use warpgauge_statistics::paired::PairedComparison;

/// Evidence about a case.
#[derive(Debug, Clone, PartialEq)]
pub enum CaseEvidence {
    /// The candidate has removed the case.
    Missing(String),
    /// The case could not be measured, and the candidate is not at fault.
    Error(String),
    /// The candidate differs from the baseline, or from its contract's expectations.
    Invalid(String),
    /// There is no baseline to compare with. The candidate alone was compiled, ran, and was not
    /// found incorrect.
    Alone {
        why: NoBaseline,
        /// Description of what the baseline lacks, and of how the candidate was checked.
        note: String,
        /// Counts of the candidate, if it ran on the emulated device.
        counts: BTreeMap<String, u64>,
    },
    /// Baseline and candidate have the same image and launch, and are correct, so they were not
    /// timed.
    Identical,
    /// The candidate is correct, but its times cannot be ranked. The text is the reason.
    Right(String),
    Times(Box<PairedComparison>),
    /// Exact counts of one launch that the metric uses.
    Counts(Vec<CountComparison>),
}

/// Reason why there is no baseline to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoBaseline {
    /// The baseline lacks the case.
    New,
    /// The baseline's kernel does not compile, crashes or is incorrect.
    Broken,
}

impl CaseEvidence {
    /// Returns the evidence of a candidate without a baseline; `what` describes the baseline.
    pub fn alone(
        report: &EvaluateResponse,
        metric: GateMetric,
        why: NoBaseline,
        what: &str,
    ) -> Self {
        if let Some(against) = Self::against(report) {
            return against;
        }
        let device = report.device.as_ref().map(|device| device.kind);
        if let (true, GateMetric::Count(name)) = (report.torch.is_some(), metric) {
            return Self::Error(not_counted(name));
        }
        if let (Some(DeviceKind::Cuda), GateMetric::Count(name)) = (device, metric) {
            return Self::Error(counted_elsewhere(name));
        }
        let unchecked = &report.validation.unchecked;
        let checked = if report.validation.status == ValidationStatus::NotChecked {
            "; compiled and run, and its outputs are not checked, because its contract has no \
             `expected`"
                .to_owned()
        } else if unchecked.is_empty() {
            "; compiled, run and checked against its contract's `expected`".to_owned()
        } else {
            format!(
                "; compiled, run and checked against its contract's `expected`, which does not \
                 mention `{}`",
                unchecked.join("`, `")
            )
        };
        let counted = report.counted.filter(|_| device == Some(DeviceKind::Emulator));
        let counts = counted.map(|counted| counts_of(counted, metric)).unwrap_or_default();
        Self::Alone { why, note: format!("{what}{checked}"), counts }
    }

    /// Returns the evidence that a kernel is incorrect or could not be evaluated, if there is any.
    pub fn against(report: &EvaluateResponse) -> Option<Self> {
        match report.kernel_verdict() {
            KernelVerdict::Correct | KernelVerdict::NotChecked => None,
            KernelVerdict::Error => Some(Self::Error(what_failed(report))),
            KernelVerdict::Weak
            | KernelVerdict::Wrong
            | KernelVerdict::Failed
            | KernelVerdict::NotCompiled => Some(Self::Invalid(what_failed(report))),
        }
    }

    /// Returns the evidence of a comparison of the baseline (the reference) with the candidate.
    pub fn of(response: &CompareResponse, metric: GateMetric) -> Self {
        let Some(candidate) = response.candidates.first() else {
            return Self::Error("the answer contains no candidate".to_owned());
        };
        let own = &candidate.evaluation;
        if let Some(against) = Self::against(own) {
            return against;
        }
        let unranked = || {
            let why = candidate.not_compared.as_deref();
            why.unwrap_or("the kernels ran on the CPU, whose times are not ranked").to_owned()
        };
        let device = match (&response.device, response.verdict_by, metric) {
            (Some(device), VerdictBy::Times | VerdictBy::Counts, _) => device,
            (_, _, GateMetric::Time) => return Self::Right(unranked()),
            (_, _, GateMetric::Count(name)) => return Self::Error(not_counted(name)),
        };
        match (device.kind, metric) {
            (DeviceKind::Cuda, GateMetric::Time) if candidate.same_image => Self::Identical,
            (DeviceKind::Cuda, GateMetric::Time) => match &candidate.comparison {
                Some(comparison) => Self::Times(Box::new(comparison.clone())),
                None => Self::Error(candidate.not_compared.clone().unwrap_or_else(|| {
                    "the times were not compared, and the answer gives no reason".to_owned()
                })),
            },
            (DeviceKind::Cuda, GateMetric::Count(name)) => Self::Error(counted_elsewhere(name)),
            (DeviceKind::Emulator, GateMetric::Time) => {
                match response.reference.counted.zip(own.counted) {
                    Some((reference, own)) => Self::Counts(both(reference, own)),
                    None => Self::Error("the emulated device counted nothing".to_owned()),
                }
            }
            (DeviceKind::Emulator, GateMetric::Count(name)) => {
                match candidate.counts.iter().find(|one| one.count == name) {
                    Some(count) => Self::Counts(vec![count.clone()]),
                    None => Self::Error(format!("the emulated device did not count `{name}`")),
                }
            }
        }
    }
}

fn not_counted(count: &str) -> String {
    format!(
        "`{count}` is counted for kernels on the emulated device, but not for torch kernels: use \
         the metric `time`, which for torch kernels checks only that they are correct"
    )
}

fn counted_elsewhere(count: &str) -> String {
    format!(
        "`{count}` is counted on the emulated device only; run this suite with `--device \
         emulator`, or use the metric `time` for this case"
    )
}

/// Returns the known counts of one kernel that the metric uses.
fn counts_of(counted: Counted, metric: GateMetric) -> BTreeMap<String, u64> {
    let all = [
        ("warp_instructions", counted.warp_instructions),
        ("global_sectors", counted.global_sectors),
    ];
    let wanted = |name: &str| match metric {
        GateMetric::Time => true,
        GateMetric::Count(wanted) => wanted == name,
    };
    let some = all.into_iter().filter(|(name, _)| wanted(name));
    some.map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Returns the two counts that are compared in place of times on the emulated device.
fn both(reference: Counted, candidate: Counted) -> Vec<CountComparison> {
    let count = |name: &str, reference: u64, candidate: u64| CountComparison {
        count: name.to_owned(),
        reference,
        candidate,
        ratio: (reference > 0).then(|| candidate as f64 / reference as f64),
    };
    vec![
        count("warp_instructions", reference.warp_instructions, candidate.warp_instructions),
        count("global_sectors", reference.global_sectors, candidate.global_sectors),
    ]
}

/// Returns the first failure of a kernel.
fn what_failed(report: &EvaluateResponse) -> String {
    let result = &report.kernel_exec_result;
    let failure = report.failure.as_ref();
    let run = failure.map(|failure| format!("{} ({})", failure.message, failure.code));
    let compiler =
        result.compilation_error.as_ref().map(|text| format!("it does not compile: {text}"));
    let weak = report.why_weak().map(|why| {
        format!(
            "a useless kernel would pass too: {why}; if this is intended, set `allow_weak: true` \
             in the case's contract"
        )
    });
    weak.or(compiler)
        .or_else(|| result.validation_error.clone())
        .or(run)
        .unwrap_or_else(|| "its outputs are not correct".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_rank_is_an_error_that_says_why() {
        let example = include_str!("../../../../openapi/examples/report.json");
        let mut report = serde_json::from_str::<serde_json::Value>(example).unwrap();
        report["device"]["kind"] = "cuda".into();
        report["kernel_exec_result"]["runtime"].take();
        let why = "of the candidate: its state is not known";
        let candidate = serde_json::json!({
            "name": "candidate", "evaluation": report, "not_compared": why,
        });
        let response = serde_json::from_value::<CompareResponse>(serde_json::json!({
            "job_id": "job", "status": "success", "device": report["device"],
            "kernel_exec_result": report["kernel_exec_result"], "verdict_by": "times",
            "timings": report["timings"], "reference": report, "candidates": [candidate],
        }));
        let response = response.unwrap();
        let found = CaseEvidence::of(&response, GateMetric::Time);
        assert_eq!(found, CaseEvidence::Error(why.to_owned()));
    }
}
