//! Files of memory that processes share, in one directory. Those of others may be in a further one.
//!
//! A process may be confined so that it opens no file of another's `/proc` entry and no socket, but
//! most have a directory that they may write to. There a file is made when a handle is asked for,
//! and not before. Its name is a random number of 128 bits, which the handle says; nothing of a
//! handle is ever used as a path. The file is of mode 0600 and as long as its contents.
//!
//! Who made a file holds a lock on its first byte for as long as it lives, whatever ends it, so
//! that others can tell: the first who uses the directory removes the files of the dead. Files are
//! removed when what they hold is released, and when the process ends by `exit`. What is mapped
//! stays mapped.
//!
//! The directory's owner is trusted: whoever may write to it can cut a file short under those who
//! have mapped it, which ends them. So it must belong to this user, and be nobody else's to write to.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, OnceLock};

use crate::driver::c::entry::lock;

/// Names the directory.
const VARIABLE: &str = "WARPGAUGE_EMULATOR_IPC_DIR";
/// Names another one, in which files are opened and none is made.
const OTHER_VARIABLE: &str = "WARPGAUGE_EMULATOR_IPC_OTHER_DIR";
/// How many names are tried for a new file. A second is needed if the first was swept away while
/// it was made; more, if the random numbers are none.
const ATTEMPTS: u32 = 8;
/// The most entries of the directory that are looked at for what the dead left.
const SWEPT: usize = 4096;
/// The byte of a file that its maker locks.
const MAKER: u8 = 0;

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Content {
    Memory,
    Event,
}

/// A file of the directory: what is in it, and its random number.
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
        // The kernel answers requests of up to 256 bytes wholly, once it has been seeded.
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

    /// The name that a file has, if it is one of ours.
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

/// The files that this process has made and not removed.
static MADE: Mutex<BTreeSet<(Name, PathBuf)>> = Mutex::new(BTreeSet::new());

/// Removes what is left when the process exits; a child of `fork` that exits leaves it alone.
extern "C" fn remove_all() {
    static MAKER: OnceLock<u32> = OnceLock::new();
    let own = std::process::id();
    if *MAKER.get_or_init(|| own) == own {
        for (_, path) in lock(&MADE).iter() {
            // At the end of a process there is nobody to tell.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A file that this process made. Removed, but not unmapped, when it is dropped.
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
            // What somebody else removed is gone, which is what was wanted.
            let _ = std::fs::remove_file(&self.path);
            lock(&MADE).remove(&(self.name, std::mem::take(&mut self.path)));
        }
    }
}

/// Whether this process made the file of a name.
pub fn made_here(name: Name) -> bool {
    let made = lock(&MADE);
    made.range((name, PathBuf::new())..).next().is_some_and(|(other, _)| *other == name)
}

/// Where the files are.
pub struct Directory {
    /// From the environment.
    given: Option<PathBuf>,
    ready: OnceLock<PathBuf>,
    /// Where files of others are, too.
    other: Option<PathBuf>,
}

impl Directory {
    /// The directory that the environment names, or the default. Nothing is opened or made.
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

    /// A given directory.
    #[cfg(test)]
    pub fn at(path: &Path) -> Self {
        Directory { given: Some(path.to_owned()), ready: OnceLock::new(), other: None }
    }

    /// The path, after the directory was found fit. The first call removes what the dead left.
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

    /// Makes an empty file that holds something, and may become `bytes` bytes long.
    pub fn create(&self, content: Content, bytes: u64) -> io::Result<Segment> {
        static AT_EXIT: Once = Once::new();
        let directory = self.path()?;
        if bytes > largest_file() {
            // Whoever writes beyond the limit is ended by a signal.
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
                // SAFETY: the function is of this library, which stays loaded. Without room for it,
                // which there always is, the files stay until they are swept.
                unsafe { libc::atexit(remove_all) };
            });
            // Another process may look for what the dead left just now, and take it for that.
            if hold(&made.file, MAKER)? && made.file.metadata()?.nlink() > 0 {
                return Ok(made);
            }
        }
        Err(Error::from(ErrorKind::AlreadyExists))
    }

    /// Opens a file that another process made and that is `bytes` bytes long.
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

/// Opens an existing file for reading and writing if it is one, of this user, closed to others.
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

/// How long a file of this process may become.
fn largest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } {
        0 => limit.rlim_cur,
        _ => u64::MAX,
    }
}

/// A directory of this user, where the user's sessions or temporary files are. Made if needed.
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
    // Not through a link: somebody else might have made it.
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

/// Removes the files whose makers have ended.
fn sweep(directory: &Path) {
    // What cannot be looked at stays, and is in nobody's way.
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.take(SWEPT) {
        if entry.file_name().to_str().and_then(Name::parse).is_none() {
            continue;
        }
        // One that cannot be opened is no file of ours, or has just gone.
        let Ok(file) = open_own(&entry.path()) else { continue };
        if hold(&file, MAKER).unwrap_or(false) {
            // Somebody else may have been quicker.
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

/// Locks a byte of a file until the file is closed, which the end of the process does; false if
/// somebody has locked it.
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

/// Whether somebody else who has opened the file has locked a byte of it.
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
        // What a link of that name leads to is not opened.
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
