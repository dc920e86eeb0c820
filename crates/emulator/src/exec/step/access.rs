//! Describes a memory access for the code that checks, performs and counts it.

use crate::ir::Access;
use crate::ptx::Space;

/// The kind of an access, for messages and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
    /// An atomic whose old value is not used. It differs from `Atomic` only in the counts.
    Reduction,
}

/// Memory that an access uses after all checks. It determines the meaning of the addresses.
pub(super) enum Target {
    /// Real addresses, all valid.
    Global,
    /// Offsets in shared memory.
    Shared,
    /// Offsets in local memory.
    Local,
    /// Offsets in the parameters.
    Param,
}

/// Returns the access of a matrix instruction, with plain elements and 64-bit addresses.
pub(super) fn access(space: Space, width: u8, count: u8) -> Access {
    Access {
        space,
        width,
        count,
        sext: false,
        wide: width == 8,
        base64: true,
        strong: false,
        atomic: false,
        to16: false,
    }
}
