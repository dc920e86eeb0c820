//! The gate: does a change make a suite of kernels slower?
//!
//! A suite ([`Suite`]) names cases: a contract, a kernel and a policy each. Baseline and candidate of
//! a case are compared by the pipeline like any two kernels; what that showed is the case's
//! [`CaseEvidence`]. [`decide`] makes outcomes of the evidence of a whole suite, by rules that bear many
//! cases and many runs: the whole interval beyond a margin, Holm's correction over the suite, a
//! confirmation in a fresh process, and a third outcome where nothing can be shown. [`Calibration`]
//! is what each case showed against itself. The [`report`] is one result in seven formats.
//!
//! Everything here is pure; files, git and servers are the command line's.

#![forbid(unsafe_code)]

mod baseline;
mod calibration;
mod decide;
mod evidence;
mod finish;
pub mod history;
mod measured;
mod pin;
mod plan;
pub mod report;
mod request;
mod seen;
mod sides;
#[cfg(test)]
mod simulation;
mod suite;

pub use baseline::{
    Baseline, BaselineCase, BaselineSummary, NewBaseline, Promotion, check_baseline_name,
};
pub use calibration::{
    CalibratedCase, Calibration, CalibrationConditions, CalibrationError, MIN_RUNS, PlannedTest,
    calibrated,
};
pub use decide::{
    GateOutcome, GateReason, JudgedCase, SuiteVerdict, Verdict, decide, suite_verdict, to_confirm,
};
pub use evidence::{CaseEvidence, NoBaseline};
pub use finish::{RunInterval, finish};
pub use measured::{MeasuredCase, conclude, idle_multiprocessors, unconfirmed, with_calibration};
pub use pin::{BaselinePin, PinMismatch};
pub use plan::{ADVISORY_RATE, CaseCode, GatePlan, PlannedCase, first_alphas};
pub use request::{BaselineOrigin, GateCase, GateRequest, RemovedCase};
pub use seen::RunEnvironment;
pub use sides::{CasePair, ComparisonSettings, alone};
pub use suite::{
    CasePolicy, CaseSpec, GateMetric, MAX_CASES, MAX_SUITE_BYTES, OnInconclusive, OnMissing,
    PolicyFile, Suite, SuiteError,
};
