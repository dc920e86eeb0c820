//! Launches in batches, each prepared, timed and perhaps kept for verification.

use super::inputs::{Inputs, Shown};
use crate::contract::CacheState;
use crate::device::{
    ClockReading, DeviceBuffer, DeviceError, Event, PendingCopy, Staging, Stamp, clock_between,
};
use crate::validate::Filling;
use crate::worker::child::arm::Arm;
use crate::worker::child::buffers::{JobBuffer, outputs, restore_all};
use crate::worker::child::executor::{Executor, TimingAids};
use crate::worker::child::job::{JobResult, candidate, environment};
use crate::worker::protocol::DeviceKind;

/// Most launches of one batch: so many windows there are to show, and so many pairs of events.
pub(in crate::worker::child) const BATCH: usize = 256;

/// What launches run on, and under which conditions.
pub(in crate::worker::child) struct Rig<'a, 'job> {
    pub executor: &'a mut Executor,
    pub buffers: &'a mut [JobBuffer<'job>],
    pub inputs: Inputs,
    /// State of L2 at each launch.
    pub cache: CacheState,
}

/// Whether a kernel finds what its launches before left in its variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker::child) enum Memory {
    /// It does, as in its later life: it must be right all the same.
    Kept,
    /// It does not, so that no launch can count, replay or skip.
    Wiped,
}

/// Outputs of a launch, to be verified once the candidate runs no more.
pub(in crate::worker::child) struct Audit {
    /// Place among the launches of its kind, from 0.
    pub trial: usize,
    pub shown: Shown,
    /// What its outputs held before.
    pub filling: Filling,
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
    audits: Vec<(usize, Shown, Filling, Copies)>,
}

impl Rig<'_, '_> {
    /// One launch that is not timed, on outputs that hold `filling`; waits for it.
    pub(in crate::worker::child) fn launch_once(
        &mut self,
        arm: &mut Arm,
        filling: Filling,
    ) -> JobResult<Shown> {
        let shown = self.inputs.advance(self.buffers);
        let stream = &self.executor.stream;
        restore_all(self.buffers, filling, stream).map_err(environment)?;
        arm.launch(self.buffers, stream).map_err(candidate)?;
        stream.synchronize().map_err(candidate)?;
        Ok(shown)
    }

    /// Size of all outputs, bytes.
    pub(in crate::worker::child) fn output_bytes(&self) -> usize {
        outputs(self.buffers).map(|(_, buffer)| buffer.len()).sum()
    }

    /// Launches that fit one batch.
    pub(in crate::worker::child) fn largest_batch(&self) -> usize {
        let moving = self.inputs.are_moving() && self.inputs.left() > 0;
        if moving { BATCH.min(self.inputs.left()) } else { BATCH }
    }

    /// Runs `count` launches, each on restored buffers and with the kernel's variables as they were
    /// after loading, and waits for them. The outputs of those whose place is in `audited`
    /// (ascending) are kept.
    pub(in crate::worker::child) fn run(
        &mut self,
        arm: &mut Arm,
        count: usize,
        audited: &[usize],
    ) -> JobResult<Batch> {
        self.run_with(arm, count, audited, Memory::Wiped)
    }

    /// As [`Self::run`]; `memory` says whether the kernel finds what it left in its variables.
    pub(in crate::worker::child) fn run_with(
        &mut self,
        arm: &mut Arm,
        count: usize,
        audited: &[usize],
        memory: Memory,
    ) -> JobResult<Batch> {
        let count = count.clamp(1, BATCH);
        if self.inputs.are_moving() && self.inputs.left() < count {
            let tools = self.executor.tools()?;
            self.inputs.renew(self.buffers, tools)?;
        }
        let mut staging = self.staging(audited.len())?;
        let stamps = [0, 1].map(|_| self.executor.stamp_staging());
        // Out of the executor for the time of the batch: the rest of it is borrowed beside them.
        let mut aids = self.executor.timing.take();
        let queued = self.queue(arm, count, (audited, memory), &mut staging, stamps, aids.as_mut());
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
        (0..audits).map(|_| outputs(self.buffers).map(take).collect()).collect()
    }

    fn queue(
        &mut self,
        arm: &mut Arm,
        count: usize,
        (audited, memory): (&[usize], Memory),
        staging: &mut Vec<Vec<(usize, Kept)>>,
        stamps: [Option<Staging>; 2],
        mut aids: Option<&mut TimingAids>,
    ) -> Result<Queued, DeviceError> {
        let executor = &*self.executor;
        let (stream, Some(support)) = (&executor.stream, executor.support.as_ref()) else {
            return Err(DeviceError::local("queue launches", "invalid_value", "no own kernels"));
        };
        let flush = match self.cache {
            CacheState::Cold => executor.flush.as_ref(),
            CacheState::Hot => None,
        };
        let (first, last, pairs) = split(executor.events.events());
        first.record(stream)?;
        let [before, after] = stamps;
        let stamp = |aids: &Option<&mut TimingAids>, staging: Option<Staging>| match (aids, staging)
        {
            (Some(aids), Some(staging)) => aids.stamps.take(support, staging, stream).map(Some),
            _ => Ok(None),
        };
        let before = stamp(&aids, before)?;
        let mut audits = Vec::new();
        for (index, [start, end]) in pairs.iter().take(count).enumerate() {
            let shown = self.inputs.advance(self.buffers);
            let filling = self.inputs.filling();
            if memory == Memory::Wiped {
                arm.forget(stream)?;
                // Inputs that move leave nothing of use in shared memory.
                if let (false, Some(aids)) = (self.inputs.are_moving(), &mut aids) {
                    aids.wipe.queue(stream)?;
                }
            }
            restore_all(self.buffers, filling, stream)?;
            flush.map_or(Ok(()), |flush| flush.fill(0, stream))?;
            if let Some(aids) = &mut aids {
                // The gate right before the first event: behind anything else, what the device does
                // between the two is part of the time (0.5 µs behind a fill). What is queued before
                // the device stands there takes longer too (0.7 µs).
                aids.gate.shut(support, stream)?;
            }
            start.record(stream)?;
            arm.launch(self.buffers, stream)?;
            end.record(stream)?;
            if let Some(aids) = &aids {
                aids.gate.open();
            }
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
                audits.push((index, shown, filling, copies));
            }
        }
        let after = stamp(&aids, after)?;
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
        for (trial, shown, filling, copies) in queued.audits {
            let finish = |(buffer, copy): (usize, Copying)| {
                let kept = match copy {
                    Copying::Host(copy) => Kept::Host(copy.finish().map_err(candidate)?),
                    Copying::Device(memory) => Kept::Device(memory),
                };
                Ok((buffer, kept))
            };
            let outputs = copies.into_iter().map(finish).collect::<JobResult<_>>()?;
            batch.audits.push(Audit { trial, shown, filling, outputs });
        }
        Ok(batch)
    }
}

/// The first event, the last, and the pairs between.
fn split(events: &[Event]) -> (&Event, &Event, &[[Event; 2]]) {
    let ([first, last], pairs) = events.split_first_chunk::<2>().expect("2 * BATCH + 2 events");
    (first, last, pairs.as_chunks().0)
}
