//! One more call, made while the tool that is round the runner looks at it.

use super::calls::Seeds;
use super::stage::Stage;
use crate::backends::torch::judge::{Judge, Stop};

impl Judge {
    /// Has one call made while a tool looks. It has been verified with the same inputs before, which was the
    /// first call: what only that does is not seen.
    pub(super) fn count(&mut self, stage: &mut Stage<'_>, seed: Option<u64>) -> Result<(), Stop> {
        let looked = self.looked_at(stage, Seeds::Same(seed), 1, |session| session.count())?;
        self.judged.counted = Some(looked);
        Ok(())
    }
}
