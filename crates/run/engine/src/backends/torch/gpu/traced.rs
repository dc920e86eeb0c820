//! What the device does during some calls, which are none of the timed ones: the runner's own process reads it,
//! and so it explains, and decides nothing.

use std::time::Duration;

use super::calls::Seeds;
use super::stage::Stage;
use crate::backends::torch::judge::{Judge, Stop};
use warpgauge_torch::{Fault, Session, Trace};

/// Calls that are traced.
const CALLS: u32 = 10;

/// How long they may take, with reading what was recorded.
const WITHIN: Duration = Duration::from_secs(20);

/// What was told.
pub(in crate::backends::torch) struct Traced {
    pub trace: Trace,
    /// During so many calls.
    pub calls: u32,
    /// Product name of the device.
    pub hardware: String,
}

impl Judge {
    /// Has some calls traced. A runner that fails at it has been judged already.
    pub(super) fn trace(&mut self, stage: &mut Stage<'_>, seeds: Seeds) -> Result<(), Stop> {
        let calls = self.calls_at_once(stage).min(CALLS);
        let traced = self.looked_at(stage, seeds, calls, |session| session.trace(WITHIN))?;
        let hardware = stage.gpu.info.name.clone();
        self.judged.traced = Some(traced.map(|trace| Traced { trace, calls, hardware }));
        Ok(())
    }

    /// Has calls made that are none of the timed ones; what is told of them, or why nothing is.
    pub(super) fn looked_at<T>(
        &mut self,
        stage: &mut Stage<'_>,
        seeds: Seeds,
        calls: u32,
        look: impl FnOnce(&mut Session) -> Result<T, Fault>,
    ) -> Result<Result<T, String>, Stop> {
        let seeds = self.seeds_of(seeds, calls);
        let generator = self.drawn(stage, &seeds)?;
        match self.candidate_ready(stage, (&seeds, generator), 0) {
            Ok(_) => {
                let told = look(&mut self.candidate.session);
                Ok(told.map_err(|fault| self.candidate.failed(fault).message))
            }
            Err(Stop::Candidate(failed)) => Ok(Err(failed.message)),
            Err(stop) => Err(stop),
        }
    }
}
