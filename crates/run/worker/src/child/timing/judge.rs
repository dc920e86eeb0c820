//! The interface for verifying launches.

use std::time::Duration;

use super::inputs::Shown;
use crate::child::device::executor::Executor;
use crate::child::failure::JobResult;
use crate::child::memory::buffers::JobBuffer;
use warpgauge_validate::Filling;

/// A launch to verify. Its outputs remain in the buffers until then.
#[derive(Debug, Clone, Copy)]
pub(in crate::child) struct Audit {
    /// Index of the launch in its batch, from 0.
    pub trial: usize,
    pub shown: Shown,
    /// Content of the outputs before the launch.
    pub filling: Filling,
    /// Whether this is a load launch before launch `trial`, and not that launch itself.
    pub under_load: bool,
}

/// State of the verification of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::child) enum Verification {
    /// The launch is correct.
    Right,
    /// No time for verification was left.
    Skipped,
    /// The device verifies the launch: [`Judge::findings`] returns the result.
    Queued,
}

/// Result of verifying a launch on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::child) enum OnDevice {
    /// The launch is correct.
    Right,
    /// The device cannot decide, so the host must verify the launch.
    Unclear,
}

/// Verifies launches, each before the next one begins. When a method returns, data that it wrote to
/// the device must be removed.
pub(in crate::child) trait Judge {
    /// Returns whether to verify the launch at this position in its batch.
    fn takes(&mut self, index: usize) -> bool;

    /// Verifies a launch that has ended. Returns `false` if no time for verification is left.
    fn verify(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        audit: Audit,
    ) -> JobResult<bool>;

    /// Queues the verification of a launch that is queued, if the device can verify it. Returns
    /// `None` if only [`Self::start`] can verify the launch.
    fn queue(
        &mut self,
        _: &Executor,
        _: &[JobBuffer<'_>],
        _: Audit,
    ) -> JobResult<Option<Verification>> {
        Ok(None)
    }

    /// Verifies a launch that has ended, or queues the verification if the device can do it. If it
    /// is queued, the content of the next launch may be queued at once, but the launch itself only
    /// after [`Self::findings`].
    fn start(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        audit: Audit,
    ) -> JobResult<Verification> {
        if let Some(verification) = self.queue(executor, buffers, audit)? {
            return Ok(verification);
        }
        let verified = self.verify(executor, buffers, audit)?;
        Ok(if verified { Verification::Right } else { Verification::Skipped })
    }

    /// Waits for the queued verification, if there is one.
    fn findings(&mut self, _: &[JobBuffer<'_>]) -> JobResult<OnDevice> {
        Ok(OnDevice::Right)
    }

    /// Verifies a launch on the host whose result on the device was [`OnDevice::Unclear`]. The
    /// buffers lose their content.
    fn resolve(&mut self, _: &Executor, _: &mut [JobBuffer<'_>]) -> JobResult<()> {
        Ok(())
    }

    /// Completes the queued verification, if there is one. The buffers may then lose their content.
    fn settle(&mut self, executor: &Executor, buffers: &mut [JobBuffer<'_>]) -> JobResult<()> {
        match self.findings(buffers)? {
            OnDevice::Right => Ok(()),
            OnDevice::Unclear => self.resolve(executor, buffers),
        }
    }
}

/// Purpose of a series of launches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The kernel warms up, and keeps its variables.
    #[default]
    WarmUp,
    /// The kernel is timed.
    Timed,
    /// The kernel keeps its variables, in a long series of launches.
    Lasting,
    /// The last launches of the series in which the kernel keeps its variables.
    Last,
}

/// A judge that is notified of each batch in advance.
pub(crate) trait Referee: Judge {
    /// Begins a batch of this phase, after `before` earlier launches of the phase. The launches at
    /// `places` (ascending) are to be verified. After the batch, `later` more launches of the phase
    /// are to be verified.
    fn begin(&mut self, phase: Phase, before: usize, places: Vec<usize>, later: usize);

    /// Returns the wall time that verification took since the batch began.
    fn spent(&self) -> Duration;
}
