//! The memory of a runner, as the judge reads and writes it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Where a submission's tensors are. Addresses come from the submission: those that are not its own, or
/// not there, are errors.
pub trait SubmissionMemory {
    /// Fills `out` with what is at an address.
    ///
    /// # Errors
    /// There is no such memory.
    fn read(&self, address: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes at an address.
    ///
    /// # Errors
    /// There is no such memory.
    fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()>;
}

/// The memory of another process of this user, or of a descendant, through `/proc/…/mem`.
#[derive(Debug)]
pub struct ProcessMemory(File);

impl ProcessMemory {
    /// That of a file which [`Self::of`] has opened.
    pub(crate) fn opened(file: File) -> Self {
        Self(file)
    }

    /// Opens that of a process: whoever holds the file can read and write there.
    ///
    /// # Errors
    /// It is gone, or the system does not let us.
    pub(crate) fn of(process: i32) -> io::Result<File> {
        let path = format!("/proc/{process}/mem");
        let opened = File::options().read(true).write(true).open(path);
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => io::Error::new(
                error.kind(),
                "this system does not let a process look into those that it started; set \
                 kernel.yama.ptrace_scope to 0 or 1",
            ),
            _ => error,
        })
    }
}

impl SubmissionMemory for ProcessMemory {
    fn read(&self, address: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, address)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, address)
    }
}
