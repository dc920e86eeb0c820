//! Removes a job's data, so that none of it reaches the next job.
//!
//! The worker zeroes the job's buffers, its modules' variables, the memory used to flush L2,
//! page-locked staging memory, and the shared and local memory of the whole device. If the removal
//! of some data cannot be verified, the worker retires: a new process gets new memory, which the
//! driver clears.

use std::time::Instant;

use super::executor::Executor;
use crate::child::memory::residue::Residue;
use warpgauge_device::{DeviceBuffer, DeviceError};
use warpgauge_model::DeviceKind;

pub(crate) struct Scrubbed {
    /// Wall time of the removal, milliseconds.
    pub scrub_ms: f64,
    /// Why the worker must not take another job.
    pub retire: Option<String>,
}

impl Executor {
    /// Removes the data of a job.
    pub(crate) fn scrub(&mut self, residue: Residue) -> Scrubbed {
        let start = Instant::now();
        let retire = self.try_scrub(residue).unwrap_or_else(|error| Some(error.to_string()));
        Scrubbed { scrub_ms: start.elapsed().as_secs_f64() * 1e3, retire }
    }

    fn try_scrub(&mut self, mut residue: Residue) -> Result<Option<String>, DeviceError> {
        let stream = &self.stream;
        // The process that lent the memory verifies launches meanwhile, so the device is left to it.
        residue.return_lent();
        self.zero_variables(&mut residue)?;
        for buffer in residue.memory.iter().chain(&self.flush) {
            buffer.fill(0, stream)?;
        }
        // In the emulator every block and every thread has private memory. No submitted kernel runs
        // in a judge's context.
        if let (Some(support), DeviceKind::Cuda, false) =
            (&self.support, self.device.kind, self.is_judge)
        {
            support.scrub_shared(stream)?;
            // The limit bounds the stack that a kernel uses beyond its declared frame (recursion).
            let bytes = residue.local_bytes + self.context.stack_limit_bytes()?;
            if !support.scrub_local(bytes, stream)? {
                residue.retire =
                    Some(format!("a kernel used {bytes} bytes of local memory per thread"));
            }
        }
        self.renew_keys()?;
        // The host scrubs while the device is busy.
        self.pinned.scrub();
        stream.synchronize()?;
        residue.modules.clear();
        // The memory is zeroed, and no kernel runs any more.
        residue.memory.into_iter().for_each(DeviceBuffer::retire_clean);
        self.context.synchronize()?;
        Ok(residue.retire)
    }

    /// Zeroes the variables of all modules and unloads them.
    pub(crate) fn unload(&self, residue: &mut Residue) -> Result<(), DeviceError> {
        self.zero_variables(residue)?;
        self.stream.synchronize()?;
        residue.modules.clear();
        Ok(())
    }

    /// Queues zeroing the variables of all modules.
    fn zero_variables(&self, residue: &mut Residue) -> Result<(), DeviceError> {
        for (module, variables) in &residue.modules {
            if let Some(reason) = &variables.unprovable {
                residue.retire = Some(reason.clone());
            }
            for variable in &variables.found {
                module.zero(variable.range, &self.stream)?;
            }
        }
        Ok(())
    }
}
