//! Errors of files in the reader's words: what is wrong, and what to do.

use std::io::{Error, ErrorKind};

/// Number of Linux's error for symbolic links that lead in a circle.
const TOO_MANY_LINKS: i32 = 40;

/// Returns the meaning of an error of reading a file, or of writing one. `None` if the system's words are all that is
/// known.
pub(super) fn of(error: &Error, writes: bool) -> Option<&'static str> {
    if error.raw_os_error() == Some(TOO_MANY_LINKS) {
        return Some("its symbolic links lead in a circle; name the file itself");
    }
    Some(match error.kind() {
        ErrorKind::NotFound if writes => {
            "a folder of the path does not exist; create it, or name another place"
        }
        ErrorKind::NotFound => "there is no such file; check the path",
        ErrorKind::PermissionDenied => {
            "this user may not; check the permissions of the file and of its folders"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "the file system is mounted read-only; name a place elsewhere"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "no space is left; free some, or name a place elsewhere"
        }
        ErrorKind::IsADirectory => "it is a folder; name a file",
        ErrorKind::NotADirectory => "a part of the path is a file, where a folder is needed",
        ErrorKind::AlreadyExists => "something else has that name already; choose another one",
        ErrorKind::InvalidFilename => "the name is too long, or the file system cannot have it",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_files_have_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink("circle", at("circle")).unwrap();
        let write = |name: &str| of(&std::fs::write(at(name), "x").unwrap_err(), true);
        assert!(write("missing/x").unwrap().contains("create it"));
        assert!(write("file/x").unwrap().contains("is a file"));
        assert!(write(".").unwrap().contains("is a folder"));
        assert!(write("circle").unwrap().contains("in a circle"));
        assert!(write(&"x".repeat(300)).unwrap().contains("too long"));
        let read = of(&std::fs::read(at("missing")).unwrap_err(), false);
        assert!(read.unwrap().contains("no such file"));
        assert_eq!(of(&Error::other("odd"), true), None);
    }
}
