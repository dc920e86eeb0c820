//! Tensors in device memory.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use uuid::Uuid;
use warpgauge_device::{
    Context, DeviceBuffer, DeviceError, DriverChoice, Event, PinnedBuffer, Stream, loader,
};
use warpgauge_model::FailureCode;
use warpgauge_shared_tensors::{DEVICE_PAGE, ExportedTensor};

use super::{Memory, Piece, Refusal};

pub(super) struct DeviceMemory {
    context: Context,
    stream: Stream,
    tensors: HashMap<Uuid, Tensor>,
    /// Buffers into which files are read; allocated for the first large piece.
    staging: Option<[PinnedBuffer; 2]>,
}

struct Tensor {
    buffer: DeviceBuffer,
    /// Event for synchronisation between the processes that have the tensor open, created at the
    /// first request. The holder never waits for it, because a process with a handle may record it
    /// after work that never ends.
    event: Option<Event>,
}

impl From<DeviceBuffer> for Tensor {
    fn from(buffer: DeviceBuffer) -> Self {
        Self { buffer, event: None }
    }
}

/// Free memory that a copy requires, as a multiple of the copy's size: kernels need memory, too.
const FREE_FOR_COPY: u64 = 4;

/// Size of a staging buffer, bytes. One buffer is read while the other is copied to the device.
const STAGED_BYTES: usize = 8 << 20;

/// Number of threads that read into a buffer, because one thread is slower than the device.
const READERS: usize = 4;

impl DeviceMemory {
    pub(super) fn open(
        ordinal: u32,
        emulator: Option<PathBuf>,
        run_dir: &Path,
    ) -> Result<Self, Refusal> {
        let choice = emulator.map_or(DriverChoice::Cuda, DriverChoice::Emulator);
        let loaded = loader::load(&choice, run_dir)
            .map_err(|error| Refusal::new(FailureCode::NoDevice, error.to_string()))?;
        let context = loaded.driver.open(ordinal)?;
        let stream = Stream::new(&context)?;
        Ok(Self { context, stream, tensors: HashMap::new(), staging: None })
    }

    /// Copies a file piece by piece, and reads the next piece while one is copied.
    fn staged(
        &self,
        id: Uuid,
        offset: u64,
        piece: &Piece,
        (mut full, mut next): (&mut [u8], &mut [u8]),
    ) -> Result<(), Refusal> {
        let buffer = self.find(id)?;
        let count = |done: u64| (piece.bytes - done).min(STAGED_BYTES as u64) as usize;
        read(piece, 0, &mut full[..count(0)])?;
        let mut done = 0;
        while done < piece.bytes {
            let bytes = count(done);
            let begun = done + bytes as u64;
            let following = &mut next[..count(begun)];
            let (copied, followed) = std::thread::scope(|scope| {
                let reading = scope.spawn(|| read(piece, begun, following));
                let copied = buffer.copy_from_host(at(offset + done), &full[..bytes], &self.stream);
                (copied, reading.join())
            });
            copied?;
            followed.unwrap_or_else(|_| {
                Err(Refusal::new(FailureCode::InternalError, "reading a file failed"))
            })?;
            std::mem::swap(&mut full, &mut next);
            done = begun;
        }
        Ok(())
    }

    /// Allocates a block of whole pages. A handle opens the whole block that the driver allocated,
    /// so each tensor has separate blocks.
    fn allocate(&self, bytes: u64) -> Result<DeviceBuffer, Refusal> {
        let whole = bytes.checked_next_multiple_of(DEVICE_PAGE).ok_or_else(|| {
            Refusal::new(FailureCode::OutOfMemory, "the tensor is larger than the address space")
        })?;
        Ok(DeviceBuffer::new(&self.context, whole, "a shared tensor")?)
    }

    fn find(&self, id: Uuid) -> Result<&DeviceBuffer, Refusal> {
        let tensor = self.tensors.get(&id).ok_or_else(|| Refusal::unknown(id))?;
        Ok(&tensor.buffer)
    }
}

impl Tensor {
    /// Returns a handle of the tensor's event, which is created at the first request.
    fn event(&mut self, context: &Context) -> Result<Vec<u8>, DeviceError> {
        let event = match self.event.take() {
            Some(event) => event,
            None => Event::interprocess(context)?,
        };
        self.event.insert(event).export()
    }
}

impl From<DeviceError> for Refusal {
    fn from(error: DeviceError) -> Self {
        Self::new(error.code.clone(), error.to_string())
    }
}

