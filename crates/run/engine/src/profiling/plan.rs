//! Plans of profiles: sources, counters and estimated time. Planning runs no kernel.

use crate::error::{ExecError, Problem};
use crate::host::Host;
use crate::prepare::accepts_emulator;
use crate::profiling::monitored;
use crate::profiling::profiled::{self, MAX_PASSES, Rung};
use warpgauge_contract::{Checked, EvaluateRequest, KernelRuntime};
use warpgauge_metrics::{MetricSource, Selection, gpm};
use warpgauge_model::{Cause, DeviceInfo, DeviceKind, FailureCode, Unavailable};
use warpgauge_nsight::{counters, ncu};
use warpgauge_report::ProfilePlan;
use warpgauge_worker::chip_of;

/// Time for reading counters in addition to the passes, in milliseconds.
const FIXED_MS: f64 = 10.0;

/// Plans the profile that a request asks for, or the default profile if it asks for none.
pub(crate) async fn of(
    host: &Host,
    request: &Checked<EvaluateRequest>,
) -> Result<ProfilePlan, ExecError> {
    let is_launched = match request.kernel.family().runtime() {
        KernelRuntime::Worker => true,
        KernelRuntime::Judge | KernelRuntime::Process => false,
    };
    if !is_launched {
        let kind = request.kernel.kernel_type.name();
        return Err(ExecError::Invalid(vec![Problem {
            path: "kernel.kernel_type".to_owned(),
            code: FailureCode::UnsupportedKernelType,
            message: format!(
                "a profile is planned for kernels that are launched here, but a `{kind}` launches its kernels itself"
            ),
        }]));
    }
    let device = host.device_for(&request.requires)?;
    let selection = profiled::selection(request, device.kind);
    let mut plan = ProfilePlan {
        device: device.ordinal,
        kind: device.kind,
        source: MetricSource::Static,
        tool: None,
        chip: None,
        metrics: selection.metrics.iter().map(|info| info.id.to_owned()).collect(),
        unknown: selection.unknown.iter().cloned().collect(),
        counters: Vec::new(),
        missing: Default::default(),
        passes: Some(0),
        max_passes: MAX_PASSES,
        estimated_ms: Some(0.0),
        unavailable: None,
    };
    if device.kind == DeviceKind::Emulator {
        emulated(request, &mut plan);
        return Ok(plan);
    }
    let names = warpgauge_metrics::counter_names(&selection, device.target.architecture());
    plan.counters = names.into_iter().map(str::to_owned).collect();
    let tools = request.profile.as_ref().map_or(&[][..], |profile| &profile.tools);
    let (rungs, mut failures) = profiled::ladder(tools);
    for rung in rungs {
        let planned = match rung {
            Rung::Static => break,
            // All requested metrics are derived from the launch.
            _ if plan.counters.is_empty() => break,
            Rung::Cupti => counters_of(host, &device, &mut plan).await,
            Rung::Ncu => external(host, &mut plan).await,
            Rung::Gpm => monitoring(&device, &selection, &mut plan),
        };
        match planned {
            Ok(()) => break,
            Err(unavailable) => failures.push((profiled::name(rung).to_owned(), unavailable)),
        }
    }
    plan.unavailable = profiled::told(&failures);
    Ok(plan)
}

/// Plans a profile on the emulated device: one additional launch, which takes as long as the
/// kernel.
fn emulated(request: &EvaluateRequest, plan: &mut ProfilePlan) {
    if let Some(refused) = request.profile.as_ref().and_then(profiled::refused_by_emulator) {
        plan.unavailable = Some(refused);
    }
    plan.source = MetricSource::Emulator;
    if !request.profile.as_ref().is_none_or(accepts_emulator) {
        plan.metrics.clear();
        (plan.passes, plan.estimated_ms) = (None, None);
        return;
    }
    for id in std::mem::take(&mut plan.metrics) {
        match warpgauge_metrics::not_emulated(&id) {
            Some(reason) => {
                plan.missing.insert(id, reason.to_owned());
            }
            None => plan.metrics.push(id),
        }
    }
    (plan.passes, plan.estimated_ms) = (Some(1), None);
}

/// Plans a profile by Nsight Compute. Its number of passes is unknown before the run.
async fn external(host: &Host, plan: &mut ProfilePlan) -> Result<(), Unavailable> {
    let version = ncu::version(&host.tools).await?;
    if let Some(refused) = counters::access().refused {
        return Err(refused);
    }
    plan.source = MetricSource::Ncu;
    plan.tool = Some(version);
    (plan.passes, plan.estimated_ms) = (None, None);
    Ok(())
}

async fn counters_of(
    host: &Host,
    device: &DeviceInfo,
    plan: &mut ProfilePlan,
) -> Result<(), Unavailable> {
    let Some(chip) = chip_of(device.target.architecture()) else {
        let (major, minor) = device.target.compute_capability;
        let text = format!("compute capability {major}.{minor} is not supported");
        return Err(Cause::UnsupportedDevice.because(text));
    };
    let found = host.fleet.plan_counters(device.ordinal, chip, &plan.counters).await?;
    plan.source = MetricSource::Cupti;
    plan.tool = Some(found.tool);
    plan.chip = Some(chip.to_owned());
    plan.missing = found.refused;
    plan.passes = Some(found.passes);
    let own = host.fleet.counters_ms(device.ordinal, &plan.counters, found.passes);
    plan.estimated_ms = Some(FIXED_MS + own);
    Ok(())
}

/// Plans a profile by monitoring, which takes one reading for any selection of metrics.
fn monitoring(
    device: &DeviceInfo,
    selection: &Selection,
    plan: &mut ProfilePlan,
) -> Result<(), Unavailable> {
    if let Some(why) = &device.unmonitored {
        return Err(why.clone());
    }
    if !gpm::tells(selection) {
        return Err(Cause::NoData.because("it supplies none of the requested metrics"));
    }
    plan.source = MetricSource::Gpm;
    plan.tool = Some("NVML GPM".to_owned());
    plan.passes = None;
    plan.estimated_ms = Some(monitored::USUAL_MS);
    plan.counters.clear();
    Ok(())
}
