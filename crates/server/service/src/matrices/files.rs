//! Matrices as files that callers download.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

use super::{Matrices, READ_BYTES, invalid};
use crate::error::ServiceError;
use warpgauge_sparse::Csr;
use warpgauge_sparse::market;
use warpgauge_sparse::spasm::Spasm;

/// Name of the field that contains the matrix's name.
const NAME: &str = "name";

/// Size of an element in a padded format (value and index), bytes.
const PADDED_BYTES: u64 = 12;

/// Format of a matrix file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatrixFileFormat {
    /// Matrix Market format, a text format.
    Market,
    /// SPASM format, version 2.
    Spasm,
}

impl MatrixFileFormat {
    /// Returns the extension of files in this format.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Market => "mtx",
            Self::Spasm => "spasm",
        }
    }
}

/// A matrix as a file.
#[derive(Debug)]
pub struct MatrixFile {
    /// Suggested file name.
    pub file_name: String,
    /// The file, positioned at its beginning. It is deleted when this value is dropped.
    pub content: File,
    pub bytes: u64,
}

/// Returns the matrix with this name as a file.
///
/// # Errors
/// [`ServiceError::NoSuchMatrix`] if there is no such matrix.
pub(super) async fn file_of(
    matrices: &Matrices,
    name: &str,
    format: MatrixFileFormat,
    owner: &str,
) -> Result<MatrixFile, ServiceError> {
    let turn = matrices.turn(owner).await?;
    let from = matrices.source(name, NAME, owner).await?;
    let (name, max_bytes) = (name.to_owned(), matrices.limits.max_matrix_bytes);
    turn.aside(move || {
        let (csr, _) = from.read(&name, NAME, max_bytes)?;
        // The matrix is written to a file, because otherwise a slow reader would keep it in memory.
        let file = written(&csr, format, max_bytes)?;
        let file_name = file_name(&name, format);
        Ok(MatrixFile { file_name, content: file.0, bytes: file.1 })
    })
    .await
}

/// Returns the name of a file: the name of the matrix without its extension. Characters other than
/// letters, digits and `._-` become `-`.
fn file_name(name: &str, format: MatrixFileFormat) -> String {
    let stem = [".mtx", ".spasm"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    format!("{}.{}", stem.chars().map(plain).collect::<String>(), format.extension())
}

/// Writes the matrix to a temporary file. The call blocks.
fn written(
    csr: &Csr,
    format: MatrixFileFormat,
    max_bytes: u64,
) -> Result<(File, u64), ServiceError> {
    let spasm = match format {
        MatrixFileFormat::Market => None,
        MatrixFileFormat::Spasm => {
            let large = |value: &&f64| !(**value as f32).is_finite();
            if let Some(value) = csr.values().iter().find(large) {
                let message = format!(
                    "contains the value {value:e}, which is too large for the binary32 values of SPASM"
                );
                return Err(invalid(NAME, message));
            }
            let spasm = Spasm::within(csr, max_bytes / PADDED_BYTES);
            Some(spasm.map_err(|error| invalid("format", error.to_string()))?)
        }
    };
    let write = || -> io::Result<(File, u64)> {
        let mut writer = BufWriter::with_capacity(READ_BYTES, tempfile::tempfile()?);
        match &spasm {
            None => market::write(csr, &mut writer)?,
            Some(spasm) => spasm.write(&mut writer)?,
        }
        writer.flush()?;
        let mut file = writer.into_inner()?;
        let bytes = file.stream_position()?;
        file.seek(SeekFrom::Start(0))?;
        Ok((file, bytes))
    };
    write().map_err(|error| {
        ServiceError::unavailable(format!("cannot write a matrix to a temporary file: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        let name = |name| file_name(name, MatrixFileFormat::Spasm);
        assert_eq!(name("cant.mtx"), "cant.spasm");
        assert_eq!(name("poisson2d:nx=5,ny=6"), "poisson2d-nx-5-ny-6.spasm");
        assert_eq!(name("a\"\r\nb:"), "a---b-.spasm");
    }
}
