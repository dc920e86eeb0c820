//! Whether inputs are as they were written, where the device by itself cannot tell.

use super::buffers::JobBuffer;
use super::content::{Source, first_difference};
use super::tools::Tools;
use warpgauge_device::inspection::{FindingHandle, Findings};
use warpgauge_device::{DeviceBuffer, DeviceError, PendingCopy};
use warpgauge_model::DeviceKind;

/// Content is compared in pieces of this size; a multiple of 4 elements of every type.
const CHUNK_BYTES: usize = 32 << 20;

/// Whether an input was changed: what has yet to be read, or is known.
pub(crate) enum Change {
    /// Among the findings.
    Looked(FindingHandle),
    /// In a copy of the whole input.
    Copied(PendingCopy),
    /// Index of the first byte that was.
    Known(Option<u64>),
}

impl JobBuffer<'_> {
    /// Looks for a byte of an input that differs from what was written, where the device cannot tell it:
    /// it is compared with where it came from on the device, or copied to the host; what is large is waited
    /// for.
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

    /// The first byte that differs from content on the device.
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
        // To the emulated device the host's memory is as near, and the host is quicker.
        self.change_in_pieces(tools, |start, actual| {
            let expected = tools.pinned.take(actual.len());
            let expected = content.start_copy_to_host(start, expected, tools.stream)?.finish()?;
            Ok(first_difference(expected.bytes(), actual))
        })
    }

    /// The first byte that differs, by what is told of pieces, each from some byte on.
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
            // The device copies the next one while this one is looked at.
            next = pieces.next().map(begin).transpose()?;
            if let Some(at) = first_difference(start, piece.bytes())? {
                return Ok(Some(start as u64 + at));
            }
        }
        Ok(None)
    }

    /// Index of the first byte that [`Self::look_for_change`] found.
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
