//! What a profile would take, told before anything runs.

use super::error::ServiceError;
use super::profiled::{self, MAX_PASSES, Rung};
use super::run::Shared;
use crate::contract::EvaluateRequest;
use crate::profile::{self, Cause, MetricSource};
use crate::report::ProfilePlan;
use crate::worker::chip_of;
use crate::worker::protocol::{DeviceInfo, DeviceKind};

/// What reading counters takes beside the passes, milliseconds.
const FIXED_MS: f64 = 10.0;

impl Shared {
    /// Plans the profile that a request asks for; one that asks for none gets the default's.
    pub(super) async fn profile_plan(
        &self,
        request: &EvaluateRequest,
    ) -> Result<ProfilePlan, ServiceError> {
        self.check(request)?;
        let device = self.default_device()?;
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
            // One more launch, which takes as long as the kernel does.
            (plan.source, plan.passes, plan.estimated_ms) = (MetricSource::Emulator, Some(1), None);
            return Ok(plan);
        }
        let names = profile::counter_names(&selection, device.target.architecture());
        plan.counters = names.into_iter().map(str::to_owned).collect();
        let tools = request.profile.as_ref().map_or(&[][..], |profile| &profile.tools);
        let (rungs, mut failures) = profiled::ladder(tools);
        if rungs.contains(&Rung::Cupti) && !plan.counters.is_empty() {
            match self.counters(&device, &mut plan).await {
                Ok(()) => failures.clear(),
                Err(unavailable) => failures.push(("cupti".to_owned(), unavailable)),
            }
        }
        plan.unavailable = profiled::told(&failures);
        Ok(plan)
    }

    async fn counters(
        &self,
        device: &DeviceInfo,
        plan: &mut ProfilePlan,
    ) -> Result<(), profile::Unavailable> {
        let Some(chip) = chip_of(device.target.architecture()) else {
            let (major, minor) = device.target.compute_capability;
            let text = format!("no chip of compute capability {major}.{minor} is known");
            return Err(Cause::UnsupportedDevice.because(text));
        };
        let found = self.fleet.plan_counters(device.ordinal, chip, &plan.counters).await?;
        plan.source = MetricSource::Cupti;
        plan.tool = Some(found.tool);
        plan.chip = Some(chip.to_owned());
        plan.missing = found.refused;
        plan.passes = Some(found.passes);
        let pass_ms = self.fleet.pass_ms(device.ordinal);
        plan.estimated_ms = Some(FIXED_MS + f64::from(found.passes) * pass_ms);
        Ok(())
    }
}
