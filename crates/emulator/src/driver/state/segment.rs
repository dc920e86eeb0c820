//! Files of memory that processes share, in one directory. A second directory may contain files of
//! other processes.
//!
//! A confined process may have no access to other processes' `/proc` entries and to sockets, but
//! most processes have a directory that they may write to. A file is created there only when a
//! handle is requested. Its name is a random number of 128 bits, which the handle contains; no part
//! of a handle is ever used as a path. The file has mode 0600 and the length of its contents.
//!
//! The process that creates a file locks its first byte. The lock ends with the process, however it
//! ends, so that other processes can detect that. The first call in each process that uses the
//! directory removes the files of dead processes. Files are removed when their contents are
//! released, and when the process ends by `exit`. Existing mappings stay valid.
//!
//! All processes of the directory's owner are trusted: a process that may write to the directory
//! can truncate a file that others have mapped, which kills them. The directory must therefore
//! belong to this user, and no other user may have write permission.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, OnceLock};

use crate::driver::c::entry::lock;

/// Environment variable that names the directory.
const VARIABLE: &str = "WARPGAUGE_EMULATOR_IPC_DIR";
/// Environment variable that names a second directory, in which files are only opened.
const OTHER_VARIABLE: &str = "WARPGAUGE_EMULATOR_IPC_OTHER_DIR";
/// Maximum number of names tried for a new file. A second attempt is needed if another process
/// swept the first file during its creation. Further attempts are needed only if the random numbers
/// repeat.
const ATTEMPTS: u32 = 8;
/// Maximum number of directory entries examined for files of dead processes.
const SWEPT: usize = 4096;
/// The byte of a file that its creator locks.
const MAKER: u8 = 0;

/// The kind of data that a file contains.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Content {
    Memory,
    Event,
}

/// Name of a file: the kind of its content, and its random number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    pub content: Content,
    pub number: u128,
}

impl Name {
    fn random(content: Content) -> io::Result<Self> {
        let mut bytes = [0u8; 16];
        // SAFETY: the buffer is ours and 16 bytes long.
        let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        // Once seeded, the kernel fulfils requests of up to 256 bytes completely.
        if got != bytes.len() as isize {
            return Err(Error::last_os_error());
        }
        Ok(Name { content, number: u128::from_le_bytes(bytes) })
    }

    fn file(self) -> String {
        let prefix = match self.content {
            Content::Memory => "memory",
            Content::Event => "event",
        };
        format!("{prefix}-{:032x}", self.number)
    }

    /// Parses a file name. Returns `None` if it does not have this format.
    fn parse(file: &str) -> Option<Self> {
        let (prefix, digits) = file.split_once('-')?;
        let content = match prefix {
            "memory" => Content::Memory,
            "event" => Content::Event,
            _ => return None,
        };
        let number = u128::from_str_radix(digits, 16).ok()?;
        Some(Name { content, number }).filter(|name| name.file() == file)
    }
}

/// The files that this process has created and not yet removed.
static MADE: Mutex<BTreeSet<(Name, PathBuf)>> = Mutex::new(BTreeSet::new());

