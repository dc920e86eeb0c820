//! Named sockets, for a worker that cannot inherit a socket because a tool runs between the server
//! and the worker.
//!
//! A socket's address has room for 107 bytes, which a private directory's path can exceed. Both
//! sides therefore open the directory, and name the socket relative to it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// Binds a socket. Any process that can enter its directory can connect.
pub(super) fn bind(path: &Path) -> io::Result<UnixListener> {
    let (_directory, short) = shorten(path)?;
    UnixListener::bind(short)
}

/// Connects to a socket.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let (_directory, short) = shorten(path)?;
    UnixStream::connect(short)
}

/// Returns a path through the open directory, which must stay open while the path is used.
fn shorten(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
    let (directory, name) = path.parent().zip(path.file_name()).ok_or_else(invalid)?;
    let directory =
        open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = in_open_directory(&directory, name);
    Ok((directory, short))
}

fn in_open_directory(directory: &OwnedFd, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_be_longer_than_an_address() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("d".repeat(200));
        std::fs::create_dir(&directory).unwrap();
        let path = directory.join("socket");
        let listener = bind(&path).unwrap();
        let ours = connect(&path).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        assert_eq!(ours.peer_addr().is_ok(), theirs.local_addr().is_ok());
        assert!(UnixListener::bind(&path).is_err(), "the test needs a path that is too long");
        assert!(connect(&directory.join("other")).is_err());
    }
}
