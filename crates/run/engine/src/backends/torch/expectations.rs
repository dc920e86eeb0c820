//! What outputs are expected to be: values of the contract, and what references compute on the inputs of a call.

use std::collections::BTreeMap;

use super::fault::Stop;
use super::gradients::is_gradient;
use super::inputs::{Inputs, Presented};
use super::player::Player;
use super::values::{Named, Value};

/// What outputs are to be.
pub(super) struct Expectations {
    /// Values that do not depend on the call, by name.
    pub data: BTreeMap<String, Value>,
    pub references: Vec<ReferencePlayer>,
    /// Places of the arguments that the references changed in their first call, beside those that the contract names:
    /// what they hold afterwards is expected, too. `None`: there was no call yet.
    pub changed: Option<Vec<String>>,
}

/// A submission that computes what is expected.
pub(super) struct ReferencePlayer {
    pub player: Player,
    /// Names of the outputs that count of it; `None`: all do.
    pub outputs: Option<Vec<String>>,
}

impl Expectations {
    /// What is expected of the next call on the host, and the inputs that the candidate will find. `generator`: the
    /// seed of random numbers in the call.
    pub(super) fn of_call(
        &mut self,
        (candidate, inputs): (&mut Player, &Inputs),
        seed: Option<u64>,
        generator: u64,
    ) -> Result<(BTreeMap<String, Value>, Presented), Stop> {
        let mut expected = self.data.clone();
        if let (Inputs::Made, Some(maker)) = (inputs, self.references.first_mut()) {
            let made = maker.player.show(inputs, seed).map_err(Stop::Reference)?;
            // Before the maker runs, which may change what it made.
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

/// Notes which arguments a reference changed in its first call.
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
    /// Whether a value of that name is expected of the candidate.
    pub(super) fn counts(&self, name: &String) -> bool {
        is_gradient(name) || self.outputs.as_ref().is_none_or(|names| names.contains(name))
    }

    /// What it returns of what counts. `only`: the outputs that count, which may be all that it returns.
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
