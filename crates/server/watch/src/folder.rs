//! The watched folder: its layout and its lock. The main type is [`Folder`].

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// Directory for the watcher's internal files, next to `kernels` and `results`.
const OWN: &str = ".warpgauge";

/// Maximum length of a result's name without `.json`, bytes. File systems allow 255 bytes for the
/// whole name.
const MAX_STEM: usize = 200;

/// Extension of the names of results.
const PLAIN: &str = ".json";
const SUFFIXED: &str = "_result.json";

/// Maximum wait for a lock that a child of a killed watcher may hold. A child inherits the lock and
/// holds it until it executes its program.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reason why a folder cannot be watched, or why an operation on it failed.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another process watches the folder.
    #[error(
        "{} is already watched by the process {holder}: a folder can have only one watcher; end that \
         process first, or name another folder", folder.display()
    )]
    Watched {
        folder: PathBuf,
        /// Process id in the lock file.
        holder: String,
    },
    /// A part of the folder is a symbolic link or not a directory.
    #[error(
        "{} is not a directory in the watched folder: its parts must be real directories, not \
         symbolic links", path.display()
    )]
    NotInside { path: PathBuf },
    #[error("could not {operation} {}", path.display())]
    Io { operation: &'static str, path: PathBuf, source: io::Error },
}

/// A watched folder. Only this process watches it.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    /// Ending of the names of results.
    ending: &'static str,
    /// The lock. The operating system releases it when the process ends, for whatever reason.
    _lock: File,
}

impl Folder {
    /// Creates the missing parts of the folder's layout, and locks the folder.
    ///
    /// # Errors
    /// [`FolderError`], for example if another process watches the folder.
    pub fn open(root: &Path) -> Result<Self, FolderError> {
        fs::create_dir_all(root).map_err(failed("make", root))?;
        let root = root.canonicalize().map_err(failed("find", root))?;
        let own = root.join(OWN);
        let all = ["kernels", "results"].map(|name| root.join(name));
        let below = ["jobs", "published", "ready", "gone"].map(|name| own.join(name));
        for path in all.iter().chain([&own]).chain(&below) {
            let private = path.starts_with(&own);
            let made = DirBuilder::new().mode(if private { 0o700 } else { 0o777 }).create(path);
            if let Err(error) = made
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(failed("make", path)(error));
            }
            if !fs::symlink_metadata(path).map_err(failed("look at", path))?.is_dir() {
                return Err(FolderError::NotInside { path: path.clone() });
            }
        }
        let lock = lock(&root, &own.join("lock"))?;
        Ok(Self { root, ending: PLAIN, _lock: lock })
    }

    /// Names results `NAME_result.json`, as KRAIT does.
    pub fn suffix_results(&mut self) {
        self.ending = SUFFIXED;
    }

    /// Returns whether results are written for KRAIT's backend.
    pub(crate) fn has_suffixed_results(&self) -> bool {
        self.ending == SUFFIXED
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of submitted kernels.
    pub fn kernels(&self) -> PathBuf {
        self.root.join("kernels")
    }

    /// Returns the directory of results.
    pub fn results(&self) -> PathBuf {
        self.root.join("results")
    }

    /// Returns the path of an internal file of the watcher.
    pub(crate) fn own(&self, below: &str, name: &str) -> PathBuf {
        self.root.join(OWN).join(below).join(name)
    }

    /// Returns the path of an internal directory of the watcher.
    pub(crate) fn own_directory(&self, below: &str) -> PathBuf {
        self.root.join(OWN).join(below)
    }

    /// Returns the path of the result for a file: `results/NAME.json` for `kernels/NAME.cu`. If
    /// that path already contains the result of a kernel with another extension, which was not
    /// collected yet, the path is `results/NAME.cu.json`.
    pub(crate) fn result_of(&self, name: &OsStr) -> PathBuf {
        let stem = Path::new(name).file_stem().unwrap_or(name);
        let short = self.results().join(with_ending(stem, self.ending));
        match subject_of(&short) {
            Some(other) if other != name.to_string_lossy() => {
                self.results().join(with_ending(name, self.ending))
            }
            _ => short,
        }
    }
}

