//! Directories and files that only the current user may access, regardless of the umask.
//!
//! The data directory contains other people's requests, their results and, in the compile cache,
//! code that runs without being compiled again. A user with write access could insert code, and a
//! user with read access could read other users' kernels.

#![forbid(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../../tests/support/needs.rs"]
mod needs;

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The mode of a private directory.
const DIRECTORY_MODE: u32 = 0o700;

/// The mode of a private file.
const FILE_MODE: u32 = 0o600;

/// The mode bits that grant any access to other users, and the bits that grant write access.
const OPEN: u32 = 0o077;
const WRITABLE: u32 = 0o022;

/// Names of entries that a file system creates itself.
const NOBODYS: [&str; 1] = ["lost+found"];

/// Reasons why a directory or file cannot be private.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// A system call failed.
    #[error("could not {operation} {}", path.display())]
    System {
        /// The operation that was attempted.
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The path belongs to another user, who could change its content.
    #[error(
        "{} belongs to user {owner}, but this program runs as user {user}: the owner can change its \
         content; use another directory, or change its owner (`chown -R {user}`)",
        path.display()
    )]
    Anothers {
        path: PathBuf,
        /// The user id of the owner.
        owner: u32,
        /// The id of the user that runs this process.
        user: u32,
    },
    /// Other users may write to the directory, and it contains entries of other programs.
    #[error(
        "other users may write to {}, and it contains `{found}`, which is not warpgauge's: use a \
         separate directory, or remove their permissions (`chmod go-w`)",
        path.display()
    )]
    Shared {
        path: PathBuf,
        /// The name of one of these entries.
        found: String,
    },
    /// Other users may write to the path, and this process may not change its mode.
    #[error(
        "other users may write to {}: remove their permissions (`chmod go-w`), or use another directory",
        path.display()
    )]
    Writable { path: PathBuf },
}

impl PrivateError {
    /// Returns the system's error, or a permission error for the other reasons.
    pub fn into_io(self) -> io::Error {
        match self {
            Self::System { source, .. } => source,
            other => io::Error::new(io::ErrorKind::PermissionDenied, other),
        }
    }
}

fn system<'p>(
    operation: &'static str,
    path: &'p Path,
) -> impl FnOnce(io::Error) -> PrivateError + 'p {
    move |source| PrivateError::System { operation, path: path.to_owned(), source }
}

/// Creates a directory that only the current user may access, including its parents. If the
/// directory exists, the access of other users is removed.
///
/// # Errors
/// The directory cannot be created, the access of other users cannot be removed, or the directory
/// belongs to another user.
pub fn directory(path: &Path) -> Result<(), PrivateError> {
    make(path)?;
    let metadata = path.metadata().map_err(system("read the owner of", path))?;
    owned(path, &metadata)?;
    close(path, &metadata)
}

/// Creates a private directory like [`directory`], at a path that the operator chose. The directory
/// may already exist and serve other purposes. `ours` contains the names of warpgauge's entries. A
/// directory with other entries remains readable for other users, and is refused if they may write
/// to it.
///
/// # Errors
/// The errors of [`directory`], or a directory with other entries to which other users may write.
pub fn named_directory(path: &Path, ours: &[&str]) -> Result<(), PrivateError> {
    make(path)?;
    let metadata = path.metadata().map_err(system("read the owner of", path))?;
    owned(path, &metadata)?;
    if metadata.mode() & OPEN == 0 {
        return Ok(());
    }
    match foreign_entry(path, ours)? {
        None => close(path, &metadata),
        Some(found) if metadata.mode() & WRITABLE != 0 => {
            Err(PrivateError::Shared { path: path.to_owned(), found })
        }
        Some(found) => {
            let path = path.display();
            tracing::warn!(
                %path, found, "other users may read the data directory, which also contains other files"
            );
            Ok(())
        }
    }
}

fn make(path: &Path) -> Result<(), PrivateError> {
    if path.is_dir() {
        return Ok(());
    }
    let made = std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path);
    made.map_err(system("create", path))
}

/// Refuses files and directories of other users, except root, which has access anyway.
fn owned(path: &Path, metadata: &Metadata) -> Result<(), PrivateError> {
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != user && owner != 0 {
        return Err(PrivateError::Anothers { path: path.to_owned(), owner, user });
    }
    Ok(())
}