impl Memory for DeviceMemory {
    fn create(&mut self, id: Uuid, bytes: u64) -> Result<(), Refusal> {
        let buffer = self.allocate(bytes)?;
        buffer.fill(0, &self.stream)?;
        self.stream.synchronize()?;
        self.tensors.insert(id, buffer.into());
        Ok(())
    }

    fn fill(&mut self, id: Uuid, offset: u64, piece: &Piece) -> Result<(), Refusal> {
        if self.staging.is_none() && piece.bytes > STAGED_BYTES as u64 {
            let buffer = || PinnedBuffer::new(&self.context, STAGED_BYTES);
            // If the system refuses page-locked memory (locked-memory limit), pageable memory is
            // used, which is slower.
            self.staging = buffer().and_then(|one| Ok([one, buffer()?])).ok();
        }
        let Some([mut one, mut other]) = self.staging.take() else {
            let bytes = piece.bytes.min(STAGED_BYTES as u64) as usize;
            let (mut one, mut other) = (vec![0; bytes], vec![0; bytes]);
            return self.staged(id, offset, piece, (&mut one, &mut other));
        };
        let filled = self.staged(id, offset, piece, (one.bytes_mut(), other.bytes_mut()));
        self.staging = Some([one, other]);
        filled
    }

    fn copy(&mut self, from: Uuid, id: Uuid, bytes: u64) -> Result<(), Refusal> {
        let (free, _) = self.context.memory_info()?;
        if bytes.saturating_mul(FREE_FOR_COPY) > free {
            let text = format!(
                "{free} bytes are free, and a copy of {bytes} bytes would take more than a quarter"
            );
            return Err(Refusal::new(FailureCode::OutOfMemory, text));
        }
        let source = self.find(from)?;
        let buffer = self.allocate(bytes)?;
        let bytes = at(bytes);
        buffer.copy_range_from_device(0, source, 0, bytes, &self.stream)?;
        // A process that opens the tensor can read the whole block, so the rest is zeroed.
        buffer.fill_range(bytes, buffer.len() - bytes, 0, &self.stream)?;
        self.stream.synchronize()?;
        self.tensors.insert(id, buffer.into());
        Ok(())
    }

    fn read(&mut self, id: Uuid, offset: u64, into: &mut [u8]) -> Result<(), Refusal> {
        // The holder does not wait for work that other processes launched on the tensor: these
        // processes must wait for it. Work that they have waited for is visible.
        Ok(self.find(id)?.copy_to_host(at(offset), into, &self.stream)?)
    }

    fn export(&mut self, id: Uuid, event: bool) -> Result<ExportedTensor, Refusal> {
        let tensor = self.tensors.get_mut(&id).ok_or_else(|| Refusal::unknown(id))?;
        // A driver without such events still shares memory.
        let event = event.then(|| tensor.event(&self.context)).and_then(|made| {
            let told = |error: &_| eprintln!("warpgauge holder: no event for {id}: {error}");
            made.inspect_err(told).ok()
        });
        let buffer = &tensor.buffer;
        Ok(ExportedTensor {
            handle: Some(buffer.export()?.bytes().to_vec()),
            event,
            path: None,
            allocation_bytes: buffer.len() as u64,
            address: buffer.address(),
        })
    }

    fn free(&mut self, id: Uuid) -> Result<(), Refusal> {
        self.tensors.remove(&id).map(drop).ok_or_else(|| Refusal::unknown(id))
    }
}

/// Fills `into` from a piece of a file, starting at `done`.
fn read(piece: &Piece, done: u64, into: &mut [u8]) -> Result<(), Refusal> {
    let part = into.len().div_ceil(READERS).next_multiple_of(4 << 10).max(1);
    let begin = piece.from + done;
    let read: io::Result<()> = std::thread::scope(|scope| {
        let parts = into.chunks_mut(part).zip((begin..).step_by(part));
        let readers: Vec<_> = parts
            .map(|(part, from)| scope.spawn(move || piece.file.read_exact_at(part, from)))
            .collect();
        let mut ended = readers.into_iter().map(|reader| reader.join());
        ended.try_for_each(|read| {
            read.unwrap_or_else(|_| Err(io::Error::other("a reading thread failed")))
        })
    });
    read.map_err(|error| {
        Refusal::new(FailureCode::OperatingSystem, format!("cannot read a tensor's file: {error}"))
    })
}

/// Converts an offset to `usize`. An offset that does not fit becomes the maximum, which every
/// buffer rejects.
fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
