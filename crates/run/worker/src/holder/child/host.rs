//! Tensors in the host's memory: files that other users cannot open, in an in-memory file system if
//! the host has one.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};
use uuid::Uuid;
use warpgauge_model::FailureCode;
use warpgauge_shared_tensors::ExportedTensor;

use super::{Memory, Piece, Refusal};

/// Number of bytes that are copied at once.
const BUFFER_BYTES: u64 = 1 << 20;

pub(super) struct HostMemory {
    directory: PathBuf,
    tensors: HashMap<Uuid, Segment>,
}

/// A file that is removed when this value is dropped. Processes that have mapped it can still use
/// its memory.
struct Segment {
    file: File,
    path: PathBuf,
    bytes: u64,
}

impl Drop for Segment {
    fn drop(&mut self) {
        // The directory is removed with the server. An error means that another process has removed
        // the file.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl HostMemory {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), tensors: HashMap::new() }
    }

    fn find(&self, id: Uuid) -> Result<&Segment, Refusal> {
        self.tensors.get(&id).ok_or_else(|| Refusal::unknown(id))
    }
}

impl Segment {
    /// Checks that a range is within the tensor. Other processes may truncate the open file; reads
    /// and writes of the file then fail with an error instead of a fault.
    fn check(&self, offset: u64, bytes: u64) -> Result<(), Refusal> {
        let end = offset.checked_add(bytes);
        if end.is_some_and(|end| end <= self.bytes) {
            return Ok(());
        }
        let text = format!(
            "{bytes} bytes at offset {offset} are outside a tensor of {} bytes",
            self.bytes
        );
        Err(Refusal::new(FailureCode::OutOfRange, text))
    }
}

impl Memory for HostMemory {
    fn create(&mut self, id: Uuid, bytes: u64) -> Result<(), Refusal> {
        let path = self.directory.join(id.simple().to_string());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(&path).map_err(|error| failed(bytes, &error))?;
        let segment = Segment { file, path, bytes };
        // A lack of memory is an error here, instead of a signal for a process that writes to it
        // later.
        fallocate(&segment.file, FallocateFlags::empty(), 0, bytes)
            .map_err(|error| failed(bytes, &error.into()))?;
        self.tensors.insert(id, segment);
        Ok(())
    }

    fn fill(&mut self, id: Uuid, offset: u64, piece: &Piece) -> Result<(), Refusal> {
        let segment = self.find(id)?;
        segment.check(offset, piece.bytes)?;
        let mut buffer = vec![0; piece.bytes.min(BUFFER_BYTES) as usize];
        let mut done = 0;
        while done < piece.bytes {
            let part = &mut buffer[..(piece.bytes - done).min(BUFFER_BYTES) as usize];
            let read = piece.file.read_exact_at(part, piece.from + done);
            let copied = read.and_then(|()| segment.file.write_all_at(part, offset + done));
            copied.map_err(|error| failed(segment.bytes, &error))?;
            done += part.len() as u64;
        }
        Ok(())
    }

    fn copy(&mut self, _: Uuid, _: Uuid, _: u64) -> Result<(), Refusal> {
        // A process that needs a copy reads the file.
        Err(Refusal::new(
            FailureCode::NotSupported,
            "copies of tensors in host memory are not supported",
        ))
    }

    fn read(&mut self, id: Uuid, offset: u64, into: &mut [u8]) -> Result<(), Refusal> {
        let segment = self.find(id)?;
        segment.check(offset, into.len() as u64)?;
        segment.file.read_exact_at(into, offset).map_err(|error| failed(segment.bytes, &error))
    }

    fn export(&mut self, id: Uuid, _: bool) -> Result<ExportedTensor, Refusal> {
        let Segment { path, bytes, .. } = self.find(id)?;
        let (path, allocation_bytes) = (Some(path.clone()), *bytes);
        Ok(ExportedTensor { handle: None, event: None, path, allocation_bytes, address: 0 })
    }

    fn free(&mut self, id: Uuid) -> Result<(), Refusal> {
        self.tensors.remove(&id).map(drop).ok_or_else(|| Refusal::unknown(id))
    }
}

fn failed(bytes: u64, error: &io::Error) -> Refusal {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            FailureCode::OutOfMemory
        }
        _ => FailureCode::OperatingSystem,
    };
    Refusal::new(
        code,
        format!("cannot provide shared memory for a tensor of {bytes} bytes: {error}"),
    )
}
