//! Data of a job on the device, which must be removed before the next job.

use std::os::unix::net::UnixStream;

use super::buffers::JobBuffer;
use super::variables::Variables;
use warpgauge_device::{DeviceBuffer, Module};

/// Data of a job that are still on the device.
#[derive(Default)]
pub(crate) struct Residue {
    pub modules: Vec<(Module, Variables)>,
    pub memory: Vec<DeviceBuffer>,
    /// Open memory of another process. Closing it takes time, and happens after the job's answer.
    pub lent: Vec<DeviceBuffer>,
    /// Connection to the process that lent the memory. It is closed after the memory.
    pub lender: Option<UnixStream>,
    /// Why the removal of modules that are already unloaded cannot be verified.
    pub retire: Option<String>,
    /// Largest local memory of a kernel of the job, bytes per thread.
    pub local_bytes: u64,
}

impl Residue {
    /// Records a loaded module and its variables.
    pub(crate) fn note_module(&mut self, module: Module, variables: Variables) {
        self.modules.push((module, variables));
    }

    /// Returns handles of the job's modules. A module stays loaded until its last handle is
    /// dropped.
    pub(crate) fn modules(&self) -> impl Iterator<Item = Module> {
        self.modules.iter().map(|(module, _)| module.clone())
    }

    /// Records the local memory of a kernel.
    pub(crate) fn note_local_bytes(&mut self, bytes: u32) {
        self.local_bytes = self.local_bytes.max(bytes.into());
    }

    /// Records that a library was opened. Its memory and code stay on the device until the process
    /// ends, so a kernel of the next job could reach them.
    pub(crate) fn note_library(&mut self, name: &str) {
        self.retire = Some(format!("{name} is open"));
    }

    /// Takes device memory that is not a buffer of a job.
    pub(crate) fn take_memory(&mut self, memory: DeviceBuffer) {
        self.memory.push(memory);
    }

    /// Takes memory of another process, and the connection to it.
    pub(crate) fn note_lender(&mut self, lent: Option<DeviceBuffer>, lender: UnixStream) {
        self.lent.extend(lent);
        self.lender = Some(lender);
    }

    /// Closes the memory of another process, and then the connection to it. No work that uses the
    /// memory may be pending.
    pub(crate) fn return_lent(&mut self) {
        self.lent.clear();
        self.lender = None;
    }

    /// Takes the device memory out of a job's buffers.
    pub(crate) fn take_buffers(&mut self, buffers: Vec<JobBuffer<'_>>) {
        for memory in buffers.into_iter().flat_map(JobBuffer::into_memory) {
            let kept = if memory.is_imported() { &mut self.lent } else { &mut self.memory };
            kept.push(memory);
        }
    }
}
