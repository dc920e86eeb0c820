//! A job's device buffers: allocated, filled, restored, and compared with what they held.
//!
//! ```text
//! [guard][  content  ][guard]
//! ```
//!
//! What a launch finds is written right before it, from where no kernel can reach: random content from
//! a seed, other content from the host, or from memory of another process that is open only meanwhile. No
//! copy of it lies on the device in reach of a kernel, but for launches that are only watched.

use super::content::{Seed, Source, is_random};
use super::tools::Tools;
use super::write_batch::Writes;
use crate::child::failure::{Failed, JobResult, environment};
use crate::protocol::{Blame, BufferContent, BufferSpec, LentBuffer};
use warpgauge_contract::Role;
use warpgauge_device::{DeviceBuffer, DeviceError, PendingCopy, RangeContent, Staging, Stream};
use warpgauge_model::{DeviceKind, FailureCode};
use warpgauge_validate::{Filling, POISON_BYTE};

/// Bytes before and after each buffer that no kernel may touch.
const GUARD_BYTES: usize = 4 << 10;

/// Pages of device memory: what is as large as several of them begins and ends with one.
const PAGE_BYTES: u64 = 2 << 20;

/// Buffers are moved by multiples of this: it keeps the alignment that the driver promises.
pub(crate) const SHIFT_STEP: usize = 512;

/// How a buffer is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Use {
    /// What a launch changes is put back from a copy on the device: quick, and seen as a copy by who
    /// watches. A kernel can reach that copy, so never where its launches are judged.
    pub copied: bool,
    /// Byte in the guard bands; `None`: no bands, since every access is checked anyway.
    pub guard: Option<u8>,
    /// Bytes by which the first band is longer, so that the content lies elsewhere; a multiple of
    /// [`SHIFT_STEP`].
    pub shift: usize,
    /// Whether the second band reaches to the end of the last page, so that nothing on the buffer's
    /// pages is beyond suspicion: where inputs stay, a result kept there would serve again.
    pub whole_pages: bool,
    /// Whether content that the contract does not define is written at first. For who looks for
    /// reads of what nobody wrote, it is not.
    pub poisoned: bool,
}

/// One buffer of a job.
pub(crate) struct JobBuffer<'job> {
    /// What the job says of it.
    pub spec: &'job BufferSpec,
    memory: DeviceBuffer,
    /// Bytes of the guard bands before and after the content.
    front: usize,
    back: usize,
    guard: u8,
    /// What kernels are given, bytes.
    bytes: usize,
    /// A copy of the initial content, if launches are only watched.
    copy: Option<DeviceBuffer>,
    pub(crate) source: Source,
    /// Seed of the content, if that is random.
    seed: Seed,
    /// Whether anything is written at first.
    filled: bool,
}

/// The buffers that a kernel writes, each with its index.
pub(crate) fn outputs<'a, 'job>(
    buffers: &'a [JobBuffer<'job>],
) -> impl Iterator<Item = (usize, &'a JobBuffer<'job>)> {
    buffers.iter().enumerate().filter(|(_, buffer)| buffer.spec.role != Role::Input)
}

