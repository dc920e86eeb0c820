//! After a job: nothing it left may reach the next one.
//!
//! Zeroed are: its buffers, its modules' variables, the memory used to flush L2, page-locked
//! staging memory, and the shared and local memory of the whole device. What cannot be shown to be
//! gone makes the worker retire: a new process gets new memory, which the driver clears.

use std::time::Instant;

use super::buffers::JobBuffer;
use super::executor::Executor;
use super::globals::{self, Variables};
use warpgauge_device::{DeviceBuffer, DeviceError, Module};
use warpgauge_model::{DeviceKind, Image};

/// What a job left on the device.
#[derive(Default)]
pub(super) struct Residue {
    modules: Vec<(Module, Variables)>,
    memory: Vec<DeviceBuffer>,
    /// Why what was unloaded already cannot be shown to be gone.
    retire: Option<String>,
    /// Most local memory that a kernel of the job had, bytes per thread.
    local_bytes: u64,
}

/// How scrubbing went.
pub(super) struct Scrubbed {
    /// Wall time, milliseconds.
    pub scrub_ms: f64,
    /// Why the worker must not take another job.
    pub retire: Option<String>,
}

impl Residue {
    /// Remembers a loaded module. Returns its variables; `None` if it may keep more.
    pub(super) fn note_module(&mut self, module: Module, image: &Image) -> Option<Variables> {
        let variables = globals::variables(image);
        let known = variables.unprovable.is_none().then(|| variables.clone());
        self.modules.push((module, variables));
        known
    }

    /// Handles of the modules that the job loaded: as long as one is kept, its module stays.
    pub(super) fn modules(&self) -> impl Iterator<Item = Module> {
        self.modules.iter().map(|(module, _)| module.clone())
    }

    /// Remembers what local memory a kernel had.
    pub(super) fn note_local_bytes(&mut self, bytes: u32) {
        self.local_bytes = self.local_bytes.max(bytes.into());
    }

    /// Remembers that a library was opened: it keeps memory and code on the device for as long as the
    /// process lives, where a kernel of the next job could reach them.
    pub(super) fn note_library(&mut self, name: &str) {
        self.retire = Some(format!("{name} is open"));
    }

    /// Takes device memory that is no buffer of a job.
    pub(super) fn take_memory(&mut self, memory: DeviceBuffer) {
        self.memory.push(memory);
    }

    /// Takes the device memory out of a job's buffers.
    pub(super) fn take_buffers(&mut self, buffers: Vec<JobBuffer<'_>>) {
        self.memory.extend(buffers.into_iter().flat_map(JobBuffer::into_memory));
    }
}

impl Executor {
    /// Removes what a job left.
    pub(super) fn scrub(&mut self, residue: Residue) -> Scrubbed {
        let start = Instant::now();
        let retire = self.try_scrub(residue).unwrap_or_else(|error| Some(error.to_string()));
        Scrubbed { scrub_ms: start.elapsed().as_secs_f64() * 1e3, retire }
    }

    fn try_scrub(&mut self, mut residue: Residue) -> Result<Option<String>, DeviceError> {
        let stream = &self.stream;
        self.unload(&mut residue)?;
        for buffer in residue.memory.iter().chain(&self.flush) {
            buffer.fill(0, stream)?;
        }
        // The emulator gives every block memory of its own, and every thread.
        if let (Some(support), DeviceKind::Cuda) = (&self.support, self.device.kind) {
            support.scrub_shared(stream)?;
            // What a kernel uses beyond its declared frame (recursion) is bounded by the limit.
            let bytes = residue.local_bytes + self.context.stack_limit_bytes()?;
            if !support.scrub_local(bytes, stream)? {
                residue.retire =
                    Some(format!("a kernel had {bytes} bytes of local memory per thread"));
            }
        }
        // While the device is busy with its own.
        self.pinned.scrub();
        stream.synchronize()?;
        // Zeroed above, and nothing runs any more.
        residue.memory.into_iter().for_each(DeviceBuffer::retire_clean);
        self.context.synchronize()?;
        Ok(residue.retire)
    }

    /// Zeroes the variables of all modules and unloads them.
    pub(super) fn unload(&self, residue: &mut Residue) -> Result<(), DeviceError> {
        for (module, variables) in &residue.modules {
            if let Some(reason) = &variables.unprovable {
                residue.retire = Some(reason.clone());
            }
            for name in variables.all() {
                if !module.zero_global(name, &self.stream)? {
                    let text = format!("the driver does not tell where variable {name} is");
                    residue.retire = Some(text);
                }
            }
        }
        self.stream.synchronize()?;
        residue.modules.clear();
        Ok(())
    }
}
