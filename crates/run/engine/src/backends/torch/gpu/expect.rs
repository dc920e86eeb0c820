//! What a batch gets and what is expected of it: inputs that one side makes, and results of the references on
//! the same inputs.

use std::time::Instant;

use super::Gpu;
use super::arena::{Arena, Source, Whose};
use super::shelf::NotShelved;
use super::stage::{Side, Stage, Turn, not_shelved, stopped};
use crate::backends::torch::backward::{is_gradient, separated};
use crate::backends::torch::inputs::Inputs;
use crate::backends::torch::judge::{Judge, Stop};
use crate::backends::torch::player::named;
use crate::backends::torch::values::{Named, Value};
use warpgauge_torch::{Batch, Fault, Session, Tree, TreeOf};
use warpgauge_validate::Reason;

impl Judge {
    /// Has the side that makes inputs make those of each set.
    pub(super) fn draw(
        &mut self,
        stage: &mut Stage<'_>,
        seeds: &[Option<u64>],
    ) -> Result<(), Stop> {
        let Self { candidate, expectations, .. } = self;
        let maker = expectations.references.first_mut().map(|(maker, _)| maker);
        let of_reference = maker.is_some();
        let (maker, side) = match maker {
            Some(maker) => (maker, &mut stage.references[0]),
            None => (candidate, &mut stage.candidate),
        };
        for (set, seed) in seeds.iter().enumerate() {
            let made = maker.session.make_inputs(seed.unwrap_or_default());
            let made = made.map_err(|fault| stopped(maker, of_reference, fault))?;
            let kept = keep(stage.gpu, &stage.arena, side, (&maker.session, set as u32), &made);
            kept.map_err(|error| not_shelved(maker, of_reference, error))?;
            let synchronized = stage.gpu.stream.synchronize();
            synchronized.map_err(|error| Stop::Broken(error.to_string()))?;
        }
        Ok(())
    }

    /// Results of each call by the names of outputs.
    pub(super) fn named_all(&self, all: &[Named]) -> Result<Result<Vec<Named>, Reason>, Stop> {
        let backward = self.candidate.backward.then(|| self.root());
        let named = named_calls(&self.inputs, all, None, backward);
        named.map_err(|fault| Stop::Candidate(self.candidate.failed(fault)))
    }

    /// What is expected of each call, computed by the references on inputs that are written once more.
    pub(super) fn expected_on(
        &mut self,
        stage: &mut Stage<'_>,
        (seeds, generator): (&[Option<u64>], u64),
    ) -> Result<Expected, Stop> {
        let began = Instant::now();
        let data: Named = self
            .expectations
            .data
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut expected = vec![data; seeds.len()];
        let mut turns = Vec::new();
        let root = self.root();
        for index in 0..self.expectations.references.len() {
            let (player, names) = &mut self.expectations.references[index];
            let batch = Batch {
                arguments: &stage.arena.tree,
                stride: stage.arena.stride,
                count: seeds.len() as u32,
                seed: generator,
                flush: 0,
            };
            let ready = player.session.prepare(&batch);
            ready.map_err(|fault| Stop::Reference(player.failed(fault)))?;
            let presented = stage.arena.present(stage.gpu, Whose::References, seeds);
            let presenting = presented.map_err(|error| not_shelved(player, true, error))?;
            let ran = player.session.run();
            let ran = ran.map_err(|fault| Stop::Reference(player.failed(fault)))?;
            if ran.returned.len() != seeds.len() {
                let fault = Fault::Forged("it tells of another number of calls".to_owned());
                return Err(Stop::Reference(player.failed(fault)));
            }
            let also = stage.arena.also(Whose::References, &stage.changing, seeds.len() as u32);
            let Side { blocks, shelf } = &mut stage.references[index];
            blocks.tidy();
            let shelved = shelf.fill(stage.gpu, blocks, player, (&ran.returned, root), &also);
            let shelved = shelved.map_err(|error| not_shelved(player, true, error))?;
            turns.push(Turn::new(seeds.len() as u32, presenting, ran.took, &shelved));
            let backward = player.backward.then_some(root);
            let named = named_calls(&self.inputs, &shelved.values, names.as_deref(), backward);
            let named = named.map_err(|fault| Stop::Reference(player.failed(fault)))?;
            let named = named.map_err(|reason| Stop::Reference(player.unusable(reason)))?;
            for (expected, named) in expected.iter_mut().zip(named) {
                for (name, value) in named {
                    let counts = is_gradient(&name)
                        || names.as_ref().is_none_or(|names| names.contains(&name));
                    expected.retain(|(other, _)| !counts || *other != name);
                    if counts {
                        expected.push((name, value));
                    }
                }
            }
        }
        self.judged.verifying += began.elapsed();
        Ok(Expected { values: expected, turns })
    }
}

