//! Errors of requests to [`Memory`](super::Memory).

/// A refused memory operation.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The system provided no memory.
    #[error("cannot reserve {bytes} bytes of memory")]
    Reserve {
        /// Requested bytes.
        bytes: u64,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A request for no bytes, or for more than an address can hold.
    #[error("{bytes} bytes is not a possible size of an allocation")]
    Size {
        /// Requested bytes.
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
    #[error("{bytes} bytes at {va:#x} do not fit the {size}-byte allocation at {base:#x}")]
    OutOfRange {
        /// Begin of the range.
        va: u64,
        /// Length of the range.
        bytes: u64,
        /// Begin of the allocation.
        base: u64,
        /// Size of the allocation.
        size: u64,
    },
    /// The address is not the begin of an allocation that this call may release.
    #[error("address {va:#x} is not the begin of {what}")]
    NotBase {
        va: u64,
        /// Kind of allocation that the call releases.
        what: &'static str,
    },
    /// The range to map touches another allocation.
    #[error("{bytes} bytes at {va:#x} overlap the allocation at {other:#x}")]
    Overlap {
        /// Begin of the range.
        va: u64,
        /// Length of the range.
        bytes: u64,
        /// Begin of the allocation in the way.
        other: u64,
    },
    /// A fill pattern whose length is not 1, 2 or 4 bytes.
    #[error("a fill pattern has 1, 2 or 4 bytes, not {len}")]
    Pattern {
        /// Length of the pattern.
        len: usize,
    },
}