/// Returns the name of the kernel file to which a result belongs.
fn subject_of(result: &Path) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct About {
        kernel_file: String,
    }
    if !fs::symlink_metadata(result).ok()?.is_file() {
        return None;
    }
    let text = fs::read(result).ok()?;
    serde_json::from_slice::<About>(&text).ok().map(|about| about.kernel_file)
}

fn with_ending(stem: &OsStr, ending: &str) -> OsString {
    let bytes = stem.as_bytes();
    let mut name = if bytes.len() <= MAX_STEM {
        bytes.to_vec()
    } else {
        let hash = blake3::hash(bytes).to_hex();
        [&bytes[..MAX_STEM - 17], b"-", &hash.as_bytes()[..16]].concat()
    };
    name.extend_from_slice(ending.as_bytes());
    OsString::from_vec(name)
}

fn lock(root: &Path, path: &Path) -> Result<File, FolderError> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .mode(0o600)
        .open(path)
        .map_err(failed("open", path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive).or_else(|error| wait(&file, error))
    {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut holder = String::new();
            let _ = (&file).take(20).read_to_string(&mut holder);
            let holder = holder.trim();
            let holder = if holder.is_empty() { "that holds its lock" } else { holder }.to_owned();
            return Err(FolderError::Watched { folder: root.to_owned(), holder });
        }
        Err(error) => return Err(failed("lock", path)(error.into())),
    }
    // The process id serves only for messages; the lock of the operating system decides.
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| write!(file, "{}", std::process::id()))
        .map_err(failed("write", path))?;
    Ok(file)
}

/// Waits at most [`PATIENCE`] for a lock that another process holds.
fn wait(file: &File, error: rustix::io::Errno) -> Result<(), rustix::io::Errno> {
    let Ok(shared) = file.try_clone() else { return Err(error) };
    if error != rustix::io::Errno::WOULDBLOCK {
        return Err(error);
    }
    let (sender, taken) = mpsc::sync_channel(0);
    // If the receiver was dropped before the thread obtains the lock, the thread releases the lock.
    std::thread::spawn(move || sender.send(flock(&shared, FlockOperation::LockExclusive)));
    taken.recv_timeout(PATIENCE).unwrap_or(Err(error))
}

/// Converts a file system error, and adds the operation that failed.
pub(crate) fn failed(
    operation: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Io { operation, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_watcher_a_folder() {
        let directory = tempfile::tempdir().unwrap();
        let first = Folder::open(directory.path()).unwrap();
        let second = Folder::open(directory.path()).unwrap_err();
        assert!(second.to_string().contains(&std::process::id().to_string()), "{second}");
        drop(first);
        Folder::open(directory.path()).unwrap();
    }

    #[test]
    fn a_link_out_of_the_folder_is_none_of_it() {
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/tmp", directory.path().join("kernels")).unwrap();
        assert!(matches!(Folder::open(directory.path()), Err(FolderError::NotInside { .. })));
    }

    #[test]
    fn results_of_files_with_one_stem_do_not_meet() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::open(directory.path()).unwrap();
        let name = |file: &str| folder.result_of(OsStr::new(file)).file_name().unwrap().to_owned();
        assert_eq!(name("a.cu"), "a.json");
        fs::write(folder.results().join("a.json"), r#"{"kernel_file": "a.ptx"}"#).unwrap();
        assert_eq!(name("a.cu"), "a.cu.json");
        assert_eq!(name("a.ptx"), "a.json");
        assert!(name(&format!("{}.cu", "x".repeat(250))).len() < 255);
    }

    #[test]
    fn results_are_named_as_krait_does_on_request() {
        let directory = tempfile::tempdir().unwrap();
        let mut folder = Folder::open(directory.path()).unwrap();
        folder.suffix_results();
        let name = |file: &str| folder.result_of(OsStr::new(file)).file_name().unwrap().to_owned();
        assert_eq!(name("kernel_17.cu"), "kernel_17_result.json");
        assert!(name(&format!("{}.cu", "x".repeat(250))).len() <= 255);
    }
}
