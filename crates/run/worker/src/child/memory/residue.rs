//! What a job left on the device, which has to be removed before the next one.

use super::buffers::JobBuffer;
use super::variables::Variables;
use warpgauge_device::{DeviceBuffer, Module};

/// What a job left on the device.
#[derive(Default)]
pub(crate) struct Residue {
    pub modules: Vec<(Module, Variables)>,
    pub memory: Vec<DeviceBuffer>,
    /// Why what was unloaded already cannot be shown to be gone.
    pub retire: Option<String>,
    /// Most local memory that a kernel of the job had, bytes per thread.
    pub local_bytes: u64,
}

impl Residue {
    /// Remembers a loaded module, and its variables.
    pub(crate) fn note_module(&mut self, module: Module, variables: Variables) {
        self.modules.push((module, variables));
    }

    /// Handles of the modules that the job loaded: as long as one is kept, its module stays.
    pub(crate) fn modules(&self) -> impl Iterator<Item = Module> {
        self.modules.iter().map(|(module, _)| module.clone())
    }

    /// Remembers what local memory a kernel had.
    pub(crate) fn note_local_bytes(&mut self, bytes: u32) {
        self.local_bytes = self.local_bytes.max(bytes.into());
    }

    /// Remembers that a library was opened: it keeps memory and code on the device for as long as the
    /// process lives, where a kernel of the next job could reach them.
    pub(crate) fn note_library(&mut self, name: &str) {
        self.retire = Some(format!("{name} is open"));
    }

    /// Takes device memory that is no buffer of a job.
    pub(crate) fn take_memory(&mut self, memory: DeviceBuffer) {
        self.memory.push(memory);
    }

    /// Takes the device memory out of a job's buffers.
    pub(crate) fn take_buffers(&mut self, buffers: Vec<JobBuffer<'_>>) {
        self.memory.extend(buffers.into_iter().flat_map(JobBuffer::into_memory));
    }
}
