//! Launches that are queued together, and their times.

use super::inputs::{Inputs, Shown};
use crate::contract::{CacheState, Role};
use crate::device::{
    ClockReading, DeviceBuffer, DeviceError, Event, PendingCopy, Staging, Stamp, Stream,
    clock_between,
};
use crate::validate::POISON_BYTE;
use crate::worker::child::arm::Arm;
use crate::worker::child::buffers::JobBuffer;
use crate::worker::child::executor::{Executor, TimingAids};
use crate::worker::child::job::{JobResult, candidate, environment};
use crate::worker::protocol::DeviceKind;

/// Most launches that are queued before the device is waited for.
pub(in crate::worker::child) const BATCH: usize = 256;

/// Operations that a stream surely takes while the device waits; the host would block at more, and
/// the device with it.
const QUEUE_OPERATIONS: usize = 600;

/// What launches run on, and under which conditions.
pub(in crate::worker::child) struct Rig<'a, 'job> {
    pub executor: &'a mut Executor,
    pub buffers: &'a mut [JobBuffer<'job>],
    pub inputs: Inputs,
    /// State of L2 at each launch.
    pub cache: CacheState,
}

/// Outputs of a timed launch, to be verified once the candidate runs no more.
pub(in crate::worker::child) struct Audit {
    /// Timed launch, counted from 0.
    pub trial: usize,
    pub shown: Shown,
    /// Buffer and content.
    pub outputs: Vec<(usize, Kept)>,
}

/// An output of a launch, kept until the candidate has run for the last time.
pub(in crate::worker::child) enum Kept {
    /// On the host, where no kernel finds it: what is right for one launch is right for all.
    Host(Staging),
    /// On the device: no other launch gets the same inputs, so that it is of no use to one.
    Device(DeviceBuffer),
}

/// Where an output is being copied to.
enum Copying {
    Host(PendingCopy),
    Device(DeviceBuffer),
}

/// What a batch yields.
#[derive(Default)]
pub(in crate::worker::child) struct Batch {
    /// Time of each launch, milliseconds.
    pub samples_ms: Vec<f32>,
    pub busy_ms: f64,
    pub clock: Option<ClockReading>,
    pub audits: Vec<Audit>,
}

/// Outputs that are being copied: buffer and copy.
type Copies = Vec<(usize, Copying)>;

/// What was queued and cannot be read yet.
struct Queued {
    stamps: Option<[Stamp; 2]>,
    audits: Vec<(usize, Shown, Copies)>,
}

impl Rig<'_, '_> {
    /// One launch that is not timed, on outputs that hold `poison`; waits for it.
    pub(in crate::worker::child) fn launch_once(
        &mut self,
        arm: &mut Arm,
        poison: u8,
    ) -> JobResult<Shown> {
        let shown = self.inputs.advance(self.buffers);
        let stream = &self.executor.stream;
        for buffer in &*self.buffers {
            buffer.restore(poison, stream).map_err(environment)?;
        }
        arm.launch(self.buffers, stream).map_err(candidate)?;
        stream.synchronize().map_err(candidate)?;
        Ok(shown)
    }

    /// Why clocks are low now: NVML's bits, where the driver tells.
    pub(in crate::worker::child) fn throttle_reasons(&self) -> Option<u64> {
        self.executor.monitor.as_ref().ok()?.throttle_reasons().ok()
    }

    /// Size of all outputs, bytes.
    pub(in crate::worker::child) fn output_bytes(&self) -> usize {
        let outputs = self.buffers.iter().filter(|buffer| buffer.spec.role != Role::Input);
        outputs.map(JobBuffer::len).sum()
    }

    /// Launches that fit one batch.
    pub(in crate::worker::child) fn largest_batch(&self, arm: &Arm) -> usize {
        let most = match self.cache {
            // Each launch waits for L2 to be flushed: time enough for the host to stay ahead.
            CacheState::Cold => BATCH,
            CacheState::Hot => self.lead(arm),
        };
        if self.inputs.are_moving() && self.inputs.left() > 0 {
            most.min(self.inputs.left())
        } else {
            most
        }
    }

    /// Launches that can be queued while the device is held back.
    fn lead(&self, arm: &Arm) -> usize {
        let each = 4 + 2 * self.buffers.len() + arm.variables();
        (QUEUE_OPERATIONS / each).clamp(1, BATCH)
    }

    /// Runs `count` launches, each on restored buffers, and waits for them. The outputs of those
    /// whose place is in `audited` (ascending) are copied to the host.
    pub(in crate::worker::child) fn run(
        &mut self,
        arm: &mut Arm,
        count: usize,
        audited: &[usize],
    ) -> JobResult<Batch> {
        let count = count.clamp(1, BATCH);
        if self.inputs.are_moving() && self.inputs.left() < count {
            let tools = self.executor.tools()?;
            self.inputs.renew(self.buffers, tools)?;
        }
        // Page-locked memory is taken before the device is held back: the driver may wait for the
        // device to give any.
        let mut staging = self.staging(audited.len())?;
        let stamps = [0, 1].map(|_| self.executor.stamp_staging());
        let pinned = staging.iter().flatten().all(|(_, target)| match target {
            Kept::Host(staging) => staging.is_pinned(),
            Kept::Device(_) => true,
        });
        // Out of the executor for the time of the batch: the rest of it is borrowed beside them.
        let mut aids = self.executor.timing.take();
        let gated = if pinned { aids.as_mut() } else { None };
        let queued = self.queue(arm, count, audited, &mut staging, stamps, gated);
        if let Some(aids) = &aids {
            aids.gate.open();
        }
        self.executor.timing = aids;
        let queued = queued.map_err(candidate)?;
        self.collect(count, queued)
    }

