//! Device metrics of a report: from the best source that the device has.

use super::prepare::Prepared;
use crate::contract::{EvaluateRequest, ProfileSpec};
use crate::profile::{self, DeviceMetrics, Launch};
use crate::report::Availability;
use crate::worker::protocol::{DeviceInfo, DeviceKind, RunOutcome};

/// Names by which `profile.tools` asks for the emulator's counts.
const EMULATOR_TOOLS: [&str; 2] = ["auto", "emulator"];

/// Whether the worker is to count.
pub(super) fn wants_counts(request: &EvaluateRequest) -> bool {
    request.profile.as_ref().is_some_and(accepts_emulator)
}

fn accepts_emulator(profile: &ProfileSpec) -> bool {
    let accepts = |tool: &String| EMULATOR_TOOLS.contains(&tool.as_str());
    profile.tools.is_empty() || profile.tools.iter().any(accepts)
}

/// The metrics that the request asks for, or why there are none; nothing if it asks for none.
pub(super) fn report(
    request: &EvaluateRequest,
    device: &DeviceInfo,
    prepared: &Prepared,
    outcome: &RunOutcome,
) -> (Option<Availability>, Option<DeviceMetrics>) {
    let Some(profile) = &request.profile else { return (None, None) };
    if device.kind != DeviceKind::Emulator {
        return unavailable(
            "hardware metrics are not collected by this version; leave `profile` out, or run the \
             contract with `--device emulator`, which counts instructions and memory accesses",
        );
    }
    if !accepts_emulator(profile) {
        return unavailable(&format!(
            "{} cannot profile the emulated device; leave `profile.tools` out or add `emulator`",
            profile.tools.join(", ")
        ));
    }
    let Some(counts) = &outcome.counts else {
        return unavailable("the kernel did not run to its end, so there is nothing to count");
    };
    let launch = &prepared.job.launch;
    let launched = Launch {
        device,
        function: outcome.function.as_ref(),
        grid: launch.grid,
        block: launch.block,
        dynamic_shared_bytes: launch.shared_bytes,
    };
    let metrics = profile::emulator_metrics(counts, &launched, &profile::select(&profile.metrics));
    (Some(Availability { available: true, reason: None }), Some(metrics))
}

fn unavailable(reason: &str) -> (Option<Availability>, Option<DeviceMetrics>) {
    (Some(Availability { available: false, reason: Some(reason.to_owned()) }), None)
}
