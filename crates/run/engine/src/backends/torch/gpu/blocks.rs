//! Memory of a runner on the device, as the judge opens it. Handles and places come from the submission:
//! how large a block is, the driver tells.

use std::collections::HashMap;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Gpu;
use crate::backends::torch::MOST_BYTES;
use warpgauge_device::{DeviceBuffer, MemoryHandle, Stream};
use warpgauge_torch::{LayoutError, RunnerSession, SubmissionMemory, TensorAt};

/// Most blocks of a runner that are open at once.
const MOST_BLOCKS: usize = 4096;

/// Blocks that are open, by their handles.
#[derive(Default)]
pub(super) struct Blocks(HashMap<String, DeviceBuffer>);

impl Blocks {
    /// Opens the block of a tensor, if it has one that is not open.
    ///
    /// # Errors
    /// It leads nowhere, or to too many.
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

    /// Closes all, where there are many: an allocator that gives blocks back leaves them here.
    pub(super) fn tidy(&mut self) {
        if self.0.len() > MOST_BLOCKS / 2 {
            self.0.clear();
        }
    }

    /// Where a tensor lies: a block, the first byte in it, and the bytes to its last element's end.
    ///
    /// # Errors
    /// Not within its block, which must be open.
    pub(super) fn range(
        &self,
        tensor: &TensorAt,
    ) -> Result<Option<(&DeviceBuffer, usize, usize)>, LayoutError> {
        // Its block bounds it.
        let span = tensor.span(u64::MAX)?;
        let Some(block) = tensor.block.as_ref().filter(|_| span > 0) else { return Ok(None) };
        let outside = || LayoutError::Invalid("it does not lie within its block".to_owned());
        let block = self.0.get(block).ok_or_else(outside)?;
        let (at, span) = (usize::try_from(tensor.address), usize::try_from(span));
        let (Ok(at), Ok(span)) = (at, span) else { return Err(outside()) };
        match at.checked_add(span) {
            Some(end) if end <= block.len() => Ok(Some((block, at, span))),
            _ => Err(outside()),
        }
    }

    /// Elements of a tensor in C order, wherever it is.
    ///
    /// # Errors
    /// It is not where it is said to be.
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
    /// Writes the elements of a tensor on the device, which are given in C order.
    ///
    /// # Errors
    /// It is not where it is said to be.
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

/// A block, by places in it.
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
