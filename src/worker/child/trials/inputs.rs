//! What each launch finds in the random inputs.
//!
//! A kernel that keeps results from launch to launch gains nothing if no launch sees what another
//! saw. So the pointers of random inputs move over a pool of random numbers ([`JobBuffer`]), from a
//! seed that the submitter does not know, and the pool is drawn anew before a place comes twice.

use crate::validate::Filling;
use crate::worker::child::buffers::{JobBuffer, Seed, Tools, WINDOWS};
use crate::worker::child::job::JobResult;
use crate::worker::child::secret::Secret;

/// What one launch found: enough to show it to a reference kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::worker::child) struct Shown {
    /// Seed of all random content.
    pub seed: Seed,
    /// Window of each buffer.
    pub windows: Vec<usize>,
}

impl Shown {
    /// What the contract describes.
    pub(in crate::worker::child) fn canonical(buffers: &[JobBuffer<'_>]) -> Self {
        Self { seed: Seed::Contract, windows: vec![0; buffers.len()] }
    }
}

/// Chooses inputs.
pub(in crate::worker::child) struct Inputs {
    pub secret: Secret,
    /// Whether inputs change at all.
    moving: bool,
    seed: Seed,
    /// First window and stride of each buffer. Strides are odd, so that each of the windows, whose
    /// number is a power of two, comes once in a round.
    walks: Vec<(usize, usize)>,
    shown: usize,
}

impl Inputs {
    /// Inputs as the contract has them; `may_move`: other random numbers would serve as well.
    pub(in crate::worker::child) fn new(buffers: &[JobBuffer<'_>], may_move: bool) -> Self {
        const { assert!(WINDOWS.is_power_of_two()) };
        Self {
            secret: Secret::new(),
            moving: may_move && buffers.iter().any(JobBuffer::has_windows),
            seed: Seed::Contract,
            walks: vec![(0, 0); buffers.len()],
            shown: 0,
        }
    }

    /// Whether launches see different inputs.
    pub(in crate::worker::child) fn are_moving(&self) -> bool {
        self.moving
    }

    /// Launches that can still be shown something new before the pool is drawn anew.
    pub(in crate::worker::child) fn left(&self) -> usize {
        if self.moving && self.seed != Seed::Contract { WINDOWS - self.shown } else { 0 }
    }

    /// Draws all random content anew.
    pub(in crate::worker::child) fn renew(
        &mut self,
        buffers: &mut [JobBuffer<'_>],
        tools: Tools<'_>,
    ) -> JobResult<()> {
        if !self.moving {
            return Ok(());
        }
        self.seed = Seed::Secret(self.secret.bits());
        for walk in &mut self.walks {
            *walk = (self.secret.below(WINDOWS), 2 * self.secret.below(WINDOWS / 2) + 1);
        }
        self.shown = 0;
        for buffer in buffers {
            buffer.reseed(self.seed, tools)?;
        }
        Ok(())
    }

    /// What the outputs of the next launch hold before it.
    pub(in crate::worker::child) fn filling(&mut self) -> Filling {
        Filling::drawn(self.secret.bits())
    }

    /// Moves the windows for the next launch.
    pub(in crate::worker::child) fn advance(&mut self, buffers: &mut [JobBuffer<'_>]) -> Shown {
        if !self.moving || self.seed == Seed::Contract {
            return Shown::canonical(buffers);
        }
        let window = |&(start, stride): &(usize, usize)| (start + self.shown * stride) % WINDOWS;
        let windows = self.walks.iter().map(window).collect::<Vec<_>>();
        for (buffer, &window) in buffers.iter_mut().zip(&windows) {
            buffer.set_window(window);
        }
        self.shown += 1;
        Shown { seed: self.seed, windows }
    }
}

/// Makes the buffers hold what a launch found, written anew.
pub(in crate::worker::child) fn present(
    shown: &Shown,
    buffers: &mut [JobBuffer<'_>],
    tools: Tools<'_>,
) -> JobResult<()> {
    for (buffer, &window) in buffers.iter_mut().zip(&shown.windows) {
        buffer.set_window(window);
        buffer.show(shown.seed, tools)?;
    }
    Ok(())
}
