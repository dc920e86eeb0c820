//! What can be wrong with a request to [`Memory`](super::Memory).

/// A refused memory operation.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The system gave no memory.
    #[error("cannot reserve {bytes} bytes of memory")]
    Reserve {
        /// Bytes asked for.
        bytes: u64,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A request for no bytes, or for more than an address can hold.
    #[error("{bytes} bytes is not a possible size of an allocation")]
    Size {
        /// Bytes asked for.
        bytes: u64,
    },
    /// No allocation contains the address.
    #[error("address {va:#x} is in no allocation{note}")]
    NotAllocated {
        /// The address.
        va: u64,
        /// Where the nearest allocation is.
        note: String,
    },
    /// The range begins in an allocation and ends after it.
    #[error("{bytes} bytes at {va:#x} do not fit the {size}-byte allocation at {base:#x}")]
    OutOfRange {
        /// Begin of the range.
        va: u64,
        /// Its length.
        bytes: u64,
        /// Begin of the allocation.
        base: u64,
        /// Its size.
        size: u64,
    },
    /// The address is not the begin of an allocation that this call may release.
    #[error("address {va:#x} is not the begin of {what}")]
    NotBase {
        /// The address.
        va: u64,
        /// The kind of allocation the call releases.
        what: &'static str,
    },
    /// The range to map touches another allocation.
    #[error("{bytes} bytes at {va:#x} overlap the allocation at {other:#x}")]
    Overlap {
        /// Begin of the range.
        va: u64,
        /// Its length.
        bytes: u64,
        /// Begin of the allocation in the way.
        other: u64,
    },
    /// A fill pattern whose length is not 1, 2 or 4 bytes.
    #[error("a fill pattern has 1, 2 or 4 bytes, not {len}")]
    Pattern {
        /// Its length.
        len: usize,
    },
}