/// Removes the remaining files when the process exits. A forked child that exits removes no file.
extern "C" fn remove_all() {
    static MAKER: OnceLock<u32> = OnceLock::new();
    let own = std::process::id();
    if *MAKER.get_or_init(|| own) == own {
        for (_, path) in lock(&MADE).iter() {
            // At the end of a process an error cannot be reported.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A file that this process created. Dropping it removes the file, but does not unmap it.
#[derive(Debug)]
pub struct Segment {
    pub name: Name,
    pub file: File,
    path: PathBuf,
    process: u32,
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // An error means that another process has removed the file.
            let _ = std::fs::remove_file(&self.path);
            lock(&MADE).remove(&(self.name, std::mem::take(&mut self.path)));
        }
    }
}

/// Returns whether this process created the file with a name.
pub fn made_here(name: Name) -> bool {
    let made = lock(&MADE);
    made.range((name, PathBuf::new())..).next().is_some_and(|(other, _)| *other == name)
}

/// The directory of the shared files.
pub struct Directory {
    /// The path that the environment specifies, if it does.
    given: Option<PathBuf>,
    ready: OnceLock<PathBuf>,
    /// The second directory, with files of other processes.
    other: Option<PathBuf>,
}

impl Directory {
    /// Returns the directory from the environment, or the default. Does not open or create
    /// anything.
    pub fn from_environment() -> Result<Self, String> {
        let path_of = |variable: &str| {
            let path = std::env::var_os(variable).map(PathBuf::from);
            match path.as_ref().filter(|path| !path.is_absolute()) {
                Some(path) => {
                    Err(format!("{variable}={}: expected an absolute path", path.display()))
                }
                None => Ok(path),
            }
        };
        let (given, other) = (path_of(VARIABLE)?, path_of(OTHER_VARIABLE)?);
        Ok(Directory { given, ready: OnceLock::new(), other })
    }

    /// Returns the description of the directory at `path`.
    #[cfg(test)]
    pub fn at(path: &Path) -> Self {
        Directory { given: Some(path.to_owned()), ready: OnceLock::new(), other: None }
    }

    /// Returns the path, after checking that the directory is suitable. The first call removes
    /// files of dead processes.
    fn path(&self) -> io::Result<&Path> {
        if let Some(path) = self.ready.get() {
            return Ok(path);
        }
        let path = match &self.given {
            Some(path) => path.clone(),
            None => default_directory()?,
        };
        check_directory(&path)?;
        sweep(&path);
        Ok(self.ready.get_or_init(|| path))
    }

    /// Creates an empty file whose contents will have `bytes` bytes.
    pub fn create(&self, content: Content, bytes: u64) -> io::Result<Segment> {
        static AT_EXIT: Once = Once::new();
        let directory = self.path()?;
        if bytes > largest_file() {
            // A process that writes beyond the limit is killed by a signal.
            return Err(Error::from(ErrorKind::FileTooLarge));
        }
        for _ in 0..ATTEMPTS {
            let name = Name::random(content)?;
            let path = directory.join(name.file());
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(0o600);
            let file = match options.open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                answer => answer?,
            };
            lock(&MADE).insert((name, path.clone()));
            let made = Segment { name, file, path, process: std::process::id() };
            AT_EXIT.call_once(|| {
                // SAFETY: the function belongs to this library, which stays loaded. If registering
                // it fails, which should not happen, the files stay until they are swept.
                unsafe { libc::atexit(remove_all) };
            });
            // Another process that is sweeping now may take the file for one of a dead process.
            if hold(&made.file, MAKER)? && made.file.metadata()?.nlink() > 0 {
                return Ok(made);
            }
        }
        Err(Error::from(ErrorKind::AlreadyExists))
    }

    /// Opens a file of `bytes` bytes that another process created.
    pub fn open(&self, name: Name, bytes: u64) -> io::Result<File> {
        let here = open_own(&self.path()?.join(name.file()));
        let file = match (here, &self.other) {
            (Err(error), Some(other)) if error.kind() == ErrorKind::NotFound => {
                check_directory(other)?;
                open_own(&other.join(name.file()))
            }
            (here, _) => here,
        }?;
        if file.metadata()?.len() != bytes {
            return Err(Error::from(ErrorKind::InvalidData));
        }
        Ok(file)
    }
}

/// Opens an existing file for reading and writing. It must be a regular file that belongs to this
/// user and that others cannot access.
fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    let known = file.metadata()?;
    if !known.is_file() || known.uid() != own_user() || known.mode() & 0o077 != 0 {
        return Err(Error::from(ErrorKind::PermissionDenied));
    }
    Ok(file)
}

fn own_user() -> u32 {
    // SAFETY: the call has no conditions.
    unsafe { libc::geteuid() }
}

/// Returns the maximum size of a file that this process may write, bytes.
fn largest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } {
        0 => limit.rlim_cur,
        _ => u64::MAX,
    }
}

/// Returns a directory of this user in `XDG_RUNTIME_DIR` or the temporary directory. Creates it if
/// needed.
fn default_directory() -> io::Result<PathBuf> {
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let session = session.filter(|path| path.is_absolute() && path.is_dir());
    let above = session.unwrap_or_else(std::env::temp_dir);
    let path = above.join(format!("warpgauge-emulator-{}", own_user()));
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(path),
    }
}

fn check_directory(path: &Path) -> io::Result<()> {
    let refused = |why: &str| Err(Error::new(ErrorKind::PermissionDenied, why));
    // Links are not followed: another user might have created one.
    let known = std::fs::symlink_metadata(path)?;
    if !known.is_dir() {
        return Err(Error::from(ErrorKind::NotADirectory));
    }
    if known.uid() != own_user() {
        return refused("the directory belongs to another user");
    }
    if known.mode() & 0o022 != 0 {
        return refused("others may write to the directory");
    }
    Ok(())
}