    /// Memory for the outputs of each audited launch.
    fn staging(&self, audits: usize) -> JobResult<Vec<Vec<(usize, Kept)>>> {
        let on_device = self.inputs.are_moving() && self.executor.device().kind == DeviceKind::Cuda;
        let outputs =
            || self.buffers.iter().enumerate().filter(|(_, b)| b.spec.role != Role::Input);
        let take = |(index, buffer): (usize, &JobBuffer<'_>)| {
            let kept = if on_device {
                let bytes = buffer.len() as u64;
                let memory = DeviceBuffer::new(&self.executor.context, bytes, "auditing outputs");
                Kept::Device(memory.map_err(environment)?)
            } else {
                Kept::Host(self.executor.pinned.take(buffer.len()))
            };
            Ok((index, kept))
        };
        (0..audits).map(|_| outputs().map(take).collect()).collect()
    }

    fn queue(
        &mut self,
        arm: &mut Arm,
        count: usize,
        audited: &[usize],
        staging: &mut Vec<Vec<(usize, Kept)>>,
        stamps: [Option<Staging>; 2],
        mut aids: Option<&mut TimingAids>,
    ) -> Result<Queued, DeviceError> {
        let lead = self.lead(arm).min(count);
        let wipes = !self.inputs.are_moving();
        let executor = &*self.executor;
        let (stream, Some(support)) = (&executor.stream, executor.support.as_ref()) else {
            return Err(DeviceError::local("queue launches", "invalid_value", "no own kernels"));
        };
        let flush = match self.cache {
            CacheState::Cold => executor.flush.as_ref(),
            CacheState::Hot => None,
        };
        let (first, last, pairs) = split(executor.events.events());
        if let Some(aids) = &mut aids {
            aids.gate.shut(support, stream)?;
        }
        first.record(stream)?;
        let [before, after] = stamps;
        let stamp = |staging: Option<Staging>| match (&aids, staging) {
            (Some(aids), Some(staging)) => aids.stamps.take(support, staging, stream).map(Some),
            _ => Ok(None),
        };
        let before = stamp(before)?;
        let mut audits = Vec::new();
        for (index, [start, end]) in pairs.iter().take(count).enumerate() {
            let shown = self.inputs.advance(self.buffers);
            if wipes {
                arm.forget(stream)?;
                executor.wipe_shared()?;
            }
            prepare(self.buffers, flush, stream)?;
            start.record(stream)?;
            arm.launch(self.buffers, stream)?;
            end.record(stream)?;
            if audited.binary_search(&index).is_ok()
                && let Some(targets) = staging.pop()
            {
                let copy = |(index, target): (usize, Kept)| {
                    let buffer = &self.buffers[index];
                    let copy = match target {
                        Kept::Host(target) => {
                            Copying::Host(buffer.start_copy_to_host(target, stream)?)
                        }
                        Kept::Device(target) => {
                            buffer.start_copy_to(&target, stream)?;
                            Copying::Device(target)
                        }
                    };
                    Ok((index, copy))
                };
                let copies = targets.into_iter().map(copy).collect::<Result<_, DeviceError>>()?;
                audits.push((index, shown, copies));
            }
            if index + 1 == lead
                && let Some(aids) = &aids
            {
                aids.gate.open();
            }
        }
        let after = stamp(after)?;
        last.record(stream)?;
        Ok(Queued { stamps: before.zip(after).map(<[Stamp; 2]>::from), audits })
    }

    fn collect(&self, count: usize, queued: Queued) -> JobResult<Batch> {
        let (first, last, pairs) = split(self.executor.events.events());
        last.synchronize().map_err(candidate)?;
        let mut batch = Batch {
            busy_ms: f64::from(last.elapsed_ms_since(first).map_err(candidate)?),
            ..Batch::default()
        };
        for [start, end] in pairs.iter().take(count) {
            batch.samples_ms.push(end.elapsed_ms_since(start).map_err(candidate)?);
        }
        if let Some([before, after]) = queued.stamps {
            let before = before.finish().map_err(environment)?;
            let after = after.finish().map_err(environment)?;
            batch.clock = clock_between(&before, &after);
        }
        for (trial, shown, copies) in queued.audits {
            let finish = |(buffer, copy): (usize, Copying)| {
                let kept = match copy {
                    Copying::Host(copy) => Kept::Host(copy.finish().map_err(candidate)?),
                    Copying::Device(memory) => Kept::Device(memory),
                };
                Ok((buffer, kept))
            };
            let outputs = copies.into_iter().map(finish).collect::<JobResult<_>>()?;
            batch.audits.push(Audit { trial, shown, outputs });
        }
        Ok(batch)
    }
}

/// Queues what a launch must find: buffers as the contract has them, L2 without them.
fn prepare(
    buffers: &[JobBuffer<'_>],
    flush: Option<&DeviceBuffer>,
    stream: &Stream,
) -> Result<(), DeviceError> {
    for buffer in buffers {
        buffer.restore(POISON_BYTE, stream)?;
    }
    flush.map_or(Ok(()), |flush| flush.fill(0, stream))
}

/// The first event, the last, and the pairs between.
fn split(events: &[Event]) -> (&Event, &Event, &[[Event; 2]]) {
    let ([first, last], pairs) = events.split_first_chunk::<2>().expect("2 * BATCH + 2 events");
    (first, last, pairs.as_chunks().0)
}
