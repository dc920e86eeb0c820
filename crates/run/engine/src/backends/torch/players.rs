//! State that all stages of an evaluation share: candidate, references, inputs, seeds, and the time
//! spent in each phase.

use std::time::Duration;

use super::account::Account;
use super::expectations::Expectations;
use super::fault::Stop;
use super::inputs::Inputs;
use super::player::Player;
use warpgauge_report::TorchParameters;
use warpgauge_torch::{Secret, TensorAt};

/// Maximum number of parameter names that a report lists.
const MOST_NAMES: usize = 10;

/// Candidate and references of an evaluation.
pub(super) struct Players {
    pub candidate: Player,
    pub expectations: Expectations,
    pub inputs: Inputs,
    pub secret: Secret,
    /// Secret key with which the seed of random numbers is derived from the seed of the inputs. A
    /// runner therefore cannot derive one seed from the other.
    pub salt: [u8; 32],
    pub account: Account,
}

/// Copies the elements of a tensor of the first submission to a tensor of the second.
pub(super) type CopyTensor<'a> =
    dyn FnMut((&Player, &TensorAt), (&Player, &TensorAt)) -> Result<(), Stop> + 'a;

/// How the inputs of calls are seeded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seeds {
    Fresh,
    Same(Option<u64>),
}

impl Players {
    /// Returns a random seed of 32 bits, which every language and JSON reader can represent.
    pub(super) fn seed(&mut self) -> u64 {
        self.secret.bits() >> 32
    }

    /// Returns the seed of the first call's inputs, if `get_inputs()` generates them. A contract
    /// names its own seeds.
    pub(super) fn own_seed(&mut self) -> Option<u64> {
        matches!(self.inputs, Inputs::Made).then(|| self.seed())
    }

    /// Returns the seed of random numbers in the calls whose first inputs have the given seed.
    /// Candidate and references use the same seed.
    pub(super) fn generator_of(&self, seed: Option<u64>) -> u64 {
        let hash = blake3::keyed_hash(&self.salt, &seed.unwrap_or_default().to_le_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&hash.as_bytes()[..8]);
        // Every random number generator accepts 63 bits.
        u64::from_le_bytes(first) >> 1
    }

    /// Returns the seeds of the inputs of `calls` calls.
    pub(super) fn seeds_of(&mut self, seeds: Seeds, calls: u32) -> Vec<Option<u64>> {
        let mut seed = || match seeds {
            Seeds::Fresh => Some(self.seed()),
            Seeds::Same(seed) => seed,
        };
        (0..calls).map(|_| seed()).collect()
    }

    /// Returns whether calls with inputs other than the contract's can be judged.
    pub(super) fn can_vary(&self) -> bool {
        self.inputs.can_vary() && self.expectations.data.is_empty()
    }

    /// Returns the submission that generates inputs or defines their layout, and whether it is a
    /// reference.
    pub(super) fn maker(&mut self) -> (&mut Player, bool) {
        match self.expectations.references.first_mut() {
            Some(reference) => (&mut reference.player, true),
            None => (&mut self.candidate, false),
        }
    }

    /// Copies the first reference's parameters and buffers to those of the candidate with the same
    /// name, type and shape. Returns the report's entry, or `None` if neither side has any.
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

    /// Extends the deadline of candidate and references.
    pub(super) fn extend(&mut self, by: Duration) {
        self.candidate.session.extend(by);
        for reference in &mut self.expectations.references {
            reference.player.session.extend(by);
        }
    }

    /// Ends the processes of all runners.
    pub(super) fn stop_for_good(&mut self) {
        self.candidate.session.stop_for_good();
        for reference in &self.expectations.references {
            reference.player.session.stop_for_good();
        }
    }
}
