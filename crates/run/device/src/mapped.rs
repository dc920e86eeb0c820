//! Maps files of a job's directory into memory as byte slices.

use std::fs::File;
use std::io;
use std::path::Path;

pub struct MappedFile {
    map: Option<memmap2::Mmap>,
}

impl MappedFile {
    /// Maps the file `path`, which must have exactly `expected_bytes` bytes.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or mapped, or has a different length.
    pub fn open(path: &Path, expected_bytes: u64) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        if bytes != expected_bytes {
            let text = format!("it has {bytes} bytes, and {expected_bytes} are expected");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if bytes == 0 {
            return Ok(Self { map: None });
        }
        // SAFETY: the file is in the job's private directory. The server fills it before it sends
        // the job and does not touch it until the job has ended; kernels cannot reach files.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        Ok(Self { map: Some(map) })
    }

    pub fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}
