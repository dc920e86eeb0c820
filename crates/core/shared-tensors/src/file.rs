//! Detection of the format of a file, and the location of its elements. The main function is
//! [`read`].

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use warpgauge_model::FailureCode;
use warpgauge_tensor::Dtype;

use crate::{npy, safetensors, wav};

/// Elements in a file: raw, little-endian, packed in C order.
#[derive(Debug, Clone)]
pub struct FileElements {
    pub file: Arc<File>,
    /// Offset of the elements, in bytes.
    pub offset: u64,
    /// Length of the elements, in bytes.
    pub bytes: u64,
    /// Element type.
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// Sample rate of audio data, Hz.
    pub sample_rate: Option<u32>,
}

/// Reason why no tensor can be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum TensorFileError {
    /// The file is invalid or too large.
    #[error("{message}")]
    Invalid {
        code: FailureCode,
        /// Description of the problem, with a remedy.
        message: String,
    },
    /// A file operation failed.
    #[error("cannot read or write a temporary file: {0}")]
    Io(#[from] io::Error),
}

impl TensorFileError {
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::Invalid { code: FailureCode::InvalidData, message: message.into() }
    }

    pub(crate) fn too_large(bytes: u64, max_bytes: u64) -> Self {
        let message = format!(
            "the tensor has {bytes} bytes; at most {max_bytes} are accepted \
             (limits.max_tensor_bytes, tensors.max_bytes_per_key)"
        );
        Self::Invalid { code: FailureCode::TooMuchData, message }
    }
}

/// Finds the tensor in a file. The first bytes determine the format: WAV, `.npy` or `.safetensors`.
/// `tensor` names one of several tensors in a `.safetensors` file. The function needs memory only
/// for buffers and a header, regardless of the sizes that the file announces.
///
/// # Errors
/// Returns an error if the file is invalid, or if the tensor has more than `max_bytes`.
pub fn read(
    file: File,
    tensor: Option<&str>,
    max_bytes: u64,
) -> Result<FileElements, TensorFileError> {
    let mut first = [0; 12];
    let found = read_some(&file, &mut first)?;
    let first = &first[..found];
    if first.starts_with(b"RIFF") && first.get(8..12) == Some(b"WAVE") {
        return wav::read(&file, max_bytes);
    }
    let file = Arc::new(file);
    if first.starts_with(b"\x93NUMPY") {
        return npy::read(file, max_bytes);
    }
    if first.get(8) == Some(&b'{') {
        return safetensors::read(file, tensor, max_bytes);
    }
    Err(TensorFileError::data(
        "Only WAV files are supported, and .npy and .safetensors: according to its first bytes, \
         the file has another format; convert it",
    ))
}

/// Fills the buffer from the beginning of a file, as far as possible, and returns the number of
/// bytes read.
fn read_some(file: &File, into: &mut [u8]) -> io::Result<usize> {
    let mut found = 0;
    while found < into.len() {
        match file.read_at(&mut into[found..], found as u64) {
            Ok(0) => break,
            Ok(count) => found += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
