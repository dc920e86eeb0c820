//! What reading counters would take, asked of a child that needs no device.

use std::time::Duration;

use super::Fleet;
use super::asked::{Silence, ask};
use super::costs::usual_ms;
use crate::protocol::PlanReport;
use warpgauge_model::{Cause, Unavailable};
use warpgauge_sandbox::contained::Launch;

/// Longest time for a plan; it takes a fifth of a second.
const PLAN_TIMEOUT: Duration = Duration::from_secs(15);

impl Fleet {
    /// Plans the collection of NVIDIA's metrics on a chip, with the CUPTI that serves a device.
    ///
    /// # Errors
    /// There is no CUPTI, it does not know the chip or any of the metrics, or it failed.
    pub async fn plan_counters(
        &self,
        device: u32,
        chip: &str,
        metrics: &[String],
    ) -> Result<PlanReport, Unavailable> {
        let slot = self.plans.iter().position(|plan| plan.device == device);
        let Some((plan, libraries)) = slot.map(|slot| (&self.plans[slot], &self.cupti[slot]))
        else {
            return Err(Cause::NoTool.because(format!("there is no device {device}")));
        };
        let program = plan.program.counter_plan(chip, libraries);
        let input = serde_json::to_vec(metrics)
            .map_err(|error| Cause::ToolDied.because(format!("plan the passes: {error}")))?;
        let report: PlanReport =
            match ask(&Launch { input, ..Launch::new(program) }, PLAN_TIMEOUT).await {
                Ok(report) => report,
                Err(Silence::TimedOut) => {
                    return Err(Cause::TimedOut.because(format!("no plan within {PLAN_TIMEOUT:?}")));
                }
                Err(Silence::Ended(reason)) => {
                    return Err(Cause::ToolDied.because(format!("plan the passes: {reason}")));
                }
            };
        match report.unavailable {
            Some(unavailable) => Err(unavailable),
            None => Ok(report),
        }
    }

    /// Milliseconds that reading metrics of NVIDIA's takes on a device, as far as is known: by a
    /// worker that has read the same before.
    pub fn counters_ms(&self, device: u32, metrics: &[String], passes: u32) -> f64 {
        let slot = self.plans.iter().position(|plan| plan.device == device);
        let seen = slot.and_then(|slot| self.lock().slots[slot].profiler.costs.seen(metrics));
        seen.unwrap_or_else(|| usual_ms(metrics, passes))
    }
}

/// CUPTI's name for the chips of a compute capability, times 10: the one that its tables are of.
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
