//! The report of a run, from what was planned and what was measured.

use super::report::{GateReport, MethodReport, Totals};
use super::{GatePlan, MeasuredCase, conclude};
use crate::report::{CompareResponse, VerdictBy};

/// Version of the report's format.
const SCHEMA_VERSION: u32 = 1;

/// When a run was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clocked {
    /// When it began, seconds since 1970.
    pub started_unix_s: u64,
    /// How long it took, seconds.
    pub duration_s: f64,
}

/// Concludes a run; `seen` is its first comparison that succeeded, `job_id` the job that it was.
pub fn finish(
    plan: GatePlan,
    cases: &[MeasuredCase],
    seen: Option<&CompareResponse>,
    clocked: Clocked,
    job_id: &str,
) -> GateReport {
    let (cases, verdict) = conclude(cases, plan.on_missing);
    let verdict_by = seen.map(|seen| seen.verdict_by);
    let mut notes = plan.notes;
    match (verdict_by, &plan.calibration) {
        (Some(VerdictBy::Times), None) => notes.push(
            "the suite is not calibrated: `warpgauge gate calibrate` finds cases that cannot \
             carry the gate"
                .to_owned(),
        ),
        (Some(VerdictBy::Counts), Some(_)) => {
            notes.push("counts are exact: the calibration is not used".to_owned());
        }
        _ => {}
    }
    GateReport {
        schema_version: SCHEMA_VERSION,
        warpgauge_version: env!("CARGO_PKG_VERSION").to_owned(),
        job_id: Some(job_id.to_owned()),
        suite: plan.suite,
        baseline: plan.baseline,
        commit: plan.commit,
        started_unix_s: clocked.started_unix_s,
        duration_s: clocked.duration_s,
        verdict,
        exit_code: verdict.exit_code(),
        statement: statement(verdict_by).to_owned(),
        verdict_by,
        device: seen.map(|seen| seen.device.clone()),
        method: seen.and_then(method),
        totals: Totals::of(&cases),
        notes,
        cases,
    }
}

fn statement(by: Option<VerdictBy>) -> &'static str {
    match by {
        Some(VerdictBy::Times) => {
            "Times of both sides, interleaved on one device; a regression was slower by more than \
             its margin twice, the second time in fresh processes."
        }
        Some(VerdictBy::Counts) => {
            "Exact counts of one launch on the emulated device, where a difference of one is a \
             difference. They say nothing of times."
        }
        None => "Nothing was measured.",
    }
}

fn method(seen: &CompareResponse) -> Option<MethodReport> {
    let measurement = seen.reference.measurement.as_ref()?;
    Some(MethodReport {
        method: measurement.method.clone(),
        method_version: measurement.method_version,
        driver: measurement.gpu.as_ref().and_then(|gpu| gpu.driver.clone()),
    })
}
