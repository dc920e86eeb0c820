//! Errors of operations on [`Memory`](super::Memory).

/// Reasons why a memory operation failed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The operating system provided no memory.
    #[error("cannot reserve {bytes} bytes of memory")]
    Reserve {
        /// Number of bytes that were requested.
        bytes: u64,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The requested size is 0, or above the maximum size of an allocation.
    #[error("an allocation cannot have {bytes} bytes")]
    Size {
        /// Number of bytes that were requested.
        bytes: u64,
    },
    /// No allocation contains the address.
    #[error("address {va:#x} is in no allocation{note}")]
    NotAllocated {
        va: u64,
        /// Position relative to the nearest allocation.
        note: String,
    },
    /// The range begins in an allocation and ends after it.
    #[error("{bytes} bytes at {va:#x} do not fit in the {size}-byte allocation at {base:#x}")]
    OutOfRange {
        /// Start of the range.
        va: u64,
        /// Length of the range.
        bytes: u64,
        /// Start of the allocation.
        base: u64,
        /// Size of the allocation.
        size: u64,
    },
    /// The address is not the start of an allocation that this call can release.
    #[error("address {va:#x} is not the start of {what}")]
    NotBase {
        va: u64,
        /// Kind of allocation that the call releases.
        what: &'static str,
    },
    /// The range to map overlaps another allocation.
    #[error("{bytes} bytes at {va:#x} overlap the allocation at {other:#x}")]
    Overlap {
        /// Start of the range.
        va: u64,
        /// Length of the range.
        bytes: u64,
        /// Start of the other allocation.
        other: u64,
    },
    /// The length of a fill pattern is not 1, 2 or 4 bytes.
    #[error("a fill pattern has 1, 2 or 4 bytes, not {len}")]
    Pattern {
        /// Length of the pattern.
        len: usize,
    },
}
