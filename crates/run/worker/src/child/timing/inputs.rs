//! What each launch finds in the random inputs.
//!
//! A kernel that keeps results from launch to launch gains nothing if no launch sees what another saw,
//! and if what the next will see exists nowhere yet. So random inputs are drawn anew for each launch,
//! from a seed that nobody knows, once the launch before has ended.
//!
//! Where expected content was computed beforehand, there are only some sets of inputs. Each launch finds one
//! of them, chosen at random.

use crate::child::failure::{JobResult, environment};
use crate::child::memory::buffers::{JobBuffer, restore_with};
use crate::child::memory::content::{Seed, is_random};
use crate::child::memory::tools::Tools;
use crate::child::memory::variables::Restored;
use crate::child::memory::write_batch::Writes;
use crate::child::secret::Secret;
use crate::protocol::{BufferSpec, EvaluatePlan};
use warpgauge_contract::Role;
use warpgauge_validate::Filling;

/// What one launch found: enough to show it to a reference kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::child) struct Shown {
    /// Seed of all random content.
    pub seed: Seed,
}

impl Shown {
    /// What the contract describes.
    pub(in crate::child) const CANONICAL: Self = Self { seed: Seed::Contract };
}

/// Chooses inputs.
pub(in crate::child) struct Inputs {
    pub secret: Secret,
    /// Whether each launch finds inputs of its own.
    moving: bool,
    /// Seeds of the sets that launches find one of.
    drawn: Vec<u64>,
    /// Whether the contract's own are behind us.
    secret_ones: bool,
}

impl Inputs {
    /// Inputs as the contract has them; `may_move`: other random numbers would serve as well.
    pub(in crate::child) fn new(buffers: &[JobBuffer<'_>], may_move: bool) -> Self {
        Self {
            secret: Secret::new(),
            moving: may_move && buffers.iter().any(JobBuffer::is_random),
            drawn: Vec::new(),
            secret_ones: false,
        }
    }

    /// Inputs of an evaluation.
    pub(in crate::child) fn of_plan(buffers: &[JobBuffer<'_>], plan: &EvaluatePlan) -> Self {
        let drawn = if wants_fresh(plan) { plan.checks.drawn.clone() } else { Vec::new() };
        Self { drawn, ..Self::new(buffers, may_move(plan)) }
    }

    /// Number of sets of inputs that launches find one of, where there are several and no more.
    pub(in crate::child) fn sets(&self) -> Option<u32> {
        (!self.drawn.is_empty()).then_some(self.drawn.len() as u32)
    }

    /// Whether launches see different inputs.
    pub(in crate::child) fn are_moving(&self) -> bool {
        self.moving
    }

    /// Whether all inputs do. Otherwise an output may follow from those alone that stay, so that what was
    /// right once is right again.
    pub(in crate::child) fn are_all_moving(&self, buffers: &[JobBuffer<'_>]) -> bool {
        all_move(buffers.iter().map(|buffer| buffer.spec), self.moving)
    }

    /// What is put back before each launch. Where inputs stay, what a launch left could serve the next one.
    pub(in crate::child) fn restored(&self, buffers: &[JobBuffer<'_>]) -> Restored {
        if self.are_all_moving(buffers) { Restored::Variables } else { Restored::ConstantsToo }
    }

    /// From here on each launch finds random numbers of its own, where they may move.
    pub(in crate::child) fn leave_contract(&mut self) {
        self.secret_ones = true;
    }

    /// What the outputs of the next launch hold before it.
    pub(in crate::child) fn filling(&mut self) -> Filling {
        Filling::drawn(self.secret.bits())
    }

    /// Draws the inputs of the next launch. The launch before must have ended: what is queued is in
    /// memory that it could read.
    pub(in crate::child) fn advance(
        &mut self,
        buffers: &mut [JobBuffer<'_>],
        writes: &mut Writes<'_>,
    ) -> JobResult<Shown> {
        let another = if self.secret_ones { self.another() } else { None };
        let Some(shown) = another else { return Ok(Shown::CANONICAL) };
        buffers.iter_mut().try_for_each(|buffer| buffer.reseed(shown.seed, writes))?;
        Ok(shown)
    }

    /// Other inputs than the contract's, where there may be.
    pub(in crate::child) fn another(&mut self) -> Option<Shown> {
        let seed = match self.drawn.len() {
            0 if !self.moving => return None,
            0 => Seed::Secret(self.secret.bits()),
            sets => Seed::Drawn(self.drawn[self.secret.below(sets)]),
        };
        Some(Shown { seed })
    }
}

impl Inputs {
    /// Draws the inputs of the next launch, and writes all that it is to find, outputs filled with
    /// `filling`. As for [`Self::advance`], the launch before must have ended.
    pub(in crate::child) fn prepare(
        &mut self,
        buffers: &mut [JobBuffer<'_>],
        filling: Filling,
        tools: Tools<'_>,
    ) -> JobResult<Shown> {
        let mut writes = Writes::new(tools);
        let shown = self.advance(buffers, &mut writes)?;
        restore_with(buffers, filling, writes).map_err(environment)?;
        Ok(shown)
    }
}

/// Whether other random inputs would serve as well: what is expected must then be computed for each launch.
pub(in crate::child) fn may_move(plan: &EvaluatePlan) -> bool {
    wants_fresh(plan) && plan.checks.files.is_empty()
}

/// Whether launches are to find other inputs than the contract's.
fn wants_fresh(plan: &EvaluatePlan) -> bool {
    plan.trials.as_ref().is_none_or(|trials| trials.fresh_inputs) && !plan.sanitize
}

/// Whether all that kernels are given is random, and `may_move`.
pub(in crate::child) fn all_move<'a>(
    specs: impl IntoIterator<Item = &'a BufferSpec>,
    may_move: bool,
) -> bool {
    let mut given = specs.into_iter().filter(|spec| spec.role != Role::Output).peekable();
    may_move && given.peek().is_some() && given.all(|spec| is_random(&spec.content))
}

/// Makes the buffers hold what a launch found, written anew.
pub(in crate::child) fn present(
    shown: Shown,
    buffers: &mut [JobBuffer<'_>],
    tools: Tools<'_>,
) -> JobResult<()> {
    let mut writes = Writes::new(tools);
    buffers.iter_mut().try_for_each(|buffer| buffer.show(shown.seed, &mut writes))?;
    writes.send().map_err(environment)
}
