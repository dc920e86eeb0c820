//! Matrices in files of the machine that this runs on.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::named::used;
use warpgauge_contract::{MatrixOrigin, MatrixUsed};
use warpgauge_sparse::{Csr, MarketError, ReadLimits, market};

/// Reads a Matrix Market file of at most `max_bytes` in CSR form, 4 bytes for each row and 12 for each
/// entry; `name` is what reports call it. Nobody else's names come here: whoever names a file this way
/// may read it.
///
/// # Errors
/// It cannot be read, or is no such matrix.
pub fn read_matrix_file(
    path: &Path,
    name: &str,
    max_bytes: u64,
) -> Result<(Csr, MatrixUsed), MarketError> {
    // Asked before opening: opening a named pipe would wait for its writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file").into());
    }
    let mut hashed = Hashed { from: File::open(path)?, hasher: blake3::Hasher::new() };
    let (csr, _) = market::read(&mut hashed, &ReadLimits { max_bytes }, |_| ())?;
    let hash = hashed.hasher.finalize().to_hex().to_string();
    let used = used(name, &csr, MatrixOrigin::File, Some(hash))?;
    Ok((csr, used))
}

/// Hashes what is read.
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
