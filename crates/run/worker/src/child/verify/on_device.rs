//! Compares outputs with a reference's outputs on the device, if that suffices.

use super::outputs::{Outputs, copy_outputs};
use super::references::ReferenceKernels;
use super::surroundings::{Surroundings, nothing_else_touched};
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::memory::buffers::{JobBuffer, SHIFT_STEP, rewrite_inputs};
use crate::child::memory::residue::Residue;
use crate::protocol::{Blame, Checks};
use warpgauge_device::inspection::{FindingHandle, Findings, Inspection, PendingFindings};
use warpgauge_device::support::{NearTolerance, Support};
use warpgauge_device::{DeviceBuffer, Event};
use warpgauge_model::{DeviceKind, FailureCode};

/// Maximum size of outputs whose comparison is queued while the next launch is prepared. Above it,
/// saving memory is more important than avoiding the wait.
const QUEUED_BYTES: usize = 64 << 20;

/// Compares outputs on the device.
pub(crate) struct DeviceCheck<'a> {
    checks: &'a Checks,
    /// Whether every launch gets new inputs, so that the correct result of one launch is useless to
    /// another.
    moving: bool,
    /// Memory for outputs, if the buffer for flushing L2 cannot hold them.
    scratch: Option<DeviceBuffer>,
    queued: Option<Queued>,
    /// Event at the end of the queued comparison.
    passed: Option<Event>,
    /// Outputs in `scratch` that the device did not find to be correct.
    unclear: Option<Kept>,
}

impl<'a> DeviceCheck<'a> {
    pub(crate) fn new(checks: &'a Checks, moving: bool) -> Self {
        Self { checks, moving, scratch: None, queued: None, passed: None, unclear: None }
    }

    /// Hands its memory over for scrubbing.
    pub(crate) fn retire(self, residue: &mut Residue) {
        // Waits for a comparison that is still queued.
        drop(self.queued);
        self.scratch.into_iter().for_each(|memory| residue.take_memory(memory));
    }

    /// Compares the outputs with the references' outputs for the same inputs. Returns `None` if the
    /// device finds them to be correct, and otherwise the outputs on the host. Fails if other
    /// memory was changed.
    pub(crate) fn unless_right(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        references: &mut ReferenceKernels<'_>,
    ) -> JobResult<Option<Outputs>> {
        let Some(kept) = self.layout(executor, buffers) else {
            nothing_else_touched(executor, buffers)?;
            return copy_outputs(executor, buffers).map(Some);
        };
        let copy = |memory: &DeviceBuffer| copied(executor, buffers, (&kept, memory));
        self.unless((executor, buffers), references, (&kept, Near::Tolerance), copy)
    }

    /// Compares the outputs with the references' outputs for the same inputs. Returns whether all
    /// elements are finite and equal, regardless of the tolerance. Returns `false` also if the
    /// device cannot compare them; the buffers then contain what the launch left. Fails if other
    /// memory was changed.
    pub(crate) fn is_equal(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        references: &mut ReferenceKernels<'_>,
    ) -> JobResult<bool> {
        let Some(kept) = self.layout(executor, buffers) else { return Ok(false) };
        let put_back = |memory: &DeviceBuffer| {
            for &(index, at) in &kept.places {
                let copied = buffers[index].start_copy_from((memory, at), &executor.stream);
                copied.map_err(environment)?;
            }
            // A reference that ran may have changed them.
            rewrite_inputs(buffers, false, executor.tools()?).map_err(environment)
        };
        let other = self.unless((executor, buffers), references, (&kept, Near::Equal), put_back)?;
        Ok(other.is_none())
    }

