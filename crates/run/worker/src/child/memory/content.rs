//! Sources of a buffer's content, and comparison of buffers with them.

use rayon::prelude::*;

use crate::child::failure::{Failed, JobResult};
use crate::protocol::{Blame, BufferContent, BufferSpec};
use warpgauge_device::support::InitParams;
use warpgauge_device::{Context, DeviceBuffer, DeviceError, MappedFile, MemoryHandle};
use warpgauge_model::{DeviceKind, FailureCode};
use warpgauge_tensor::{InitKind, TensorInit};
use warpgauge_validate::POISON_BYTE;

/// Minimum size of content that a kernel on the device generates, bytes.
const DEVICE_INIT_BYTES: u64 = 64 << 10;

/// Number of bytes that one parallel task compares.
const COMPARED_BYTES: usize = 1 << 20;

/// Seed of the random numbers in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seed {
    /// The numbers come from the contract's seed.
    Contract,
    /// Numbers from a seed that the submitter does not know; the generator may differ from the
    /// contract's.
    Secret(u64),
    /// Numbers from the contract's generators, with a seed that the submitter does not know.
    Drawn(u64),
}

/// Source of a buffer's initial content. The content can be written again at any time, from memory
/// that no kernel can reach.
pub(crate) enum Source {
    /// Every byte has this value. `None` means that the content is undefined: the buffer is filled
    /// before each launch.
    Byte(Option<u8>),
    /// A built-in kernel generates the content.
    Device(Box<InitParams>),
    /// The CPU has generated the content.
    Host(Vec<u8>),
    File(MappedFile),
    /// The content is in another process's memory on the device.
    Shared(SharedContent),
}

/// Content at the beginning of another process's memory block. The block is open only during a
/// copy, and never while a kernel runs, so no kernel can reach it.
pub(crate) struct SharedContent {
    handle: MemoryHandle,
    bytes: u64,
}

impl SharedContent {
    /// Opens the block. Dropping the result closes it.
    pub(crate) fn open(&self, context: &Context) -> Result<DeviceBuffer, DeviceError> {
        DeviceBuffer::import(context, &self.handle, self.bytes).map_err(|error| {
            let text =
                format!("the process that held it may have died ({error}); send the request again");
            DeviceError::local(
                "open the copy of a shared tensor",
                FailureCode::InputUnreadable,
                text,
            )
        })
    }
}

impl Source {
    /// Opens or generates the content of a buffer of `bytes` bytes.
    pub(crate) fn new(
        spec: &BufferSpec,
        bytes: u64,
        kind: DeviceKind,
        seed: Seed,
    ) -> JobResult<Self> {
        let refused = |text: String| Failed::new(FailureCode::InvalidValue, text, Blame::Candidate);
        let tensor = spec.tensor();
        match &spec.content {
            BufferContent::Undefined => Ok(Source::Byte(None)),
            BufferContent::Init(init) if init.kind == InitKind::Zeros => Ok(Source::Byte(Some(0))),
            BufferContent::Init(init) if kind == DeviceKind::Cuda && bytes >= DEVICE_INIT_BYTES => {
                let params = match seed {
                    Seed::Contract | Seed::Drawn(_) => {
                        InitParams::new(&seeded(init, seed), tensor, &spec.name)
                    }
                    Seed::Secret(_) => InitParams::secret(&seeded(init, seed), tensor, &spec.name),
                };
                params
                    .map(|params| Source::Device(Box::new(params)))
                    .map_err(|error| refused(format!("{}: {error}", spec.name)))
            }
            BufferContent::Init(init) => {
                let mut content = vec![0; bytes as usize];
                warpgauge_tensor::fill_parallel(
                    &seeded(init, seed),
                    tensor,
                    &spec.name,
                    0,
                    &mut content,
                )
                .map_err(|error| refused(format!("{}: {error}", spec.name)))?;
                Ok(Source::Host(content))
            }
            BufferContent::File(path) => {
                let opened = MappedFile::open(path, bytes);
                opened.map(Source::File).map_err(|error| {
                    let text = format!("cannot read the content of {}: {error}", spec.name);
                    Failed::new(FailureCode::InputUnreadable, text, Blame::Environment)
                })
            }
            BufferContent::Shared { handle, bytes: whole } if *whole >= bytes => {
                let handle = MemoryHandle::told(handle.clone());
                Ok(Source::Shared(SharedContent { handle, bytes: *whole }))
            }
            BufferContent::Shared { bytes: whole, .. } => {
                let text = format!("{} has {bytes} bytes, but its content has {whole}", spec.name);
                Err(Failed::new(FailureCode::InputUnreadable, text, Blame::Environment))
            }
        }
    }

    /// Compares `actual` with the content from byte `start` on. Returns the index in `actual` of
    /// the first byte that differs. Does not compare content on the device: the caller does.
    pub(crate) fn first_difference(&self, start: usize, actual: &[u8]) -> Option<u64> {
        let expected = match self {
            Source::Byte(byte) => {
                let byte = byte.unwrap_or(POISON_BYTE);
                return actual.iter().position(|&other| other != byte).map(|at| at as u64);
            }
            Source::Host(bytes) => bytes.as_slice(),
            Source::File(file) => file.bytes(),
            Source::Device(_) | Source::Shared(_) => return None,
        };
        first_difference(&expected[start..start + actual.len()], actual)
    }
}

/// Returns the index of the first byte that differs.
pub(crate) fn first_difference(expected: &[u8], actual: &[u8]) -> Option<u64> {
    let pieces = expected.par_chunks(COMPARED_BYTES).zip(actual.par_chunks(COMPARED_BYTES));
    if pieces.all(|(expected, actual)| expected == actual) {
        return None;
    }
    actual.iter().zip(expected).position(|(a, b)| a != b).map(|at| at as u64)
}

/// Returns whether content of this kind is random, so that other numbers of the same kind may
/// replace it.
pub(crate) fn is_random(content: &BufferContent) -> bool {
    matches!(content, BufferContent::Init(init) if init.kind.is_random())
}

/// Returns the description of the content, with the random numbers that `seed` selects.
fn seeded(init: &TensorInit, seed: Seed) -> TensorInit {
    match seed {
        Seed::Contract => init.clone(),
        Seed::Secret(seed) | Seed::Drawn(seed) => init.reseeded(seed),
    }
}
