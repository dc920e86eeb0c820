//! Builds the report of a run from its plan and its measurements.

use super::report::{CaseReport, GateReport, Totals};
use super::{GateOutcome, GatePlan, GateReason, MeasuredCase, RunEnvironment, conclude};
use warpgauge_report::VerdictBy;

/// Version of the report's format.
const SCHEMA_VERSION: u32 = 1;

/// Time and duration of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunInterval {
    /// Start, seconds since the Unix epoch.
    pub started_unix_s: u64,
    /// Duration, seconds.
    pub duration_s: f64,
}

/// Builds the report of a run. `seen` is the environment of its measurements.
pub fn finish(
    plan: GatePlan,
    cases: &[MeasuredCase],
    seen: Option<&RunEnvironment>,
    clocked: RunInterval,
    job_id: &str,
) -> GateReport {
    let (cases, verdict) = conclude(cases, plan.on_missing);
    let verdict_by = seen.filter(|seen| seen.method.is_some()).map(RunEnvironment::verdict_by);
    let mut notes = plan.notes;
    match (verdict_by, &plan.calibration) {
        (Some(VerdictBy::Times), None) => notes.push(
            "the suite is not calibrated: `warpgauge gate calibrate` finds cases that are too \
             noisy for the gate"
                .to_owned(),
        ),
        (Some(VerdictBy::Counts), Some(_)) => {
            notes.push("counts are exact: the calibration is not used".to_owned());
        }
        _ => {}
    }
    GateReport {
        matrices: Vec::new(),
        tensors: Vec::new(),
        schema_version: SCHEMA_VERSION,
        warpgauge_version: env!("CARGO_PKG_VERSION").to_owned(),
        job_id: Some(job_id.to_owned()),
        page: None,
        suite: plan.suite,
        baseline: plan.baseline,
        commit: plan.commit,
        branch: plan.branch,
        started_unix_s: clocked.started_unix_s,
        duration_s: clocked.duration_s,
        verdict,
        exit_code: verdict.exit_code(),
        statement: statement(verdict_by, &cases).to_owned(),
        verdict_by,
        device: seen.map(|seen| seen.device.clone()),
        method: seen.and_then(|seen| seen.method.clone()),
        totals: Totals::of(&cases),
        notes,
        cases,
    }
}

fn statement(by: Option<VerdictBy>, cases: &[CaseReport]) -> &'static str {
    let is_new = |case: &CaseReport| case.outcome == GateOutcome::New;
    let compared = |case: &CaseReport| case.comparison.is_some() || !case.counts.is_empty();
    match by {
        _ if cases.iter().any(is_new) && !cases.iter().any(compared) => {
            "Nothing was compared: new cases were compiled, run and checked alone."
        }
        Some(VerdictBy::Times) => {
            "Times of both sides, interleaved on one device; a regression is slower by more than \
             its margin in both comparisons, of which the second ran in fresh processes."
        }
        Some(VerdictBy::Counts) => {
            "Exact counts of one launch on the emulated device, where even a difference of one is \
             significant. They say nothing about times."
        }
        _ if cases.iter().any(|case| case.reason == GateReason::OnlyRight) => {
            "Torch kernels were only checked for correctness, because times of the CPU are not \
             ranked."
        }
        Some(VerdictBy::Nothing) | None => "Nothing was measured.",
    }
}
