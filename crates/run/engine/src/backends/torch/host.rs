//! Sequence of the calls of one evaluation on the CPU. First comes one call with the contract's
//! inputs, then one warm-up call, and then the timed calls. If inputs vary, each later call gets
//! new ones. All calls are verified.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::account::Phase;
use super::buffers::SharedBuffers;
use super::fault::Stop;
use super::inputs::Presented;
use super::lint::Lint;
use super::noise::HostNudges;
use super::player::Played;
use super::players::{Players, Seeds};
use super::timing::{Plan, Timed};
use super::values::Value;
use super::verification::{ParameterHashes, Verification, changed_parameters};
use warpgauge_report::TorchParameters;
use warpgauge_statistics::StopReason;
use warpgauge_torch::{ModuleParameter, TensorAt};
use warpgauge_validate::Reason;

/// Number of untimed calls between the first call and the timed ones.
pub(super) const WARMUP: u32 = 1;

/// Minimum number of timed calls, regardless of their duration.
const LEAST: usize = 3;

/// Copies the reference's parameters and buffers to the candidate's, through the judge's memory.
pub(super) fn share_parameters(players: &Players) -> Result<Option<TorchParameters>, Stop> {
    players.share_parameters(&mut |(reference, theirs), (candidate, own)| {
        let elements = reference.elements(theirs).map_err(Stop::Reference)?;
        candidate.overwrite(own, &elements).map_err(Stop::Candidate)
    })
}

/// Calls of candidate and references. Each call is verified before the next.
pub(super) struct HostCalls<'a> {
    pub players: &'a mut Players,
    pub verification: &'a mut Verification,
    pub buffers: &'a SharedBuffers,
}

