//! A job's device buffers: how they are allocated, filled, restored, and compared with their
//! earlier content.
//!
//! ```text
//! [guard][  content  ][guard]
//! ```
//!
//! The worker writes the content for a launch right before the launch, from sources that no kernel
//! can reach. Random content comes from a seed. Other content comes from the host, or from memory
//! of another process that is open only during the copy. A copy on the device, which a kernel could
//! reach, exists only for launches that are not judged.

use super::content::{Seed, Source, is_random};
use super::tools::Tools;
use super::write_batch::Writes;
use crate::child::failure::{Failed, JobResult, environment};
use crate::child::places::Place;
use crate::protocol::{Blame, BufferContent, BufferSpec, LentBuffer};
use warpgauge_contract::Role;
use warpgauge_device::{DeviceBuffer, DeviceError, PendingCopy, RangeContent, Staging, Stream};
use warpgauge_model::{DeviceKind, FailureCode};
use warpgauge_validate::{Filling, POISON_BYTE};

/// Size of the guard bands before and after each buffer, which no kernel may access, bytes.
const GUARD_BYTES: usize = 4 << 10;

/// Size of a page of device memory, bytes. Allocations of several pages begin and end at page
/// boundaries.
const PAGE_BYTES: u64 = 2 << 20;

/// Step by which buffers move, bytes. It keeps the alignment that the driver guarantees.
pub(crate) const SHIFT_STEP: usize = 512;

/// Options for the allocation and the content of a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    /// Whether content is restored from a copy on the device. This is quick, and a watching tool
    /// then sees a copy instead of a kernel. A kernel can reach that copy, so it must not exist if
    /// launches are judged.
    pub copied: bool,
    /// Byte in the guard bands. `None` means no guard bands, because every access is checked
    /// anyway.
    pub guard: Option<u8>,
    /// Bytes added to the guard band before the content, so that the content moves; a multiple of
    /// [`SHIFT_STEP`].
    pub shift: usize,
    /// Whether the guard band after the content extends to the end of the last page, so that all of
    /// the buffer's pages are checked. Otherwise a kernel whose inputs do not change could keep a
    /// result there and reuse it.
    pub whole_pages: bool,
    /// Whether undefined content is poisoned at first. A tool that looks for uninitialised reads
    /// needs it to be unwritten.
    pub poisoned: bool,
}

/// A device buffer of a job, with its guard bands.
pub(crate) struct JobBuffer<'job> {
    pub spec: &'job BufferSpec,
    memory: DeviceBuffer,
    /// Size of the guard band before the content, bytes; `back` is the size of the guard band after
    /// it.
    front: usize,
    back: usize,
    guard: u8,
    /// Size of the content, bytes.
    bytes: usize,
    /// Copy of the initial content; only for launches that are not judged.
    copy: Option<DeviceBuffer>,
    pub(crate) source: Source,
    /// Seed of random content.
    seed: Seed,
    /// Whether the buffer is written before the first launch.
    filled: bool,
}

/// Returns the buffers that a kernel writes, each with its index.
pub(crate) fn outputs<'a, 'job>(
    buffers: &'a [JobBuffer<'job>],
) -> impl Iterator<Item = (usize, &'a JobBuffer<'job>)> {
    buffers.iter().enumerate().filter(|(_, buffer)| buffer.spec.role != Role::Input)
}

