//! What the device does during some calls, which are none of the timed ones: the runner's own process reads it,
//! and so it explains, and decides nothing.

use std::time::Duration;

use super::batches::Batches;
use super::stage::CallOrder;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::players::Seeds;
use warpgauge_torch::{DeviceTrace, RunnerFault, RunnerSession};

/// Calls that are traced.
const CALLS: u32 = 10;

/// How long they may take, with reading what was recorded.
const WITHIN: Duration = Duration::from_secs(20);

/// What a runner recorded of its device.
pub(in crate::backends::torch) struct Traced {
    pub trace: DeviceTrace,
    /// During so many calls.
    pub calls: u32,
    /// Product name of the device.
    pub hardware: String,
}

/// Has some calls traced. A runner that fails at it has been judged already.
pub(super) fn trace(
    batches: &mut Batches<'_, '_>,
    seeds: Seeds,
) -> Result<Result<Traced, String>, Stop> {
    let calls = batches.most().min(CALLS);
    let traced = looked_at(batches, seeds, calls, |session| session.trace(WITHIN))?;
    let hardware = batches.stage.gpu.info.name.clone();
    Ok(traced.map(|trace| Traced { trace, calls, hardware }))
}

/// Has calls made beside the timed ones, and returns what `look` finds in them, or why it finds nothing.
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
