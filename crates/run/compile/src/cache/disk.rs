//! The cache on disk: one file per artifact, named by its key.
//!
//! A file contains a magic number, the BLAKE3 hash of the rest, and the artifact. It is written
//! under a temporary name and then renamed, so that readers in any process see a complete file or
//! none. A file that fails verification is removed and counts as absent. Reading updates the file's
//! modification time. When the directory exceeds its bound, the files with the oldest times are
//! removed.

use std::fs::{self, File, FileTimes};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::key::Key;
use crate::artifact::CompiledModule;
use crate::error::CompileSetupError;

/// Content that the cache stores in a file.
pub(crate) trait Kept: Serialize + DeserializeOwned {
    /// Returns whether this content is valid and belongs to the key. A file that was renamed has a
    /// correct hash, but belongs to another key.
    fn fits(&self, key: &Key) -> bool;
}

impl Kept for CompiledModule {
    fn fits(&self, key: &Key) -> bool {
        self.key == key.to_string() && self.entry < self.kernels.len()
    }
}

const MAGIC: &[u8; 8] = b"wgart\x00\x00\x01";
const HEADER_BYTES: usize = 8 + blake3::OUT_LEN;
const EXTENSION: &str = "artifact";

/// Fraction of the bound at which eviction stops, so that not every write causes an eviction.
const LOW_WATER: f64 = 0.9;

/// Age above which a temporary file was left by a process that died.
const ABANDONED: Duration = Duration::from_secs(3600);

pub(super) struct Store {
    directory: PathBuf,
    max_bytes: u64,
    /// Estimated total size of the files in the directory, bytes. Other processes write to it, too,
    /// so each eviction counts the bytes again.
    bytes: AtomicU64,
}

impl Store {
    pub(super) fn open(directory: PathBuf, max_bytes: u64) -> Result<Self, CompileSetupError> {
        let setup = |operation, source| CompileSetupError::Directory {
            operation,
            path: directory.clone(),
            source,
        };
        fs::create_dir_all(&directory).map_err(|e| setup("create the cache directory", e))?;
        let store = Self { directory: directory.clone(), max_bytes, bytes: AtomicU64::new(0) };
        store.evict().map_err(|e| setup("read the cache directory", e))?;
        Ok(store)
    }

    /// Returns the path of the file for a key. Files are distributed over 256 directories by the
    /// first byte of the key.
    fn path(&self, key: &Key) -> PathBuf {
        let hex = key.to_string();
        self.directory.join(&hex[..2]).join(format!("{hex}.{EXTENSION}"))
    }

    pub(super) fn get<T: Kept>(&self, key: &Key) -> Option<T> {
        let path = self.path(key);
        let bytes = fs::read(&path).ok()?;
        let Some(artifact) = decode(&bytes, key) else {
            tracing::warn!(path = %path.display(), "removing a damaged entry of the compile cache");
            let _ = fs::remove_file(&path);
            return None;
        };
        // The time only records use, so an error is ignored: a read-only cache still works.
        if let Ok(file) = File::options().append(true).open(&path) {
            let _ = file.set_times(FileTimes::new().set_modified(SystemTime::now()));
        }
        Some(artifact)
    }

    pub(super) fn put<T: Kept>(&self, key: &Key, artifact: &T) -> io::Result<()> {
        let bytes = encode(artifact)?;
        let size = bytes.len() as u64;
        if size > self.max_bytes {
            return Ok(());
        }
        let path = self.path(key);
        let directory = path.parent().unwrap_or(&self.directory);
        fs::create_dir_all(directory)?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
        file.write_all(&bytes)?;
        file.persist(&path).map_err(|e| e.error)?;
        let total = self.bytes.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        if total > self.max_bytes { self.evict() } else { Ok(()) }
    }

    /// Counts the bytes in the directory. If they exceed the bound, removes the least recently used
    /// files.
    fn evict(&self) -> io::Result<()> {
        let mut files = list(&self.directory)?;
        let mut total: u64 = files.iter().map(|f| f.bytes).sum();
        if total > self.max_bytes {
            files.sort_by_key(|f| f.used);
            let target = (self.max_bytes as f64 * LOW_WATER) as u64;
            for file in &files {
                if total <= target {
                    break;
                }
                // Another process may have removed it already.
                let _ = fs::remove_file(&file.path);
                total = total.saturating_sub(file.bytes);
            }
        }
        self.bytes.store(total, Ordering::Relaxed);
        Ok(())
    }
}

struct Listed {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

/// Lists the artifacts in the cache. Removes abandoned temporary files.
fn list(directory: &Path) -> io::Result<Vec<Listed>> {
    let mut files = Vec::new();
    for shard in fs::read_dir(directory)? {
        // Another process may have removed a shard or file in the meantime.
        let Ok(entries) = shard.and_then(|shard| fs::read_dir(shard.path())) else { continue };
        for entry in entries.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            let path = entry.path();
            let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if path.extension().is_some_and(|e| e == EXTENSION) {
                files.push(Listed { path, bytes: meta.len(), used });
            } else if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(&path);
            }
        }
    }
    Ok(files)
}

fn encode<T: Kept>(artifact: &T) -> io::Result<Vec<u8>> {
    let body = rmp_serde::to_vec_named(artifact).map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(blake3::hash(&body).as_bytes());
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

fn decode<T: Kept>(bytes: &[u8], key: &Key) -> Option<T> {
    let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
    let (magic, sum) = header.split_at(MAGIC.len());
    if magic != MAGIC || blake3::hash(body).as_bytes() != sum {
        return None;
    }
    warpgauge_document::from_msgpack(body).ok().filter(|artifact: &T| artifact.fits(key))
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
