//! What the comparison of one case showed, as the decision needs it.

use super::Metric;
use crate::measure::Counted;
use crate::measure::paired::PairedComparison;
use crate::report::{
    CompareResponse, CountComparison, EvaluateResponse, ResponseStatus, ValidationStatus,
};
use crate::worker::protocol::DeviceKind;

/// What there is to judge a case by.
#[derive(Debug, Clone, PartialEq)]
pub enum Evidence {
    /// The baseline or the candidate lacks the case.
    Missing(String),
    /// The case could not be measured, through no fault of the candidate.
    Error(String),
    /// The candidate does not do what the baseline does.
    Invalid(String),
    /// Both are one image with one launch, and right: there was nothing to measure.
    Identical,
    /// Times, side by side.
    Times(Box<PairedComparison>),
    /// Exact counts of one launch, those that the metric is about.
    Counts(Vec<CountComparison>),
}

impl Evidence {
    /// From the comparison of the baseline (the reference) with the candidate.
    pub fn of(response: &CompareResponse, metric: Metric) -> Self {
        let Some(candidate) = response.candidates.first() else {
            return Self::Error("the answer has no candidate in it".to_owned());
        };
        let own = &candidate.evaluation;
        if own.status == ResponseStatus::Error {
            return Self::Error(what_failed(own));
        }
        if !is_right(own) {
            return Self::Invalid(what_failed(own));
        }
        match (response.device.kind, metric) {
            (DeviceKind::Cuda, Metric::Time) if candidate.same_image => Self::Identical,
            (DeviceKind::Cuda, Metric::Time) => match &candidate.comparison {
                Some(comparison) => Self::Times(Box::new(comparison.clone())),
                None => Self::Error(candidate.not_compared.clone().unwrap_or_else(|| {
                    "the times were not compared, and the answer does not say why".to_owned()
                })),
            },
            (DeviceKind::Cuda, Metric::Count(name)) => Self::Error(format!(
                "`{name}` is counted on the emulated device only; run this suite with `--device \
                 emulator`, or gate this case on `time`"
            )),
            (DeviceKind::Emulator, Metric::Time) => {
                match response.reference.counted.zip(own.counted) {
                    Some((reference, own)) => Self::Counts(both(reference, own)),
                    None => Self::Error("the emulated device counted nothing".to_owned()),
                }
            }
            (DeviceKind::Emulator, Metric::Count(name)) => {
                match candidate.counts.iter().find(|one| one.count == name) {
                    Some(count) => Self::Counts(vec![count.clone()]),
                    None => Self::Error(format!("the emulated device did not count `{name}`")),
                }
            }
        }
    }
}

/// The two counts that stand for time where there is none.
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

/// Whether nothing is known against a kernel.
fn is_right(report: &EvaluateResponse) -> bool {
    let result = &report.kernel_exec_result;
    result.compiled
        && result.correctness != Some(false)
        && report.failure.is_none()
        && matches!(
            report.validation.status,
            ValidationStatus::Passed | ValidationStatus::NotChecked
        )
}

/// The first thing that is known against a kernel.
fn what_failed(report: &EvaluateResponse) -> String {
    let result = &report.kernel_exec_result;
    let failure = report.failure.as_ref();
    let run = failure.map(|failure| format!("{} ({})", failure.message, failure.code));
    let compiler =
        result.compilation_error.as_ref().map(|text| format!("it does not compile: {text}"));
    compiler
        .or_else(|| result.validation_error.clone())
        .or(run)
        .unwrap_or_else(|| "its outputs were not found right".to_owned())
}
