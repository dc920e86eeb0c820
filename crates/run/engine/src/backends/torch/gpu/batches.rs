//! Batches of calls of candidate and references on the same inputs. Each call is verified.

use super::arena::Whose;
use super::blocks::Blocks;
use super::compared::DeviceComparison;
use super::expect::{DeviceNudges, Expected, expected, named_calls};
use super::stage::{CallOrder, FEWEST_COUNTED, Side, Stage, not_shelved};
use super::turn::{Overhead, Turn};
use crate::backends::torch::account::Phase;
use crate::backends::torch::buffers::SharedBuffers;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::inputs::Inputs;
use crate::backends::torch::lint::Lint;
use crate::backends::torch::players::{Players, Seeds};
use crate::backends::torch::values::{Named, Value};
use crate::backends::torch::verification::{ParameterHashes, Verification, changed_parameters};
use warpgauge_model::gate_page::{Digest, MOST_RANGES};
use warpgauge_torch::{MAX_FRAME_BYTES, RunnerFault};
use warpgauge_validate::Reason;

/// Maximum number of calls of a batch if the host must rearrange results into C order, because the
/// device cannot.
const STRIDED: u32 = 16;

/// Maximum number of bytes that the description of one returned tensor takes in a message.
const TOLD_BYTES: usize = 384;

/// Granularity and maximum size of padding, in bytes. A runner allocates padding so that the rest
/// of its memory has another location.
const PADDING: u64 = 2 << 20;
const MOST_PADDING: u64 = 4 << 30;

/// Seeds of the inputs of a batch's calls, and the seed of the batch's random numbers.
pub(super) type With<'s> = (&'s [Option<u64>], u64);

/// Result of a batch of the candidate's calls.
pub(super) struct Made {
    /// Times by the judge's clock. Only for locked calls whose results are all on the device.
    pub(super) turn: Option<Turn>,
    /// Results of each call, with the paths of the values.
    pub(super) values: Vec<Named>,
}

/// Candidate and references on the device, ready to be called.
pub(super) struct Batches<'j, 'g> {
    pub(super) players: &'j mut Players,
    pub(super) verification: &'j mut Verification,
    pub(super) stage: Stage<'g>,
}

