//! Private directories of processes. Each is deleted when its process ends. The main type is
//! [`RunDir`].

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// Prefix of the names of run directories.
const PREFIX: &str = "wg-";

/// A directory that only this process uses. It is deleted when this value is dropped. If the
/// process is killed, the next process deletes the directory: the lock is then free, which shows
/// that its owner has died.
pub(super) struct RunDir {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl RunDir {
    /// Creates a run directory in `parent`, and removes directories of dead processes.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(super) fn enter(parent: &Path) -> io::Result<Self> {
        warpgauge_private_files::directory(parent)
            .map_err(warpgauge_private_files::PrivateError::into_io)?;
        remove_dead(parent);
        let name = format!("{PREFIX}{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let (path, lock_path) = (parent.join(&name), lock_of(parent, &name));
        // The lock comes first, so no process sees the directory without a held lock.
        let lock = warpgauge_private_files::new_file(&lock_path)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let directory = Self { path, lock_path, _lock: lock };
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().mode(0o700).create(&directory.path)?;
        Ok(directory)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a run directory cannot be removed");
        }
        // The lock file has only a few bytes. If it cannot be removed, the next process removes it.
        let _ = std::fs::remove_file(&self.lock_path);
    }
}

fn lock_of(parent: &Path, name: &str) -> PathBuf {
    parent.join(format!("{name}.lock"))
}

/// Removes directories of dead processes. If a directory cannot be removed, the next process tries
/// again.
fn remove_dead(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if name.ends_with(".lock") {
            continue;
        }
        let lock_path = lock_of(parent, name);
        let Ok(lock) = File::open(&lock_path) else { continue };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = std::fs::remove_dir_all(entry.path());
            let _ = std::fs::remove_file(&lock_path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_the_dead_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let names = || std::fs::read_dir(parent.path()).unwrap().count();
        let living = RunDir::enter(parent.path()).unwrap();
        // A killed process leaves both the directory and the lock file, and the lock is free.
        std::fs::create_dir(parent.path().join("wg-dead")).unwrap();
        std::fs::write(parent.path().join("wg-dead/file"), b"x").unwrap();
        File::create(lock_of(parent.path(), "wg-dead")).unwrap();
        let second = RunDir::enter(parent.path()).unwrap();
        assert!(living.path().is_dir() && second.path().is_dir());
        assert_eq!(names(), 4, "two directories and their locks");
        drop((living, second));
        assert_eq!(names(), 0);
    }
}
