//! What launches are to find, gathered from all buffers, so that few launches of ours write it.

use super::tools::Tools;
use warpgauge_device::support::InitParams;
use warpgauge_device::{DeviceBuffer, DeviceError, RangeContent};
use warpgauge_model::DeviceKind;

/// What is written to buffers: queued once all of it is known, in few launches of our own. Ranges do not
/// overlap.
pub(crate) struct Writes<'a> {
    tools: Tools<'a>,
    contents: Vec<RangeContent>,
}

impl<'a> Writes<'a> {
    pub(crate) fn new(tools: Tools<'a>) -> Self {
        Self { tools, contents: Vec::new() }
    }

    /// What they are written with.
    pub(crate) fn tools(&self) -> Tools<'a> {
        self.tools
    }

    /// Queues what was to be written.
    pub(crate) fn send(self) -> Result<(), DeviceError> {
        let Tools { support, stream, .. } = self.tools;
        support.write(&self.contents, stream)
    }

    /// Elements that our kernel generates.
    pub(crate) fn generate(&mut self, params: InitParams, range: (u64, usize)) {
        self.contents.push(RangeContent::tensor(params, 0, range));
    }

    /// Four bytes, again and again, to `bytes` bytes of a buffer from `at` on.
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
