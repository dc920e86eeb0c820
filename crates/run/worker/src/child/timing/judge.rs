//! Who verifies launches, and what they are told.

use std::time::Duration;

use super::inputs::Shown;
use crate::child::device::executor::Executor;
use crate::child::failure::JobResult;
use crate::child::memory::buffers::JobBuffer;
use warpgauge_validate::Filling;

/// A launch that has ended and is to be verified; its outputs are where it left them.
#[derive(Debug, Clone, Copy)]
pub(in crate::child) struct Audit {
    /// Place among the launches of its kind, from 0.
    pub trial: usize,
    pub shown: Shown,
    /// What its outputs held before.
    pub filling: Filling,
    /// Whether it is not that launch but one of the load before it.
    pub under_load: bool,
}

/// Verifies launches, each before the next begins. What it wrote to the device is gone when it returns.
pub(in crate::child) trait Judge {
    /// Whether to verify the launch with this place in its batch.
    fn takes(&mut self, index: usize) -> bool;

    /// Verifies a launch that has ended. `false`: there is no time for it.
    fn verify(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        audit: Audit,
    ) -> JobResult<bool>;
}

/// What launches are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The kernel warms up, and keeps its variables.
    #[default]
    WarmUp,
    /// It is timed.
    Timed,
    /// It keeps its variables for as long as it may be used.
    Lasting,
    /// The last of these launches.
    Last,
}

/// A judge that is told what comes.
pub(crate) trait Referee: Judge {
    /// Launches of this phase begin, after `before` others of it; of the batch, those at these places
    /// (ascending) are to be verified, and `later` of the phase after it.
    fn begin(&mut self, phase: Phase, before: usize, places: Vec<usize>, later: usize);

    /// Wall time that verification took since then.
    fn spent(&self) -> Duration;
}
