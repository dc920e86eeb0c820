//! Stores bodies: small ones in their row, large ones as files beside the database. The main type
//! is [`Objects`].
//!
//! A file is written before the row that refers to it, and removed after that row is deleted. A
//! crash in between leaves a file without a row, which the clean-up removes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::local::LocalFileSystem;
use object_store::{GetResultPayload, ObjectStore, PutPayload};

use super::bulk::{self, Bulk};
use super::database::Durability;
use super::{RequestReader, StoreError};

/// Maximum size of a body in a row, bytes after compression.
pub(super) const INLINE_BYTES: usize = 64 << 10;

/// Minimum size of a body that is compressed, bytes.
const MIN_COMPRESSED: usize = 512;

/// Maximum size of a body that is compressed on the async thread, bytes. Larger bodies use a
/// blocking thread.
const QUICK_BYTES: usize = 64 << 10;

/// Maximum size of a decompressed body, bytes: the largest request, with some room for encodings.
const MAX_BODY_BYTES: u64 = 4 << 30;

/// Describes the location of a body that is stored in its row, for messages.
const IN_ITS_ROW: &str = "in the database";

const RAW: i64 = 0;
const ZSTD: i64 = 1;

/// A body in its stored form.
#[derive(Debug, Clone, Default)]
pub(super) struct Body {
    pub(super) codec: i64,
    pub(super) inline: Option<Vec<u8>>,
    pub(super) object: Option<String>,
}

impl Body {
    /// Returns the stored size if this body records it, and otherwise `given`.
    pub(super) fn weight(&self, given: u64) -> i64 {
        let weight = self.inline.as_ref().map_or(given, |bytes| bytes.len() as u64);
        i64::try_from(weight).unwrap_or(i64::MAX)
    }
}

/// Storage of large bodies as files.
#[derive(Clone)]
pub(super) struct Objects {
    files: Arc<LocalFileSystem>,
    root: PathBuf,
    durability: Durability,
}

impl Objects {
    /// Opens the files in a directory, which is created if it is missing.
    pub(super) fn open(root: &Path, durability: Durability) -> Result<Self, StoreError> {
        let failed =
            |operation, source| StoreError::DataDir { operation, path: root.to_owned(), source };
        warpgauge_private_files::directory(root)?;
        let root = root.canonicalize().map_err(|error| failed("find", error))?;
        // A job's folder is removed with its last file.
        let files = LocalFileSystem::new_with_prefix(&root)
            .map_err(|error| failed("open", io::Error::other(error)))?
            .with_automatic_cleanup(true);
        Ok(Self { files: Arc::new(files), root, durability })
    }

    pub(super) fn files(&self) -> &LocalFileSystem {
        &self.files
    }

    /// Compresses a body. A large body is written to a file under `key`.
    pub(super) async fn keep(&self, key: &str, body: Vec<u8>) -> Result<Body, StoreError> {
        let packed = pack(body).await;
        let (codec, packed) =
            packed.map_err(|error| StoreError::file("pack", key, error.into()))?;
        if packed.len() <= INLINE_BYTES {
            return Ok(Body { codec, inline: Some(packed), object: None });
        }
        let put = self.files.put(&path(key), PutPayload::from(packed)).await;
        put.map_err(|error| StoreError::file("write", key, error.into()))?;
        self.written(codec, key).await
    }

    /// Compresses a body that is too large for memory, and writes it to a file under `key`.
    pub(super) async fn keep_bulk(
        &self,
        key: &str,
        head: Vec<u8>,
        bulk: Vec<Arc<dyn Bulk>>,
    ) -> Result<Body, StoreError> {
        let put = bulk::put(&*self.files, &path(key), head, bulk).await;
        put.map_err(|error| StoreError::file("write", key, error))?;
        self.written(ZSTD, key).await
    }

    async fn written(&self, codec: i64, key: &str) -> Result<Body, StoreError> {
        if self.durability == Durability::Power {
            self.sync(key).await?;
        }
        Ok(Body { codec, inline: None, object: Some(key.to_owned()) })
    }

    /// Writes a file and its directory entry to the disk (fsync).
    async fn sync(&self, key: &str) -> Result<(), StoreError> {
        let file = self.root.join(key);
        let synced = tokio::task::spawn_blocking(move || {
            std::fs::File::open(&file)?.sync_all()?;
            let directory = file.parent().unwrap_or(&file);
            std::fs::File::open(directory)?.sync_all()
        });
        let outcome = synced.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        outcome.map_err(|error| StoreError::file("write", key, error.into()))
    }

    /// Opens a body. The returned reader decompresses it, and must be used on a blocking thread.
    pub(super) async fn open_body(&self, body: Body) -> Result<RequestReader, StoreError> {
        let (packed, name): (Box<dyn Read + Send>, _) = match (body.inline, body.object) {
            (Some(bytes), _) => (Box::new(io::Cursor::new(bytes)), IN_ITS_ROW.to_owned()),
            (None, Some(key)) => {
                let failed =
                    |error: object_store::Error| StoreError::file("read", &key, error.into());
                let found = self.files.get(&path(&key)).await.map_err(failed)?;
                let reader: Box<dyn Read + Send> = match found.payload {
                    GetResultPayload::File(file, _) => Box::new(file),
                    GetResultPayload::Stream(_) => {
                        Box::new(io::Cursor::new(found.bytes().await.map_err(failed)?))
                    }
                };
                (reader, key)
            }
            (None, None) => (Box::new(io::empty()), String::new()),
        };
        if body.codec == RAW {
            return Ok(RequestReader::new(packed));
        }
        let unpacked = zstd::stream::read::Decoder::new(packed)
            .map_err(|error| StoreError::file("unpack", &name, error.into()))?;
        Ok(RequestReader::new(Box::new(unpacked)))
    }