impl<'g> Batches<'_, 'g> {
    /// Returns the size of the inputs and results of one call, in bytes.
    pub(super) fn bytes_of_call(&self) -> u64 {
        self.stage.arena.stride + self.returned()
    }

    /// Returns whether calls can be locked and each moves so much data that no cache holds a
    /// significant part of it.
    pub(super) fn is_large(&self) -> bool {
        self.can_lock() && self.bytes_of_call() >= self.stage.gpu.flush_bytes()
    }

    fn returned(&self) -> u64 {
        self.verification.found.outputs.iter().map(|(_, value)| value.bytes()).sum()
    }

    /// Returns the maximum number of calls of a batch. Memory must hold their inputs and results,
    /// and one message must describe the results.
    pub(super) fn most(&self) -> u32 {
        let outputs = &self.verification.found.outputs;
        let leaves = outputs.len().max(1);
        let told = MAX_FRAME_BYTES * 7 / 8 / (leaves * TOLD_BYTES);
        let sides = 1 + self.stage.references.len() as u64;
        let kept = (16 << 30) / (self.returned().max(1) * sides);
        // `get_inputs()` takes time on the host.
        let made = if matches!(self.players.inputs, Inputs::Made) { 32 } else { u32::MAX };
        let most = u32::try_from(kept.min(told as u64)).unwrap_or(u32::MAX);
        let most = if self.stage.strided { most.min(STRIDED) } else { most };
        self.stage.arena.sets.min(most).min(made).max(1)
    }

    /// Runs and verifies one batch of calls of candidate and references. `flush` is the number of
    /// bytes to write before each call; if it is not 0, events time the calls.
    pub(super) fn make(
        &mut self,
        seeds: &[Option<u64>],
        flush: u64,
        first: bool,
    ) -> Result<(), Stop> {
        let with = (seeds, self.drawn(seeds)?);
        if first {
            self.measure_noise(with)?;
        }
        let order = CallOrder::Together { flush };
        let Made { values, .. } = self.candidate(with, order)?;
        let expected = self.expected(with, CallOrder::TOGETHER)?.values;
        if first && self.changes_more(seeds)? {
            return self.make(seeds, flush, first);
        }
        self.verify(&values, &expected, seeds, first)
    }

    /// Makes candidate and references allocate their memory anew at another location on the device,
    /// in a batch of `calls` calls. Their inputs move to another location, too.
    pub(super) fn relocate(&mut self, seeds: Seeds, calls: u32) -> Result<(), Stop> {
        let Self { players, stage, .. } = self;
        let Players { candidate, expectations, secret, .. } = &mut **players;
        let Stage { gpu, arena, candidate: own, references, .. } = stage;
        let mut padding = || {
            let info = gpu.context.memory_info();
            let (free, _) = info.map_err(|error| Stop::Broken(error.to_string()))?;
            let most = (MOST_PADDING.min(free / 4) / PADDING).max(1);
            Ok::<u64, Stop>(PADDING * (1 + secret.bits() % most))
        };
        let theirs = expectations.references.iter_mut().map(|one| &mut one.player);
        let sides = [
            (Whose::Candidate, vec![(candidate, own)]),
            (Whose::References, theirs.zip(references).collect()),
        ];
        for (whose, players) in sides {
            let Some((first, _)) = players.first() else { continue };
            let of_references = whose == Whose::References;
            let not_lent = |error| not_shelved(first, of_references, error);
            // The runners keep the old memory open until they have opened the new memory.
            let _old = arena.relocate(gpu, whose, padding()?).map_err(not_lent)?;
            let (handle, bytes) = arena.lent(whose).map_err(not_lent)?;
            for (player, side) in players {
                // The runner cannot reuse memory that the judge still has open.
                side.blocks = Blocks::default();
                let moved = player.session.relocate(padding()?, (&handle, bytes));
                moved.map_err(|fault| player.stopped(of_references, fault))?;
            }
        }
        let inputs = self.players.seeds_of(seeds, calls);
        self.make(&inputs, 0, false)
    }

    /// Returns whether a call has few enough results for all of them to be hashed.
    pub(super) fn can_lock(&self) -> bool {
        self.verification.found.outputs.len() + self.stage.changing.len() <= MOST_RANGES
    }

    /// Runs and verifies one turn of the candidate's locked calls. Returns `None` if results are on
    /// the host.
    pub(super) fn make_locked(&mut self, seeds: &[Option<u64>]) -> Result<Option<Turn>, Stop> {
        let with = (seeds, self.drawn(seeds)?);
        let Made { turn, values } = self.candidate(with, CallOrder::Locked)?;
        let expected = self.expected(with, CallOrder::TOGETHER)?.values;
        self.verify(&values, &expected, seeds, false)?;
        Ok(turn)
    }

    /// Records the arguments that the reference changes in addition to those that the contract
    /// names. From then on, the candidate's calls must give these arguments the same contents.
    /// Returns whether there are such arguments.
    fn changes_more(&mut self, seeds: &[Option<u64>]) -> Result<bool, Stop> {
        let Self { players, stage, .. } = self;
        let references = &players.expectations.references;
        let Some(reference) = references.first().filter(|one| one.outputs.is_none()) else {
            return Ok(false);
        };
        let changed = stage.arena.changed(stage.gpu, Whose::References, seeds, &stage.changing);
        let changed = changed.map_err(|error| not_shelved(&reference.player, true, error))?;
        let more = !changed.is_empty();
        stage.changing.extend(changed);
        Ok(more)
    }

    /// Generates the inputs of a batch with `get_inputs()` if that function is their source.
    /// Returns the seed of random numbers in the batch.
    pub(super) fn drawn(&mut self, seeds: &[Option<u64>]) -> Result<u64, Stop> {
        if matches!(self.players.inputs, Inputs::Made) {
            self.stage.draw(self.players, seeds)?;
            self.players.account.spent_on(Phase::Presenting);
        }
        Ok(self.players.generator_of(seeds.first().copied().flatten()))
    }

    /// Prepares the candidate for a batch of calls and writes its inputs. Returns their keys if
    /// they are locked.
    pub(super) fn candidate_ready(
        &mut self,
        (seeds, generator): With<'_>,
        order: CallOrder,
    ) -> Result<Vec<Digest>, Stop> {
        let Players { candidate, account, .. } = &mut *self.players;
        let stage = &mut self.stage;
        stage.candidate.blocks.tidy();
        let batch = stage.batch(seeds.len(), generator, (order, &stage.candidate.gate));
        let ready = candidate.session.prepare(&batch);
        ready.map_err(|fault| candidate.stopped(false, fault))?;
        let keys = stage.present(Whose::Candidate, seeds, order);
        let keys = keys.map_err(|error| not_shelved(candidate, false, error))?;
        account.spent_on(Phase::Presenting);
        Ok(keys)
    }

    /// Runs one batch of the candidate's calls, and copies the results.
    pub(super) fn candidate(&mut self, with: With<'_>, order: CallOrder) -> Result<Made, Stop> {
        let count = with.0.len() as u32;
        let keys = self.candidate_ready(with, order)?;
        let Players { candidate, inputs, account, .. } = &mut *self.players;
        let gate = &mut self.stage.candidate.gate;
        let (ran, calls) = order
            .run(&mut candidate.session, gate, &keys)
            .map_err(|fault| candidate.stopped(false, fault))?;
        account.spent_on(Phase::Executing);
        if ran.returned.len() != count as usize {
            let what =
                format!("its process reports {} calls instead of {count}", ran.returned.len());
            return Err(candidate.stopped(false, RunnerFault::Forged(what)));
        }
        let stage = &mut self.stage;
        let also = stage.arena.also(Whose::Candidate, &stage.changing, count);
        let Side { blocks, shelf, .. } = &mut stage.candidate;
        let returned = (&ran.returned[..], inputs.root());
        let shelved = shelf.fill(stage.gpu, blocks, candidate, returned, &also);
        let shelved = shelved.map_err(|error| not_shelved(candidate, false, error))?;
        stage.strided |= shelved.strided;
        let turn = stage.settled(&shelved, calls, false);
        let turn = turn.map_err(|error| not_shelved(candidate, false, error))?;
        let turn = turn.map_err(|reason| self.verification.wrong(reason))?;
        Ok(Made { turn, values: shelved.values })
    }

    /// Measures the effect of rounding on the references' results, with the inputs of the first
    /// call.
    fn measure_noise(&mut self, (seeds, generator): With<'_>) -> Result<(), Stop> {
        let Self { players, verification, stage } = self;
        let Players { expectations, inputs, account, .. } = &mut **players;
        for (index, reference) in expectations.references.iter_mut().enumerate() {
            if verification.wants_noise() {
                let with = (seeds.first().copied().flatten(), generator);
                let mut calls =
                    DeviceNudges { stage: &mut *stage, index, inputs, with, of_parameters: false };
                verification.noise.measure(reference, &mut calls)?;
            }
        }
        account.spent_on(Phase::Verifying);
        Ok(())
    }

    /// Computes the expected results of each call of a batch.
    pub(super) fn expected(&mut self, with: With<'_>, order: CallOrder) -> Result<Expected, Stop> {
        let Players { expectations, inputs, account, .. } = &mut *self.players;
        let expected = expected(expectations, inputs, &mut self.stage, (with, order))?;
        account.spent_on(Phase::Verifying);
        Ok(expected)
    }

    /// Verifies that inputs are unchanged and that results match the expected ones.
    pub(super) fn verify(
        &mut self,
        returned: &[Named],
        expected: &[Named],
        seeds: &[Option<u64>],
        first: bool,
    ) -> Result<(), Stop> {
        let Self { players, verification, stage } = self;
        let Players { candidate, inputs, account, .. } = &mut **players;
        verification.found.verified += seeds.len() as u32;
        if matches!(inputs, Inputs::Made) {
            let digests = stage.arena.digests(stage.gpu, seeds.len());
            let digests = digests.map_err(|error| Stop::Broken(error.to_string()))?;
            digests.into_iter().for_each(|digest| verification.note_inputs(digest));
        }
        let changed = stage.arena.changed(stage.gpu, Whose::Candidate, seeds, &stage.changing);
        let changed = changed.map_err(|error| not_shelved(candidate, false, error))?;
        if let Some(place) = changed.first().filter(|_| !verification.is_reference()) {
            let name = inputs.name_of(place);
            return Err(verification.wrong(Reason::input_modified(&name, None)));
        }
        let values = named_calls(inputs, returned, None, candidate.backward);
        let values = match values.map_err(|fault| candidate.stopped(false, fault))? {
            Ok(values) => values,
            Err(reason) => return Err(verification.wrong(reason)),
        };
        DeviceComparison { stage, verification }.batch(&values, expected, first)?;
        if first {
            verification.found.arguments = Some(stage.arguments());
        }
        if verification.wants_lint(first)
            && let Some(expected) = expected.first()
        {
            let glimpsed =
                |(name, value): &(String, Value)| Ok((name.clone(), stage.glimpsed(value)?));
            let expected = expected.iter().map(glimpsed).collect::<Result<_, Stop>>()?;
            let like = |dtype, bytes| Lint::could_be_copied(&expected, dtype, bytes);
            let named = |(place, value): (String, Value)| (inputs.name_of(&place), value);
            let copied = stage.inputs_glimpsed(&like)?.into_iter().map(named).collect();
            verification.lint.see(&expected, &copied);
        }
        account.spent_on(Phase::Verifying);
        Ok(())
    }

    /// Verifies that the candidate's parameters are unchanged, except where the reference changes
    /// its own.
    pub(super) fn check_parameters(&mut self, before: &ParameterHashes) -> Result<(), Stop> {
        let Self { players, verification, stage } = self;
        let now = stage.candidate_parameters(&mut players.candidate)?;
        // A parameter that the reference also changes had the same contents before the calls.
        let changing = match players.expectations.references.first_mut() {
            Some(reference) if *now != *before => {
                changed_parameters(before, &stage.reference_parameters(&mut reference.player)?)
            }
            _ => Vec::new(),
        };
        verification.same_parameters(before, &now, &changing)
    }

    /// Verifies that the first call changed the candidate's buffers as it changed the reference's.
    pub(super) fn check_buffers(&mut self, buffers: &SharedBuffers) -> Result<(), Stop> {
        let Self { players, verification, stage } = self;
        let gpu = stage.gpu;
        let reference = players.expectations.references.first_mut();
        let Some((reference, side)) =
            reference.zip(stage.references.first_mut()).filter(|_| !buffers.is_empty())
        else {
            return Ok(());
        };
        let (theirs, own) = (&mut reference.player, &mut players.candidate);
        let held = theirs.session.parameters().map_err(|fault| theirs.stopped(true, fault))?;
        let now = own.session.parameters().map_err(|fault| own.stopped(false, fault))?;
        let mut read_theirs = |buffer: &_| side.held(gpu, theirs, (buffer, true));
        let mut read_own = |buffer: &_| stage.candidate.held(gpu, own, (buffer, false));
        match buffers.verdict((&held, &mut read_theirs), (&now, &mut read_own))? {
            Some(reason) => Err(verification.wrong(reason)),
            None => Ok(()),
        }
    }

    /// Ends the candidate's process, unless the candidate is the reference of a comparison.
    /// References gain nothing from wrong overheads, and are idle while the judge measures them.
    pub(super) fn quiet(mut self, is_reference: bool) -> Quiet<'g> {
        if !is_reference {
            self.players.candidate.session.stop_for_good();
        }
        self.stage.candidate.blocks = Blocks::default();
        Quiet { stage: self.stage, overheads: Vec::new() }
    }
}

/// State of the device after the candidate has stopped using it.
pub(super) struct Quiet<'g> {
    stage: Stage<'g>,
    /// Measured overheads, by the sizes of results.
    overheads: Vec<(Vec<u64>, Overhead)>,
}

impl Quiet<'_> {
    /// Returns whether the candidate's calls themselves wait for the device.
    pub(super) fn waits(&self) -> bool {
        self.stage.candidate.gate.waits()
    }

    /// Returns whether only one side's calls themselves wait for the device.
    pub(super) fn waits_differ(&self) -> bool {
        self.stage.references.iter().any(|side| side.gate.waits() != self.waits())
    }

    /// Returns the overhead of a call with results of these sizes.
    pub(super) fn overhead(&mut self, results: &[u64]) -> Result<Overhead, Stop> {
        if let Some((_, measured)) = self.overheads.iter().find(|(sizes, _)| sizes == results) {
            return Ok(*measured);
        }
        let measured = self.stage.overhead(results, FEWEST_COUNTED)?;
        self.overheads.push((results.to_vec(), measured));
        Ok(measured)
    }
}
