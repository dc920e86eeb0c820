//! Layout of the page of host memory through which a judge holds back a call and learns of its end.
//! Offsets are in bytes. The device also accesses the page; `support.cu` contains the same offsets
//! in words.

/// Offset of the number of the waiting call, which the device writes.
pub const ARRIVED: usize = 0;
/// Offset of the number of the call that may begin, which the judge writes.
pub const OPEN: usize = 64;
/// Offset of the call's key, 32 bytes, which the judge writes before it writes `OPEN`.
pub const KEY: usize = 128;
/// Offset of the number of the call that has ended, which the device writes.
pub const DONE: usize = 192;
/// Offset of the number of the call that the runner begins to queue, which the runner writes.
pub const STARTED: usize = 256;
/// Offset of the number of the call that is completely queued, which the runner writes.
pub const QUEUED: usize = 320;
/// Offset of the end of the words above.
pub const WORDS: usize = 384;
/// Offset of the hashes of results, 32 bytes each, which the device writes before it reports the
/// end of the call.
pub const DIGESTS: usize = 512;
/// Size of the page, in bytes.
pub const BYTES: usize = 4096;
/// Maximum number of results of a call that are hashed.
pub const MOST_RANGES: usize = 64;

/// Number of bytes of a result that one block of the device hashes.
pub const GROUP_BYTES: u64 = 128 << 10;
/// Size of the counters at the start of the memory for hashing, in bytes.
pub const COUNTER_BYTES: u64 = 4 * (MOST_RANGES as u64 + 16);
/// Size of the memory for hashing that each group uses after the counters, in bytes.
pub const GROUP_HASH_BYTES: u64 = 64;

/// A key, or a hash.
pub type Digest = [u8; 32];
