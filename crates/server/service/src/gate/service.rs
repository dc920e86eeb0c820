//! What the layers above ask of the gate.

#[cfg(doc)]
use crate::error::ServiceError;
use crate::submission::{Caller, JobSubmission, ServiceFuture};
use crate::suites::HistoryQuery;
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::report::GateReport;
use warpgauge_gate::{Baseline, BaselineSummary, GateRequest, NewBaseline};

/// The gate, its baselines and the history. Baselines and points are their owner's.
pub trait GateService: Send + Sync {
    /// Takes a suite to its verdict; a job like any other.
    ///
    /// # Errors
    /// [`ServiceError::Conflict`] where the baseline or the calibration is for something else than
    /// what there is here.
    fn gate(
        &self,
        request: GateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, GateReport>;

    /// Runs each case once, and stores the baseline.
    fn put_baseline<'a>(
        &'a self,
        new: NewBaseline,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, BaselineSummary>;

    /// The caller's baselines, by name.
    fn baselines<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, Vec<BaselineSummary>>;

    /// One of them, with its code.
    fn baseline<'a>(&'a self, name: &'a str, caller: &'a Caller) -> ServiceFuture<'a, Baseline>;

    /// Makes the candidate of a gate's job that passed the baseline of that name.
    fn promote<'a>(
        &'a self,
        name: &'a str,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, BaselineSummary>;

    /// Removes one.
    fn remove_baseline<'a>(&'a self, name: &'a str, caller: &'a Caller) -> ServiceFuture<'a, ()>;

    /// How cases fared over time.
    fn history<'a>(
        &'a self,
        query: HistoryQuery,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, HistoryAnswer>;
}
