//! Memory with prepared content of the buffers: one set for each sealed launch, and in each set the
//! blocks of all buffers, one after the other. The judge prepares the sets
//! (`tasks/prepared_sets.rs`); a candidate's process opens them.

use crate::child::device::executor::Executor;
use crate::child::failure::{JobResult, environment};
use crate::child::memory::buffers::JobBuffer;
use crate::protocol::LentSets;
use warpgauge_device::locked::ByteRange;
use warpgauge_device::{DeviceBuffer, DeviceError};
use warpgauge_model::gate_page::Digest;

/// The runner's side: the memory of the judge's sets.
pub(crate) struct LentMemory {
    memory: DeviceBuffer,
    set_bytes: usize,
}

impl LentMemory {
    /// Returns the memory, which is to be closed.
    pub(crate) fn into_memory(self) -> DeviceBuffer {
        self.memory
    }

    /// Opens the memory of sets with the content of these buffers.
    pub(crate) fn open(
        executor: &Executor,
        lent: &LentSets,
        buffers: &[JobBuffer<'_>],
    ) -> JobResult<Self> {
        let memory = DeviceBuffer::import(&executor.context, &lent.handle, lent.bytes);
        let set_bytes = buffers.iter().map(|buffer| buffer.block().1).sum();
        Ok(Self { memory: memory.map_err(environment)?, set_bytes })
    }

    /// Decrypts a set, and queues its copies to the buffers.
    pub(crate) fn unlock(
        &self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        (index, key): (usize, Digest),
    ) -> JobResult<()> {
        let support = executor.tools()?.support;
        let set = range(&self.memory, index, self.set_bytes);
        let decrypted = executor.with_locks(support, |locks| {
            locks.take_keys(&[key])?;
            locks.turn(set.0, set, 0)?;
            locks.forget_keys()
        });
        let at = index * self.set_bytes;
        let copied = decrypted.and_then(|()| load(executor, buffers, (&self.memory, at)));
        copied.map_err(environment)
    }

    /// Copies the buffers to the memory of a set, and returns the hash of the copy.
    pub(crate) fn commit(
        &self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        index: usize,
    ) -> JobResult<Digest> {
        let support = executor.tools()?.support;
        let set = range(&self.memory, index, self.set_bytes);
        let copied = save(executor, buffers, (&self.memory, index * self.set_bytes));
        let digests =
            copied.and_then(|()| executor.with_locks(support, |locks| locks.digests(&[set])));
        Ok(digests.map_err(environment)?.first().copied().unwrap_or_default())
    }
}

/// Returns address and size of a set.
pub(crate) fn range(memory: &DeviceBuffer, index: usize, set_bytes: usize) -> ByteRange {
    (memory.address() + (index * set_bytes) as u64, set_bytes as u64)
}

/// Queues copies of all buffers' blocks to memory, starting at a byte of it.
pub(crate) fn save(
    executor: &Executor,
    buffers: &[JobBuffer<'_>],
    to: (&DeviceBuffer, usize),
) -> Result<(), DeviceError> {
    each_block(buffers, to, |buffer, to| buffer.save_block(to, &executor.stream))
}

/// Queues copies from memory, starting at a byte of it, to all buffers' blocks.
pub(crate) fn load(
    executor: &Executor,
    buffers: &[JobBuffer<'_>],
    from: (&DeviceBuffer, usize),
) -> Result<(), DeviceError> {
    each_block(buffers, from, |buffer, from| buffer.load_block(from, &executor.stream))
}

/// Copies each buffer's block to or from its place in a set, which starts at a byte of the memory.
fn each_block(
    buffers: &[JobBuffer<'_>],
    (memory, mut at): (&DeviceBuffer, usize),
    copy: impl Fn(&JobBuffer<'_>, (&DeviceBuffer, usize)) -> Result<(), DeviceError>,
) -> Result<(), DeviceError> {
    buffers.iter().try_for_each(|buffer| {
        let place = (memory, at);
        at += buffer.block().1;
        copy(buffer, place)
    })
}
