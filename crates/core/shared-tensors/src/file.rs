//! Which kind of file it is, and where its elements lie.

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
    /// The file.
    pub file: Arc<File>,
    /// Where they begin, bytes.
    pub offset: u64,
    /// How long they are, bytes.
    pub bytes: u64,
    /// Their type.
    pub dtype: Dtype,
    /// Their shape.
    pub shape: Vec<u64>,
    /// Samples each second, if it is sound.
    pub sample_rate: Option<u32>,
}

/// Why a file has no tensor to read.
#[derive(Debug, thiserror::Error)]
pub enum TensorFileError {
    /// The file is wrong, or more than is taken.
    #[error("{message}")]
    Invalid {
        /// Stable code.
        code: FailureCode,
        /// What is wrong, and what to do.
        message: String,
    },
    /// The system's answer.
    #[error("cannot read or write a temporary file: {0}")]
    Io(#[from] io::Error),
}

impl TensorFileError {
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self::Invalid { code: FailureCode::InvalidData, message: message.into() }
    }

    pub(crate) fn too_large(bytes: u64, max_bytes: u64) -> Self {
        let message = format!(
            "the tensor has {bytes} bytes; one may have {max_bytes} (limits.max_tensor_bytes, \
             tensors.max_bytes_per_key)"
        );
        Self::Invalid { code: FailureCode::TooMuchData, message }
    }
}

/// Finds the tensor of a file of a kind that its first bytes tell: WAV, `.npy` or `.safetensors`.
/// `tensor` names one of a `.safetensors` file that has several. Takes memory for buffers and a header
/// only, whatever the file says of itself.
///
/// # Errors
/// As [`TensorFileError`] says; a tensor of more than `max_bytes` is one.
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
        "the file is neither WAV (RIFF), .npy nor .safetensors by its first bytes; convert it to one",
    ))
}

/// As much of the beginning of a file as there is.
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
