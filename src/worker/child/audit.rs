//! Outputs of audited launches: compared on the device where that suffices, and given up.

use super::arm::Arm;
use super::buffers::{JobBuffer, restore_all};
use super::executor::Executor;
use super::job::{Failed, JobResult, environment};
use super::scrub::Residue;
use super::trials::{Audit, Kept, present};
use super::verify::{Oracle, Outputs};
use crate::device::support::Near;
use crate::validate::Filling;
use crate::worker::protocol::Blame;

impl Oracle<'_, '_> {
    /// Whether a launch left what the references leave for its inputs, as far as that can be told
    /// on the device and without writing the inputs anew. `false` says nothing: a reference may
    /// have changed an input, for one.
    pub(super) fn is_right_on_device(&mut self, audit: &Audit) -> JobResult<bool> {
        let on_device = audit.outputs.iter().all(|(_, kept)| matches!(kept, Kept::Device(_)));
        if !on_device || !self.job.expected_files.is_empty() {
            return Ok(false);
        }
        if !self.buffers.iter().all(|buffer| buffer.is_of(audit.shown.seed)) {
            present(&audit.shown, self.buffers, self.executor.tools()?)?;
        }
        for (buffer, &window) in self.buffers.iter_mut().zip(&audit.shown.windows) {
            buffer.set_window(window);
        }
        let job = self.job;
        for (index, reference) in job.references.iter().enumerate() {
            let Some(arm) = self.references.get_mut(index) else { return Ok(false) };
            launch_reference(self.executor, arm, self.buffers)?;
            for buffer in &reference.outputs {
                if !self.is_close_on_device(audit, *buffer)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn is_close_on_device(&self, audit: &Audit, index: usize) -> JobResult<bool> {
        let kept = audit.outputs.iter().find(|(other, _)| *other == index);
        let (Some((_, Kept::Device(actual))), Some(tolerance)) = (kept, self.job.tolerance(index))
        else {
            return Ok(false);
        };
        let (tools, buffer) = (self.executor.tools()?, &self.buffers[index]);
        let wide = tolerance.atol > 0.0 || tolerance.rtol > 0.0;
        if tolerance.allow_non_finite || wide && !buffer.spec.dtype.is_float() {
            // What was never written may match here, and must be told from what was.
            return Ok(false);
        }
        let near = Near {
            atol: tolerance.atol,
            rtol: tolerance.rtol,
            allow_non_finite: tolerance.allow_non_finite,
        };
        let dtype = buffer.spec.dtype;
        let count = (buffer.len() / dtype.size()) as u64;
        let addresses = (actual.address(), buffer.address());
        let different = tools.support.count_different(addresses, count, dtype, near, tools.stream);
        Ok(different.map_err(environment)? == Some(0))
    }
}

/// Leaves an audit's device memory to be scrubbed.
pub(super) fn release(audit: Audit, residue: &mut Residue) {
    for (_, kept) in audit.outputs {
        if let Kept::Device(memory) = kept {
            residue.take_memory(memory);
        }
    }
}

/// Kept outputs, on the host.
pub(super) fn on_host(executor: &Executor, outputs: &[(usize, Kept)]) -> JobResult<Outputs> {
    let copy = |(index, kept): &(usize, Kept)| {
        let content = match kept {
            Kept::Host(staging) => {
                let mut content = executor.pinned.take(staging.bytes().len());
                content.bytes_mut().copy_from_slice(staging.bytes());
                content
            }
            Kept::Device(memory) => {
                let mut content = executor.pinned.take(memory.len());
                let copied = memory.copy_to_host(0, content.bytes_mut(), &executor.stream);
                copied.map_err(environment)?;
                content
            }
        };
        Ok((*index, content))
    };
    outputs.iter().map(copy).collect()
}

/// Queues a reference on what the buffers show, as if it had just been loaded.
pub(super) fn launch_reference(
    executor: &Executor,
    reference: &mut Arm,
    buffers: &[JobBuffer<'_>],
) -> JobResult<()> {
    reference.forget(&executor.stream).map_err(environment)?;
    restore_all(buffers, Filling::FIXED, &executor.stream).map_err(environment)?;
    let launched = reference.launch(buffers, &executor.stream);
    launched.map_err(|error| Failed::device(error, Blame::Reference))
}
