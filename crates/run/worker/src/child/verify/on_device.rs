//! Outputs compared with a reference's on the device, where that suffices.

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
    /// Whether launches find nothing but inputs of their own, so that what was right for one is of no use
    /// to another.
    moving: bool,
    /// Memory for outputs where that to flush L2 with is too small.
    scratch: Option<DeviceBuffer>,
}

impl<'a> DeviceCheck<'a> {
    pub(crate) fn new(checks: &'a Checks, moving: bool) -> Self {
        Self { checks, moving, scratch: None }
    }

    /// Gives its memory up.
    pub(crate) fn retire(self, residue: &mut Residue) {
        self.scratch.into_iter().for_each(|memory| residue.take_memory(memory));
    }

    /// What a launch left, on the host. `None`: it was compared on the device with what the references
    /// leave for the same inputs, and is right. Either way nothing else was touched.
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

    /// Memory of so many bytes, taken out while it is used; `None`: that to flush L2 with serves.
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

    /// Where each checked output goes, if all can be compared on the device.
    fn layout(&self, executor: &Executor, buffers: &[JobBuffer<'_>]) -> Option<Kept> {
        if executor.device().kind != DeviceKind::Cuda || !self.checks.files.is_empty() {
            return None;
        }
        let mut kept = Kept { places: Vec::new(), bytes: 0 };
        for (index, tolerance) in &self.checks.tolerances.0 {
            let buffer = buffers.get(*index)?;
            let dtype = buffer.spec.dtype;
            let wide = tolerance.atol > 0.0 || tolerance.rtol > 0.0;
            // What was never written may match here, and must be told from what was.
            if !Support::compares(dtype) || wide && !dtype.is_float() {
                return None;
            }
            kept.places.push((*index, kept.bytes));
            kept.bytes += buffer.len().next_multiple_of(SHIFT_STEP);
        }
        (kept.bytes > 0).then_some(kept)
    }

    /// Whether the outputs are, once they were moved to `memory`. All of it is queued before any of
    /// it is waited for.
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
                // What is not finite is compared on the host, which tells it from what was never written.
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
        // The candidate's launch has ended without a fault.
        let findings = inspection.read();
        let findings = findings.map_err(|error| Failed::device(error, Blame::Reference))?;
        surroundings.judge(buffers, &findings)?;
        let all = compared.len() == kept.places.len();
        Ok(all && compared.iter().all(|look| findings.of(*look).is_none()))
    }
}

/// Outputs of one launch, on the device.
struct Kept {
    /// Buffer, and where its content begins.
    places: Vec<(usize, usize)>,
    /// Size of all.
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
