//! Describes a memory access for the code that checks, performs and counts it.

use crate::ir::Access;
use crate::ptx::Space;

/// The kind of an access, for messages and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Atomic,
    /// An atomic whose old value is not used. Only the counts distinguish it from `Atomic`.
    Reduction,
}

/// The memory that an access uses after all checks. It determines what the addresses refer to.
pub(super) enum Target {
    /// The addresses are real addresses, all of which are valid.
    Global,
    /// The addresses are offsets in shared memory.
    Shared,
    /// The addresses are offsets in local memory.
    Local,
    /// The addresses are offsets in the kernel's parameters.
    Param,
}

/// Returns the description of the access of a matrix instruction, which uses plain elements and
/// 64-bit addresses.
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
