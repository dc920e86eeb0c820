//! The memory of a runner, which the judge reads and writes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The memory that holds a submission's tensors. Addresses come from the submission. An address
/// outside its memory is an error.
pub trait SubmissionMemory {
    /// Fills `out` with the bytes at an address.
    ///
    /// # Errors
    /// Fails if the address is not mapped.
    fn read(&self, address: u64, out: &mut [u8]) -> io::Result<()>;

    /// Writes bytes at an address.
    ///
    /// # Errors
    /// Fails if the address is not mapped.
    fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()>;
}

/// The memory of another process of this user, or of a descendant, through `/proc/…/mem`.
#[derive(Debug)]
pub struct ProcessMemory(File);

impl ProcessMemory {
    /// Wraps a file that [`Self::of`] has opened.
    pub(crate) fn opened(file: File) -> Self {
        Self(file)
    }

    /// Opens the memory of a process. Every holder of the file can read and write the memory.
    ///
    /// # Errors
    /// Fails if the process has ended or the system denies access.
    pub(crate) fn of(process: i32) -> io::Result<File> {
        let path = format!("/proc/{process}/mem");
        let opened = File::options().read(true).write(true).open(path);
        opened.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => io::Error::new(
                error.kind(),
                "this system does not let a process access the memory of its child processes; set \
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
