//! Expected outputs: values from the contract, and results of the references on the inputs of a
//! call.

use std::collections::BTreeMap;

use super::fault::Stop;
use super::gradients::is_gradient;
use super::inputs::{Inputs, Presented};
use super::player::Player;
use super::values::{Named, Value};

/// Sources of expected outputs.
pub(super) struct Expectations {
    /// Expected values that do not depend on the call, by the names of outputs.
    pub data: BTreeMap<String, Value>,
    pub references: Vec<ReferencePlayer>,
    /// Paths of the arguments that the references changed in their first call, in addition to those
    /// that the contract names. Their contents after a call are expected outputs, too. `None`
    /// before the first call.
    pub changed: Option<Vec<String>>,
}

/// A submission that computes expected outputs.
pub(super) struct ReferencePlayer {
    pub player: Player,
    /// Names of the outputs that the submission defines. `None` means all outputs.
    pub outputs: Option<Vec<String>>,
}

impl Expectations {
    /// Computes the expected results of the next call on the CPU, and the candidate's inputs for
    /// it. `generator` is the seed of random numbers in the call.
    pub(super) fn of_call(
        &mut self,
        (candidate, inputs): (&mut Player, &Inputs),
        seed: Option<u64>,
        generator: u64,
    ) -> Result<(BTreeMap<String, Value>, Presented), Stop> {
        let mut expected = self.data.clone();
        if let (Inputs::Made, Some(maker)) = (inputs, self.references.first_mut()) {
            let made = maker.player.show(inputs, seed).map_err(Stop::Reference)?;
            // The inputs are copied before the maker's call, which may change them.
            let shown = candidate.show_as(&maker.player, &made).map_err(Stop::Candidate)?;
            expected.extend(maker.played(inputs, &made, generator, None)?);
            note_changed(&mut self.changed, maker, inputs, &made)?;
            let changed = self.changed.as_deref().unwrap_or_default();
            expected.extend(
                maker.player.arguments_at(inputs, &made, changed).map_err(Stop::Reference)?,
            );
            return Ok((expected, shown));
        }
        for reference in &mut self.references {
            let shown = reference.player.show(inputs, seed).map_err(Stop::Reference)?;
            let only = reference.outputs.clone();
            expected.extend(reference.played(inputs, &shown, generator, only.as_deref())?);
            if reference.outputs.is_none() {
                note_changed(&mut self.changed, reference, inputs, &shown)?;
                let changed = self.changed.as_deref().unwrap_or_default();
                let arguments = reference.player.arguments_at(inputs, &shown, changed);
                expected.extend(arguments.map_err(Stop::Reference)?);
            }
        }
        let shown = candidate.show(inputs, seed).map_err(Stop::Candidate)?;
        Ok((expected, shown))
    }
}

/// Records which arguments a reference changed in its first call.
fn note_changed(
    changed: &mut Option<Vec<String>>,
    reference: &ReferencePlayer,
    inputs: &Inputs,
    shown: &Presented,
) -> Result<(), Stop> {
    if changed.is_none() {
        let places = shown.changed(&reference.player.session, &inputs.changing());
        *changed = Some(places.map_err(|fault| reference.player.stopped(true, fault))?);
    }
    Ok(())
}

impl ReferencePlayer {
    /// Returns whether the candidate must return a value with this name.
    pub(super) fn counts(&self, name: &String) -> bool {
        is_gradient(name) || self.outputs.as_ref().is_none_or(|names| names.contains(name))
    }

    /// Calls the reference, and returns the results that the candidate must return. With `only`,
    /// these are the outputs with these names, and the reference may return only those.
    pub(super) fn played(
        &mut self,
        inputs: &Inputs,
        shown: &Presented,
        generator: u64,
        only: Option<&[String]>,
    ) -> Result<Named, Stop> {
        let played = self.player.play(inputs, shown, generator, only).map_err(Stop::Reference)?;
        let values = played.map_err(|reason| Stop::Reference(self.player.unusable(reason)))?.values;
        Ok(values.into_iter().filter(|(name, _)| self.counts(name)).collect())
    }
}
