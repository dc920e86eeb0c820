//! The page of host memory through which a judge holds a call back and learns that it has ended. The device sees it
//! too: `support.cu` has the same places, in words. Places are in bytes.

/// The device writes the number of the call that waits.
pub const ARRIVED: usize = 0;
/// The judge writes the number of the call that may begin.
pub const OPEN: usize = 64;
/// The judge writes the call's key before, 32 bytes.
pub const KEY: usize = 128;
/// The device writes the number of the call that has ended.
pub const DONE: usize = 192;
/// The runner writes the number of the call that it begins to queue.
pub const STARTED: usize = 256;
/// The runner writes the number of the call that is queued as a whole.
pub const QUEUED: usize = 320;
/// Where the words above end.
pub const WORDS: usize = 384;
/// The device writes the hashes of results before it writes that the call has ended, 32 bytes each.
pub const DIGESTS: usize = 512;
/// Size of the page.
pub const BYTES: usize = 4096;
/// Most results of a call that are hashed.
pub const MOST_RANGES: usize = 64;

/// Bytes of a result that one block of the device hashes.
pub const GROUP_BYTES: u64 = 128 << 10;
/// Bytes of counters in the memory that hashing works with.
pub const COUNTER_BYTES: u64 = 4 * (MOST_RANGES as u64 + 16);
/// Bytes of that memory for each group, behind the counters.
pub const GROUP_HASH_BYTES: u64 = 64;

/// A key, or a hash.
pub type Digest = [u8; 32];
