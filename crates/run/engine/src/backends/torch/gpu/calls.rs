//! Sequence of the calls of one evaluation on a device. First comes one call with the contract's
//! inputs, then timed batches, then turns of both sides, and last the calls that tools observe. All
//! calls except the last ones are verified.

use super::batches::Batches;
use super::beside::{Compared, Pairing, SideBySide};
use super::stage::Stage;
use super::timing::DeviceTiming;
use super::traced::Traced;
use super::{Gpu, counted, traced};
use crate::backends::torch::account::Phase;
use crate::backends::torch::buffers::SharedBuffers;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::players::{Players, Seeds};
use crate::backends::torch::timing::{Plan, Timed};
use crate::backends::torch::verification::Verification;
use warpgauge_report::TorchParameters;
use warpgauge_torch::DeviceNoise;

/// Observations that are requested in addition to the candidate's times.
pub(in crate::backends::torch) struct Extras {
    /// Plan for timing candidate and reference in turns; `None` if not requested.
    pub beside: Option<SideBySide>,
    /// Whether to trace the device's activity.
    pub trace: bool,
    /// Whether to make one call that is observed by the profiler around the candidate's runner.
    pub count: bool,
}

/// Results of the requested observations.
#[derive(Default)]
pub(in crate::backends::torch) struct Observed {
    /// Paired times of candidate and reference.
    pub compared: Option<Compared>,
    /// Activity of the device during some calls, or the reason why it is unknown. `None` if not
    /// requested.
    pub traced: Option<Result<Traced, String>>,
    /// Whether the profiler observed a call, or the reason why it did not. `None` if not requested.
    pub counted: Option<Result<(), String>>,
    /// Report entry on parameters and buffers of the candidate's module, if it has any.
    pub parameters: Option<TorchParameters>,
}

/// The calls of one evaluation on a device.
pub(in crate::backends::torch) struct DeviceCalls<'a> {
    pub gpu: &'a Gpu,
    /// Processes of earlier evaluations that may still use the device.
    pub noise: Option<DeviceNoise>,
    /// Seed of the first call's inputs, and how later inputs are seeded.
    pub seeds: (Option<u64>, Seeds),
    pub plan: Option<Plan>,
    pub extras: &'a Extras,
    /// Whether the candidate is the reference of a comparison.
    pub is_reference: bool,
}

impl DeviceCalls<'_> {
    /// Makes all calls. Verifies each of them, except those that tools observe.
    pub(in crate::backends::torch) fn run(
        self,
        players: &mut Players,
        verification: &mut Verification,
        (timed, observed): (&mut Timed, &mut Observed),
    ) -> Result<(), Stop> {
        let Self { gpu, noise, seeds: (own, seeds), plan, extras, is_reference } = self;
        let mut stage = Stage::open(gpu, players)?;
        observed.parameters = stage.share_parameters(players)?;
        let before = stage.candidate_parameters(&mut players.candidate)?;
        let buffers = match is_reference {
            true => SharedBuffers::default(),
            false => SharedBuffers::of(players, &mut |player, buffer| {
                stage.references[0].held(gpu, player, (buffer, true))
            })?,
        };
        players.account.spent_on(Phase::Loading);
        let is_paired = players.expectations.references.len() == 1;
        let mut batches = Batches { players, verification, stage };
        batches.make(&[own], 0, true)?;
        batches.check_buffers(&buffers)?;
        let mut timing = DeviceTiming::new(timed);
        let beside = extras.beside.clone().filter(|_| is_paired);
        let mut pairing = beside.map(Pairing::new);
        if let Some(plan) = plan {
            if let Some(noise) = noise {
                noise.end();
                batches.players.account.spent_on(Phase::Starting);
            }
            let most = batches.most();
            timing.run(&mut batches, plan, seeds, most)?;
            if let (Some(pairing), Some(calls)) = (&mut pairing, timing.calls()) {
                batches.players.extend(pairing.max_time());
                pairing.run(&mut batches, seeds, (calls, most))?;
            }
            let beside = pairing.iter().flat_map(Pairing::candidate_turns);
            timing.complete(&mut batches, plan, seeds, beside)?;
        }
        batches.check_parameters(&before)?;
        batches.players.account.spent_on(Phase::Verifying);
        // Nothing that the candidate sends after this point affects the verdict.
        batches.players.candidate.still_stopped().map_err(Stop::Candidate)?;
        if extras.trace {
            observed.traced = Some(traced::trace(&mut batches, seeds)?);
        }
        if extras.count {
            observed.counted = Some(counted::count(&mut batches, own)?);
        }
        batches.players.account.spent_on(Phase::Profiling);
        if let Some(pairing) = &mut pairing {
            pairing.run_alone(&mut batches, seeds)?;
        }
        if plan.is_some() {
            let mut quiet = batches.quiet(is_reference);
            timing.conclude(&mut quiet)?;
            observed.compared = match pairing {
                Some(pairing) => pairing.conclude(&mut quiet)?,
                None => None,
            };
        }
        Ok(())
    }
}
