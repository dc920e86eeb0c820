//! The order of the calls of one evaluation on a device: one with the contract's own inputs, batches that are timed,
//! both sides in turns, and then calls that others look at. Every call but these is verified.

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

/// What is wanted of a device beside times.
pub(in crate::backends::torch) struct Extras {
    /// How the candidate is timed beside the reference, if it is to be.
    pub beside: Option<SideBySide>,
    /// Whether the device's activity is traced.
    pub trace: bool,
    /// Whether a call is to be made that the tool round the candidate looks at.
    pub count: bool,
}

/// What came of it.
#[derive(Default)]
pub(in crate::backends::torch) struct Observed {
    /// The candidate beside the reference.
    pub compared: Option<Compared>,
    /// What the device did during some calls, or why that is not known.
    pub traced: Option<Result<Traced, String>>,
    /// Whether a call was made that a tool looked at, or why not.
    pub counted: Option<Result<(), String>>,
    /// Parameters and buffers of the candidate's module, if it has any.
    pub parameters: Option<TorchParameters>,
}

/// The calls of one evaluation.
pub(in crate::backends::torch) struct DeviceCalls<'a> {
    pub gpu: &'a Gpu,
    /// Of the first call, and of the others.
    pub seeds: (Option<u64>, Seeds),
    pub plan: Option<Plan>,
    pub extras: &'a Extras,
    /// Whether it is the reference of a comparison.
    pub is_reference: bool,
}

impl DeviceCalls<'_> {
    /// Makes them, and verifies each.
    pub(in crate::backends::torch) fn run(
        &self,
        players: &mut Players,
        verification: &mut Verification,
        (timed, observed): (&mut Timed, &mut Observed),
    ) -> Result<(), Stop> {
        let Self { gpu, seeds: (own, seeds), plan, extras, is_reference } = *self;
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
            let most = batches.most();
            timing.run(&mut batches, plan, seeds, most)?;
            if let (Some(pairing), Some(calls)) = (&mut pairing, timing.calls()) {
                batches.players.extend(pairing.max_time());
                pairing.run(&mut batches, seeds, (calls, most))?;
            }
        }
        batches.check_parameters(&before)?;
        batches.players.account.spent_on(Phase::Verifying);
        // Nothing counts that is read of the candidate after this.
        batches.players.candidate.still_stopped().map_err(Stop::Candidate)?;
        if extras.trace {
            observed.traced = Some(traced::trace(&mut batches, seeds)?);
        }
        if extras.count {
            observed.counted = Some(counted::count(&mut batches, own)?);
        }
        batches.players.account.spent_on(Phase::Profiling);
        if plan.is_some() {
            let mut quiet = batches.quiet();
            timing.conclude(&mut quiet)?;
            observed.compared = match pairing {
                Some(pairing) => pairing.conclude(&mut quiet)?,
                None => None,
            };
        }
        Ok(())
    }
}
