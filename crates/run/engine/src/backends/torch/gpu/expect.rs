//! Expected results of a batch. The references compute them on the same inputs. Outputs are
//! identified by name.

use super::arena::Whose;
use super::stage::{CallOrder, Side, Stage, not_shelved};
use super::turn::Turn;
use crate::backends::torch::expectations::{Expectations, ReferencePlayer};
use crate::backends::torch::fault::Stop;
use crate::backends::torch::gradients::separated;
use crate::backends::torch::inputs::Inputs;
use crate::backends::torch::noise::{NudgedCalls, moved_types};
use crate::backends::torch::player::{Player, named};
use crate::backends::torch::values::{Named, Value};
use warpgauge_tensor::Dtype;
use warpgauge_torch::RunnerFault;
use warpgauge_validate::{Nudge, Reason};

/// Whether references are trusted to leave their results unchanged after a call. Their code comes
/// from the caller. The device hashes their results nevertheless, so that calls of candidate and
/// references have the same overhead.
const TRUSTS: bool = true;

/// Expected results of a batch of calls, with the references' times.
pub(super) struct Expected {
    /// Expected results of each call, by the names of outputs.
    pub(super) values: Vec<Named>,
    /// Each reference's times by the judge's clock. Only for locked calls whose results are all on
    /// the device.
    pub(super) turns: Vec<Option<Turn>>,
}

/// Computes the expected results of each call of a batch. The inputs are written again for the
/// references. `generator` is the seed of random numbers in the batch.
pub(super) fn expected(
    expectations: &mut Expectations,
    inputs: &Inputs,
    stage: &mut Stage<'_>,
    ((seeds, generator), order): ((&[Option<u64>], u64), CallOrder),
) -> Result<Expected, Stop> {
    let data = expectations.data.iter();
    let data: Named = data.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut values = vec![data; seeds.len()];
    let mut turns = Vec::new();
    for (index, reference) in expectations.references.iter_mut().enumerate() {
        let (turn, computed) =
            computed(reference, inputs, (stage, index), (seeds, generator), (order, None))?;
        turns.push(turn);
        for (expected, named) in values.iter_mut().zip(computed) {
            for (name, value) in named {
                let counts = reference.counts(&name);
                expected.retain(|(other, _)| !counts || *other != name);
                if counts {
                    expected.push((name, value));
                }
            }
        }
    }
    Ok(Expected { values, turns })
}

/// Calls of a copy of a reference on the device, with nudged inputs of the first call.
pub(super) struct DeviceNudges<'a, 'g> {
    pub(super) stage: &'a mut Stage<'g>,
    /// Index of the reference.
    pub(super) index: usize,
    pub(super) inputs: &'a Inputs,
    /// Seed of the inputs, and seed of random numbers in the call.
    pub(super) with: (Option<u64>, u64),
    /// Whether parameters are nudged because no input can be.
    pub(super) of_parameters: bool,
}

impl NudgedCalls for DeviceNudges<'_, '_> {
    fn input_types(&mut self, player: &mut Player) -> Result<Vec<Dtype>, Stop> {
        let (types, of_parameters) = moved_types(self.stage.arena.types(), player);
        self.of_parameters = of_parameters;
        Ok(types)
    }

    fn call(&mut self, reference: &mut ReferencePlayer, nudge: Nudge) -> Result<Named, Stop> {
        let (seed, generator) = self.with;
        let stage = (&mut *self.stage, self.index);
        let order = CallOrder::TOGETHER;
        let of_inputs = match self.of_parameters {
            false => Some(nudge),
            true => {
                let (gpu, side) = (stage.0.gpu, &mut stage.0.references[self.index]);
                side.nudge_parameters(gpu, &mut reference.player, nudge)?;
                None
            }
        };
        let (_, calls) =
            computed(reference, self.inputs, stage, (&[seed], generator), (order, of_inputs))?;
        let values = calls.into_iter().flatten().filter(|(name, _)| reference.counts(name));
        values.map(|(name, value)| Ok((name, self.stage.sampled(&value)?))).collect()
    }
}

