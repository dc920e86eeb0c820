//! Checks of device memory, which are queued one after another. Their findings are read together,
//! because waiting for each would take longer than the checks.

use super::content::{RangeContent, TOGETHER};
use super::launch::{LaunchShape, Params};
use super::memory::DeviceBuffer;
use super::support::{NearTolerance, Support, dtype_number};
use super::{DeviceError, Event, PendingCopy, PinnedPool, Stream};
use std::rc::Rc;
use warpgauge_tensor::Dtype;

/// Maximum number of findings that one read returns. Further findings need another read.
const CELLS: usize = 64;

/// Value of a cell without a finding.
const NOTHING: u64 = u64::MAX;

/// Device memory for findings, with one cell for each finding.
pub(super) struct Cells(DeviceBuffer);

impl Cells {
    pub(super) fn new(context: &super::Context) -> Result<Self, DeviceError> {
        DeviceBuffer::new(context, 8 * CELLS as u64, "the worker's own use").map(Self)
    }
}

/// A set of checks of memory that are queued on a stream.
pub struct Inspection<'a> {
    support: &'a Support,
    stream: &'a Stream,
    /// Findings of this inspection that have been read.
    read: Vec<u64>,
    /// Number of cells that queued checks use.
    queued: usize,
}

/// Refers to a queued check, whose result is in the [`Findings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingHandle(usize);

/// Results of all checks of an inspection.
pub struct Findings(Vec<u64>);

impl Findings {
    /// Returns the index of the first byte or element that the check found, or `None` if it found
    /// none.
    pub fn of(&self, finding: FindingHandle) -> Option<u64> {
        self.0.get(finding.0).copied().filter(|&first| first != NOTHING)
    }
}

impl Support {
    /// Begins an inspection. Findings of an earlier inspection must have been read.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn inspect<'a>(&'a self, stream: &'a Stream) -> Result<Inspection<'a>, DeviceError> {
        let inspection = Inspection { support: self, stream, read: Vec::new(), queued: 0 };
        inspection.reset()?;
        Ok(inspection)
    }
}

impl Inspection<'_> {
    /// Queues one check for each range. A check finds the first byte of an element that differs
    /// from the described content.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn first_others(
        &mut self,
        contents: &[RangeContent],
    ) -> Result<Vec<FindingHandle>, DeviceError> {
        let mut found = Vec::with_capacity(contents.len());
        for contents in contents.chunks(TOGETHER) {
            if self.queued + contents.len() > CELLS {
                self.collect()?;
            }
            self.support.launch_on("wg_look", contents, Some(self.cell()), self.stream)?;
            found.extend(contents.iter().map(|_| self.taken()));
        }
        Ok(found)
    }

    /// Queues a check of `count` elements. It finds the first element at `actual` that is not
    /// within the tolerance of the element at `expected`. The memory must belong to this process,
    /// and [`Support::compares`] must support the type.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn first_not_near(
        &mut self,
        (actual, expected): (u64, u64),
        count: u64,
        dtype: Dtype,
        near: NearTolerance,
    ) -> Result<FindingHandle, DeviceError> {
        let mut arguments = Params::new();
        arguments.push_address(actual).push_address(expected).push(&count.to_ne_bytes());
        arguments.push(&near.atol.to_ne_bytes()).push(&near.rtol.to_ne_bytes());
        arguments.push(&dtype_number(dtype).to_ne_bytes());
        arguments.push(&u32::from(near.allow_non_finite).to_ne_bytes());
        self.look("wg_compare", self.support.spread(count), arguments)
    }

    /// Queues a check that finds the first byte in which the `bytes` bytes at two addresses differ.
    /// Both addresses must be multiples of 8, and the memory must belong to this process.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn first_different(
        &mut self,
        (one, other): (u64, u64),
        bytes: usize,
    ) -> Result<FindingHandle, DeviceError> {
        let mut arguments = Params::new();
        arguments.push_address(one).push_address(other).push(&(bytes as u64).to_ne_bytes());
        self.look("wg_differ", self.support.spread(bytes as u64 / 8 + 1), arguments)
    }

    /// Waits for all queued checks, and reads their findings.
    ///
    /// # Errors
    /// Returns a fault of work queued earlier, or of the driver.
    pub fn read(mut self) -> Result<Findings, DeviceError> {
        self.fetch()?;
        Ok(Findings(self.read))
    }

    /// Queues a copy of the findings to the host, and records the event `passed` after it. The
    /// caller may queue further work afterwards.
    ///
    /// # Errors
    /// Returns a fault of work queued earlier, or of the driver.
    pub fn send(
        mut self,
        pinned: &Rc<PinnedPool>,
        passed: &Event,
    ) -> Result<PendingFindings, DeviceError> {
        let target = pinned.take(8 * self.queued);
        let copy = self.support.cells.0.start_copy_to_host(0, target, self.stream)?;
        passed.record(self.stream)?;
        Ok(PendingFindings { read: std::mem::take(&mut self.read), copy })
    }

    /// Queues a check with one finding. The check's kernel receives the address of the finding's
    /// cell as its last argument.
    fn look(
        &mut self,
        symbol: &str,
        shape: LaunchShape,
        mut arguments: Params,
    ) -> Result<FindingHandle, DeviceError> {
        if self.queued == CELLS {
            self.collect()?;
        }
        arguments.push_address(self.cell());
        self.support.launch(symbol, shape, arguments, self.stream)?;
        Ok(self.taken())
    }

    /// Returns the address of the next unused cell.
    fn cell(&self) -> u64 {
        self.support.cells.0.address() + 8 * self.queued as u64
    }

    fn taken(&mut self) -> FindingHandle {
        self.queued += 1;
        FindingHandle(self.read.len() + self.queued - 1)
    }

    /// Reads the findings in all cells, so that the cells can be reused.
    fn collect(&mut self) -> Result<(), DeviceError> {
        self.fetch()?;
        self.reset()
    }

    fn reset(&self) -> Result<(), DeviceError> {
        self.support.cells.0.fill(0xFF, self.stream)
    }

    fn fetch(&mut self) -> Result<(), DeviceError> {
        let mut found = vec![0; 8 * self.queued];
        if found.is_empty() {
            return self.stream.synchronize();
        }
        self.support.cells.0.copy_to_host(0, &mut found, self.stream)?;
        self.read.extend(words(&found));
        self.queued = 0;
        Ok(())
    }
}

/// Findings whose copy to the host is queued.
pub struct PendingFindings {
    /// Findings that have already been read.
    read: Vec<u64>,
    copy: PendingCopy,
}

impl PendingFindings {
    /// Waits for `passed`, the event given to [`Inspection::send`], and returns the findings.
    ///
    /// # Errors
    /// Returns a fault of work queued before the event, or of the driver.
    pub fn finish(mut self, passed: &Event) -> Result<Findings, DeviceError> {
        let found = self.copy.finish_at(passed)?;
        self.read.extend(words(found.bytes()));
        Ok(Findings(self.read))
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word))
}
