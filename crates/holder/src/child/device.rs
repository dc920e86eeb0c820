//! Tensors in device memory.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use uuid::Uuid;
use warpgauge_device::{Context, DeviceBuffer, DeviceError, DriverChoice, Stream, loader};
use warpgauge_model::FailureCode;

use super::{Memory, Refusal};
use crate::protocol::Exported;
use crate::registry::DEVICE_PAGE;

pub(super) struct DeviceMemory {
    context: Context,
    stream: Stream,
    tensors: HashMap<Uuid, DeviceBuffer>,
}

impl DeviceMemory {
    pub(super) fn open(
        ordinal: u32,
        emulator: Option<PathBuf>,
        run_dir: &Path,
    ) -> Result<Self, Refusal> {
        let choice = emulator.map_or(DriverChoice::Cuda, DriverChoice::Emulator);
        let loaded = loader::load(&choice, run_dir)
            .map_err(|error| Refusal::new(FailureCode::NoDevice, error.to_string()))?;
        let context = loaded.driver.open(ordinal)?;
        let stream = Stream::new(&context)?;
        Ok(Self { context, stream, tensors: HashMap::new() })
    }

    fn find(&self, id: Uuid) -> Result<&DeviceBuffer, Refusal> {
        self.tensors.get(&id).ok_or_else(|| Refusal::unknown(id))
    }
}

impl From<DeviceError> for Refusal {
    fn from(error: DeviceError) -> Self {
        Self::new(error.code.clone(), error.to_string())
    }
}

impl Memory for DeviceMemory {
    /// A handle opens the whole block that the driver allocated, so each tensor has blocks of its own.
    fn create(&mut self, id: Uuid, bytes: u64) -> Result<(), Refusal> {
        let whole = bytes
            .checked_next_multiple_of(DEVICE_PAGE)
            .ok_or_else(|| Refusal::new(FailureCode::OutOfMemory, "more than can be addressed"))?;
        let buffer = DeviceBuffer::new(&self.context, whole, "a shared tensor")?;
        buffer.fill(0, &self.stream)?;
        self.stream.synchronize()?;
        self.tensors.insert(id, buffer);
        Ok(())
    }

    fn write(&mut self, id: Uuid, offset: u64, data: &[u8]) -> Result<(), Refusal> {
        Ok(self.find(id)?.copy_from_host(at(offset), data, &self.stream)?)
    }

    fn read(&mut self, id: Uuid, offset: u64, into: &mut [u8]) -> Result<(), Refusal> {
        // What others launched on it is theirs to wait for; what they waited for is seen.
        Ok(self.find(id)?.copy_to_host(at(offset), into, &self.stream)?)
    }

    fn export(&mut self, id: Uuid) -> Result<Exported, Refusal> {
        let buffer = self.find(id)?;
        Ok(Exported {
            handle: Some(buffer.export()?.bytes().to_vec()),
            path: None,
            allocation_bytes: buffer.len() as u64,
            address: buffer.address(),
        })
    }

    fn free(&mut self, id: Uuid) -> Result<(), Refusal> {
        self.tensors.remove(&id).map(drop).ok_or_else(|| Refusal::unknown(id))
    }
}

/// Beyond what can be addressed is beyond any buffer, which refuses it.
fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
