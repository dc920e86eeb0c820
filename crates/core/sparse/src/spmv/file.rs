//! Matrices in files on this machine. The main function is [`read_matrix_file`].

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::named::used;
use crate::{Csr, MatrixFileError, ReadLimits, file};
use warpgauge_contract::{MatrixOrigin, MatrixUsed};

/// Reads a Matrix Market or SPASM file. In CSR form, the matrix may take at most `max_bytes`: 4
/// bytes for each row and 12 for each entry. `name` is its name in reports. Repeatedly calls
/// `progress` with the number of bytes read and their total. Callers must pass only paths that the
/// requester may read.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a valid matrix within the limit.
pub fn read_matrix_file(
    path: &Path,
    name: &str,
    max_bytes: u64,
    mut progress: impl FnMut(u64, u64),
) -> Result<(Csr, MatrixUsed), MatrixFileError> {
    // The check precedes opening the file, because opening a named pipe would wait for its writer.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file").into());
    }
    let mut hashed = Hashed { from: File::open(path)?, hasher: blake3::Hasher::new() };
    let bytes = metadata.len();
    let read = |read| progress(read, bytes);
    let (csr, _) = file::read(&mut hashed, bytes, &ReadLimits { max_bytes }, read)?;
    let hash = hashed.hasher.finalize().to_hex().to_string();
    let used = used(name, &csr, MatrixOrigin::File, Some(hash))?;
    Ok((csr, used))
}

/// A reader that hashes the bytes that it returns.
struct Hashed {
    from: File,
    hasher: blake3::Hasher,
}

impl Read for Hashed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(out)?;
        self.hasher.update(&out[..count]);
        Ok(count)
    }
}
