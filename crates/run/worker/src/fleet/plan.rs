//! Plans the reading of counters in a child process that needs no device.

use std::path::PathBuf;
use std::time::Duration;

use super::asked::{Silence, ask};
use super::kind::WorkerProgram;
use crate::protocol::PlanReport;
use warpgauge_model::{Cause, Unavailable};
use warpgauge_sandbox::contained::ProcessLaunch;

/// Time limit for a plan. Planning takes a fifth of a second.
const PLAN_TIMEOUT: Duration = Duration::from_secs(15);

/// Plans the collection of NVIDIA's metrics on a chip, with the first usable CUPTI of `libraries`.
///
/// # Errors
/// Fails if there is no CUPTI library, if CUPTI knows neither the chip nor any of the metrics, or
/// if CUPTI fails.
pub(super) async fn plan_counters(
    program: &WorkerProgram,
    libraries: &[PathBuf],
    chip: &str,
    metrics: &[String],
) -> Result<PlanReport, Unavailable> {
    let program = program.counter_plan(chip, libraries);
    let input = serde_json::to_vec(metrics)
        .map_err(|error| Cause::ToolDied.because(format!("cannot plan the passes: {error}")))?;
    let report: PlanReport =
        match ask(&ProcessLaunch { input, ..ProcessLaunch::new(program) }, PLAN_TIMEOUT).await {
            Ok(report) => report,
            Err(Silence::TimedOut) => {
                return Err(Cause::TimedOut
                    .because(format!("planning the passes took longer than {PLAN_TIMEOUT:?}")));
            }
            Err(Silence::Ended(reason)) => {
                return Err(Cause::ToolDied.because(format!("cannot plan the passes: {reason}")));
            }
        };
    match report.unavailable {
        Some(unavailable) => Err(unavailable),
        None => Ok(report),
    }
}

/// Returns CUPTI's name of a chip with a compute capability (times 10). If several chips have it,
/// returns the one that CUPTI's tables describe.
pub fn chip_of(capability: u32) -> Option<&'static str> {
    Some(match capability {
        70 => "GV100",
        72 => "GV11B",
        75 => "TU102",
        80 => "GA100",
        86 => "GA102",
        87 => "GA10B",
        89 => "AD102",
        90 => "GH100",
        100 => "GB100",
        120 => "GB202",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_have_names() {
        assert_eq!(chip_of(90), Some("GH100"));
        assert_eq!(chip_of(35), None);
    }
}
