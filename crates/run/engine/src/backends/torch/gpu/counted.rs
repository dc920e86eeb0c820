//! One additional call, observed by the profiler around the runner.

use super::batches::Batches;
use super::traced::looked_at;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::players::Seeds;

/// Makes one call under the profiler. The first call had the same inputs and was verified. Work
/// that a kernel does only in its first call does not appear here.
pub(super) fn count(
    batches: &mut Batches<'_, '_>,
    seed: Option<u64>,
) -> Result<Result<(), String>, Stop> {
    looked_at(batches, Seeds::Same(seed), 1, |session| session.count())
}