    /// Copies the outputs to scratch memory and compares them there. Returns `None` if all are
    /// `near` the references' outputs, and otherwise the result of `other` for that memory.
    fn unless<T>(
        &mut self,
        (executor, buffers): (&Executor, &[JobBuffer<'_>]),
        references: &mut ReferenceKernels<'_>,
        (kept, near): (&Kept, Near),
        other: impl FnOnce(&DeviceBuffer) -> JobResult<T>,
    ) -> JobResult<Option<T>> {
        let scratch = self.room(executor, kept.bytes)?;
        let memory = scratch.as_ref().or(executor.flush.as_ref()).ok_or_else(no_scratch)?;
        let left = match self.is_right(executor, buffers, references, (kept, memory), near) {
            Ok(true) => Ok(None),
            Ok(false) => other(memory).map(Some),
            Err(failed) => Err(failed),
        };
        if !self.moving {
            memory.fill_range(0, kept.bytes, 0, &executor.stream).map_err(environment)?;
        }
        self.scratch = scratch;
        left
    }

    /// Returns scratch memory for outputs of this size: the memory that `self` holds, or new
    /// memory. Returns `None` if the buffer for flushing L2 is large enough.
    fn room(&mut self, executor: &Executor, bytes: usize) -> JobResult<Option<DeviceBuffer>> {
        if executor.flush.as_ref().is_some_and(|flush| flush.len() >= bytes) {
            return Ok(None);
        }
        match self.scratch.take() {
            Some(memory) => Ok(Some(memory)),
            None => DeviceBuffer::new(&executor.context, bytes as u64, "verifying outputs")
                .map(Some)
                .map_err(environment),
        }
    }

    /// Returns the place to which each checked output is copied, or `None` if the device cannot
    /// compare all of them.
    fn layout(&self, executor: &Executor, buffers: &[JobBuffer<'_>]) -> Option<Kept> {
        if executor.device().kind != DeviceKind::Cuda || !self.checks.files.is_empty() {
            return None;
        }
        let mut kept = Kept { places: Vec::new(), bytes: 0 };
        for (index, tolerance) in &self.checks.tolerances.0 {
            let buffer = buffers.get(*index)?;
            let dtype = buffer.spec.dtype;
            let wide = tolerance.atol > 0.0 || tolerance.rtol > 0.0;
            // An unwritten element could match under a tolerance, and only the host's comparison
            // detects that.
            if !Support::compares(dtype) || wide && !dtype.is_float() {
                return None;
            }
            kept.places.push((*index, kept.bytes));
            kept.bytes += buffer.len().next_multiple_of(SHIFT_STEP);
        }
        (kept.bytes > 0).then_some(kept)
    }

    /// Returns whether [`Self::start`] can queue the comparison. The device must be able to compare
    /// the outputs, all inputs of the next launch must be new, and this process must make the
    /// launches.
    pub(crate) fn fits(&self, executor: &Executor, buffers: &[JobBuffer<'_>]) -> bool {
        let kind = executor.device().kind;
        self.moving
            && executor.runners.is_none()
            && self.layout(executor, buffers).is_some_and(|kept| kept.bytes <= QUEUED_BYTES)
            && buffers.iter().all(|buffer| buffer.is_checkable(kind))
    }

    /// Queues the comparison of a launch's outputs. [`Self::findings`] waits for it.
    pub(crate) fn start(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        references: &mut ReferenceKernels<'_>,
    ) -> JobResult<()> {
        let kept = self.layout(executor, buffers).ok_or_else(no_scratch)?;
        // The buffer for flushing L2 is written before the findings are read.
        let memory = match self.scratch.take() {
            Some(memory) => memory,
            None => DeviceBuffer::new(&executor.context, kept.bytes as u64, "verifying outputs")
                .map_err(environment)?,
        };
        let passed = match self.passed.take() {
            Some(passed) => passed,
            None => Event::new(&executor.context).map_err(environment)?,
        };
        let compared = self.queue(executor, buffers, references, (&kept, &memory), Near::Tolerance);
        let sent = compared.and_then(|(compared, inspection)| {
            let sent = inspection.send(&executor.pinned, &passed);
            Ok((compared, sent.map_err(environment)?))
        });
        (self.scratch, self.passed) = (Some(memory), Some(passed));
        let (compared, findings) = sent?;
        self.queued = Some(Queued { kept, compared, findings });
        Ok(())
    }

    /// Waits for the queued comparison, and returns whether the outputs are correct. If they are
    /// not, [`Self::outputs`] returns them.
    pub(crate) fn findings(&mut self, buffers: &[JobBuffer<'_>]) -> JobResult<bool> {
        let (Some(Queued { kept, compared, findings }), Some(passed)) =
            (self.queued.take(), &self.passed)
        else {
            return Ok(true);
        };
        // The candidate's launch ended without a fault, so an error is due to the reference.
        let findings = findings.finish(passed);
        let findings = findings.map_err(|error| Failed::device(error, Blame::Reference))?;
        let right = compared.are_right(buffers, &kept, &findings)?;
        self.unclear = (!right).then_some(kept);
        Ok(right)
    }

    /// Returns the outputs that the device did not find to be correct, on the host.
    pub(crate) fn outputs(
        &mut self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
    ) -> JobResult<Outputs> {
        match (self.unclear.take(), &self.scratch) {
            (Some(kept), Some(memory)) => copied(executor, buffers, (&kept, memory)),
            _ => Err(no_scratch()),
        }
    }

    /// Queues the comparison of the outputs with expected outputs in other memory, which contains
    /// the buffers' blocks in order, starting at a byte of it. Returns `None` if the device cannot
    /// compare them.
    pub(crate) fn queue_agreement(
        &self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        inspection: &mut Inspection<'_>,
        (expected, mut at): (&DeviceBuffer, usize),
    ) -> JobResult<Option<Agreement>> {
        let Some(kept) = self.layout(executor, buffers) else { return Ok(None) };
        let surroundings = Surroundings::queue(buffers, executor.tools()?, inspection)?;
        let mut outputs = Vec::new();
        for (index, buffer) in buffers.iter().enumerate() {
            if kept.places.iter().any(|(output, _)| *output == index) {
                let expected = expected.address() + (at + buffer.front()) as u64;
                let addresses = (buffer.address(), expected);
                let near = Near::Tolerance;
                outputs.extend(self.compare(inspection, (index, buffer), addresses, near)?);
            }
            at += buffer.block().1;
        }
        Ok(Some(Agreement { kept, compared: Compared { surroundings, outputs } }))
    }

    /// Queues the comparison of an output at two addresses, if it has a tolerance.
    fn compare(
        &self,
        inspection: &mut Inspection<'_>,
        (output, buffer): (usize, &JobBuffer<'_>),
        addresses: (u64, u64),
        near: Near,
    ) -> JobResult<Option<FindingHandle>> {
        let Some(tolerance) = self.checks.tolerances.of(output) else { return Ok(None) };
        let (atol, rtol) = match near {
            Near::Tolerance => (tolerance.atol, tolerance.rtol),
            Near::Equal => (0.0, 0.0),
        };
        // Elements that are not finite are compared on the host, which distinguishes them from
        // unwritten ones.
        let near = NearTolerance { atol, rtol, allow_non_finite: false };
        let dtype = buffer.spec.dtype;
        let count = (buffer.len() / dtype.size()) as u64;
        let look = inspection.first_not_near(addresses, count, dtype, near);
        look.map(Some).map_err(environment)
    }

    /// Copies the outputs to `memory` and compares them there. All work is queued before the first
    /// wait.
    fn is_right(
        &self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        references: &mut ReferenceKernels<'_>,
        (kept, memory): (&Kept, &DeviceBuffer),
        near: Near,
    ) -> JobResult<bool> {
        let (compared, inspection) =
            self.queue(executor, buffers, references, (kept, memory), near)?;
        // The candidate's launch ended without a fault, so an error is due to the reference.
        let findings = inspection.read();
        let findings = findings.map_err(|error| Failed::device(error, Blame::Reference))?;
        compared.are_right(buffers, kept, &findings)
    }

    /// Queues copying the outputs to `memory`, the runs of the references, and the comparison.
    fn queue<'e>(
        &self,
        executor: &'e Executor,
        buffers: &[JobBuffer<'_>],
        references: &mut ReferenceKernels<'_>,
        (kept, memory): (&Kept, &DeviceBuffer),
        near: Near,
    ) -> JobResult<(Compared, Inspection<'e>)> {
        let checks = self.checks;
        let tools = executor.tools()?;
        let mut inspection = tools.support.inspect(tools.stream).map_err(environment)?;
        let surroundings = Surroundings::queue(buffers, tools, &mut inspection)?;
        for &(index, at) in &kept.places {
            buffers[index].start_copy_to(memory, at, tools.stream).map_err(environment)?;
        }
        let mut outputs = Vec::new();
        for (index, reference) in checks.references.iter().enumerate() {
            references.queue(executor, buffers, index)?;
            for output in &reference.outputs {
                let place = kept.places.iter().find(|(index, _)| index == output);
                let Some((_, at)) = place else { continue };
                let buffer = &buffers[*output];
                let addresses = (memory.address() + *at as u64, buffer.address());
                let output = (*output, buffer);
                outputs.extend(self.compare(&mut inspection, output, addresses, near)?);
            }
        }
        Ok((Compared { surroundings, outputs }, inspection))
    }
}

/// Requirement on the elements of a launch.
#[derive(Debug, Clone, Copy)]
enum Near {
    /// Each is within the tolerance of its expectation.
    Tolerance,
    /// Each equals its expectation.
    Equal,
}

/// Queued checks of a launch: of its outputs, guard bands and inputs.
struct Compared {
    surroundings: Surroundings,
    /// The first element of each output that is not near its expectation.
    outputs: Vec<FindingHandle>,
}

impl Compared {
    /// Returns whether all outputs are correct. Fails if other memory was changed.
    fn are_right(
        self,
        buffers: &[JobBuffer<'_>],
        kept: &Kept,
        findings: &Findings,
    ) -> JobResult<bool> {
        self.surroundings.judge(buffers, findings)?;
        let all = self.outputs.len() == kept.places.len();
        Ok(all && self.outputs.iter().all(|look| findings.of(*look).is_none()))
    }
}

/// A queued comparison of a launch's outputs with expected outputs in other memory.
pub(crate) struct Agreement {
    kept: Kept,
    compared: Compared,
}

impl Agreement {
    /// Returns whether the device found the outputs to be correct. Fails if other memory was
    /// changed.
    pub(crate) fn judge(self, buffers: &[JobBuffer<'_>], findings: &Findings) -> JobResult<bool> {
        self.compared.are_right(buffers, &self.kept, findings)
    }
}

/// A comparison whose findings have not been read.
struct Queued {
    kept: Kept,
    compared: Compared,
    findings: PendingFindings,
}

/// Copies of the outputs of one launch, on the device.
struct Kept {
    /// Index of each buffer, and the position at which its content begins, bytes.
    places: Vec<(usize, usize)>,
    /// Total size of the copies, bytes.
    bytes: usize,
}

fn copied(
    executor: &Executor,
    buffers: &[JobBuffer<'_>],
    (kept, memory): (&Kept, &DeviceBuffer),
) -> JobResult<Outputs> {
    let copy = |&(index, at): &(usize, usize)| {
        let mut content = executor.pinned.take(buffers[index].len());
        let copied = memory.copy_to_host(at, content.bytes_mut(), &executor.stream);
        copied.map_err(environment)?;
        Ok((index, content))
    };
    kept.places.iter().map(copy).collect()
}

fn no_scratch() -> Failed {
    let text = "no memory is available to hold the outputs".to_owned();
    Failed::new(FailureCode::InternalError, text, Blame::Environment)
}
