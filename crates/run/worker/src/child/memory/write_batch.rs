//! Collects the content of all buffers for a launch, so that few launches of built-in kernels write
//! it.

use super::tools::Tools;
use warpgauge_device::support::InitParams;
use warpgauge_device::{DeviceBuffer, DeviceError, RangeContent};
use warpgauge_model::DeviceKind;

/// Content to write to buffers. It is queued once it is complete, in few launches of built-in
/// kernels. The ranges do not overlap.
pub(crate) struct Writes<'a> {
    tools: Tools<'a>,
    contents: Vec<RangeContent>,
}

impl<'a> Writes<'a> {
    pub(crate) fn new(tools: Tools<'a>) -> Self {
        Self { tools, contents: Vec::new() }
    }

    pub(crate) fn tools(&self) -> Tools<'a> {
        self.tools
    }

    /// Queues the collected writes.
    pub(crate) fn send(self) -> Result<(), DeviceError> {
        let Tools { support, stream, .. } = self.tools;
        support.write(&self.contents, stream)
    }

    /// Adds elements that a built-in kernel generates.
    pub(crate) fn generate(&mut self, params: InitParams, range: (u64, usize)) {
        self.contents.push(RangeContent::tensor(params, 0, range));
    }

    /// Adds a four-byte word, repeated over `bytes` bytes of a buffer starting at byte `at`. On the
    /// emulated device, queues the fill at once.
    pub(crate) fn fill(
        &mut self,
        memory: &DeviceBuffer,
        (at, bytes): (usize, usize),
        word: u32,
    ) -> Result<(), DeviceError> {
        if self.tools.kind == DeviceKind::Emulator {
            return memory.fill_words(at, bytes, word, self.tools.stream);
        }
        let pattern = u64::from(word) << 32 | u64::from(word);
        self.contents.push(RangeContent::repeated(pattern, (memory.address() + at as u64, bytes)));
        Ok(())
    }
}
