//! Random inputs of each launch.
//!
//! A kernel may keep results from launch to launch. It gains nothing if no launch repeats earlier
//! inputs, and if the next inputs are not in memory yet. Random inputs are therefore drawn for each
//! launch, from a secret seed, after the previous launch has ended.
//!
//! If expected content was computed in advance, there are only a few sets of inputs. Each launch
//! gets one of these sets, chosen at random.

use crate::child::failure::{JobResult, environment};
use crate::child::memory::buffers::{JobBuffer, restore_with};
use crate::child::memory::content::{Seed, is_random};
use crate::child::memory::tools::Tools;
use crate::child::memory::variables::Restored;
use crate::child::memory::write_batch::Writes;
use crate::child::secret::Secret;
use crate::protocol::{BufferSpec, EvaluatePlan, TimedLaunch};
use warpgauge_contract::Role;
use warpgauge_model::CacheState;
use warpgauge_validate::Filling;

/// Inputs of one launch, in a form that allows writing them again for a reference kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::child) struct Shown {
    /// Seed of all random content.
    pub seed: Seed,
}

impl Shown {
    /// The inputs that the contract describes.
    pub(in crate::child) const CANONICAL: Self = Self { seed: Seed::Contract };
}

/// Chooses the inputs of launches.
pub(in crate::child) struct Inputs {
    pub secret: Secret,
    /// Whether each launch gets new inputs.
    moving: bool,
    /// Seeds of the sets to choose from; empty if any seed is allowed.
    drawn: Vec<u64>,
    /// Whether launches no longer get the contract's inputs.
    secret_ones: bool,
}

impl Inputs {
    /// Prepares the choice of inputs, which begins with the contract's inputs. `may_move`: whether
    /// other random numbers may replace them.
    pub(in crate::child) fn new(buffers: &[JobBuffer<'_>], may_move: bool) -> Self {
        Self {
            secret: Secret::new(),
            moving: may_move && buffers.iter().any(JobBuffer::is_random),
            drawn: Vec::new(),
            secret_ones: false,
        }
    }

    /// Returns the inputs of an evaluation.
    pub(in crate::child) fn of_plan(buffers: &[JobBuffer<'_>], plan: &EvaluatePlan) -> Self {
        let drawn = if wants_fresh(plan) { plan.checks.drawn.clone() } else { Vec::new() };
        Self { drawn, ..Self::new(buffers, may_move(plan)) }
    }

    /// Returns the number of sets to choose from, if there are only a few.
    pub(in crate::child) fn sets(&self) -> Option<u32> {
        (!self.drawn.is_empty()).then_some(self.drawn.len() as u32)
    }

    /// Returns whether each launch may get new inputs, from any seed.
    pub(in crate::child) fn are_moving(&self) -> bool {
        self.moving
    }

    /// Returns whether all inputs change. Otherwise an output may depend only on inputs that do not
    /// change, so that an old result would be correct again.
    pub(in crate::child) fn are_all_moving(&self, buffers: &[JobBuffer<'_>]) -> bool {
        all_move(buffers.iter().map(|buffer| buffer.spec), self.moving)
    }

    /// Returns the variables that are reset before each launch. If some inputs do not change, data
    /// left by one launch could serve a later one.
    pub(in crate::child) fn restored(&self, buffers: &[JobBuffer<'_>]) -> Restored {
        if self.are_all_moving(buffers) { Restored::Variables } else { Restored::ConstantsToo }
    }

    /// Returns how a launch is timed. `wiped`: whether old data must be removed before the launch.
    pub(in crate::child) fn timed_launch(
        &self,
        buffers: &[JobBuffer<'_>],
        cache: CacheState,
        wiped: bool,
    ) -> TimedLaunch {
        // If all inputs change, old content of shared memory is useless to the kernel.
        TimedLaunch { cache, wipe_shared: wiped && !self.are_all_moving(buffers) }
    }

    /// Gives each later launch new random numbers, if inputs may change.
    pub(in crate::child) fn leave_contract(&mut self) {
        self.secret_ones = true;
    }

    /// Returns a random filling for the outputs of the next launch.
    pub(in crate::child) fn filling(&mut self) -> Filling {
        Filling::drawn(self.secret.bits())
    }

    /// Draws the inputs of the next launch. The previous launch must have ended, since it could
    /// read the memory that is written here.
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

    /// Returns inputs other than the contract's, if the plan allows them.
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
    /// Draws the inputs of the next launch, and writes all of its buffers; outputs are filled with
    /// `filling`. As for [`Self::advance`], the previous launch must have ended.
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

/// Returns whether any other random inputs may be used. Expected content must then be computed for
/// each launch.
pub(in crate::child) fn may_move(plan: &EvaluatePlan) -> bool {
    wants_fresh(plan) && plan.checks.files.is_empty()
}

/// Returns whether launches get inputs other than the contract's.
fn wants_fresh(plan: &EvaluatePlan) -> bool {
    plan.trials.as_ref().is_none_or(|trials| trials.fresh_inputs) && !plan.sanitize
}

/// Returns whether `may_move` is set and all arguments with initial content are random. There must
/// be at least one.
pub(in crate::child) fn all_move<'a>(
    specs: impl IntoIterator<Item = &'a BufferSpec>,
    may_move: bool,
) -> bool {
    let mut given = specs.into_iter().filter(|spec| spec.role != Role::Output).peekable();
    may_move && given.peek().is_some() && given.all(|spec| is_random(&spec.content))
}

/// Writes the inputs of a launch to the buffers again.
pub(in crate::child) fn present(
    shown: Shown,
    buffers: &mut [JobBuffer<'_>],
    tools: Tools<'_>,
) -> JobResult<()> {
    let mut writes = Writes::new(tools);
    buffers.iter_mut().try_for_each(|buffer| buffer.show(shown.seed, &mut writes))?;
    writes.send().map_err(environment)
}