/// Queues what a launch must find in all buffers: outputs filled, inouts as they were.
pub(crate) fn restore_all(
    buffers: &[JobBuffer<'_>],
    filling: Filling,
    tools: Tools<'_>,
) -> Result<(), DeviceError> {
    restore_with(buffers, filling, Writes::new(tools))
}

/// As [`restore_all`], with what else is to be written.
pub(crate) fn restore_with(
    buffers: &[JobBuffer<'_>],
    filling: Filling,
    mut writes: Writes<'_>,
) -> Result<(), DeviceError> {
    buffers.iter().try_for_each(|buffer| buffer.restore(filling, &mut writes))?;
    writes.send()
}

/// Queues what launches that are only watched must find: what a kernel adds to must not run away, what it
/// overwrites may hold anything. Who watches sees fills and copies, and no kernel of ours.
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

/// Writes inputs as they are shown; `redrawn`: but for random ones, which the next launch finds drawn
/// anew.
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

/// Allocates a buffer for each spec, used as `usage` says of it, and writes their content.
pub(crate) fn allocate_all<'job>(
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
    tools.stream.synchronize().map_err(environment)
}

impl<'job> JobBuffer<'job> {
    /// Allocates a buffer. It has no content yet.
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

    /// The buffer of another process, which has written bands and content. `guard`: what the bands hold.
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
            let text = format!("{} was lent with too few bytes", spec.name);
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

    /// What a kernel is given.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address() + self.front as u64
    }

    /// Its size, bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The block of memory that it lies in, which is its alone: address and size.
    pub(crate) fn block(&self) -> (u64, usize) {
        (self.memory.address(), self.memory.len())
    }

    /// What another process needs to open it. It gets the bands beside it too, and nothing else, if the
    /// buffer has whole pages.
    pub(crate) fn lend(&self) -> Result<LentBuffer, DeviceError> {
        let bytes = self.memory.len() as u64;
        Ok(LentBuffer { handle: self.memory.export()?, bytes, offset: self.front as u64 })
    }

    /// Whether other random numbers would serve as well.
    pub(crate) fn is_random(&self) -> bool {
        self.spec.role != Role::Output && is_random(&self.spec.content)
    }

    /// Writes guard bands and initial content.
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

    /// Queues copying the initial content, which was written, where there is a copy.
    fn keep_copy(&self, stream: &Stream) -> Result<(), DeviceError> {
        let Some(copy) = self.copy.as_ref().filter(|_| self.filled) else { return Ok(()) };
        copy.copy_range_from_device(0, &self.memory, self.front, self.bytes, stream)
    }

    /// Draws other random numbers and writes them, where the next launch does not anyway; what is not
    /// random stays.
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

    /// Writes all content anew, from where no kernel could change it, with random numbers from
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
                writes.generate(*params, (self.address(), self.bytes));
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

    /// Queues what a launch must find: outputs filled, inouts as they were. Inputs stay.
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

    /// Whether its content before a launch is not defined, so that it is poisoned.
    pub(crate) fn is_poisoned(&self) -> bool {
        matches!(self.spec.content, BufferContent::Undefined)
    }

    /// Copies what the kernel is given to the host.
    pub(crate) fn copy_to_host(
        &self,
        target: &mut [u8],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.memory.copy_to_host(self.front, target, stream)
    }

    /// Copies as many bytes as the target has, from byte `at` on.
    pub(crate) fn copy_part_to_host(
        &self,
        at: usize,
        target: &mut [u8],
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        self.memory.copy_to_host(self.front + at, target, stream)
    }

    /// Moves its elements by `steps` units in the last place.
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

    /// Queues a copy of as many bytes of an output as the target has, from byte `at` on.
    pub(crate) fn start_copy_part_to_host(
        &self,
        at: usize,
        target: Staging,
        stream: &Stream,
    ) -> Result<PendingCopy, DeviceError> {
        self.memory.start_copy_to_host(self.front + at, target, stream)
    }

    /// Queues a copy of an output to other device memory, from byte `at` of that on.
    pub(crate) fn start_copy_to(
        &self,
        target: &DeviceBuffer,
        at: usize,
        stream: &Stream,
    ) -> Result<(), DeviceError> {
        target.copy_range_from_device(at, &self.memory, self.front, self.bytes, stream)
    }

    /// Guard bands, each with what it holds: before and after.
    pub(crate) fn guard_bands(&self) -> Option<[RangeContent; 2]> {
        let after = self.memory.address() + (self.memory.len() - self.back) as u64;
        let bands = [(self.memory.address(), self.front), (after, self.back)];
        (self.front > 0).then(|| bands.map(|band| RangeContent::byte(self.guard, band)))
    }

    /// Size of the guard band before the content, bytes.
    pub(crate) fn front(&self) -> usize {
        self.front
    }

    /// Element that byte `at` of the content belongs to.
    pub(crate) fn element_of(&self, at: u64) -> u64 {
        at / self.spec.dtype.size() as u64
    }

    /// What the device by itself can tell an input to hold still.
    pub(crate) fn held(&self, kind: DeviceKind) -> Option<RangeContent> {
        let range = (self.address(), self.bytes);
        match &self.source {
            Source::Device(params) => Some(RangeContent::tensor(*params, 0, range)),
            Source::Byte(byte) if kind == DeviceKind::Cuda => {
                Some(RangeContent::byte(byte.unwrap_or(POISON_BYTE), range))
            }
            _ => None,
        }
    }

    /// Gives up what refers to the job and keeps the device memory, for scrubbing. What is another
    /// process' is closed.
    pub(crate) fn into_memory(self) -> impl Iterator<Item = DeviceBuffer> {
        let own = Some(self.memory).filter(|memory| !memory.is_imported());
        [own, self.copy].into_iter().flatten()
    }
}

/// Bytes a buffer takes.
pub(crate) fn bytes_of(spec: &BufferSpec) -> JobResult<u64> {
    let elements = spec.shape.iter().try_fold(1u64, |product, &extent| product.checked_mul(extent));
    let bytes = elements.and_then(|elements| elements.checked_mul(spec.dtype.size() as u64));
    bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).ok_or_else(|| {
        let text = format!("{} of shape {:?} is larger than any memory", spec.name, spec.shape);
        Failed::new(FailureCode::OutOfMemory, text, Blame::Candidate)
    })
}
