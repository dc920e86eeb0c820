//! Activity of the device during some untimed calls. The runner's process records it, so it is only
//! an explanation and does not affect the verdict.

use std::time::Duration;

use super::batches::Batches;
use super::stage::CallOrder;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::players::Seeds;
use warpgauge_torch::{DeviceTrace, RunnerFault, RunnerSession};

/// Maximum number of traced calls.
const CALLS: u32 = 10;

/// Time limit for the traced calls and for reading the recording.
const WITHIN: Duration = Duration::from_secs(20);

/// Activity of the device that a runner recorded.
pub(in crate::backends::torch) struct Traced {
    pub trace: DeviceTrace,
    /// Number of calls during which activity was recorded.
    pub calls: u32,
    /// Product name of the device.
    pub hardware: String,
}

/// Traces some calls. A failure here does not change the verdict on the candidate.
pub(super) fn trace(
    batches: &mut Batches<'_, '_>,
    seeds: Seeds,
) -> Result<Result<Traced, String>, Stop> {
    let calls = batches.most().min(CALLS);
    let traced = looked_at(batches, seeds, calls, |session| session.trace(WITHIN))?;
    let hardware = batches.stage.gpu.info.name.clone();
    Ok(traced.map(|trace| Traced { trace, calls, hardware }))
}

/// Makes untimed calls, and returns the result of `look` for them, or the reason why there is no
/// result.
pub(super) fn looked_at<T>(
    batches: &mut Batches<'_, '_>,
    seeds: Seeds,
    calls: u32,
    look: impl FnOnce(&mut RunnerSession) -> Result<T, RunnerFault>,
) -> Result<Result<T, String>, Stop> {
    let seeds = batches.players.seeds_of(seeds, calls);
    let generator = batches.drawn(&seeds)?;
    match batches.candidate_ready((&seeds, generator), CallOrder::TOGETHER) {
        Ok(_) => {
            let candidate = &mut batches.players.candidate;
            let told = look(&mut candidate.session);
            Ok(told.map_err(|fault| candidate.failed(fault).message))
        }
        Err(Stop::Candidate(failed)) => Ok(Err(failed.message)),
        Err(stop) => Err(stop),
    }
}