    /// Reads and decompresses a whole body.
    pub(super) async fn fetch(&self, body: Body) -> Result<Vec<u8>, StoreError> {
        let name = body.object.clone().unwrap_or_else(|| IN_ITS_ROW.to_owned());
        let body = match body {
            Body { codec: RAW, inline: Some(bytes), .. } => return Ok(bytes),
            packed => packed,
        };
        let reader = self.open_body(body).await?;
        let unpacked = tokio::task::spawn_blocking(move || whole(reader)).await;
        let unpacked = unpacked.map_err(io::Error::other).flatten();
        unpacked.map_err(|error| StoreError::file("unpack", &name, error.into()))
    }

    /// Removes files that were being written when a process crashed. They do not appear in the list
    /// of files.
    pub(super) async fn remove_unfinished(&self, older_than: Duration) -> Result<u64, StoreError> {
        let root = self.root.clone();
        let removing = tokio::task::spawn_blocking(move || unfinished(&root, older_than));
        let removed = removing.await.map_err(io::Error::other).flatten();
        removed.map_err(|error| StoreError::file("list", "objects", error.into()))
    }

    /// Removes files. A missing file counts as removed.
    pub(super) async fn remove(&self, keys: impl IntoIterator<Item = String>) {
        for key in keys {
            match self.files.delete(&path(&key)).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                // The clean-up retries the removal.
                Err(error) => tracing::warn!(key, %error, "a stored file cannot be removed"),
            }
        }
    }
}

/// Removes old incomplete files, whose names `LocalFileSystem` ends with e.g. `#1`, and old empty
/// folders.
fn unfinished(folder: &Path, older_than: Duration) -> io::Result<u64> {
    let mut removed = 0;
    let entries = match std::fs::read_dir(folder) {
        // The folder was removed with its last file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        // Other tasks may complete and remove files in the meantime.
        let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) else {
            continue;
        };
        let old = modified.elapsed().unwrap_or_default() >= older_than;
        if entry.file_type()?.is_dir() {
            removed += unfinished(&entry.path(), older_than)?;
            if old {
                // This fails unless the folder is empty. A task that writes a file there creates
                // the folder again.
                let _ = std::fs::remove_dir(entry.path());
            }
            continue;
        }
        let name = entry.file_name();
        let ending = name.to_str().and_then(|name| name.rsplit_once('#'));
        let staged = ending
            .is_some_and(|(_, end)| !end.is_empty() && end.bytes().all(|b| b.is_ascii_digit()));
        if staged && old {
            std::fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Returns the folder for a job's files. Folders are grouped by the last digits of the ids, which
/// are random, so no folder has too many entries.
pub(super) fn folder(id: &str) -> String {
    format!("jobs/{}/{id}", id.get(id.len().saturating_sub(2)..).unwrap_or("00"))
}

fn path(key: &str) -> object_store::path::Path {
    object_store::path::Path::from(key)
}

/// Reads a whole body, up to the size limit.
fn whole(reader: RequestReader) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BODY_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BODY_BYTES {
        let message = format!("it has more than {MAX_BODY_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(bytes)
}

async fn pack(body: Vec<u8>) -> io::Result<(i64, Vec<u8>)> {
    if body.len() < MIN_COMPRESSED {
        return Ok((RAW, body));
    }
    if body.len() <= QUICK_BYTES {
        return Ok(match quickly(&body) {
            Ok(packed) if packed.len() < body.len() => (ZSTD, packed),
            _ => (RAW, body),
        });
    }
    let squeeze = |body: Vec<u8>| match zstd::bulk::compress(&body, 1) {
        Ok(packed) if packed.len() < body.len() => (ZSTD, packed),
        _ => (RAW, body),
    };
    tokio::task::spawn_blocking(move || squeeze(body)).await.map_err(io::Error::other)
}

/// Compresses a small body. Creating a compressor takes longer than using it, so each thread keeps
/// one.
fn quickly(body: &[u8]) -> io::Result<Vec<u8>> {
    thread_local! {
        static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> =
            const { RefCell::new(None) };
    }
    COMPRESSOR.with_borrow_mut(|kept| {
        let mut compressor = match kept.take() {
            Some(compressor) => compressor,
            None => zstd::bulk::Compressor::new(1)?,
        };
        let packed = compressor.compress(body);
        *kept = Some(compressor);
        packed
    })
}

/// Truncates a text to this many bytes, at a character boundary.
pub(super) fn cut(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let end = (0..=bytes.saturating_sub(3)).rev().find(|end| text.is_char_boundary(*end));
    Cow::Owned(format!("{}…", &text[..end.unwrap_or(0)]))
}
