//! Bodies that are too large for memory. They are read, compressed and written in pieces. The main
//! types are [`Bulk`] and [`RequestReader`].

use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::sync::Arc;

use object_store::path::Path;
use object_store::{ObjectStore, WriteMultipart};
use tokio::sync::mpsc;

/// Size of a write to the file, bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Compression level of zstd. At negative levels zstd compresses repetitions only and stores all
/// other bytes as they are. Most bytes of numeric data do not repeat; compressing them would take
/// several times as long and save almost nothing.
const LEVEL: i32 = -1;

/// Maximum number of compressed pieces that wait in memory for the disk.
const PIECES_AHEAD: usize = 2;

/// A part of a body. It is read once, while the body is written to its file.
pub trait Bulk: Debug + Send + Sync {
    /// Returns the size in bytes.
    fn bytes(&self) -> u64;

    /// Returns a reader of the content, for use on a blocking thread.
    fn reader(&self) -> Box<dyn Read + Send>;
}

/// Reader of a stored body, for use on a blocking thread.
pub struct RequestReader(Box<dyn Read + Send>);

impl RequestReader {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        Self(reader)
    }
}

impl Read for RequestReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl Debug for RequestReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestReader")
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Compresses a head and the parts after it into a file. If that fails, no file remains.
pub(super) async fn put(
    files: &dyn ObjectStore,
    path: &Path,
    head: Vec<u8>,
    parts: Vec<Arc<dyn Bulk>>,
) -> Result<(), Error> {
    let mut upload = WriteMultipart::new(files.put_multipart(path).await?);
    let (sender, mut pieces) = mpsc::channel(PIECES_AHEAD);
    let packing = tokio::task::spawn_blocking(move || pack(sender, &head, &parts));
    let mut written = Ok(());
    // A failed write closes the channel, which ends the compression.
    while let Some(piece) = pieces.recv().await {
        written = upload.wait_for_capacity(PIECES_AHEAD).await;
        if written.is_err() {
            break;
        }
        upload.put(bytes::Bytes::from(piece));
    }
    drop(pieces);
    let packed = packing.await.map_err(io::Error::other).flatten();
    match (written, packed) {
        (Ok(()), Ok(())) => upload.finish().await.map(drop).map_err(Error::from),
        (written, packed) => {
            // The cleaner removes the remains of an aborted upload.
            let _ = upload.abort().await;
            written?;
            packed.map_err(Error::from)
        }
    }
}

fn pack(sender: mpsc::Sender<Vec<u8>>, head: &[u8], parts: &[Arc<dyn Bulk>]) -> io::Result<()> {
    let mut pieces =
        zstd::stream::write::Encoder::new(Pieces { sender, piece: Vec::new() }, LEVEL)?;
    pieces.write_all(head)?;
    for part in parts {
        let copied = io::copy(&mut part.reader(), &mut pieces)?;
        if copied != part.bytes() {
            let message = format!("read {copied} of {} bytes", part.bytes());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
    }
    pieces.finish()?.flush()
}

/// A writer that sends the written bytes to a channel in pieces.
struct Pieces {
    sender: mpsc::Sender<Vec<u8>>,
    piece: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        self.sender.blocking_send(piece).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{bytes, completed, files, job, sqlite};
    use super::super::{JobState, NewJob, Retention};
    use super::*;

    /// A part of a request with content generated on reading.
    #[derive(Debug)]
    struct Noise {
        /// Length in bytes.
        bytes: u64,
        /// Whether reading fails before the end.
        broken: bool,
    }

    impl Noise {
        fn content(&self) -> Vec<u8> {
            let mut bytes = vec![0; self.bytes as usize];
            blake3::Hasher::new().finalize_xof().fill(&mut bytes);
            bytes
        }
    }

    impl Bulk for Noise {
        fn bytes(&self) -> u64 {
            self.bytes
        }

        fn reader(&self) -> Box<dyn std::io::Read + Send> {
            let mut content = self.content();
            if self.broken {
                content.pop();
            }
            Box::new(std::io::Cursor::new(content))
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn large_requests_are_written_as_they_are_read() {
        let fresh = sqlite();
        let store = fresh.store().await;
        let part = |broken| Arc::new(Noise { bytes: 5_000_000, broken });
        let with = |parts: Vec<Arc<Noise>>| NewJob {
            bulk: parts.into_iter().map(|part| part as Arc<dyn Bulk>).collect(),
            ..job("a")
        };
        let objects = fresh.config.data_dir.join("objects");
        let error = store.queue().submit(with(vec![part(false), part(true)])).await.unwrap_err();
        assert!(error.to_string().contains("request"), "{error}");
        assert!(store.queue().claim().await.unwrap().is_none(), "nothing was accepted");
        // Other threads of the object store remove the aborted upload.
        while !files(&objects).is_empty() {
            tokio::task::yield_now().await;
        }
        let whole = with(vec![part(false), part(false)]);
        let id = store.queue().submit(whole).await.unwrap().id;
        assert_eq!(files(&objects).len(), 1);
        let claimed = store.queue().claim().await.unwrap().unwrap();
        assert_eq!(claimed.job.bytes, 14 + 10_000_000);
        let noise = part(false).content();
        let expected = [br#"{"kernel":"x"}"#, &noise[..], &noise[..]].concat();
        assert!(bytes(claimed.request) == expected);
        assert!(bytes(store.jobs().request(&id).await.unwrap().unwrap()) == expected);
        store.queue().advance(&claimed.lease, JobState::Compiling).await.unwrap();
        store.queue().finish(claimed.lease, completed(b"{}")).await.unwrap();
        let all = Retention { max_age: Some(Duration::ZERO), ..Retention::default() };
        store.cleaner().clean_up(&all).await.unwrap();
        // Only the folder of the rejected job is left.
        assert_eq!(store.cleaner().remove_leftovers(Duration::ZERO).await.unwrap(), 0);
        let left: Vec<_> = std::fs::read_dir(&objects).into_iter().flatten().collect();
        assert!(left.is_empty(), "nothing is left: {left:?}");
    }
}
