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
            return Ok((expected, shown));
        }
        for reference in &mut self.references {
            let shown = reference.player.show(inputs, seed).map_err(Stop::Reference)?;
            let only = reference.outputs.clone();
            expected.extend(reference.played(inputs, &shown, generator, only.as_deref())?);
        }
        let shown = candidate.show(inputs, seed).map_err(Stop::Candidate)?;
        Ok((expected, shown))
    }
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
