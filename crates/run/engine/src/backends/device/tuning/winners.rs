//! Cache of choices of configurations. The main type is [`Winners`].

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use warpgauge_compile::Tunable;
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::DeviceInfo;
use warpgauge_report::TuningReport;
use warpgauge_turns::Owner;

/// Maximum number of remembered choices.
const MAX_KEPT: usize = 256;

/// Hash of everything that a choice depends on.
pub(super) type Key = blake3::Hash;

/// The remembered choices, the most recent last.
#[derive(Default)]
pub(crate) struct Winners(Mutex<VecDeque<(Key, TuningReport)>>);

/// Returns a hash of everything that a choice depends on: the kernel with its arguments but without
/// their data, the measurement settings, the device, and the owner. Expected outputs are not part
/// of the hash.
pub(super) fn key(request: &EvaluateRequest, device: &DeviceInfo, owner: Owner) -> Key {
    let mut kernel = request.kernel.clone();
    for arg in kernel.io.iter_mut().flat_map(|io| &mut io.args) {
        if let Some(spec) = &mut arg.tensor_spec {
            spec.data = None;
        }
    }
    let parts = (
        kernel,
        &request.measure,
        &device.name,
        device.kind,
        device.target.compute_capability,
        device.target.driver_version,
        owner,
    );
    // The key of a kernel that cannot be serialised is a constant. Its entry is only used if the
    // configurations match.
    blake3::hash(&serde_json::to_vec(&parts).unwrap_or_default())
}

impl Winners {
    /// Returns a choice, if it was made among the same configurations.
    pub(super) fn get(&self, key: &Key, tunable: &Tunable) -> Option<TuningReport> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, report) = kept.iter().find(|(known, _)| known == key)?;
        let same = report.configurations.len() == tunable.configurations.len()
            && report
                .configurations
                .iter()
                .zip(&tunable.configurations)
                .all(|(known, listed)| known.index == listed.index);
        same.then(|| report.clone())
    }

    /// Stores a choice in place of an earlier one with the same key. Beyond `MAX_KEPT`, the oldest
    /// choices are removed.
    pub(super) fn put(&self, key: Key, report: &TuningReport) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != key);
        kept.push_back((key, report.clone()));
        while kept.len() > MAX_KEPT {
            kept.pop_front();
        }
    }
}
