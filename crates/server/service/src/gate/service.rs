//! The gate's interface for the HTTP API and the command line.

#[cfg(doc)]
use crate::error::ServiceError;
use crate::submission::{Caller, JobSubmission, ServiceFuture};
use crate::suites::HistoryQuery;
use warpgauge_gate::history::HistoryAnswer;
use warpgauge_gate::report::GateReport;
use warpgauge_gate::{Baseline, BaselineSummary, GateRequest, NewBaseline};

/// The gate, its baselines and its history. Baselines and points belong to their owner.
pub trait GateService: Send + Sync {
    /// Runs a suite as a job and returns its report.
    ///
    /// # Errors
    /// [`ServiceError::Conflict`] if the baseline or the calibration was measured under other
    /// conditions than those of this machine.
    fn gate(
        &self,
        request: GateRequest,
        submission: JobSubmission,
    ) -> ServiceFuture<'_, GateReport>;

    /// Runs each case of a baseline once, and stores the baseline.
    fn put_baseline<'a>(
        &'a self,
        new: NewBaseline,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, BaselineSummary>;

    /// Returns the caller's baselines, sorted by name.
    fn baselines<'a>(&'a self, caller: &'a Caller) -> ServiceFuture<'a, Vec<BaselineSummary>>;

    /// Returns a baseline, including its code.
    fn baseline<'a>(&'a self, name: &'a str, caller: &'a Caller) -> ServiceFuture<'a, Baseline>;

    /// Makes the candidate of a passed gate job the baseline with this name.
    fn promote<'a>(
        &'a self,
        name: &'a str,
        job_id: &'a str,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, BaselineSummary>;

    fn remove_baseline<'a>(&'a self, name: &'a str, caller: &'a Caller) -> ServiceFuture<'a, ()>;

    /// Returns the results of cases over time.
    fn history<'a>(
        &'a self,
        query: HistoryQuery,
        caller: &'a Caller,
    ) -> ServiceFuture<'a, HistoryAnswer>;
}
