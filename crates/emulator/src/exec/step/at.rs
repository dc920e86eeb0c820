//! Where a group of lanes is, and what comes after its instruction.

use crate::exec::state::LaunchFault;

/// What the loop does after an instruction that is not arithmetic.
pub(super) enum Flow {
    /// The next instruction.
    Next,
    /// The group has moved, split or stopped: choose again.
    Choose,
}

/// The position of the group that runs.
pub(super) struct At {
    /// Its index in the warp.
    pub(super) group: usize,
    pub(super) frame: usize,
    pub(super) pc: u32,
    pub(super) mask: u32,
    /// Lanes whose guard holds.
    pub(super) active: u32,
}

pub(super) type Step = Result<Flow, Box<LaunchFault>>;
