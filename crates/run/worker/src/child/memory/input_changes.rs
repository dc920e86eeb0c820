//! Checks that inputs are unchanged, for inputs that the device alone cannot check.

use super::buffers::JobBuffer;
use super::content::{Source, first_difference};
use super::tools::Tools;
use warpgauge_device::inspection::{FindingHandle, Findings};
use warpgauge_device::{DeviceBuffer, DeviceError, PendingCopy};
use warpgauge_model::DeviceKind;

/// Size of the pieces in which content is compared; a multiple of 4 elements of every type.
const CHUNK_BYTES: usize = 32 << 20;

/// Result of the search for a changed byte, or the object from which the result can be read.
pub(crate) enum Change {
    /// The device has searched. The result is in the findings.
    Looked(FindingHandle),
    /// The whole input is copied to the host, which has not compared it yet.
    Copied(PendingCopy),
    /// Index of the first changed byte.
    Known(Option<u64>),
}

impl JobBuffer<'_> {
    /// Searches for a changed byte of an input that the device alone cannot check. Compares the
    /// input on the device with its source, or copies it to the host. Waits if the input is large.
    pub(crate) fn look_for_change(&self, tools: Tools<'_>) -> Result<Change, DeviceError> {
        if let Source::Shared(shared) = &self.source {
            let content = shared.open(tools.context)?;
            return self.change_from(&content, tools).map(Change::Known);
        }
        if self.len() > CHUNK_BYTES {
            return self
                .change_in_pieces(tools, |start, piece| {
                    Ok(self.source.first_difference(start, piece))
                })
                .map(Change::Known);
        }
        let target = tools.pinned.take(self.len());
        self.start_copy_part_to_host(0, target, tools.stream).map(Change::Copied)
    }

    /// Returns the index of the first byte that differs from content on the device.
    fn change_from(
        &self,
        content: &DeviceBuffer,
        tools: Tools<'_>,
    ) -> Result<Option<u64>, DeviceError> {
        if tools.kind == DeviceKind::Cuda {
            return tools.support.first_difference(
                self.address(),
                content,
                self.len(),
                tools.stream,
            );
        }
        // On the emulated device, the memory is host memory, and the host compares faster.
        self.change_in_pieces(tools, |start, actual| {
            let expected = tools.pinned.take(actual.len());
            let expected = content.start_copy_to_host(start, expected, tools.stream)?.finish()?;
            Ok(first_difference(expected.bytes(), actual))
        })
    }

    /// Returns the index of the first byte that differs. `first_difference` compares a piece that
    /// starts at a given byte.
    fn change_in_pieces(
        &self,
        tools: Tools<'_>,
        first_difference: impl Fn(usize, &[u8]) -> Result<Option<u64>, DeviceError>,
    ) -> Result<Option<u64>, DeviceError> {
        let begin = |start: usize| {
            let target = tools.pinned.take(CHUNK_BYTES.min(self.len() - start));
            self.start_copy_part_to_host(start, target, tools.stream).map(|copy| (start, copy))
        };
        let mut pieces = (0..self.len()).step_by(CHUNK_BYTES);
        let mut next = pieces.next().map(begin).transpose()?;
        while let Some((start, copy)) = next {
            let piece = copy.finish()?;
            // The device copies the next piece while the host compares this one.
            next = pieces.next().map(begin).transpose()?;
            if let Some(at) = first_difference(start, piece.bytes())? {
                return Ok(Some(start as u64 + at));
            }
        }
        Ok(None)
    }

    /// Returns the index of the first byte that [`Self::look_for_change`] found.
    pub(crate) fn changed_at(
        &self,
        change: Change,
        findings: &Findings,
    ) -> Result<Option<u64>, DeviceError> {
        Ok(match change {
            Change::Looked(finding) => findings.of(finding),
            Change::Copied(copy) => self.source.first_difference(0, copy.finish()?.bytes()),
            Change::Known(at) => at,
        })
    }
}
