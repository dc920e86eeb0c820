//! What an access to memory is, for those who make, check and count it.

use crate::ir::Access;
use crate::ptx::Space;

/// The kind of an access, for messages and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
    /// An atomic whose old value nobody reads; only counts make a difference.
    Reduction,
}

/// Where the lanes of an access are, after all checks.
pub(super) enum Target {
    /// Real addresses, all good.
    Global,
    /// Offsets in shared memory.
    Shared,
    /// Offsets in local memory.
    Local,
    /// Offsets in the parameters.
    Param,
}

/// An access of matrix instructions: plain elements, and addresses of 64 bits.
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
