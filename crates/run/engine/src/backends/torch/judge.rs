//! One evaluation: it prepares candidate and references, calls them on the CPU or on a device, and
//! collects the results.

use std::collections::BTreeMap;

use super::account::{Account, Phase};
use super::backward;
use super::buffers::SharedBuffers;
use super::fault::{Failed, Stop};
use super::gpu::Gpu;
use super::gpu::calls::{DeviceCalls, Extras, Observed};
use super::host::{self, HostCalls};
use super::player::Player;
use super::players::{Players, Seeds};
use super::timing::{Plan, Timed};
use super::verification::{AskedOutputs, Findings, Rules, Verification};
use warpgauge_contract::Tolerance;
use warpgauge_report::{InputsShown, TorchParameters};
use warpgauge_torch::DeviceNoise;
use warpgauge_validate::ResolvedTolerance;

/// Results of an evaluation.
#[derive(Default)]
pub(super) struct Judged {
    pub findings: Findings,
    pub timed: Timed,
    /// Results of additional observations on a device.
    pub observed: Observed,
    /// The failure that ended the evaluation, and whether a reference failed.
    pub failed: Option<(Failed, bool)>,
    pub parameters: Option<TorchParameters>,
    pub shown: Option<InputsShown>,
    /// Message about a fault of the machine that prevented a verdict.
    pub broken: Option<String>,
}

/// An evaluation of a torch kernel that can be run.
pub(super) struct Judge {
    pub players: Players,
    pub tolerance: Option<Tolerance>,
    /// Tolerances of an earlier evaluation beside the same reference, by output.
    pub tolerances: BTreeMap<String, ResolvedTolerance>,
    pub asked: AskedOutputs,
    pub plan: Option<Plan>,
    /// Whether to compute gradients.
    pub backward: bool,
    /// Whether the candidate is the reference of a comparison.
    pub is_reference: bool,
    pub extras: Extras,
}

impl Judge {
    /// Runs the evaluation on `gpu`, or on the CPU if `gpu` is `None`. `noise` contains processes
    /// of earlier or later orders that still use the device.
    pub(super) fn run(
        mut self,
        gpu: Option<&Gpu>,
        noise: Option<DeviceNoise>,
    ) -> (Judged, Player, Account) {
        let mut judged = Judged::default();
        match self.calls((gpu, noise), &mut judged) {
            Ok(()) | Err(Stop::Wrong) => {}
            Err(Stop::Broken(what)) => judged.broken = Some(what),
            Err(Stop::Candidate(failed)) => judged.failed = Some((failed, false)),
            Err(Stop::Reference(failed)) => judged.failed = Some((failed, true)),
        }
        if gpu.is_none() {
            // The next evaluation is timed on the same cores. The next lease of a device waits for
            // their end.
            self.players.stop_for_good();
        }
        (judged, self.players.candidate, self.players.account)
    }

    fn calls(
        &mut self,
        (gpu, noise): (Option<&Gpu>, Option<DeviceNoise>),
        judged: &mut Judged,
    ) -> Result<(), Stop> {
        let players = &mut self.players;
        if self.backward {
            backward::begin(players)?;
        }
        players.account.spent_on(Phase::Loading);
        let varies = self.plan.is_some_and(|plan| plan.fresh) && players.can_vary();
        let shown = if varies { InputsShown::Fresh } else { InputsShown::Same };
        judged.shown = Some(shown);
        let own = players.own_seed();
        let seeds = (own, if varies { Seeds::Fresh } else { Seeds::Same(own) });
        let rules = Rules::of(
            players,
            self.tolerance.clone(),
            shown,
            (self.is_reference, self.asked.clone()),
        );
        let known = std::mem::take(&mut self.tolerances);
        let mut verification = Verification::new(rules, known);
        let ended = match gpu {
            Some(gpu) => {
                let calls = DeviceCalls {
                    gpu,
                    noise,
                    seeds,
                    plan: self.plan,
                    extras: &self.extras,
                    is_reference: self.is_reference,
                };
                let told = (&mut judged.timed, &mut judged.observed);
                calls.run(players, &mut verification, told)
            }
            None => {
                judged.parameters = host::share_parameters(players)?;
                let before = players.candidate.parameters().map_err(Stop::Candidate)?;
                let buffers = match self.is_reference {
                    true => SharedBuffers::default(),
                    false => SharedBuffers::of(players, &mut |player, buffer| {
                        player.elements(&buffer.tensor).map_err(Stop::Reference)
                    })?,
                };
                players.account.spent_on(Phase::Loading);
                let mut calls =
                    HostCalls { players, verification: &mut verification, buffers: &buffers };
                calls.run(self.plan, seeds, &before, &mut judged.timed)
            }
        };
        if let Some(parameters) = judged.observed.parameters.take() {
            judged.parameters = Some(parameters);
        }
        judged.findings = verification.concluded();
        if judged.findings.repeated_inputs > 0 {
            judged.shown = Some(InputsShown::Same);
        }
        ended
    }
}
