//! What all stages of an evaluation share: the candidate, its references, the inputs of both, the seeds, and the
//! account of the time spent.

use std::time::Duration;

use super::account::Account;
use super::expectations::Expectations;
use super::fault::Stop;
use super::inputs::Inputs;
use super::player::Player;
use warpgauge_report::TorchParameters;
use warpgauge_torch::{Secret, TensorAt};

/// Names of parameters that a report lists.
const MOST_NAMES: usize = 10;

/// Both sides of an evaluation.
pub(super) struct Players {
    pub candidate: Player,
    pub expectations: Expectations,
    pub inputs: Inputs,
    pub secret: Secret,
    /// Keeps the seeds of inputs from being concluded from those of random numbers.
    pub salt: [u8; 32],
    pub account: Account,
}

/// Copies the elements of a tensor of the first player to one of the second.
pub(super) type CopyTensor<'a> =
    dyn FnMut((&Player, &TensorAt), (&Player, &TensorAt)) -> Result<(), Stop> + 'a;

/// Where the inputs of a call come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seeds {
    Fresh,
    Same(Option<u64>),
}

impl Players {
    /// A seed that every language and JSON reader has room for.
    pub(super) fn seed(&mut self) -> u64 {
        self.secret.bits() >> 32
    }

    /// The seed of the first call. A contract gives its inputs seeds of their own, so there is none; inputs that a
    /// submission makes are drawn from it.
    pub(super) fn own_seed(&mut self) -> Option<u64> {
        matches!(self.inputs, Inputs::Made).then(|| self.seed())
    }

    /// The seed of random numbers in the calls whose first inputs have this seed: the same on all sides.
    pub(super) fn generator_of(&self, seed: Option<u64>) -> u64 {
        let hash = blake3::keyed_hash(&self.salt, &seed.unwrap_or_default().to_le_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_bytes()[..8]);
        // Every generator of random numbers takes 63 bits.
        u64::from_le_bytes(first) >> 1
    }

    /// Seeds of the inputs of so many calls.
    pub(super) fn seeds_of(&mut self, seeds: Seeds, calls: u32) -> Vec<Option<u64>> {
        let mut seed = || match seeds {
            Seeds::Fresh => Some(self.seed()),
            Seeds::Same(seed) => seed,
        };
        (0..calls).map(|_| seed()).collect()
    }

    /// Whether other inputs than the contract's can be judged.
    pub(super) fn can_vary(&self) -> bool {
        self.inputs.can_vary() && self.expectations.data.is_empty()
    }

    /// The side that says what the inputs are, and whether it is a reference.
    pub(super) fn maker(&mut self) -> (&mut Player, bool) {
        match self.expectations.references.first_mut() {
            Some(reference) => (&mut reference.player, true),
            None => (&mut self.candidate, false),
        }
    }

    /// Gives the candidate's parameters and buffers the values of the first reference's, where name, type and shape
    /// agree, if that has any; what a report says of it.
    pub(super) fn share_parameters(
        &self,
        copy: &mut CopyTensor<'_>,
    ) -> Result<Option<TorchParameters>, Stop> {
        let candidate = &self.candidate;
        let count = candidate.loaded.parameters.len() as u32;
        let mut told = TorchParameters { count, ..TorchParameters::default() };
        if let Some(reference) = self.expectations.references.first()
            && !reference.player.loaded.parameters.is_empty()
        {
            let theirs = &reference.player;
            let mut carried = 0;
            for parameter in &theirs.loaded.parameters {
                match candidate.counterpart(parameter) {
                    Some(own) => {
                        copy((theirs, &parameter.tensor), (candidate, own))?;
                        carried += 1;
                    }
                    None => told.without_counterpart.push(parameter.name.clone()),
                }
            }
            told.without_counterpart.truncate(MOST_NAMES);
            told.carried_over = Some(carried);
        }
        Ok(Some(told).filter(|told| *told != TorchParameters::default()))
    }

    /// Gives all sides so much more time.
    pub(super) fn extend(&mut self, by: Duration) {
        self.candidate.session.extend(by);
        for reference in &mut self.expectations.references {
            reference.player.session.extend(by);
        }
    }

    /// Ends all runners' turns: none of them runs from here on.
    pub(super) fn stop_for_good(&mut self) {
        self.candidate.session.stop_for_good();
        for reference in &self.expectations.references {
            reference.player.session.stop_for_good();
        }
    }
}
