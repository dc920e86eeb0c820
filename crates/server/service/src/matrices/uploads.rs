//! Uploads of matrices: parsing and progress. The main type is [`Uploads`].

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{READ_BYTES, Upload, invalid};
use crate::error::ServiceError;
use warpgauge_sparse::spmv::{MatrixShape, UploadProgress, UploadState};
use warpgauge_sparse::{Csr, ReadLimits, file, packed};
use warpgauge_store::Bulk;

/// Uploads in progress, at most one per request.
#[derive(Default)]
pub(super) struct Uploads {
    underway: Arc<Mutex<Vec<Underway>>>,
}

/// An upload in progress.
struct Underway {
    number: u64,
    owner: String,
    progress: UploadProgress,
}

impl Uploads {
    /// Adds an upload to the list. Dropping the returned ticket removes it.
    pub(super) fn begin(&self, owner: &str, filename: &str, bytes_total: u64) -> Ticket {
        let mut all = locked(&self.underway);
        let number = all.last().map_or(0, |last| last.number + 1);
        let (owner, filename) = (owner.to_owned(), filename.to_owned());
        let state = UploadState::Waiting;
        let progress = UploadProgress { filename, state, bytes_read: 0, bytes_total };
        all.push(Underway { number, owner, progress });
        Ticket { underway: Arc::clone(&self.underway), number }
    }

    /// Returns the uploads of an owner, oldest first.
    pub(super) fn of(&self, owner: &str) -> Vec<UploadProgress> {
        let all = locked(&self.underway);
        all.iter().filter(|one| one.owner == owner).map(|one| one.progress.clone()).collect()
    }
}

fn locked(underway: &Mutex<Vec<Underway>>) -> MutexGuard<'_, Vec<Underway>> {
    underway.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Entry of an upload in the list. Dropping it removes the entry.
pub(super) struct Ticket {
    underway: Arc<Mutex<Vec<Underway>>>,
    number: u64,
}

impl Ticket {
    fn tell(&self, state: UploadState, bytes_read: u64) {
        let mut all = locked(&self.underway);
        if let Some(own) = all.iter_mut().find(|one| one.number == self.number) {
            own.progress.state = state;
            own.progress.bytes_read = bytes_read;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        locked(&self.underway).retain(|one| one.number != self.number);
    }
}

/// A parsed matrix in its stored form.
pub(super) struct Parsed {
    pub(super) shape: MatrixShape,
    pub(super) hash: String,
    pub(super) file: PackedFile,
}

/// Parses an upload, and packs the matrix into a temporary file. The call blocks.
pub(super) fn parsed(
    upload: Upload,
    limits: &ReadLimits,
    ticket: &Ticket,
) -> Result<Parsed, ServiceError> {
    let Upload { content, bytes, .. } = upload;
    let mut hashed = Hashed { from: content, hasher: blake3::Hasher::new() };
    ticket.tell(UploadState::Reading, 0);
    let progress = |read| ticket.tell(UploadState::Reading, read);
    let (csr, kind) =
        file::read(&mut hashed, bytes, limits, progress).map_err(|error| match error.io() {
            Some(error) => ServiceError::unavailable(format!("cannot read the upload: {error}")),
            None => invalid("content", error.to_string()),
        })?;
    ticket.tell(UploadState::Keeping, bytes);
    let shape = MatrixShape::new(&csr, &kind);
    let file = PackedFile::of(&csr).map_err(|error| {
        ServiceError::unavailable(format!("cannot write a matrix to a temporary file: {error}"))
    })?;
    Ok(Parsed { shape, hash: hashed.hasher.finalize().to_hex().to_string(), file })
}

/// A reader that hashes the bytes that pass through it.
struct Hashed {
    from: Box<dyn Read + Send>,
    hasher: blake3::Hasher,
}

impl Read for Hashed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        self.hasher.update(&out[..count]);
        Ok(count)
    }
}

/// A packed matrix in a temporary file, which is deleted when this value is dropped.
#[derive(Debug)]
pub(super) struct PackedFile {
    file: Arc<File>,
    bytes: u64,
}

impl PackedFile {
    fn of(csr: &Csr) -> io::Result<Self> {
        let mut writer = BufWriter::with_capacity(READ_BYTES, tempfile::tempfile()?);
        packed::write(csr, &mut writer)?;
        writer.flush()?;
        let mut file = writer.into_inner()?;
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self { file: Arc::new(file), bytes })
    }
}

impl Bulk for PackedFile {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn reader(&self) -> Box<dyn Read + Send> {
        Box::new(FromStart { file: Arc::clone(&self.file), position: 0 })
    }
}

/// A reader of a shared file. It begins at the start of the file.
struct FromStart {
    file: Arc<File>,
    position: u64,
}

impl Read for FromStart {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(out, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A file whose reader reports each read, and waits for permission to continue.
    struct Stopping {
        parts: Vec<Vec<u8>>,
        asked: Sender<()>,
        go_on: Receiver<()>,
    }

    impl Read for Stopping {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.parts.first().is_some_and(Vec::is_empty) {
                self.asked.send(()).unwrap();
                self.go_on.recv().unwrap();
                self.parts.remove(0);
            }
            let Some(part) = self.parts.first_mut() else { return Ok(0) };
            let count = part.len().min(out.len());
            out[..count].copy_from_slice(&part[..count]);
            part.drain(..count);
            Ok(count)
        }
    }

    #[test]
    fn how_far_an_upload_is_can_be_seen_while_it_is_read_by_its_owner_alone() {
        let line = "1 1 0.5000000000000000000000000000000000000000000000000000000000000\n";
        let lines = (9usize << 20).div_ceil(line.len());
        let head = format!("%%MatrixMarket matrix coordinate real general\n1 1 {lines}\n");
        let (first, second) = (head + &line.repeat(lines / 2), line.repeat(lines - lines / 2));
        // The first part is larger than one read. So it is reported when the second part is read.
        let first = first + &"% \n".repeat(8 << 20 >> 1);
        let bytes = (first.len() + second.len()) as u64;
        let ((asked, was_asked), (go, go_on)) = (channel(), channel());
        let parts = vec![first.into_bytes(), second.into_bytes()];
        let content = Box::new(Stopping { parts, asked, go_on });
        let upload = Upload { name: "a.mtx".to_owned(), content, bytes };
        let uploads = Uploads::default();
        let ticket = uploads.begin("own", "a.mtx", bytes);
        assert_eq!(uploads.of("own")[0].state, UploadState::Waiting);
        let reading = std::thread::spawn(move || {
            let parsed = parsed(upload, &ReadLimits::default(), &ticket);
            (parsed.map(|parsed| parsed.shape.nnz), ticket)
        });
        was_asked.recv().unwrap();
        let [seen] = uploads.of("own").try_into().unwrap();
        assert_eq!((seen.state, seen.bytes_total), (UploadState::Reading, bytes));
        assert!(0 < seen.bytes_read && seen.bytes_read < bytes, "{seen:?}");
        assert_eq!(uploads.of("other"), []);
        go.send(()).unwrap();
        // The read after the end of the second part.
        was_asked.recv().unwrap();
        go.send(()).unwrap();
        let (nnz, ticket) = reading.join().unwrap();
        assert_eq!(nnz.unwrap(), 1);
        let [seen] = uploads.of("own").try_into().unwrap();
        assert_eq!((seen.state, seen.bytes_read), (UploadState::Keeping, bytes));
        drop(ticket);
        assert_eq!(uploads.of("own"), []);
    }
}
