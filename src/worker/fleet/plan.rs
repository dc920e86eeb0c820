//! What reading counters would take, asked of a child that needs no device.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::Fleet;
use super::costs::usual_ms;
use crate::environment;
use crate::profile::{Cause, Unavailable};
use crate::worker::child::PlanReport;

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
        let mut command = Command::new(&plan.program);
        command.env_clear().envs(environment::of_child());
        command.arg("__worker").arg("--counters").arg("--plan").arg(chip);
        for library in libraries {
            command.arg("--cupti").arg(library);
        }
        let report = timeout(PLAN_TIMEOUT, ask(command, metrics)).await;
        let report = report
            .map_err(|_| Cause::TimedOut.because(format!("no plan within {PLAN_TIMEOUT:?}")))?
            .map_err(|reason| Cause::ToolDied.because(format!("plan the passes: {reason}")))?;
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

async fn ask(mut command: Command, metrics: &[String]) -> Result<PlanReport, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let text = |error: std::io::Error| error.to_string();
    let mut child: Child = command.spawn().map_err(text)?;
    let list = serde_json::to_vec(metrics).map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // One that ended without reading says why on its own.
        let _ = input.write_all(&list).await;
    }
    let output = child.wait_with_output().await.map_err(text)?;
    let printed = String::from_utf8_lossy(&output.stdout);
    // Libraries may print lines of their own; ours is the last.
    let report = printed.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    report.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        let end: String = said.trim().chars().take(2000).collect();
        format!("{}; it said: {end}", output.status)
    })
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
