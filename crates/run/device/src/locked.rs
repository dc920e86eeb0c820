//! Locked calls: inputs are encrypted until a call's turn, and results are hashed at its end.
//!
//! A process that could read the inputs of all calls at once could compute all results at once. The
//! inputs of each call are therefore encrypted under a separate key. The process gets the key when
//! the hash of the previous call's results is known. The process's stream contains, in this order:
//! a gate that waits for the key (`wg_gate`), the decryption (`wg_lock`), the call, and the hash of
//! its results (`wg_commit`). The measured time is from the release of the key to the hash;
//! [`Locks::time`] measures the same without a call.

use std::time::{Duration, Instant};

use bytemuck::{Pod, Zeroable};

use super::launch::{LaunchShape, Params};
use super::support::Support;
use super::{Context, DeviceBuffer, DeviceError, PinnedBuffer, Stream};

use warpgauge_model::FailureCode;
use warpgauge_model::gate_page::{
    self, COUNTER_BYTES, Digest, GROUP_BYTES, GROUP_HASH_BYTES, MOST_RANGES,
};

/// Address and size of device memory, bytes.
pub type ByteRange = (u64, u64);

/// Number of bytes that a thread of `wg_lock` encrypts at a time.
const BLOCK_BYTES: u64 = 64;

/// Maximum time for which a gate waits for the host, nanoseconds.
const PATIENCE_NS: u64 = 2_000_000_000;

/// Mirrors `HashedRanges` in support.cu.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct HashedRanges {
    at: [u64; MOST_RANGES],
    bytes: [u64; MOST_RANGES],
}

/// Returns the size of the working memory that `wg_commit` needs for results of these sizes, bytes.
fn work_bytes(sizes: impl Iterator<Item = u64>) -> u64 {
    COUNTER_BYTES + GROUP_HASH_BYTES * sizes.map(groups).sum::<u64>()
}

fn groups(bytes: u64) -> u64 {
    bytes.div_ceil(GROUP_BYTES).max(1)
}

/// Working memory of [`Locks`], which a process may keep from use to use.
pub struct LockMemory {
    /// Page that host and device share.
    page: PinnedBuffer,
    keys: DeviceBuffer,
    work: DeviceBuffer,
    /// Number of the most recent kernel call that signals the host.
    number: u32,
}

impl LockMemory {
    /// Allocates the memory. It is sufficient for one key and for hashes of `hashed` bytes; more is
    /// allocated when it is needed.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(context: &Context, hashed: u64, stream: &Stream) -> Result<Self, DeviceError> {
        Ok(Self {
            page: PinnedBuffer::new(context, gate_page::BYTES)?,
            keys: DeviceBuffer::new(context, 32, "the worker's own use")?,
            work: zeroed(context, work_bytes(std::iter::once(hashed)), stream)?,
            number: 0,
        })
    }
}

/// Encrypts, decrypts and hashes device memory.
pub struct Locks<'a> {
    support: &'a Support,
    context: &'a Context,
    stream: &'a Stream,
    memory: LockMemory,
}