impl HostCalls<'_> {
    /// Makes all calls: the first with the seed `own`, the others with `seeds`. `before` contains
    /// the hashes of the candidate's parameters before any call.
    pub(super) fn run(
        &mut self,
        plan: Option<Plan>,
        (own, seeds): (Option<u64>, Seeds),
        before: &ParameterHashes,
        timed: &mut Timed,
    ) -> Result<(), Stop> {
        self.measure_noise(own)?;
        self.call(own, true)?;
        self.check_buffers()?;
        if let Some(plan) = plan {
            self.time(plan, seeds, timed)?;
        }
        let now = self.players.candidate.parameters().map_err(Stop::Candidate)?;
        // A parameter that the reference also changes had the same contents before the calls.
        let changing = match self.players.expectations.references.first_mut() {
            Some(reference) if now != before => {
                let held = reference.player.parameters().map_err(Stop::Reference)?;
                changed_parameters(before, &held)
            }
            _ => Vec::new(),
        };
        self.verification.same_parameters(before, &now, &changing)?;
        // Data that were read since the candidate's last answer are only valid if it has remained
        // stopped.
        self.players.candidate.still_stopped().map_err(Stop::Candidate)
    }

    /// Verifies that the first call changed the candidate's buffers as it changed the reference's.
    fn check_buffers(&mut self) -> Result<(), Stop> {
        let Players { candidate, expectations, .. } = &mut *self.players;
        let Some(reference) =
            expectations.references.first_mut().filter(|_| !self.buffers.is_empty())
        else {
            return Ok(());
        };
        let theirs = &mut reference.player;
        let held = theirs.session.parameters().map_err(|fault| theirs.stopped(true, fault))?;
        let own =
            candidate.session.parameters().map_err(|fault| candidate.stopped(false, fault))?;
        let mut read_theirs =
            |buffer: &ModuleParameter| theirs.elements(&buffer.tensor).map_err(Stop::Reference);
        let mut read_own =
            |buffer: &ModuleParameter| candidate.elements(&buffer.tensor).map_err(Stop::Candidate);
        match self.buffers.verdict((&held, &mut read_theirs), (&own, &mut read_own))? {
            Some(reason) => Err(self.verification.wrong(reason)),
            None => Ok(()),
        }
    }

    /// Measures the effect of rounding on the references' results, with the inputs of the first
    /// call.
    fn measure_noise(&mut self, seed: Option<u64>) -> Result<(), Stop> {
        let generator = self.players.generator_of(seed);
        let Players { expectations, inputs, account, .. } = &mut *self.players;
        for reference in &mut expectations.references {
            if self.verification.wants_noise() {
                let mut calls = HostNudges { inputs, seed, generator, of_parameters: false };
                self.verification.noise.measure(reference, &mut calls)?;
            }
        }
        account.spent_on(Phase::Verifying);
        Ok(())
    }

    fn time(&mut self, plan: Plan, seeds: Seeds, timed: &mut Timed) -> Result<(), Stop> {
        for _ in 0..WARMUP {
            self.next(seeds)?;
        }
        let began = Instant::now();
        while timed.samples_ms.len() < plan.trials as usize
            && (timed.samples_ms.len() < LEAST || began.elapsed() < plan.max_time)
        {
            let took = self.next(seeds)?;
            timed.samples_ms.push((took.as_secs_f64() * 1e3) as f32);
        }
        let all = timed.samples_ms.len() == plan.trials as usize;
        timed.stopped = Some(if all { StopReason::TrialsDone } else { StopReason::TimeBudget });
        Ok(())
    }

    /// Makes a call other than the first.
    fn next(&mut self, seeds: Seeds) -> Result<Duration, Stop> {
        let seed = self.players.seeds_of(seeds, 1).into_iter().flatten().next();
        self.call(seed, false)
    }

    /// Makes one call of candidate and references with the same inputs. Returns the candidate's
    /// time.
    fn call(&mut self, seed: Option<u64>, first: bool) -> Result<Duration, Stop> {
        let generator = self.players.generator_of(seed);
        let Players { candidate, expectations, inputs, account, .. } = &mut *self.players;
        let (expected, shown) = expectations.of_call((candidate, inputs), seed, generator)?;
        account.spent_on(Phase::Verifying);
        if first {
            self.verification.found.arguments = Some(shown.arguments.clone());
        }
        let played = candidate.play(inputs, &shown, generator, None);
        account.spent_on(Phase::Executing);
        let played = played.map_err(Stop::Candidate)?;
        let took = self.verify(played, &expected, &shown, first);
        self.players.account.spent_on(Phase::Verifying);
        took
    }

    /// Verifies that inputs are unchanged and that results match the expected ones. Returns the
    /// candidate's time.
    fn verify(
        &mut self,
        played: Result<Played, Reason>,
        expected: &BTreeMap<String, Value>,
        shown: &Presented,
        first: bool,
    ) -> Result<Duration, Stop> {
        let Played { mut values, took } = match played {
            Ok(played) => played,
            Err(reason) => return Err(self.verification.wrong(reason)),
        };
        self.verification.found.verified += 1;
        self.verification.note_inputs(shown.digest());
        let Players { candidate, inputs, expectations, .. } = &*self.players;
        let with_reference = expectations.changed.as_deref().unwrap_or_default();
        let changing = [&inputs.changing()[..], with_reference].concat();
        let changed = shown.changed(&candidate.session, &changing);
        let changed = changed.map_err(|fault| candidate.stopped(false, fault))?;
        if let Some(place) = changed.first().filter(|_| !self.verification.is_reference()) {
            let name = inputs.name_of(place);
            return Err(self.verification.wrong(Reason::input_modified(&name, None)));
        }
        values.extend(
            candidate.arguments_at(inputs, shown, with_reference).map_err(Stop::Candidate)?,
        );
        let arguments = |wanted: &dyn Fn(&str, &TensorAt) -> bool| {
            candidate.arguments_where(inputs, shown, wanted).map_err(Stop::Candidate)
        };
        let mut inputs_of = || arguments(&|_, _| true);
        self.verification.call(values, expected, first, &mut inputs_of)?;
        if self.verification.wants_lint(first) {
            let copied = arguments(&|_, tensor| {
                Lint::could_be_copied(expected, tensor.dtype, tensor.bytes().unwrap_or(0))
            })?;
            self.verification.lint.see(expected, &copied);
        }
        Ok(took)
    }
}
