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
    /// What files are read into, once a large one was.
    staging: Option<[PinnedBuffer; 2]>,
}

struct Tensor {
    buffer: DeviceBuffer,
    /// What those who have it open tell each other by, once one of them asked. It is never waited for here:
    /// whoever has a handle may record it behind work that does not end.
    event: Option<Event>,
}

impl From<DeviceBuffer> for Tensor {
    fn from(buffer: DeviceBuffer) -> Self {
        Self { buffer, event: None }
    }
}

/// Memory that must be free for a copy, as a multiple of it: kernels need some, too.
const FREE_FOR_COPY: u64 = 4;

/// Bytes that are read while those before are copied to the device.
const STAGED_BYTES: usize = 8 << 20;

/// Threads that read them: one alone is slower than the device.
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

    /// Copies a file piece by piece, and reads one while the one before is copied.
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

    /// A block of whole pages: a handle opens the whole block that the driver allocated, so each tensor has
    /// blocks of its own.
    fn allocate(&self, bytes: u64) -> Result<DeviceBuffer, Refusal> {
        let whole = bytes
            .checked_next_multiple_of(DEVICE_PAGE)
            .ok_or_else(|| Refusal::new(FailureCode::OutOfMemory, "more than can be addressed"))?;
        Ok(DeviceBuffer::new(&self.context, whole, "a shared tensor")?)
    }

    fn find(&self, id: Uuid) -> Result<&DeviceBuffer, Refusal> {
        let tensor = self.tensors.get(&id).ok_or_else(|| Refusal::unknown(id))?;
        Ok(&tensor.buffer)
    }
}

impl Tensor {
    /// A handle of its event, which is made for the first who asks.
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
            // Refused by the system (locked-memory limit): ordinary memory serves as well, slower.
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
                "{free} bytes are free, and a copy of {bytes} bytes would take much of them"
            );
            return Err(Refusal::new(FailureCode::OutOfMemory, text));
        }
        let source = self.find(from)?;
        let buffer = self.allocate(bytes)?;
        let bytes = at(bytes);
        buffer.copy_range_from_device(0, source, 0, bytes, &self.stream)?;
        // Who opens it gets the whole block.
        buffer.fill_range(bytes, buffer.len() - bytes, 0, &self.stream)?;
        self.stream.synchronize()?;
        self.tensors.insert(id, buffer.into());
        Ok(())
    }

    fn read(&mut self, id: Uuid, offset: u64, into: &mut [u8]) -> Result<(), Refusal> {
        // What others launched on it is theirs to wait for; what they waited for is seen.
        Ok(self.find(id)?.copy_to_host(at(offset), into, &self.stream)?)
    }

    fn export(&mut self, id: Uuid, event: bool) -> Result<ExportedTensor, Refusal> {
        let tensor = self.tensors.get_mut(&id).ok_or_else(|| Refusal::unknown(id))?;
        // A driver without such events shares memory as well.
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

/// Reads so much of a piece as fits, from `done` on.
fn read(piece: &Piece, done: u64, into: &mut [u8]) -> Result<(), Refusal> {
    let part = into.len().div_ceil(READERS).next_multiple_of(4 << 10).max(1);
    let begin = piece.from + done;
    let read: io::Result<()> = std::thread::scope(|scope| {
        let parts = into.chunks_mut(part).zip((begin..).step_by(part));
        let readers: Vec<_> = parts
            .map(|(part, from)| scope.spawn(move || piece.file.read_exact_at(part, from)))
            .collect();
        let mut ended = readers.into_iter().map(|reader| reader.join());
        ended.try_for_each(|read| read.unwrap_or_else(|_| Err(io::Error::other("it failed"))))
    });
    read.map_err(|error| {
        Refusal::new(FailureCode::OperatingSystem, format!("read a tensor's file: {error}"))
    })
}

/// Beyond what can be addressed is beyond any buffer, which refuses it.
fn at(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