impl<'a> Locks<'a> {
    /// Allocates the page that host and device share, and the memory that the kernels need.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn new(
        context: &'a Context,
        support: &'a Support,
        stream: &'a Stream,
    ) -> Result<Self, DeviceError> {
        Ok(Self::with(LockMemory::new(context, 1, stream)?, context, support, stream))
    }

    /// Uses memory that was allocated before.
    pub fn with(
        memory: LockMemory,
        context: &'a Context,
        support: &'a Support,
        stream: &'a Stream,
    ) -> Self {
        Self { support, context, stream, memory }
    }

    /// Returns the memory for the next use.
    pub fn into_memory(self) -> LockMemory {
        self.memory
    }

    /// Queues the removal of the keys from the device's memory.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn forget_keys(&self) -> Result<(), DeviceError> {
        self.memory.keys.fill(0, self.stream)
    }

    /// Sets the keys for [`Self::turn`] and replaces earlier keys.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn take_keys(&mut self, keys: &[Digest]) -> Result<(), DeviceError> {
        if self.memory.keys.len() < 32 * keys.len() {
            let bytes = 32 * keys.len() as u64;
            self.memory.keys = DeviceBuffer::new(self.context, bytes, "the worker's own use")?;
        }
        self.memory.keys.copy_from_host(0, keys.as_flattened(), self.stream)
    }

    /// Queues the encryption or decryption of a range of memory with one of the keys. The result is
    /// written to the address `to`, which may be that of the range. The size of the range must be a
    /// multiple of 64 bytes.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn turn(&self, to: u64, window: ByteRange, key: usize) -> Result<(), DeviceError> {
        self.lock(to, window, self.memory.keys.address() + 32 * key as u64)
    }

    /// Returns the BLAKE3 hash of each range. There may be at most [`MOST_RANGES`].
    ///
    /// # Errors
    /// Returns a fault of work queued earlier, or of the driver.
    pub fn digests(&mut self, ranges: &[ByteRange]) -> Result<Vec<Digest>, DeviceError> {
        self.queue_digests(ranges)?;
        self.queued_digests(ranges.len())
    }

    /// Queues the computation of the BLAKE3 hash of each range. There may be at most
    /// [`MOST_RANGES`].
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn queue_digests(&mut self, ranges: &[ByteRange]) -> Result<(), DeviceError> {
        let number = self.next();
        self.commit(ranges, number)
    }

    /// Waits for the `count` hashes that were queued last.
    ///
    /// # Errors
    /// Returns a fault of work queued earlier, or of the driver.
    pub fn queued_digests(&self, count: usize) -> Result<Vec<Digest>, DeviceError> {
        let LockMemory { page, number, .. } = &self.memory;
        page.wait_for_word(gate_page::DONE / 4, *number, self.stream)?;
        let digests = page.bytes()[gate_page::DIGESTS..].chunks_exact(32).take(count);
        Ok(digests.filter_map(|digest| digest.try_into().ok()).collect())
    }

    /// Measures the time to decrypt a range of memory and to hash ranges without a call between
    /// them, from the release of the key to the hashes. The decryption changes the content of the
    /// range.
    ///
    /// # Errors
    /// Returns a fault of work queued earlier, or of the driver.
    pub fn time(
        &mut self,
        window: ByteRange,
        ranges: &[ByteRange],
    ) -> Result<Duration, DeviceError> {
        let number = self.next();
        let mut arguments = Params::new();
        arguments.push_address(self.memory.page.address()).push(&number.to_ne_bytes());
        arguments.push(&PATIENCE_NS.to_ne_bytes()).push_address(self.memory.keys.address());
        self.support.launch("wg_gate", LaunchShape::linear(1, 32), arguments, self.stream)?;
        self.turn(window.0, window, 0)?;
        self.commit(ranges, number)?;
        self.memory.page.wait_for_word(gate_page::ARRIVED / 4, number, self.stream)?;
        let began = Instant::now();
        self.memory.page.publish_word(gate_page::OPEN / 4, number);
        self.memory.page.wait_for_word(gate_page::DONE / 4, number, self.stream)?;
        Ok(began.elapsed())
    }

    fn next(&mut self) -> u32 {
        self.memory.number = self.memory.number.wrapping_add(1).max(1);
        self.memory.number
    }

    fn lock(&self, to: u64, (from, bytes): ByteRange, key: u64) -> Result<(), DeviceError> {
        let mut arguments = Params::new();
        arguments.push_address(to).push_address(from);
        arguments.push(&bytes.to_ne_bytes()).push_address(key);
        self.support.launch(
            "wg_lock",
            self.support.spread(bytes / BLOCK_BYTES),
            arguments,
            self.stream,
        )
    }

    fn commit(&mut self, ranges: &[ByteRange], number: u32) -> Result<(), DeviceError> {
        if ranges.len() > MOST_RANGES {
            let what = format!("{} ranges; the limit is {MOST_RANGES}", ranges.len());
            return Err(DeviceError::local("hash", FailureCode::InvalidValue, &what));
        }
        let none = [(0, 0)];
        let ranges = if ranges.is_empty() { &none } else { ranges };
        let needed = work_bytes(ranges.iter().map(|(_, bytes)| *bytes));
        if (self.memory.work.len() as u64) < needed {
            self.memory.work = zeroed(self.context, needed, self.stream)?;
        }
        let mut all = HashedRanges::zeroed();
        for (index, (address, bytes)) in ranges.iter().enumerate() {
            (all.at[index], all.bytes[index]) = (*address, *bytes);
        }
        let most = ranges.iter().map(|(_, bytes)| groups(*bytes)).max().unwrap_or(1);
        let mut shape = LaunchShape::linear(most as u32, 128);
        shape.grid[1] = ranges.len() as u32;
        let mut arguments = Params::new();
        arguments.push(bytemuck::bytes_of(&all)).push_address(self.memory.work.address());
        arguments.push_address(self.memory.page.address()).push(&number.to_ne_bytes());
        self.support.launch("wg_commit", shape, arguments, self.stream)
    }
}

fn zeroed(context: &Context, bytes: u64, stream: &Stream) -> Result<DeviceBuffer, DeviceError> {
    let buffer = DeviceBuffer::new(context, bytes, "the worker's own use")?;
    buffer.fill(0, stream)?;
    Ok(buffer)
}

#[cfg(test)]
mod tests {
    use super::super::support::SOURCE;
    use super::*;

    #[test]
    fn the_page_and_the_ranges_have_the_layout_of_the_kernels() {
        use gate_page::{ARRIVED, DIGESTS, DONE, KEY, OPEN};
        let words = [ARRIVED, OPEN, KEY, DONE, DIGESTS].map(|bytes| bytes / 4);
        let [arrived, open, key, done, digests] = words;
        let declared = format!(
            "enum {{ GATE_ARRIVED = {arrived}, GATE_OPEN = {open}, GATE_KEY = {key}, GATE_DONE = {done}, \
             GATE_DIGESTS = {digests} }};"
        );
        assert!(SOURCE.contains(&declared));
        let threads = GROUP_BYTES / 1024;
        assert!(SOURCE.contains(&format!(
            "enum {{ HASHED_RANGES = {MOST_RANGES}, HASH_THREADS = {threads} }};"
        )));
        const { assert!(DIGESTS + 32 * MOST_RANGES <= gate_page::BYTES) };
    }
}
