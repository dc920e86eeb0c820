//! Sealed launches whose inputs the judge prepares ahead.
//!
//! A change between the contexts of two processes takes longer than most kernels. The judge
//! therefore prepares the buffers' content for several sealed launches before the candidate's first
//! launch. It encrypts each such set under a separate key, and lends the memory of all sets. At a
//! sealed launch the candidate's process gets the key of one set, decrypts it, copies it to the
//! buffers, and launches. Then it copies the buffers back, and sends a hash of that copy to the
//! judge. The judge verifies the copies after the last launch. The hash shows that a copy has not
//! changed since its launch ended.
//!
//! A single reference computes all expected outputs ahead, too, on copies of the sets that only its
//! own process can open.

use std::collections::VecDeque;

use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::memory::buffers::{JobBuffer, restore_all};
use crate::child::memory::residue::Residue;
use crate::child::memory::write_batch::Writes;
use crate::child::timing::inputs::{Inputs, Shown};
use crate::child::timing::judge::{Audit, Judge, Phase, Referee};
use crate::child::timing::lent_sets::{load, range, save};
use crate::child::verify::on_device::Agreement;
use crate::child::verify::oracle::Oracle;
use crate::child::verify::references::ReferenceKernels;
use crate::child::verify::surroundings::nothing_else_touched;
use crate::protocol::LentSets;
use warpgauge_device::DeviceBuffer;
use warpgauge_device::inspection::Findings;
use warpgauge_model::DeviceKind;
use warpgauge_model::gate_page::Digest;
use warpgauge_validate::{Filling, Reason};

/// Maximum size of all sets, bytes; the reference's copies have the same size. Above it, saving
/// memory is more important than saving time.
const MOST_BYTES: u64 = 384 << 20;

/// Maximum size of all sets on the emulated device, which encrypts slowly, bytes.
const MOST_EMULATED_BYTES: u64 = 64 << 10;

/// Largest share of the device's memory that all sets take: one part of this many.
const MEMORY_SHARE: u64 = 16;

/// Sets are encrypted in blocks of this size, bytes.
const BLOCK_BYTES: usize = 64;

/// The judge's side: sets for launches to come, and launches to verify.
pub(crate) struct PreparedSets {
    memory: DeviceBuffer,
    /// Memory of the same size for the reference: the same inputs with other fillings, and later
    /// its outputs.
    references: DeviceBuffer,
    /// Whether the reference has computed its outputs.
    are_expected: bool,
    /// Size of a set, bytes: the blocks of all buffers, one after the other.
    set_bytes: usize,
    ready: VecDeque<PreparedSet>,
    /// Sets whose launches have ended, each with the hash of its memory at the end of the launch.
    /// The memory contains the buffers as the launch left them.
    ended: Vec<(PreparedSet, Digest)>,
}

/// Content of the buffers before a launch.
pub(crate) struct PreparedSet {
    pub index: usize,
    pub key: Digest,
    shown: Shown,
    filling: Filling,
}

impl PreparedSets {
    /// Queues the preparation of `count` sets, and of the contract's inputs after it. Returns
    /// `None` if the sets are too large, or if the device cannot prepare them.
    ///
    /// All inputs must change from launch to launch: a copy of earlier results must be useless to
    /// the kernel, because it could find the memory of the sets.
    pub(crate) fn prepare(
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        inputs: &mut Inputs,
        count: usize,
    ) -> JobResult<Option<Self>> {
        let set_bytes = buffers.iter().map(|buffer| buffer.block().1).sum::<usize>();
        let bytes = set_bytes as u64 * count as u64;
        let most = match executor.device().kind {
            DeviceKind::Cuda => MOST_BYTES.min(executor.device().memory_bytes / MEMORY_SHARE),
            DeviceKind::Emulator => MOST_EMULATED_BYTES,
        };
        let whole = buffers.iter().all(|buffer| buffer.block().1.is_multiple_of(BLOCK_BYTES));
        if !whole || bytes == 0 || bytes > most || !inputs.are_all_moving(buffers) {
            return Ok(None);
        }
        let new = || DeviceBuffer::new(&executor.context, bytes, "sealed launches");
        // Without this memory, the judge seals each launch when its turn comes.
        let (Ok(memory), Ok(references)) = (new(), new()) else { return Ok(None) };
        let tools = executor.tools()?;
        let keys = executor.with_locks(tools.support, |locks| executor.take_keys(count, locks));
        let keys = keys.map_err(environment)?;
        let mut ready = VecDeque::with_capacity(count);
        for (index, key) in keys.into_iter().enumerate() {
            let filling = inputs.filling();
            let shown = inputs.prepare(buffers, filling, tools)?;
            save(executor, buffers, (&memory, index * set_bytes)).map_err(environment)?;
            let set = range(&memory, index, set_bytes);
            let encrypted =
                executor.with_locks(tools.support, |locks| locks.turn(set.0, set, index));
            encrypted.map_err(environment)?;
            // An element that neither kernel writes must differ.
            restore_all(buffers, inputs.filling(), tools).map_err(environment)?;
            save(executor, buffers, (&references, index * set_bytes)).map_err(environment)?;
            ready.push_back(PreparedSet { index, key, shown, filling });
        }
        let mut writes = Writes::new(tools);
        let canonical = Shown::CANONICAL.seed;
        buffers.iter_mut().try_for_each(|buffer| buffer.reseed(canonical, &mut writes))?;
        writes.send().map_err(environment)?;
        let ended = Vec::new();
        Ok(Some(Self { memory, references, are_expected: false, set_bytes, ready, ended }))
    }

