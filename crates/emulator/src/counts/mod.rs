//! What a launch did, counted.

/// Event counts of one launch.
///
/// Every field is a sum over blocks, so that the order in which blocks run cannot change it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions issued, one for each warp.
    pub warp_instructions: u64,
    /// Instructions executed, one for each thread whose guard held.
    pub thread_instructions: u64,
}
