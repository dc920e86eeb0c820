//! Describes, writes and checks the content of memory. One launch handles many ranges.

use bytemuck::{Pod, Zeroable};

use super::launch::{LaunchShape, Params};
use super::support::{InitParams, Support};
use super::{DeviceError, Stream};

/// Maximum number of ranges that one launch handles: `CONTENTS` in support.cu.
pub(super) const TOGETHER: usize = 8;

/// Minimum number of bytes that a thread writes or checks.
const THREAD_BYTES: u64 = 16;

/// Content of a range of device memory, which this process owns or has opened.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct RangeContent {
    address: u64,
    bytes: u64,
    first: u64,
    params: InitParams,
}

impl RangeContent {
    /// Describes a part of a tensor as the content of memory. The part starts with the element
    /// `first`, a multiple of 4. It fills `bytes` bytes of memory at an address that is a multiple
    /// of 16.
    pub fn tensor(params: InitParams, first: u64, (address, bytes): (u64, usize)) -> Self {
        Self { address, bytes: bytes as u64, first, params }
    }

    /// Describes content that repeats a pattern of eight bytes, the lowest byte first.
    pub fn repeated(pattern: u64, (address, bytes): (u64, usize)) -> Self {
        Self { address, bytes: bytes as u64, first: 0, params: InitParams::repeated(pattern) }
    }

    /// Describes content in which every byte has the same value.
    pub fn byte(value: u8, range: (u64, usize)) -> Self {
        Self::repeated(u64::from_ne_bytes([value; 8]), range)
    }
}

/// Mirrors `Contents` in support.cu. It contains ranges and, for each range, the number of the
/// first block that handles the next range.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct RangeContents {
    of: [RangeContent; TOGETHER],
    ends: [u32; TOGETHER],
}

impl RangeContents {
    /// Combines at most [`TOGETHER`] ranges. `blocks` converts a number of threads to a number of
    /// blocks. Also returns the total number of blocks.
    pub fn new(contents: &[RangeContent], blocks: impl Fn(u64) -> u32) -> (Self, u32) {
        let mut all = Self { of: [RangeContent::zeroed(); TOGETHER], ends: [u32::MAX; TOGETHER] };
        let mut end = 0;
        for (index, content) in contents.iter().enumerate().take(TOGETHER) {
            end += blocks(content.bytes.div_ceil(THREAD_BYTES));
            (all.of[index], all.ends[index]) = (*content, end);
        }
        (all, end)
    }
}

impl Support {
    /// Queues writing the content of all described ranges.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn write(&self, contents: &[RangeContent], stream: &Stream) -> Result<(), DeviceError> {
        for contents in contents.chunks(TOGETHER) {
            self.launch_on("wg_write", contents, None, stream)?;
        }
        Ok(())
    }

    /// Queues a kernel that handles at most [`TOGETHER`] ranges. `cells` is the address to which it
    /// writes its findings, if it has any.
    pub(super) fn launch_on(
        &self,
        symbol: &str,
        contents: &[RangeContent],
        cells: Option<u64>,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        let (all, blocks) = RangeContents::new(contents, |threads| self.spread(threads).grid[0]);
        let mut arguments = Params::new();
        // The ranges contain absolute addresses.
        arguments.push_address(0).push(bytemuck::bytes_of(&all));
        if let Some(cells) = cells {
            arguments.push_address(cells);
        }
        let threads = self.spread(1).block[0];
        self.launch(symbol, LaunchShape::linear(blocks, threads), arguments, stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::SOURCE;

    #[test]
    fn the_ranges_of_a_launch_have_the_layout_of_the_kernel() {
        assert_eq!((size_of::<RangeContent>(), size_of::<RangeContents>()), (360, 2912));
        assert!(SOURCE.contains(&format!("enum {{ CONTENTS = {TOGETHER} }};")));
    }

    #[test]
    fn every_range_has_blocks_of_its_own() {
        let range = |bytes| RangeContent::byte(1, (16, bytes));
        let blocks = |threads: u64| threads.div_ceil(256).clamp(1, 10) as u32;
        let (all, end) = RangeContents::new(&[range(1 << 20), range(0), range(4097)], blocks);
        assert_eq!((all.ends[..3].to_vec(), end), (vec![10, 11, 13], 13));
        // The last range takes the remaining blocks, so no block looks beyond the table.
        assert!(all.ends[3..].iter().all(|&end| end == u32::MAX));
    }
}
