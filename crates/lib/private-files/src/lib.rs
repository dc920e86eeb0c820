//! Directories and files that nobody but this user may look into, whatever the umask says.
//!
//! The data directory holds what strangers sent, what came of it and, in the compile cache, code that is
//! run without being compiled again. Who could write there could plant code; who could read there would
//! read the kernels of others.

#![forbid(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../../tests/support/needs.rs"]
mod needs;

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode of a private directory.
const DIRECTORY_MODE: u32 = 0o700;

/// Mode of a private file.
const FILE_MODE: u32 = 0o600;

/// Bits of a mode that let others in, and those of them that let others write.
const OPEN: u32 = 0o077;
const WRITABLE: u32 = 0o022;

/// Entries that a file system or an account brings along.
const NOBODYS: [&str; 1] = ["lost+found"];

/// Why a directory cannot be private.
#[derive(Debug, thiserror::Error)]
pub enum PrivateError {
    /// The system refuses.
    #[error("could not {operation} {}", path.display())]
    System {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is another user's, who could change what is in it.
    #[error(
        "{} belongs to user {owner}, and this program runs as user {user}: who owns it can change what \
         is in it; name another directory, or give this one over (`chown -R {user}`)",
        path.display()
    )]
    Anothers {
        /// What.
        path: PathBuf,
        /// Whose, as a number.
        owner: u32,
        /// Ours.
        user: u32,
    },
    /// Others may write to it, and keep things there.
    #[error(
        "others may write to {}, and `{found}` in it is not warpgauge's: name a directory of its own, \
         or take the rights of others away (`chmod go-w`)",
        path.display()
    )]
    Shared {
        /// What.
        path: PathBuf,
        /// One of its entries.
        found: String,
    },
    /// Others may write to it, and it is not ours to change.
    #[error(
        "others may write to {}: take their rights away (`chmod go-w`), or name another directory",
        path.display()
    )]
    Writable {
        /// What.
        path: PathBuf,
    },
}

impl PrivateError {
    /// What the system said, where that is why.
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

/// Makes a directory that only this user may enter, with those above it. One that is there already is
/// closed to others.
///
/// # Errors
/// It cannot be made or closed, or belongs to another user.
pub fn directory(path: &Path) -> Result<(), PrivateError> {
    make(path)?;
    let metadata = path.metadata().map_err(system("look at", path))?;
    owned(path, &metadata)?;
    close(path, &metadata)
}

/// As [`directory`], for one that an operator names: it may have been there before, for other things
/// too. `ours`: names of entries that we put there. One that holds something else stays open to readers,
/// and is refused where others may write to it.
///
/// # Errors
/// As [`directory`]; others may write to it and it is not ours alone.
pub fn named_directory(path: &Path, ours: &[&str]) -> Result<(), PrivateError> {
    make(path)?;
    let metadata = path.metadata().map_err(system("look at", path))?;
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
                %path, found, "others may look into the data directory, which holds more than ours"
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

/// Refuses what another user owns; root may do everything anyway.
fn owned(path: &Path, metadata: &Metadata) -> Result<(), PrivateError> {
    let (owner, user) = (metadata.uid(), rustix::process::geteuid().as_raw());
    if owner != user && owner != 0 {
        return Err(PrivateError::Anothers { path: path.to_owned(), owner, user });
    }
    Ok(())
}

/// Takes the rights of others away.
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
        // Root's, who lets a group of ours in: who is in it is root's to say.
        Err(error)
            if error.kind() == io::ErrorKind::PermissionDenied
                && metadata.uid() == 0
                && mode & 0o002 == 0 =>
        {
            tracing::warn!(path = %path.display(), "open to a group, by root");
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && mode & WRITABLE != 0 => {
            Err(PrivateError::Writable { path: path.to_owned() })
        }
        Err(error) => Err(system("close to other users", path)(error)),
    }
}

/// An entry that neither we nor the system put there. What begins with a dot is an account's.
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

/// Makes an empty file that only this user may read, or closes the one that is there.
///
/// # Errors
/// It cannot be made or closed, or belongs to another user.
pub fn file(path: &Path) -> Result<(), PrivateError> {
    match options().create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => existing_file(path),
        Err(error) => Err(system("create", path)(error)),
    }
}

/// Closes a file to others, if it is there.
///
/// # Errors
/// It cannot be closed, or belongs to another user.
pub fn existing_file(path: &Path) -> Result<(), PrivateError> {
    match path.metadata() {
        Ok(metadata) => {
            owned(path, &metadata)?;
            close(path, &metadata)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(system("look at", path)(error)),
    }
}

/// Creates a new file that only this user may read.
///
/// # Errors
/// It is there already, or cannot be made.
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
