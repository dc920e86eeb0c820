//! One more call, made while the tool that is round the runner looks at it.

use super::batches::Batches;
use super::traced::looked_at;
use crate::backends::torch::fault::Stop;
use crate::backends::torch::players::Seeds;

/// Has one call made while a tool looks. It has been verified with the same inputs before, which was the
/// first call: what only that does is not seen.
pub(super) fn count(
    batches: &mut Batches<'_, '_>,
    seed: Option<u64>,
) -> Result<Result<(), String>, Stop> {
    looked_at(batches, Seeds::Same(seed), 1, |session| session.count())
}
