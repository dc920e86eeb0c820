//! Device memory of a runner that the judge opens. Handles and offsets come from the submission;
//! the driver reports the size of a block.

use std::collections::HashMap;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Gpu;
use crate::backends::torch::MOST_BYTES;
use warpgauge_device::{DeviceBuffer, MemoryHandle, Stream};
use warpgauge_torch::{LayoutError, RunnerSession, SubmissionMemory, TensorAt};

/// Maximum number of open blocks of a runner.
const MOST_BLOCKS: usize = 4096;

/// Open blocks, by their handles in base64.
#[derive(Default)]
pub(super) struct Blocks(HashMap<String, DeviceBuffer>);

impl Blocks {
    /// Opens the block that contains a tensor. Does nothing if the tensor has no block or the block
    /// is already open.
    ///
    /// # Errors
    /// Returns a message if the handle is invalid or too many blocks are open.
    pub(super) fn open(&mut self, gpu: &Gpu, tensor: &TensorAt) -> Result<(), String> {
        let Some(handle) = tensor.block.as_ref().filter(|handle| !handle.is_empty()) else {
            return Ok(());
        };
        if self.0.contains_key(handle) {
            return Ok(());
        }
        if self.0.len() >= MOST_BLOCKS {
            return Err(format!("more than {MOST_BLOCKS} blocks of memory"));
        }
        let bytes = STANDARD.decode(handle).map_err(|error| error.to_string())?;
        let opened = DeviceBuffer::import_block(&gpu.context, &MemoryHandle::told(bytes));
        self.0.insert(handle.clone(), opened.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Closes all blocks if many are open. Until then, blocks that the runner's allocator has freed
    /// stay open.
    pub(super) fn tidy(&mut self) {
        if self.0.len() > MOST_BLOCKS / 2 {
            self.0.clear();
        }
    }

    /// Locates a tensor: its block, the offset of its first byte, and its size up to the end of the
    /// last element. Returns `None` if the tensor has no block or no elements.
    ///
    /// # Errors
    /// Fails if the tensor is not within its block, or the block is not open.
    pub(super) fn range(
        &self,
        tensor: &TensorAt,
    ) -> Result<Option<(&DeviceBuffer, usize, usize)>, LayoutError> {
        // The limit is the size of the block, which is checked below.
        let span = tensor.span(u64::MAX)?;
        let Some(block) = tensor.block.as_ref().filter(|_| span > 0) else { return Ok(None) };
        let outside = || LayoutError::Invalid("it is not within its block".to_owned());
        let block = self.0.get(block).ok_or_else(outside)?;
        let (at, span) = (usize::try_from(tensor.address), usize::try_from(span));
        let (Ok(at), Ok(span)) = (at, span) else { return Err(outside()) };
        match at.checked_add(span) {
            Some(end) if end <= block.len() => Ok(Some((block, at, span))),
            _ => Err(outside()),
        }
    }

    /// Reads the elements of a tensor in C order, from the device or the host.
    ///
    /// # Errors
    /// Fails if the tensor is not at the location that the runner reports.
    pub(super) fn read(
        &self,
        gpu: &Gpu,
        session: &RunnerSession,
        tensor: &TensorAt,
    ) -> Result<Vec<u8>, LayoutError> {
        if tensor.block.is_none() {
            return tensor.read(session.memory(), MOST_BYTES);
        }
        match self.range(tensor)? {
            None => Ok(Vec::new()),
            Some((block, _, span)) => {
                let most = MOST_BYTES.max(span as u64);
                tensor.read(&OnDevice(block, &gpu.stream), most)
            }
        }
    }
}

impl Blocks {
    /// Writes elements, given in C order, into a tensor on the device.
    ///
    /// # Errors
    /// Fails if the tensor is not at the location that the runner reports.
    pub(super) fn overwrite(
        &self,
        gpu: &Gpu,
        tensor: &TensorAt,
        elements: &[u8],
    ) -> Result<(), LayoutError> {
        match self.range(tensor)? {
            None => Ok(()),
            Some((block, _, _)) => {
                tensor.overwrite(&OnDevice(block, &gpu.stream), elements, MOST_BYTES)
            }
        }
    }
}

/// A block as memory whose addresses are offsets within the block.
pub(super) struct OnDevice<'a>(pub(super) &'a DeviceBuffer, pub(super) &'a Stream);

impl SubmissionMemory for OnDevice<'_> {
    fn read(&self, address: u64, out: &mut [u8]) -> io::Result<()> {
        let at = usize::try_from(address).map_err(io::Error::other)?;
        self.0.copy_to_host(at, out, self.1).map_err(io::Error::other)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let at = usize::try_from(address).map_err(io::Error::other)?;
        self.0.copy_from_host(at, bytes, self.1).map_err(io::Error::other)
    }
}
