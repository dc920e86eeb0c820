//! Tolerances that were measured for a contract on a device. Each is measured only once, because a
//! measurement runs the reference several times. The main type is [`SettledTolerances`].

use super::MOST_CONTRACTS;
use crate::remembered::Remembered;
use warpgauge_model::DeviceInfo;
use warpgauge_worker::protocol::{Checks, EvaluatedRun, OutputCheck};

/// Measured tolerances by contract (see [`super::linted::identity`]) and device. A search sends
/// thousands of kernels with the same contract.
#[derive(Default)]
pub(crate) struct SettledTolerances {
    known: Remembered<Vec<OutputCheck>, MOST_CONTRACTS>,
}

impl SettledTolerances {
    /// Inserts known tolerances into the checks of a run. If they are not known, returns the key
    /// under which the caller stores those that the run measures.
    pub(super) fn apply(
        &self,
        contract: Option<blake3::Hash>,
        device: &DeviceInfo,
        checks: &mut Checks,
    ) -> Option<blake3::Hash> {
        if !checks.measures_tolerances() {
            return None;
        }
        let key = key(contract?, device);
        match self.known.get(key) {
            Some(known) => {
                checks.take_settled(&known);
                None
            }
            None => Some(key),
        }
    }

    /// Stores the tolerances that a run measured, if it measured all those that `checks` leaves
    /// open.
    pub(super) fn remember(&self, key: Option<blake3::Hash>, checks: &Checks, told: &EvaluatedRun) {
        let Some(key) = key else { return };
        let is_measured =
            |(open, _): &(usize, _)| told.checks.iter().any(|check| check.buffer == *open);
        if checks.open.iter().all(is_measured) {
            self.known.put(key, told.checks.clone());
        }
    }
}

/// Returns the key for a contract on a device. Devices of one model round in the same way, so they
/// share it.
fn key(contract: blake3::Hash, device: &DeviceInfo) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(contract.as_bytes());
    hasher.update(format!("{:?} {:?} {}", device.kind, device.target, device.name).as_bytes());
    hasher.finalize()
}
