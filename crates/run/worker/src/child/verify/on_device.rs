//! Comparison of outputs with a reference's on the device, where that suffices.

use super::outputs::{Outputs, copy_outputs};
use super::references::ReferenceKernels;
use super::surroundings::{Surroundings, nothing_else_touched};
use crate::child::device::executor::Executor;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::memory::buffers::{JobBuffer, SHIFT_STEP};
use crate::child::memory::residue::Residue;
use crate::protocol::{Blame, Checks};
use warpgauge_device::DeviceBuffer;
use warpgauge_device::support::{NearTolerance, Support};
use warpgauge_model::{DeviceKind, FailureCode};

/// Compares outputs on the device.
pub(crate) struct DeviceCheck<'a> {
    checks: &'a Checks,
    /// Whether launches get only new inputs, so that the right result of one is useless to another.
    moving: bool,
    /// Memory for outputs, if the buffer for flushing L2 is too small.
    scratch: Option<DeviceBuffer>,
}

impl<'a> DeviceCheck<'a> {
    pub(crate) fn new(checks: &'a Checks, moving: bool) -> Self {
        Self { checks, moving, scratch: None }
    }

    /// Gives up the memory.
    pub(crate) fn retire(self, residue: &mut Residue) {
        self.scratch.into_iter().for_each(|memory| residue.take_memory(memory));
    }

    /// Returns the outputs of a launch, on the host. `None`: the device compared them with the references'
    /// outputs for the same inputs, and they are right. In both cases no other memory was changed.
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
        let scratch = self.room(executor, kept.bytes)?;
        let memory = scratch.as_ref().or(executor.flush.as_ref()).ok_or_else(no_scratch)?;
        let left = match self.is_right(executor, buffers, references, (&kept, memory)) {
            Ok(true) => Ok(None),
            Ok(false) => copied(executor, buffers, (&kept, memory)).map(Some),
            Err(failed) => Err(failed),
        };
        if !self.moving {
            memory.fill_range(0, kept.bytes, 0, &executor.stream).map_err(environment)?;
        }
        self.scratch = scratch;
        left
    }

    /// Takes memory of this size out of `self` while it is used; `None`: the buffer for flushing L2 is large
    /// enough.
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

    /// Returns where each checked output is copied, if all can be compared on the device.
    fn layout(&self, executor: &Executor, buffers: &[JobBuffer<'_>]) -> Option<Kept> {
        if executor.device().kind != DeviceKind::Cuda || !self.checks.files.is_empty() {
            return None;
        }
        let mut kept = Kept { places: Vec::new(), bytes: 0 };
        for (index, tolerance) in &self.checks.tolerances.0 {
            let buffer = buffers.get(*index)?;
            let dtype = buffer.spec.dtype;
            let wide = tolerance.atol > 0.0 || tolerance.rtol > 0.0;
            // An unwritten element could match under a tolerance, and only the host's comparison detects
            // that.
            if !Support::compares(dtype) || wide && !dtype.is_float() {
                return None;
            }
            kept.places.push((*index, kept.bytes));
            kept.bytes += buffer.len().next_multiple_of(SHIFT_STEP);
        }
        (kept.bytes > 0).then_some(kept)
    }

    /// Moves the outputs to `memory` and compares them there. All of it is queued before the first wait.
    fn is_right(
        &self,
        executor: &Executor,
        buffers: &[JobBuffer<'_>],
        references: &mut ReferenceKernels<'_>,
        (kept, memory): (&Kept, &DeviceBuffer),
    ) -> JobResult<bool> {
        let checks = self.checks;
        let tools = executor.tools()?;
        let mut inspection = tools.support.inspect(tools.stream).map_err(environment)?;
        let surroundings = Surroundings::queue(buffers, tools, &mut inspection)?;
        for &(index, at) in &kept.places {
            buffers[index].start_copy_to(memory, at, tools.stream).map_err(environment)?;
        }
        let mut compared = Vec::new();
        for (index, reference) in checks.references.iter().enumerate() {
            references.queue(executor, buffers, index)?;
            for output in &reference.outputs {
                let place = kept.places.iter().find(|(index, _)| index == output);
                let (Some((_, at)), Some(tolerance)) = (place, checks.tolerances.of(*output))
                else {
                    continue;
                };
                // Elements that are not finite are compared on the host, which distinguishes them from
                // unwritten ones.
                let near = NearTolerance {
                    atol: tolerance.atol,
                    rtol: tolerance.rtol,
                    allow_non_finite: false,
                };
                let buffer = &buffers[*output];
                let dtype = buffer.spec.dtype;
                let count = (buffer.len() / dtype.size()) as u64;
                let addresses = (memory.address() + *at as u64, buffer.address());
                let look = inspection.first_not_near(addresses, count, dtype, near);
                compared.push(look.map_err(environment)?);
            }
        }
        // The candidate's launch has ended without a fault, so an error is the reference's.
        let findings = inspection.read();
        let findings = findings.map_err(|error| Failed::device(error, Blame::Reference))?;
        surroundings.judge(buffers, &findings)?;
        let all = compared.len() == kept.places.len();
        Ok(all && compared.iter().all(|look| findings.of(*look).is_none()))
    }
}

/// Outputs of one launch, on the device.
struct Kept {
    /// Buffers, and where the content of each begins.
    places: Vec<(usize, usize)>,
    /// Total size, bytes.
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
    let text = "there is no memory to keep outputs in".to_owned();
    Failed::new(FailureCode::InternalError, text, Blame::Environment)
}