/// Queues the writes before a launch: fills outputs, and restores `inout` buffers.
pub(crate) fn restore_all(
    buffers: &[JobBuffer<'_>],
    filling: Filling,
    tools: Tools<'_>,
) -> Result<(), DeviceError> {
    restore_with(buffers, filling, Writes::new(tools))
}

/// Like [`restore_all`], together with other pending writes.
pub(crate) fn restore_with(
    buffers: &[JobBuffer<'_>],
    filling: Filling,
    mut writes: Writes<'_>,
) -> Result<(), DeviceError> {
    buffers.iter().try_for_each(|buffer| buffer.restore(filling, &mut writes))?;
    writes.send()
}

/// Queues the writes before launches that are not judged. Restores `inout` buffers, so that their
/// values do not grow from launch to launch; outputs may hold anything. The watching tool then sees
/// fills and copies, but no built-in kernel.
pub(crate) fn restore_inouts(
    buffers: &[JobBuffer<'_>],
    tools: Tools<'_>,
) -> Result<(), DeviceError> {
    let mut writes = Writes::new(tools);
    for buffer in buffers.iter().filter(|buffer| buffer.spec.role == Role::Inout) {
        match &buffer.source {
            Source::Byte(byte) => {
                let (byte, at) = (byte.unwrap_or(POISON_BYTE), buffer.front);
                buffer.memory.fill_range(at, buffer.bytes, byte, tools.stream)?;
            }
            _ => buffer.restore(Filling::FIXED, &mut writes)?,
        }
    }
    writes.send()
}

/// Writes inputs again with their current content. With `redrawn`, skips random inputs, which are
/// drawn again for the next launch.
pub(crate) fn rewrite_inputs(
    buffers: &[JobBuffer<'_>],
    redrawn: bool,
    tools: Tools<'_>,
) -> Result<(), DeviceError> {
    let mut inputs = buffers
        .iter()
        .filter(|buffer| buffer.spec.role == Role::Input && !(redrawn && buffer.is_random()));
    let mut writes = Writes::new(tools);
    inputs.try_for_each(|input| input.write_content(&mut writes))?;
    writes.send()
}

/// Allocates a buffer for each spec, with the options that `usage` returns, and writes the content
/// of all buffers.
pub(crate) fn allocate_all<'job>(
    specs: &'job [BufferSpec],
    usage: impl FnMut() -> Use,
    tools: Tools<'_>,
    buffers: &mut Vec<JobBuffer<'job>>,
) -> JobResult<()> {
    allocate_and_queue(specs, usage, tools, buffers)?;
    tools.stream.synchronize().map_err(environment)
}

/// Like [`allocate_all`], but only queues the writes.
pub(crate) fn allocate_and_queue<'job>(
    specs: &'job [BufferSpec],
    mut usage: impl FnMut() -> Use,
    tools: Tools<'_>,
    buffers: &mut Vec<JobBuffer<'job>>,
) -> JobResult<()> {
    for spec in specs {
        buffers.push(JobBuffer::allocate(spec, usage(), tools)?);
    }
    let mut writes = Writes::new(tools);
    for buffer in &*buffers {
        buffer.fill(&mut writes).map_err(environment)?;
    }
    writes.send().map_err(environment)?;
    for buffer in &*buffers {
        buffer.keep_copy(tools.stream).map_err(environment)?;
    }
    Ok(())
}

impl<'job> JobBuffer<'job> {
    /// Allocates a buffer without content.
    pub(crate) fn allocate(
        spec: &'job BufferSpec,
        usage: Use,
        tools: Tools<'_>,
    ) -> JobResult<Self> {
        let bytes = bytes_of(spec)?;
        let front = if usage.guard.is_some() { GUARD_BYTES + usage.shift } else { 0 };
        let back = match usage.guard {
            Some(_) if usage.whole_pages && tools.kind == DeviceKind::Cuda => {
                let used = front as u64 + bytes + GUARD_BYTES as u64;
                GUARD_BYTES + (used.next_multiple_of(PAGE_BYTES) - used) as usize
            }
            Some(_) => GUARD_BYTES,
            None => 0,
        };
        let source = Source::new(spec, bytes, tools.kind, Seed::Contract)?;
        let blame = |error: DeviceError| Failed::device(error, Blame::Candidate);
        let total = bytes + (front + back) as u64;
        let memory = DeviceBuffer::new(tools.context, total, &spec.name).map_err(blame)?;
        let copied = usage.copied && spec.role != Role::Input && !matches!(source, Source::Byte(_));
        let copy = copied.then(|| DeviceBuffer::new(tools.context, bytes, &spec.name));
        Ok(Self {
            spec,
            memory,
            front,
            back,
            guard: usage.guard.unwrap_or_default(),
            bytes: bytes as usize,
            copy: copy.transpose().map_err(blame)?,
            source,
            seed: Seed::Contract,
            filled: usage.poisoned || !matches!(spec.content, BufferContent::Undefined),
        })
    }

    /// Opens a buffer of another process, which has written the guard bands and the content.
    /// `guard` is the byte in the guard bands.
    pub(crate) fn borrow(
        spec: &'job BufferSpec,
        lent: &LentBuffer,
        guard: u8,
        tools: Tools<'_>,
    ) -> JobResult<Self> {
        let bytes = bytes_of(spec)?;
        let memory = DeviceBuffer::import(tools.context, &lent.handle, lent.bytes);
        let back = lent.offset.checked_add(bytes).and_then(|end| lent.bytes.checked_sub(end));
        let back = back.ok_or_else(|| {
            let text = format!("the memory block that was lent for {} is too small", spec.name);
            Failed::new(FailureCode::InternalError, text, Blame::Environment)
        })?;
        Ok(Self {
            spec,
            memory: memory.map_err(environment)?,
            front: lent.offset as usize,
            back: back as usize,
            guard,
            bytes: bytes as usize,
            copy: None,
            source: Source::new(spec, bytes, tools.kind, Seed::Contract)?,
            seed: Seed::Contract,
            filled: true,
        })
    }

    /// Returns the location of the content, for messages.
    pub(crate) fn place(&self) -> Place {
        Place {
            name: self.spec.name.clone(),
            start: self.address(),
            bytes: self.bytes as u64,
            element: self.spec.element.size() as u64,
        }
    }

    /// Returns the address that a kernel receives.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address() + self.front as u64
    }

    /// Returns the size of the content, bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Returns address and size of the memory block, which contains no other buffer.
    pub(crate) fn block(&self) -> (u64, usize) {
        (self.memory.address(), self.memory.len())
    }

    /// Returns the handle and the sizes that another process needs to open the buffer. That process
    /// can also access the guard bands and, unless the buffer has whole pages, other memory on its
    /// last page.
    pub(crate) fn lend(&self) -> Result<LentBuffer, DeviceError> {
        let bytes = self.memory.len() as u64;
        Ok(LentBuffer { handle: self.memory.export()?, bytes, offset: self.front as u64 })
    }

    /// Returns whether other random numbers may replace the content.
    pub(crate) fn is_random(&self) -> bool {
        self.spec.role != Role::Output && is_random(&self.spec.content)
    }

    /// Writes the guard bands and the initial content.
    fn fill(&self, writes: &mut Writes<'_>) -> Result<(), DeviceError> {
        if !self.filled {
            return Ok(());
        }
        let stream = writes.tools().stream;
        self.memory.fill_range(0, self.front, self.guard, stream)?;
        let end = self.memory.len() - self.back;
        self.memory.fill_range(end, self.back, self.guard, stream)?;
        self.write_content(writes)
    }

    /// Queues a copy of the initial content, if the buffer has memory for a copy.
    fn keep_copy(&self, stream: &Stream) -> Result<(), DeviceError> {
        let Some(copy) = self.copy.as_ref().filter(|_| self.filled) else { return Ok(()) };
        copy.copy_range_from_device(0, &self.memory, self.front, self.bytes, stream)
    }

    /// Draws new random numbers, and writes them unless the next launch does so anyway. Content
    /// that is not random does not change.
    pub(crate) fn reseed(&mut self, seed: Seed, writes: &mut Writes<'_>) -> JobResult<()> {
        if !self.is_random() {
            return Ok(());
        }
        self.draw(seed, writes.tools().kind)?;
        // An inout is written when it is restored.
        if self.spec.role == Role::Input {
            self.write_content(writes).map_err(environment)?;
        }
        Ok(())
    }

    /// Assumes that random content is drawn from `seed`, and writes nothing.
    pub(crate) fn adopt(&mut self, seed: Seed, kind: DeviceKind) -> JobResult<()> {
        self.draw(seed, kind)
    }

    /// Rewrites all content from sources that no kernel can change, with random numbers from
    /// `seed`.
    pub(crate) fn show(&mut self, seed: Seed, writes: &mut Writes<'_>) -> JobResult<()> {
        self.draw(seed, writes.tools().kind)?;
        self.fill(writes).map_err(environment)
    }

    fn draw(&mut self, seed: Seed, kind: DeviceKind) -> JobResult<()> {
        if self.seed != seed && is_random(&self.spec.content) {
            self.source = Source::new(self.spec, self.bytes as u64, kind, seed)?;
        }
        self.seed = seed;
        Ok(())
    }

    fn write_content(&self, writes: &mut Writes<'_>) -> Result<(), DeviceError> {
        let (at, stream) = (self.front, writes.tools().stream);
        match &self.source {
            Source::Byte(byte) => {
                let word = u32::from_ne_bytes([byte.unwrap_or(POISON_BYTE); 4]);
                writes.fill(&self.memory, (at, self.bytes), word)
            }
            Source::Device(params) => {
                writes.generate(**params, (self.address(), self.bytes));
                Ok(())
            }
            Source::Host(bytes) => self.memory.copy_from_host(at, bytes, stream),
            Source::File(file) => self.memory.copy_from_host(at, file.bytes(), stream),
            Source::Shared(shared) => {
                let content = shared.open(writes.tools().context)?;
                self.memory.copy_range_from_device(at, &content, 0, self.bytes, stream)?;
                stream.synchronize()
            }
        }
    }

    /// Queues the writes before a launch: fills an output, or restores an `inout` buffer. Inputs do
    /// not change.
    fn restore(&self, filling: Filling, writes: &mut Writes<'_>) -> Result<(), DeviceError> {
        let (at, stream) = (self.front, writes.tools().stream);
        match (&self.source, &self.copy) {
            _ if self.spec.role == Role::Input => Ok(()),
            (Source::Byte(None), _) => {
                writes.fill(&self.memory, (at, self.bytes), filling.word(self.spec.dtype))
            }
            (_, Some(copy)) => self.memory.copy_range_from_device(at, copy, 0, self.bytes, stream),
            (_, None) => self.write_content(writes),
        }
    }

    /// Returns whether the content before a launch is undefined, so that it is poisoned.
    pub(crate) fn is_poisoned(&self) -> bool {
        matches!(self.spec.content, BufferContent::Undefined)
    }

    /// Copies the content to the host.
    pub(crate) fn copy_to_host(
        &self,
        target: &mut [u8],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.memory.copy_to_host(self.front, target, stream)
    }

    /// Copies content to the host, starting at byte `at`, until the target is full.
    pub(crate) fn copy_part_to_host(
        &self,
        at: usize,
        target: &mut [u8],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.memory.copy_to_host(self.front + at, target, stream)
    }

    /// Moves the elements by `steps` units in the last place.
    pub(crate) fn nudge(&self, steps: u32, seed: u64, tools: Tools<'_>) -> Result<(), DeviceError> {
        let dtype = self.spec.dtype;
        if tools.kind == DeviceKind::Cuda {
            let count = (self.bytes / dtype.size()) as u64;
            return tools.support.nudge(
                self.address(),
                (dtype, count),
                (steps, seed),
                tools.stream,
            );
        }
        let mut content = vec![0; self.bytes];
        self.copy_to_host(&mut content, tools.stream)?;
        warpgauge_tensor::nudge(dtype, &mut content, steps, seed);
        self.memory.copy_from_host(self.front, &content, tools.stream)
    }

    /// Queues a copy of content to the host, starting at byte `at`, until the target is full.
    pub(crate) fn start_copy_part_to_host(
        &self,
        at: usize,
        target: Staging,
        stream: &Stream,
    ) -> Result<PendingCopy, DeviceError> {
        self.memory.start_copy_to_host(self.front + at, target, stream)
    }

    /// Queues a copy of the content to other device memory, starting at its byte `at`.
    pub(crate) fn start_copy_to(
        &self,
        target: &DeviceBuffer,
        at: usize,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        target.copy_range_from_device(at, &self.memory, self.front, self.bytes, stream)
    }

    /// Queues a copy of the content from a byte of other memory.
    pub(crate) fn start_copy_from(
        &self,
        (source, at): (&DeviceBuffer, usize),
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.memory.copy_range_from_device(self.front, source, at, self.bytes, stream)
    }

    /// Queues a copy of the whole block, with its guard bands, to a byte of other memory.
    pub(crate) fn save_block(
        &self,
        (target, at): (&DeviceBuffer, usize),
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        target.copy_range_from_device(at, &self.memory, 0, self.memory.len(), stream)
    }

    /// Queues a copy to the whole block, with its guard bands, from a byte of other memory.
    pub(crate) fn load_block(
        &self,
        (source, at): (&DeviceBuffer, usize),
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.memory.copy_range_from_device(0, source, at, self.memory.len(), stream)
    }

    /// Returns the guard bands before and after the content, each with its expected byte.
    pub(crate) fn guard_bands(&self) -> Option<[RangeContent; 2]> {
        let after = self.memory.address() + (self.memory.len() - self.back) as u64;
        let bands = [(self.memory.address(), self.front), (after, self.back)];
        (self.front > 0).then(|| bands.map(|band| RangeContent::byte(self.guard, band)))
    }

    /// Returns the size of the guard band before the content, bytes.
    pub(crate) fn front(&self) -> usize {
        self.front
    }

    /// Returns the index of the element that contains byte `at`.
    pub(crate) fn element_of(&self, at: u64) -> u64 {
        at / self.spec.dtype.size() as u64
    }

    /// Returns the expected content, if the device itself can check the buffer for it.
    pub(crate) fn held(&self, kind: DeviceKind) -> Option<RangeContent> {
        let range = (self.address(), self.bytes);
        match &self.source {
            Source::Device(params) => Some(RangeContent::tensor(**params, 0, range)),
            Source::Byte(byte) if kind == DeviceKind::Cuda => {
                Some(RangeContent::byte(byte.unwrap_or(POISON_BYTE), range))
            }
            _ => None,
        }
    }

    /// Returns whether the device can check by itself that a launch left this buffer unchanged, if
    /// the buffer is an input.
    pub(crate) fn is_checkable(&self, kind: DeviceKind) -> bool {
        self.spec.role != Role::Input || self.held(kind).is_some()
    }

    /// Returns the device memory, and drops all references to the job.
    pub(crate) fn into_memory(self) -> impl Iterator<Item = DeviceBuffer> {
        [Some(self.memory), self.copy].into_iter().flatten()
    }
}

/// Returns the size of a buffer, bytes.
pub(crate) fn bytes_of(spec: &BufferSpec) -> JobResult<u64> {
    let elements = spec.shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    let bytes = elements.and_then(|elements| elements.checked_mul(spec.dtype.size() as u64));
    bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(|| {
        let text =
            format!("{} of shape {:?} is larger than the address space", spec.name, spec.shape);
        Failed::new(FailureCode::OutOfMemory, text, Blame::Candidate)
    })
}
/// Returns a function that maps a buffer's index to the address that a kernel receives.
pub(crate) fn addresses_of(buffers: &[JobBuffer<'_>]) -> impl Fn(usize) -> Option<u64> {
    |index| buffers.get(index).map(JobBuffer::address)
}
