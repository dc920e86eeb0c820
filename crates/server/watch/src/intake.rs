//! Reads submitted files. A file that changes while it is read is not accepted. The main function
//! is [`take`].

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::evaluator::FileRejection;

/// Maximum size of a source file, bytes.
pub(crate) const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// Maximum size of a file with machine code, bytes.
pub(crate) const MAX_BINARY_BYTES: u64 = 64 << 20;

/// Version of a file. It changes when the file is rewritten or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Version {
    inode: u64,
    bytes: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Version {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            bytes: metadata.size(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        }
    }

    /// Returns the current version of the file at a path. Symbolic links are not followed.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path).ok().map(|metadata| Self::of(&metadata))
    }
}

/// Result of reading a file.
#[derive(Debug)]
pub(crate) enum Taken {
    /// The file's content.
    Read(Version, Vec<u8>),
    /// The file exists but cannot be accepted.
    Refused(Version, FileRejection),
    /// The file no longer exists.
    Gone,
    /// The file changed while it was read.
    Changing,
}

/// Reads the file `name` in a directory. Symbolic links are not followed.
pub(crate) fn take(directory: &Path, name: &OsStr, limit: u64) -> io::Result<Taken> {
    let path = directory.join(name);
    let metadata = match fs::symlink_metadata(&path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
        Err(error) => return Err(error),
    };
    let version = Version::of(&metadata);
    if metadata.is_dir() {
        // A directory is not a submission, and must not be removed.
        return Ok(Taken::Gone);
    }
    if metadata.is_symlink() {
        return Ok(Taken::Refused(
            version,
            FileRejection::new(
                "symbolic_link",
                "the file is a symbolic link, which is not followed: put a copy of the kernel into the folder",
            ),
        ));
    }
    if !metadata.is_file() {
        return Ok(Taken::Refused(
            version,
            FileRejection::new(
                "not_a_file",
                "this is a pipe, a socket or a device, not a regular file: put the kernel into a file",
            ),
        ));
    }
    if metadata.size() > limit {
        return Ok(Taken::Refused(
            version,
            FileRejection::new(
                "file_too_large",
                format!("the file has {} bytes; at most {limit} are accepted", metadata.size()),
            ),
        ));
    }
    // If the file has become a pipe, the call does not wait for a writer.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file =
        match OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let message = "the watcher has no permission to read the file: grant it";
                return Ok(Taken::Refused(version, FileRejection::new("not_readable", message)));
            }
            Err(_) if Version::at(&path) != Some(version) => return Ok(Taken::Changing),
            Err(error) => return Err(error),
        };
    read(&file, version, limit)
}

fn read(file: &File, version: Version, limit: u64) -> io::Result<Taken> {
    let before = file.metadata()?;
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    let same = Version::of(&before) == version
        && Version::of(&file.metadata()?) == version
        && content.len() as u64 == version.bytes;
    Ok(if same { Taken::Read(version, content) } else { Taken::Changing })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plain_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("a.cu"), "code").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", at("l.cu")).unwrap();
        fs::create_dir(at("d.cu")).unwrap();
        File::create(at("big.cu")).unwrap().set_len(1 << 30).unwrap();
        let code = |name: &str| match take(directory.path(), OsStr::new(name), 100).unwrap() {
            Taken::Read(_, content) => String::from_utf8(content).unwrap(),
            Taken::Refused(_, refusal) => refusal.code,
            Taken::Gone => "gone".to_owned(),
            Taken::Changing => "changing".to_owned(),
        };
        let names = ["a.cu", "l.cu", "d.cu", "big.cu", "none.cu"];
        assert_eq!(names.map(code), ["code", "symbolic_link", "gone", "file_too_large", "gone"]);
    }
}
