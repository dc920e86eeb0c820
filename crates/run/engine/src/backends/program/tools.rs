//! Separate runs of a program under NVIDIA's tools.

use super::run::Ready;
use crate::error::ExecError;
use crate::host::Host;
use crate::profiling::nsight;
use crate::profiling::timeline;
use crate::whole_program::WholeProgram;
use warpgauge_metrics::DeviceMetrics;
use warpgauge_model::{Cause, Unavailable};
use warpgauge_nsight::{ToolFile, ncu, nsys};
use warpgauge_report::{Availability, TimelineReport};
use warpgauge_worker::Lease;

/// What NVIDIA's tools reported about a program.
#[derive(Default)]
pub(super) struct Seen {
    pub timeline: Option<TimelineReport>,
    /// Whether device metrics were collected, if they were requested.
    pub profile: Option<Availability>,
    pub device_metrics: Option<DeviceMetrics>,
    pub artifacts: Vec<ToolFile>,
}

/// Returns the reason why the tools are not run, or `None` if they are.
fn cannot_look(ready: &Ready<'_>, failed: bool) -> Option<Unavailable> {
    if ready.emulator.is_some() {
        let text = "the emulated device provides neither a timeline nor counters of programs; run the program on a GPU";
        return Some(Cause::UnsupportedDevice.because(text));
    }
    failed.then(|| Cause::ApplicationFailed.because("the program did not run to its end"))
}

/// Runs a program under Nsight Systems, and under Nsight Compute if the request asks for it.
/// `failed` means that the program failed without the tools.
pub(super) async fn look_into(
    host: &Host,
    ready: &Ready<'_>,
    lease: &mut Lease,
    failed: bool,
) -> Result<Seen, ExecError> {
    let mut seen = Seen::default();
    let unseen = cannot_look(ready, failed);
    let (timeline, artifacts) = match &unseen {
        Some(why) => (timeline::none(why.clone()), Vec::new()),
        None => traced(host, ready).await?,
    };
    seen.timeline = Some(timeline);
    seen.artifacts = artifacts;
    let Some(profile) = &ready.request.profile else { return Ok(seen) };
    let counted = match unseen {
        Some(why) => Err(why),
        None if nsight::wants_counters(profile) => counted(host, ready, lease).await?,
        // The timeline was already recorded, independently of the request.
        None if profile.tools.iter().all(|tool| tool == "nsys") => return Ok(seen),
        None => {
            let text = "hardware metrics of a program come from Nsight Compute: leave \
                        `profile.tools` out, or name `ncu`";
            Err(Cause::NoTool.because(text))
        }
    };
    seen.profile = Some(nsight::availability(counted.as_ref()));
    if let Ok((metrics, artifacts)) = counted {
        seen.device_metrics = Some(metrics);
        seen.artifacts.extend(artifacts);
    }
    Ok(seen)
}

/// Records a timeline of the program on the GPU.
async fn traced(
    host: &Host,
    ready: &Ready<'_>,
) -> Result<(TimelineReport, Vec<ToolFile>), ExecError> {
    let (WholeProgram { stdin, directory, .. }, command) = ready.under_tool("nsys")?;
    let limit = host.tool_limit();
    let traced = nsys::trace_program(&host.tools, &command, stdin, &directory, limit).await;
    Ok(timeline::reported(traced, ready.device, None))
}

/// Reads hardware metrics of the program's kernels.
async fn counted(
    host: &Host,
    ready: &Ready<'_>,
    lease: &mut Lease,
) -> Result<Result<(DeviceMetrics, Vec<ToolFile>), Unavailable>, ExecError> {
    let (WholeProgram { stdin, directory, .. }, command) = ready.under_tool("ncu")?;
    let subject = ncu::NcuTarget::Program {
        program: &command,
        stdin: &stdin,
        writes: &directory,
        launches: nsight::LAUNCHES,
    };
    let of = (ready.request, ready.device);
    Ok(nsight::metrics_of_launches(host, lease, of, subject, &directory, "program").await)
}
