//! The gate: decides whether a change makes a suite of kernels slower.
//!
//! A suite ([`Suite`]) names cases, each with a contract, a kernel and a policy. The engine
//! compares the baseline and the candidate of a case like any two kernels. The result is the case's
//! [`CaseEvidence`]. [`decide`] derives outcomes from the evidence of a whole suite, by rules that
//! are reliable for many cases and many runs. The whole interval must lie beyond a margin, with
//! Holm's correction over the suite and a confirmation in fresh processes. A third outcome covers
//! cases in which nothing can be shown. [`Calibration`] contains the results of comparing each case
//! with itself. The [`report`] is one result in eight formats.
//!
//! The crate does no I/O; the command line handles files, git and servers.

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