/// What is expected of a batch.
pub(super) struct Expected {
    /// Of each call, by the names of outputs.
    pub(super) values: Vec<Named>,
    /// What each reference took.
    pub(super) turns: Vec<Turn>,
}

/// Copies what was made for one set to where nobody else can change it.
fn keep(
    gpu: &Gpu,
    arena: &Arena,
    side: &mut Side,
    (session, set): (&Session, u32),
    made: &Tree,
) -> Result<(), NotShelved> {
    let forged = |what: String| NotShelved::Fault(Fault::Forged(what));
    let fault = |error: &_| NotShelved::Fault(session.fault_of(error));
    let leaves = made.leaves("");
    let tensors = leaves.iter().filter_map(|(place, leaf)| match leaf {
        TreeOf::Tensor(tensor) => Some((place, tensor)),
        _ => None,
    });
    for (index, (place, tensor)) in tensors.enumerate() {
        let slot = arena.slot(set, place).map(|(_, slot)| (slot.dtype, slot.shape));
        if slot.as_ref().map(|(dtype, shape)| (*dtype, shape))
            != Some((tensor.dtype, &tensor.shape))
        {
            let text = format!("`get_inputs` makes another `inputs{place}` for another seed");
            return Err(forged(text));
        }
        side.blocks.open(gpu, tensor).map_err(forged)?;
        match side.blocks.range(tensor).map_err(|error| fault(&error))? {
            Some((block, at, _)) if tensor.is_contiguous() => {
                arena.keep(gpu, set, index, Source::Device(block, at))?;
            }
            _ => {
                let bytes =
                    side.blocks.read(gpu, session, tensor).map_err(|error| fault(&error))?;
                arena.keep(gpu, set, index, Source::Host(&bytes))?;
            }
        }
    }
    Ok(())
}

/// Results of each call by the names of outputs. `backward`: what the names of all begin with, where there are
/// gradients among them.
fn named_calls(
    inputs: &Inputs,
    all: &[Named],
    only: Option<&[String]>,
    backward: Option<&str>,
) -> Result<Result<Vec<Named>, Reason>, Fault> {
    let mut calls = Vec::new();
    for values in all {
        let (values, gradients) = match backward {
            Some(root) => separated(values.clone(), root, inputs),
            None => (values.clone(), Named::new()),
        };
        let (returned, own): (Named, Named) =
            values.into_iter().partition(|(name, _)| !name.starts_with('['));
        let argument = |index: usize| {
            let place = format!("[{index}]");
            let found = own.iter().find(|(name, _)| *name == place);
            Ok(found.map_or(Value::Nothing, |(_, value)| value.clone()))
        };
        match named(inputs.outputs(), &returned, only, &argument) {
            Ok(Ok(mut named)) => {
                named.extend(gradients);
                calls.push(named);
            }
            Ok(Err(reason)) => return Ok(Err(reason)),
            Err(failed) => return Err(Fault::Forged(failed.message)),
        }
    }
    Ok(Ok(calls))
}
