//! Reader of `.npy` files.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use warpgauge_model::FailureCode;
use warpgauge_tensor::encoding::{NpyError, NpyHeader};
use warpgauge_tensor::{Dtype, shape};

use crate::{FileElements, TensorFileError};

/// Maximum length of a header, bytes. It includes the bytes before the header's text.
const MAX_HEAD: u64 = (1 << 16) + 16;

pub(crate) fn read(file: Arc<File>, max_bytes: u64) -> Result<FileElements, TensorFileError> {
    let length = file.metadata()?.len();
    let mut reader = &*file;
    reader.seek(SeekFrom::Start(0))?;
    let header = NpyHeader::read(&mut reader.take(MAX_HEAD)).map_err(|error| match error {
        NpyError::Read(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            TensorFileError::Io(error)
        }
        other => TensorFileError::data(other.to_string()),
    })?;
    let offset = (&*file).stream_position()?;
    let dtype = dtype_of(&header)?;
    let bytes = shape::bytes(&header.shape, dtype).map_err(|error| TensorFileError::Invalid {
        code: FailureCode::InvalidShape,
        message: error.to_string(),
    })?;
    if bytes > max_bytes {
        return Err(TensorFileError::too_large(bytes, max_bytes));
    }
    let there = length.saturating_sub(offset);
    if there != bytes {
        return Err(TensorFileError::Invalid {
            code: FailureCode::SizeMismatch,
            message: format!(
                "the .npy header announces shape {} of {dtype}, which takes {bytes} bytes, but \
                 {there} bytes follow the header",
                shape::shown(&header.shape)
            ),
        });
    }
    Ok(FileElements { file, offset, bytes, dtype, shape: header.shape, sample_rate: None })
}

/// Returns the element type of a header. Extensions of numpy store bfloat16 as `V2`; 8-bit floats
/// have no distinct name there.
fn dtype_of(header: &NpyHeader) -> Result<Dtype, TensorFileError> {
    if header.descr.trim_start_matches(['|', '<', '>', '=']).starts_with('O') {
        return Err(TensorFileError::data(
            "the .npy file holds pickled Python objects, which are never read; save an array of numbers",
        ));
    }
    let stand_ins = [
        Dtype::Bfloat16,
        Dtype::Float8E4m3,
        Dtype::Float8E5m2,
        Dtype::Float8E8m0,
        Dtype::Float4E2m1x2,
        Dtype::Int4x2,
        Dtype::Uint4x2,
    ];
    let own = Dtype::ALL.into_iter().filter(|dtype| !stand_ins.contains(dtype));
    own.chain([Dtype::Bfloat16]).find(|dtype| header.check_dtype(*dtype).is_ok()).ok_or_else(|| {
        let descr: String = header.descr.chars().take(40).collect();
        TensorFileError::data(NpyError::Descr(descr).to_string())
    })
}
