//! The state that every task uses.

use std::time::Instant;

use super::device::executor::Executor;
use super::io::link::Link;
use super::memory::buffers::JobBuffer;
use super::memory::residue::Residue;
use crate::protocol::{RunOutcome, WorkerJob};

pub(super) struct Run<'a, 'job> {
    pub executor: &'a mut Executor,
    pub job: &'job WorkerJob,
    pub link: &'a mut Link,
    /// The part of the outcome that all tasks share.
    pub outcome: &'a mut RunOutcome<()>,
    pub residue: &'a mut Residue,
    pub buffers: &'a mut Vec<JobBuffer<'job>>,
}

/// Adds the wall time of `work` to `total_ms`.
pub(super) fn timed<T>(total_ms: &mut f64, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    *total_ms += start.elapsed().as_secs_f64() * 1e3;
    result
}
