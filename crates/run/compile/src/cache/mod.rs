//! The artifact cache. Artifacts are stored by content address, with a limit on their size, and
//! shared between processes. Recently used artifacts are also kept in memory.

mod disk;
mod key;
mod memory;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use disk::Kept;
pub(crate) use key::{Compiler as KeyCompiler, Key, KeyInputs, key_of};

use super::artifact::CompiledModule;
use super::error::CompileSetupError;

/// Maximum total size of the artifacts in memory, in bytes.
const MEMORY_BYTES: u64 = 16 << 20;

/// The cache with both levels, memory and disk.
pub(crate) struct Cache {
    memory: Mutex<memory::Front>,
    disk: disk::Store,
}

impl Cache {
    /// Opens the cache in `directory`, which may contain at most `max_bytes` bytes. If `max_bytes`
    /// is 0, nothing stays on disk.
    pub(crate) fn open(directory: PathBuf, max_bytes: u64) -> Result<Self, CompileSetupError> {
        Ok(Self {
            memory: Mutex::new(memory::Front::new(MEMORY_BYTES)),
            disk: disk::Store::open(directory, max_bytes)?,
        })
    }

    /// Returns an artifact from the in-memory cache.
    pub(crate) fn get_hot(&self, key: &Key) -> Option<Arc<CompiledModule>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).get(key)
    }

    /// Reads an artifact from the cache on disk.
    pub(crate) fn get_cold(&self, key: &Key) -> Option<Arc<CompiledModule>> {
        let artifact: Arc<CompiledModule> = Arc::new(self.disk.get(key)?);
        self.put_hot(key, &artifact);
        Some(artifact)
    }

    /// Stores an artifact in the in-memory cache.
    pub(crate) fn put_hot(&self, key: &Key, artifact: &Arc<CompiledModule>) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.put(key.clone(), Arc::clone(artifact));
    }

    /// Reads a cached result other than a compiled module from disk.
    pub(crate) fn get_other<T: Kept>(&self, key: &Key) -> Option<T> {
        self.disk.get(key)
    }

    /// Writes a result to disk. A failed write is only logged; a later request then compiles again.
    pub(crate) fn put_cold<T: Kept>(&self, key: &Key, artifact: &T) {
        if let Err(e) = self.disk.put(key, artifact) {
            tracing::warn!(key = %key, error = %e, "cannot write to the compile cache");
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::artifact::{CompileTimings, KernelInfo};
    use warpgauge_contract::{Backend, KernelType};
    use warpgauge_model::{ImageFormat, Target};

    /// Returns a key that depends on `name` only.
    pub(crate) fn key(name: &str) -> Key {
        KeyInputs {
            kind: KernelType::Cuda,
            code: name.as_bytes(),
            options: &[],
            arch_suffix: None,
            backend: Backend::Nvrtc,
            name_expressions: &[],
            fields: &[],
            kernel_name: None,
            target: Target { compute_capability: (9, 0), driver_version: 13000, emulated: false },
            lineinfo: false,
            compiler: None,
            prelude: "",
            headers: &[],
        }
        .key()
    }

    /// Returns an artifact with an image of `image_bytes` bytes.
    pub(super) fn artifact(image_bytes: usize) -> CompiledModule {
        let kernel =
            KernelInfo { symbol: "k".into(), name: "k".into(), params: None, resources: None };
        CompiledModule {
            variables: Vec::new(),
            image: vec![7; image_bytes].into(),
            format: ImageFormat::Cubin,
            kernels: vec![kernel],
            entry: 0,
            compiler: "nvrtc 13.0".into(),
            options: Vec::new(),
            log: String::new(),
            diagnostics: Vec::new(),
            key: String::new(),
            cache_hit: false,
            timings: CompileTimings::default(),
            launch: None,
            stages: Vec::new(),
        }
    }

    #[test]
    fn what_is_put_is_found_in_memory_and_after_a_restart_on_disk() {
        let dir = tempfile::tempdir().unwrap();
        let key = key("a");
        let mut stored = artifact(100);
        stored.key = key.to_string();
        let cache = Cache::open(dir.path().into(), 1 << 20).unwrap();
        assert!(cache.get_hot(&key).is_none() && cache.get_cold(&key).is_none());
        let stored = Arc::new(stored);
        cache.put_hot(&key, &stored);
        cache.put_cold(&key, &*stored);
        assert!(cache.get_hot(&key).is_some());
        let cache = Cache::open(dir.path().into(), 1 << 20).unwrap();
        assert!(cache.get_hot(&key).is_none());
        assert!(cache.get_cold(&key).is_some());
        assert!(cache.get_hot(&key).is_some());
    }
}