    /// Returns what the candidate's process needs to open the sets.
    pub(crate) fn lend(&self, buffers: &[JobBuffer<'_>]) -> JobResult<LentSets> {
        lent(&self.memory, buffers)
    }

    /// Makes a single reference compute the expected outputs of all sets in its process. Returns
    /// `false` if there is no such reference.
    pub(crate) fn expect(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        references: &mut ReferenceKernels<'_>,
    ) -> JobResult<bool> {
        let sets = lent(&self.references, buffers)?;
        self.are_expected = references.expect_sets(executor, sets)?;
        Ok(self.are_expected)
    }

    /// Returns the next set, which a runner may decrypt now; `None` if all sets are used.
    pub(crate) fn open(&mut self) -> Option<PreparedSet> {
        self.ready.pop_front()
    }

    /// Records the end of a launch. `digest` is the hash that its runner sent.
    pub(crate) fn ended(&mut self, set: PreparedSet, digest: Digest) {
        self.ended.push((set, digest));
    }

    /// Verifies all launches that have ended. The runner must not use the buffers any more.
    pub(crate) fn verify(
        &mut self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        oracle: &mut Oracle<'_, '_>,
    ) -> JobResult<()> {
        let (sets, committed): (Vec<_>, Vec<_>) = self.ended.drain(..).unzip();
        let ranges =
            sets.iter().map(|set: &PreparedSet| range(&self.memory, set.index, self.set_bytes));
        let ranges = ranges.collect::<Vec<_>>();
        if sets.is_empty() {
            return Ok(());
        }
        let support = executor.tools()?.support;
        let queued = executor.with_locks(support, |locks| locks.queue_digests(&ranges));
        queued.map_err(environment)?;
        // Work on several sets is queued before the first wait, because other processes use the
        // device while this process waits. Inputs that the host generates exist for one set only.
        let kind = executor.device().kind;
        let are_checkable = buffers.iter().all(|buffer| buffer.is_checkable(kind));
        let together = if are_checkable { sets.len() } else { 1 };
        let mut committed = Some(committed);
        let mut later = sets.len();
        for sets in sets.chunks(together) {
            let (agreements, findings) = self.compare(executor, buffers, sets, oracle)?;
            if let Some(committed) = committed.take() {
                let count = committed.len();
                let digests = executor.with_locks(support, |locks| locks.queued_digests(count));
                if digests.map_err(environment)? != committed {
                    return Err(Failed::reason(Reason::results_changed()));
                }
            }
            for (set, agreement) in sets.iter().zip(agreements) {
                later -= 1;
                let agrees = match agreement {
                    Some(agreement) => oracle.agrees(buffers, agreement, &findings)?,
                    None => false,
                };
                if !agrees {
                    self.verify_one(executor, buffers, (set, later), oracle)?;
                }
            }
        }
        Ok(())
    }

    /// Compares sets with the outputs that the reference computed ahead. `None` stands for a set
    /// that the device cannot compare.
    fn compare(
        &self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        sets: &[PreparedSet],
        oracle: &Oracle<'_, '_>,
    ) -> JobResult<(Vec<Option<Agreement>>, Findings)> {
        let support = executor.tools()?.support;
        let mut inspection = support.inspect(&executor.stream).map_err(environment)?;
        let mut agreements = Vec::with_capacity(sets.len());
        for set in sets {
            agreements.push(match self.are_expected {
                true => {
                    let expected = (&self.references, self.load(executor, buffers, set)?);
                    oracle.queue_agreement(executor, buffers, &mut inspection, expected)?
                }
                false => None,
            });
        }
        Ok((agreements, inspection.read().map_err(environment)?))
    }

    /// Verifies a set like a launch that has just ended. `later` is the number of sets after it.
    fn verify_one(
        &self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        (set, later): (&PreparedSet, usize),
        oracle: &mut Oracle<'_, '_>,
    ) -> JobResult<()> {
        self.load(executor, buffers, set)?;
        let PreparedSet { index, shown, filling, .. } = *set;
        let audit = Audit { trial: 0, shown, filling, under_load: false };
        oracle.begin(Phase::Timed, index, vec![0], later);
        if !(oracle.takes(0) && oracle.verify(executor, buffers, audit)?) {
            // No other process can check whether the launch changed inputs.
            nothing_else_touched(executor, buffers)?;
        }
        Ok(())
    }

    /// Queues the copy of a set to the buffers. Returns the set's position in the memory.
    fn load(
        &self,
        executor: &Executor,
        buffers: &mut [JobBuffer<'_>],
        set: &PreparedSet,
    ) -> JobResult<usize> {
        let kind = executor.device().kind;
        buffers.iter_mut().try_for_each(|buffer| buffer.adopt(set.shown.seed, kind))?;
        let at = set.index * self.set_bytes;
        load(executor, buffers, (&self.memory, at)).map_err(environment)?;
        Ok(at)
    }

    /// Hands the memory over for scrubbing.
    pub(crate) fn retire(self, residue: &mut Residue) {
        residue.take_memory(self.memory);
        residue.take_memory(self.references);
    }
}

fn lent(memory: &DeviceBuffer, buffers: &[JobBuffer<'_>]) -> JobResult<LentSets> {
    let handle = memory.export().map_err(environment)?;
    let blocks = buffers.iter().map(|buffer| (buffer.block().1 as u64, buffer.front() as u64));
    Ok(LentSets { handle, bytes: memory.len() as u64, blocks: blocks.collect() })
}
