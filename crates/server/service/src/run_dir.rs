//! Directories of processes: what they need while they live, and nobody afterwards.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// What names of run directories begin with.
const PREFIX: &str = "wg-";

/// A directory that only this process uses and that goes with it. One that was left behind, because its
/// process was killed, goes when the next process enters: whose lock is free is dead.
pub(super) struct RunDir {
    path: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl RunDir {
    /// Makes one in `parent`, and removes those of the dead.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn enter(parent: &Path) -> io::Result<Self> {
        warpgauge_private_files::directory(parent)
            .map_err(warpgauge_private_files::PrivateError::into_io)?;
        remove_dead(parent);
        let name = format!("{PREFIX}{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        let (path, lock_path) = (parent.join(&name), lock_of(parent, &name));
        // Locked before the directory is there: nobody sees it without its lock held.
        let lock = warpgauge_private_files::new_file(&lock_path)?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let directory = Self { path, lock_path, _lock: lock };
        use std::os::unix::fs::DirBuilderExt;
        std::fs::DirBuilder::new().mode(0o700).create(&directory.path)?;
        Ok(directory)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a run directory cannot be removed");
        }
        // A few bytes; the next process tries again.
        let _ = std::fs::remove_file(&self.lock_path);
    }
}

fn lock_of(parent: &Path, name: &str) -> PathBuf {
    parent.join(format!("{name}.lock"))
}

/// Removes directories whose process is gone. What cannot be removed stays for the next one.
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
        // A process that was killed leaves both, and its lock is free.
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
