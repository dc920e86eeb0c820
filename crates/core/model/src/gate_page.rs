//! Layout of the page of host memory through which a judge holds back a call and learns of its end.
//! Offsets are in bytes. The device also accesses the page; `support.cu` contains the same offsets
//! in words.

/// The device writes the number of the waiting call here.
pub const ARRIVED: usize = 0;
/// The judge writes the number of the call that may begin here.
pub const OPEN: usize = 64;
/// The judge writes the call's key here before it writes `OPEN`, 32 bytes.
pub const KEY: usize = 128;
/// The device writes the number of the call that has ended here.
pub const DONE: usize = 192;
/// The runner writes the number of the call that it begins to queue here.
pub const STARTED: usize = 256;
/// The runner writes the number of the call that is completely queued here.
pub const QUEUED: usize = 320;
/// End of the words above.
pub const WORDS: usize = 384;
/// The device writes the hashes of results here before it reports the end of the call, 32 bytes
/// each.
pub const DIGESTS: usize = 512;
/// Size of the page.
pub const BYTES: usize = 4096;
/// Maximum number of results of a call that are hashed.
pub const MOST_RANGES: usize = 64;

/// Bytes of a result that one block of the device hashes.
pub const GROUP_BYTES: u64 = 128 << 10;
/// Bytes of the counters in the memory for hashing.
pub const COUNTER_BYTES: u64 = 4 * (MOST_RANGES as u64 + 16);
/// Bytes of the memory for hashing for each group, after the counters.
pub const GROUP_HASH_BYTES: u64 = 64;

/// A key, or a hash.
pub type Digest = [u8; 32];