/// Removes the files whose creators have ended.
fn sweep(directory: &Path) {
    // Files that cannot be examined stay, which is harmless.
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.take(SWEPT) {
        if entry.file_name().to_str().and_then(Name::parse).is_none() {
            continue;
        }
        // A file that cannot be opened was not created by this library, or was just removed.
        let Ok(file) = open_own(&entry.path()) else { continue };
        if hold(&file, MAKER).unwrap_or(false) {
            // Another process may have removed it first.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn byte(index: u8) -> libc::flock {
    // SAFETY: all fields of the structure may be zero.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = libc::F_WRLCK as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = libc::off_t::from(index);
    range.l_len = 1;
    range
}

/// Locks a byte of a file until the file is closed or the process ends. Returns false if the byte
/// is already locked.
pub fn hold(file: &File, index: u8) -> io::Result<bool> {
    let range = byte(index);
    // SAFETY: the descriptor is open, and the structure is ours.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &range) } == 0 {
        return Ok(true);
    }
    let error = Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}

/// Returns whether another process that opened the file has locked a byte of it.
pub fn held(file: &File, index: u8) -> bool {
    let mut range = byte(index);
    // SAFETY: the descriptor is open, and the structure is ours and written to.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut range) };
    answer == 0 && i32::from(range.l_type) != libc::F_UNLCK
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn files(path: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_lives_as_long_as_its_segment() {
        let home = tempfile::tempdir().unwrap();
        let made = Directory::at(home.path()).create(Content::Memory, 100).unwrap();
        made.file.set_len(100).unwrap();
        assert!(made_here(made.name));
        assert_eq!(files(home.path()), [made.name.file()]);
        let other = Directory::at(home.path());
        assert!(other.open(made.name, 100).is_ok(), "it is not swept while its maker lives");
        for wrong in [0, 99, 101, u64::MAX] {
            assert!(other.open(made.name, wrong).is_err());
        }
        let event = Name { content: Content::Event, ..made.name };
        assert!(other.open(event, 100).is_err());
        let (name, at) = (made.name, made.path.clone());
        std::fs::set_permissions(&at, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(other.open(name, 100).is_err());
        drop(made);
        assert!(!made_here(name) && files(home.path()).is_empty());
        // A link with that name is not followed.
        std::fs::write(home.path().join("outside"), [0; 100]).unwrap();
        symlink(home.path().join("outside"), at).unwrap();
        assert!(other.open(name, 100).is_err());
    }

    #[test]
    fn what_is_not_here_is_opened_in_the_other_directory_which_stays_as_it_is() {
        let (home, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let made = Directory::at(there.path()).create(Content::Memory, 100).unwrap();
        made.file.set_len(100).unwrap();
        assert!(Directory::at(home.path()).open(made.name, 100).is_err());
        let dead = Name { content: Content::Memory, number: 7 }.file();
        std::fs::write(there.path().join(&dead), []).unwrap();
        let both = Directory { other: Some(there.path().to_owned()), ..Directory::at(home.path()) };
        assert!(both.open(made.name, 100).is_ok() && both.open(made.name, 99).is_err());
        let own = both.create(Content::Memory, 50).unwrap();
        assert_eq!(files(home.path()), [own.name.file()]);
        assert!(there.path().join(&dead).exists(), "it is swept by its own");
        std::fs::set_permissions(there.path(), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(both.open(made.name, 100).is_err());
    }

    #[test]
    fn what_the_dead_left_is_swept_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let living = Directory::at(home.path()).create(Content::Event, 100).unwrap();
        let dead = Name { content: Content::Memory, number: 7 }.file();
        for name in [dead.as_str(), "memory-7", "notes.txt"] {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            options.open(home.path().join(name)).unwrap();
        }
        Directory::at(home.path()).path().unwrap();
        let mut left = files(home.path());
        left.sort();
        assert_eq!(left, [living.name.file(), "memory-7".into(), "notes.txt".into()]);
    }

    #[test]
    fn directories_that_others_may_write_to_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let inner = home.path().join("open");
        std::fs::create_dir(&inner).unwrap();
        std::fs::set_permissions(&inner, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(Directory::at(&inner).create(Content::Memory, 100).is_err());
        let link = home.path().join("link");
        symlink(home.path(), &link).unwrap();
        assert!(Directory::at(&link).create(Content::Memory, 100).is_err());
        assert!(Directory::at(&home.path().join("missing")).create(Content::Memory, 100).is_err());
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let name = Name { content: Content::Event, number: u128::MAX / 3 };
        assert_eq!(Name::parse(&name.file()), Some(name));
        for other in ["event-5", "event-+0000000000000000000000000000005", "memory", "x-00"] {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
