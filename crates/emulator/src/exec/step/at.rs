//! The position of a group of lanes, and the action after its instruction.

use crate::exec::state::LaunchFault;

/// Action of the interpreter loop after an instruction that is not arithmetic.
pub(super) enum Flow {
    /// Continue with the next instruction.
    Next,
    /// Choose a group again, because this group has moved, split or stopped.
    Choose,
}

/// Position of the group that runs.
pub(super) struct At {
    /// Index of the group in the warp.
    pub(super) group: usize,
    pub(super) frame: usize,
    pub(super) pc: u32,
    pub(super) mask: u32,
    /// Lanes of the group whose guard predicate is true.
    pub(super) active: u32,
}

pub(super) type Step = Result<Flow, Box<LaunchFault>>;