/// Runs one batch of a reference's calls. Returns its times, and copies of the results of each
/// call. `nudge` determines how its inputs are moved.
fn computed(
    reference: &mut ReferencePlayer,
    inputs: &Inputs,
    (stage, index): (&mut Stage<'_>, usize),
    (seeds, generator): (&[Option<u64>], u64),
    (order, nudge): (CallOrder, Option<Nudge>),
) -> Result<(Option<Turn>, Vec<Named>), Stop> {
    let ReferencePlayer { player, outputs } = reference;
    let count = seeds.len() as u32;
    let batch = stage.batch(seeds.len(), generator, (order, &stage.references[index].gate));
    let ready = player.session.prepare(&batch);
    ready.map_err(|fault| player.stopped(true, fault))?;
    let keys = stage.present(Whose::References, seeds, order);
    let keys = keys.map_err(|error| not_shelved(player, true, error))?;
    if let Some(nudge) = nudge {
        let moved = stage.arena.nudge(stage.gpu, nudge);
        moved.map_err(|error| not_shelved(player, true, error))?;
    }
    let ran = order.run(&mut player.session, &mut stage.references[index].gate, &keys);
    let (ran, calls) = ran.map_err(|fault| player.stopped(true, fault))?;
    if ran.returned.len() != seeds.len() {
        let fault = RunnerFault::Forged("its process reports a wrong number of calls".to_owned());
        return Err(player.stopped(true, fault));
    }
    let root = inputs.root();
    let also = stage.arena.also(Whose::References, &stage.changing, count);
    let Side { blocks, shelf, .. } = &mut stage.references[index];
    blocks.tidy();
    let shelved = shelf.fill(stage.gpu, blocks, player, (&ran.returned, root), &also);
    let shelved = shelved.map_err(|error| not_shelved(player, true, error))?;
    let turn = stage.settled(&shelved, calls, TRUSTS);
    let turn = turn.map_err(|error| not_shelved(player, true, error))?;
    let turn = turn.map_err(|reason| Stop::Reference(player.unusable(reason)))?;
    let named = named_calls(inputs, &shelved.values, outputs.as_deref(), player.backward);
    let named = named.map_err(|fault| player.stopped(true, fault))?;
    let named = named.map_err(|reason| Stop::Reference(player.unusable(reason)))?;
    Ok((turn, named))
}

/// Names the results of each call after the contract's outputs. With `only`, these are the outputs
/// with these names, and the submission may return only those. `backward`: whether the results
/// include gradients.
pub(super) fn named_calls(
    inputs: &Inputs,
    all: &[Named],
    only: Option<&[String]>,
    backward: bool,
) -> Result<Result<Vec<Named>, Reason>, RunnerFault> {
    let mut calls = Vec::new();
    for values in all {
        let (values, gradients) = match backward {
            true => separated(values.clone(), inputs.root(), inputs),
            false => (values.clone(), Named::new()),
        };
        let (returned, own): (Named, Named) =
            values.into_iter().partition(|(name, _)| !name.starts_with('['));
        let argument = |index: usize| {
            let place = format!("[{index}]");
            let found = own.iter().find(|(name, _)| *name == place);
            Ok(found.map_or(Value::Nothing, |(_, value)| value.clone()))
        };
        // Arguments that references change in addition to those that the contract names are
        // outputs, too.
        let declared = inputs.changing();
        let others = own.iter().filter(|(place, _)| !declared.contains(place));
        let others = others.map(|(place, value)| (inputs.name_of(place), value.clone()));
        match named(inputs.outputs(), &returned, only, &argument) {
            Ok(Ok(mut named)) => {
                named.extend(gradients);
                named.extend(others);
                calls.push(named);
            }
            Ok(Err(reason)) => return Ok(Err(reason)),
            Err(failed) => return Err(RunnerFault::Forged(failed.message)),
        }
    }
    Ok(Ok(calls))
}
