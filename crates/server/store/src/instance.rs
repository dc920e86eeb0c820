//! Identifies this process among those that use the database. Detects the end of other processes on
//! this machine.
//!
//! Each process holds a lock on a file until it ends, for whatever reason. So processes that share
//! a data directory detect each other's end at once. The end of a process on another machine is
//! detected only when its lease expires. The main type is [`Presence`].

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::StoreError;

/// Registration of a live process. It ends when this value is dropped or the process is killed.
#[derive(Debug)]
pub(super) struct Presence {
    instance: String,
    machine: String,
    directory: PathBuf,
    /// Lock that is held while the process lives.
    #[cfg_attr(not(test), expect(dead_code, reason = "held, not read"))]
    lock: File,
}

impl Presence {
    /// Registers this process under a new name.
    pub(super) fn enter(data_dir: &Path) -> Result<Self, StoreError> {
        let directory = data_dir.join("instances");
        let failed = |operation, path: &Path| {
            let path = path.to_owned();
            move |source| StoreError::DataDir { operation, path, source }
        };
        warpgauge_private_files::directory(&directory)?;
        let machine = machine(&directory).map_err(failed("write in", &directory))?;
        let instance = uuid::Uuid::new_v4().to_string();
        let path = lock_path(&directory, &instance);
        let lock = warpgauge_private_files::new_file(&path).map_err(failed("create", &path))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| failed("lock", &path)(error.into()))?;
        Ok(Self { instance, machine, directory, lock })
    }

    /// Returns the name of this process.
    pub(super) fn instance(&self) -> &str {
        &self.instance
    }

    /// Returns an identifier of the machine's boot and the data directory. Processes that return
    /// the same value can check each other's locks.
    pub(super) fn machine(&self) -> &str {
        &self.machine
    }

    /// Returns whether the process of this name has ended. It must use this data directory.
    pub(super) fn is_gone(&self, instance: &str) -> bool {
        if uuid::Uuid::parse_str(instance).is_err() {
            return false;
        }
        match File::open(lock_path(&self.directory, instance)) {
            Ok(file) => rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Releases the lock, as the end of the process would.
    #[cfg(test)]
    pub(super) fn release_lock(&self) {
        rustix::fs::flock(&self.lock, FlockOperation::Unlock).unwrap();
    }

    /// Removes the lock file of a dead process.
    pub(super) fn forget(&self, instance: &str) {
        if uuid::Uuid::parse_str(instance).is_ok() {
            // The file has only a few bytes, so a failure is harmless.
            let _ = std::fs::remove_file(lock_path(&self.directory, instance));
        }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.forget(&self.instance.clone());
    }
}

fn lock_path(directory: &Path, instance: &str) -> PathBuf {
    directory.join(format!("{instance}.lock"))
}

/// Returns an identifier of this machine's boot and of this data directory.
fn machine(directory: &Path) -> std::io::Result<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let path = directory.join("directory-id");
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let id = match uuid::Uuid::parse_str(known.trim()) {
        Ok(id) => id,
        Err(_) => {
            // A hard link is atomic: if two processes start at the same time, one of them wins.
            let fresh = directory.join(format!(".{}", uuid::Uuid::new_v4()));
            std::fs::write(&fresh, uuid::Uuid::new_v4().to_string())?;
            let linked = std::fs::hard_link(&fresh, &path);
            std::fs::remove_file(&fresh)?;
            match linked {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(error);
                }
                _ => {}
            }
            let text = std::fs::read_to_string(&path)?;
            uuid::Uuid::parse_str(text.trim()).map_err(std::io::Error::other)?
        }
    };
    Ok(format!("{}/{id}", boot.trim()))
}