/// Removes the access of other users.
fn close(path: &Path, metadata: &Metadata) -> Result<(), PrivateError> {
    let mode = metadata.mode() & 0o7777;
    if mode & OPEN == 0 {
        return Ok(());
    }
    let wanted = if metadata.is_dir() { DIRECTORY_MODE } else { FILE_MODE };
    match std::fs::set_permissions(path, Permissions::from_mode(wanted)) {
        Ok(()) => {
            let (path, before) = (path.display(), format!("{mode:o}"));
            tracing::info!(%path, before, "closed to other users");
            Ok(())
        }
        // Root owns the directory and grants access to a group that includes the current user. Root
        // decides who belongs to the group.
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && metadata.uid() == 0
                && mode & 0o002 == 0 =>
        {
            tracing::warn!(path = %path.display(), "root lets a group access this path");
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && mode & WRITABLE != 0 => {
            Err(PrivateError::Writable { path: path.to_owned() })
        }
        Err(error) => Err(system("remove other users' access to", path)(error)),
    }
}

/// Returns an entry that belongs neither to warpgauge nor to the system. Names that start with a
/// dot are accepted, since they belong to user accounts.
fn foreign_entry(path: &Path, ours: &[&str]) -> Result<Option<String>, PrivateError> {
    for entry in std::fs::read_dir(path).map_err(system("list", path))? {
        let name = entry.map_err(system("list", path))?.file_name();
        let name = name.to_string_lossy();
        let known = ours.contains(&&*name) || NOBODYS.contains(&&*name) || name.starts_with('.');
        if !known {
            return Ok(Some(name.into_owned()));
        }
    }
    Ok(None)
}

/// Creates an empty file that only the current user may access. If the file exists, the access of
/// other users is removed.
///
/// # Errors
/// The file cannot be created, the access of other users cannot be removed, or the file belongs to
/// another user.
pub fn file(path: &Path) -> Result<(), PrivateError> {
    match options().create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => existing_file(path),
        Err(error) => Err(system("create", path)(error)),
    }
}

/// Removes the access of other users to a file, if it exists.
///
/// # Errors
/// The access cannot be removed, or the file belongs to another user.
pub fn existing_file(path: &Path) -> Result<(), PrivateError> {
    match path.metadata() {
        Ok(metadata) => {
            owned(path, &metadata)?;
            close(path, &metadata)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(system("read the owner of", path)(error)),
    }
}

/// Creates a new file that only the current user may access.
///
/// # Errors
/// The file exists or cannot be created.
pub fn new_file(path: &Path) -> io::Result<File> {
    options().create_new(true).open(path)
}

fn options() -> OpenOptions {
    let mut options = File::options();
    options.write(true).mode(FILE_MODE);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o7777
    }

    fn open_to_all(path: &Path) {
        std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    }

    #[test]
    fn what_is_made_is_closed_and_what_was_open_becomes_so() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("a/b");
        directory(&inner).unwrap();
        assert_eq!((mode(&inner), mode(&place.path().join("a"))), (0o700, 0o700));
        let path = inner.join("file");
        file(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::write(&path, "kept").unwrap();
        for path in [&inner, &path] {
            open_to_all(path);
        }
        directory(&inner).unwrap();
        file(&path).unwrap();
        assert_eq!((mode(&inner), mode(&path)), (0o700, 0o600));
        assert_eq!(std::fs::read(&path).unwrap(), b"kept");
        existing_file(&inner.join("none")).unwrap();
        assert!(new_file(&path).is_err());
        let error = directory(Path::new("/proc/warpgauge")).unwrap_err();
        assert!(matches!(error, PrivateError::System { .. }), "{error}");
    }

    #[test]
    fn a_directory_with_the_things_of_others_is_not_changed() {
        let place = tempfile::tempdir().unwrap();
        for name in ["ours", ".profile", "lost+found"] {
            std::fs::write(place.path().join(name), "").unwrap();
        }
        open_to_all(place.path());
        named_directory(place.path(), &["ours"]).unwrap();
        assert_eq!(mode(place.path()), 0o700);
        std::fs::write(place.path().join("thesis.tex"), "").unwrap();
        open_to_all(place.path());
        let error = named_directory(place.path(), &["ours"]).unwrap_err();
        assert!(matches!(error, PrivateError::Shared { .. }), "{error}");
        assert!(error.to_string().contains("thesis.tex"), "{error}");
        assert_eq!(mode(place.path()), 0o777);
        std::fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
        named_directory(place.path(), &["ours"]).unwrap();
        assert_eq!(mode(place.path()), 0o755);
    }

    #[test]
    fn what_another_user_owns_is_refused() {
        needs!("root", rustix::process::geteuid().is_root());
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("theirs");
        std::fs::create_dir(&path).unwrap();
        std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
        for error in [directory(&path), named_directory(&path, &[])].map(Result::unwrap_err) {
            assert!(matches!(error, PrivateError::Anothers { owner: 12_345, .. }), "{error}");
        }
    }
}
