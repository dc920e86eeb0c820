//! Decoding of tensor data into raw elements, in constant memory. The main function is [`decode`].

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};

use thiserror::Error;

use super::npy::{NpyError, NpyHeader};
use crate::shape::{self, ShapeError, shown};
use crate::{Base64Error, Dtype};
use crate::{Compress, DataFormat, TensorData};

/// Size of the buffers, in bytes.
const BUFFER: usize = 1 << 18;

/// Largest window of a zstd frame, as a power of two: 128 MiB, the default limit of the zstd
/// library.
const ZSTD_WINDOW_LOG: u32 = 27;

/// Reasons why tensor data cannot be decoded.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// The shape is invalid.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The data declares a dtype or shape that differs from the tensor's.
    #[error("the data is {came}, the tensor {wanted}")]
    Mismatch {
        /// Type and shape of the data.
        came: String,
        /// Type and shape of the tensor.
        wanted: String,
    },
    /// The data has too few or too many bytes.
    #[error(
        "{}{came} bytes of data, but shape {} of {dtype} needs {wanted}",
        if *.at_least { "at least " } else { "" }, shown(.shape)
    )]
    Size {
        /// Number of bytes found.
        came: u64,
        /// Whether there may be more bytes, since reading stopped early.
        at_least: bool,
        /// Number of bytes needed.
        wanted: u64,
        shape: Vec<u64>,
        dtype: Dtype,
    },
    /// The data is not base64.
    #[error(transparent)]
    Base64(Base64Error),
    /// The data is damaged, or its compression is not the one that `compress` names.
    #[error("the {compress} data is damaged, cut off, or compressed differently: {reason}")]
    Corrupt {
        /// Name of the compression.
        compress: &'static str,
        /// Message of the decompression library.
        reason: String,
    },
    /// The data is not a usable `.npy` file.
    #[error(transparent)]
    Npy(NpyError),
    /// The decoded elements cannot be written.
    #[error("cannot write {bytes} bytes of decoded tensor data: {source}")]
    Write {
        /// Size of the tensor, in bytes.
        bytes: u64,
        source: io::Error,
    },
}

impl DecodeError {
    /// Returns whether the environment caused the error, not the request.
    pub fn is_environment(&self) -> bool {
        matches!(self, DecodeError::Write { .. })
    }
}

/// Writes the raw little-endian elements of a tensor to `out`. Returns their number of bytes, which
/// is exactly the size of `extents` and `dtype`. Compressed data is never expanded beyond that.
pub fn decode(
    data: &TensorData,
    dtype: Dtype,
    extents: &[u64],
    out: &mut impl Write,
) -> Result<u64, DecodeError> {
    let wanted = shape::bytes(extents, dtype)?;
    let same_dtype = data.dtype.is_none_or(|own| own == dtype);
    let same_shape = data.shape.as_deref().is_none_or(|own| own == extents);
    if !same_dtype || !same_shape {
        return Err(mismatch(
            data.dtype.unwrap_or(dtype).name(),
            data.shape.as_deref().unwrap_or(extents),
            dtype,
            extents,
        ));
    }
    let mut reader = decompressed(data)?;
    if data.format == DataFormat::Npy {
        check_npy(&mut reader, data.compress, dtype, extents)?;
    }
    let came = copy(&mut reader, out, wanted, data.compress)?;
    let rest = if came == wanted { surplus(&mut reader, data.compress)? } else { 0 };
    if came == wanted && rest == 0 {
        return Ok(wanted);
    }
    Err(DecodeError::Size {
        came: came + rest,
        at_least: rest > 0 && data.compress != Compress::None,
        wanted,
        shape: extents.to_vec(),
        dtype,
    })
}

/// Decodes like [`decode`], into memory.
pub fn decode_to_vec(
    data: &TensorData,
    dtype: Dtype,
    extents: &[u64],
) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::new();
    decode(data, dtype, extents, &mut out)?;
    Ok(out)
}

/// Decodes like [`decode`], into a file at its current position.
pub fn decode_to_file(
    data: &TensorData,
    dtype: Dtype,
    extents: &[u64],
    file: &File,
) -> Result<u64, DecodeError> {
    let mut writer = BufWriter::with_capacity(BUFFER, file);
    let bytes = decode(data, dtype, extents, &mut writer)?;
    writer.flush().map_err(|source| DecodeError::Write { bytes, source })?;
    Ok(bytes)
}

fn decompressed(data: &TensorData) -> Result<Box<dyn Read>, DecodeError> {
    let encoded = BufReader::with_capacity(BUFFER, data.data_b64.reader());
    Ok(match data.compress {
        Compress::None => Box::new(encoded),
        Compress::Zlib => Box::new(flate2::bufread::ZlibDecoder::new(encoded)),
        Compress::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(encoded)
                .map_err(|error| unreadable(error, data.compress))?;
            decoder
                .window_log_max(ZSTD_WINDOW_LOG)
                .map_err(|error| unreadable(error, data.compress))?;
            Box::new(decoder)
        }
    })
}

fn check_npy(
    reader: &mut impl Read,
    compress: Compress,
    dtype: Dtype,
    extents: &[u64],
) -> Result<(), DecodeError> {
    let header = NpyHeader::read(reader).map_err(|error| match error {
        NpyError::Read(source) if source.kind() != io::ErrorKind::UnexpectedEof => {
            unreadable(source, compress)
        }
        other => DecodeError::Npy(other),
    })?;
    header.check_dtype(dtype).map_err(DecodeError::Npy)?;
    if header.shape != extents {
        return Err(mismatch(dtype.name(), &header.shape, dtype, extents));
    }
    Ok(())
}

/// Copies at most `wanted` bytes and returns how many were copied.
fn copy(
    reader: &mut impl Read,
    out: &mut impl Write,
    wanted: u64,
    compress: Compress,
) -> Result<u64, DecodeError> {
    let mut buffer = vec![0; BUFFER.min(wanted.max(1) as usize)];
    let mut copied = 0;
    while copied < wanted {
        let most = (wanted - copied).min(buffer.len() as u64) as usize;
        let count = read_some(reader, &mut buffer[..most], compress)?;
        if count == 0 {
            break;
        }
        out.write_all(&buffer[..count])
            .map_err(|source| DecodeError::Write { bytes: wanted, source })?;
        copied += count as u64;
    }
    Ok(copied)
}

/// Returns the number of bytes left. For compressed data it stops after one byte, which proves that
/// there are too many.
fn surplus(reader: &mut impl Read, compress: Compress) -> Result<u64, DecodeError> {
    let mut buffer = vec![0; if compress == Compress::None { BUFFER } else { 1 }];
    let mut rest = 0;
    loop {
        let count = read_some(reader, &mut buffer, compress)?;
        rest += count as u64;
        if count == 0 || compress != Compress::None {
            return Ok(rest);
        }
    }
}

fn read_some(
    reader: &mut impl Read,
    buffer: &mut [u8],
    compress: Compress,
) -> Result<usize, DecodeError> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            other => return other.map_err(|error| unreadable(error, compress)),
        }
    }
}

fn unreadable(error: io::Error, compress: Compress) -> DecodeError {
    match error.downcast::<Base64Error>() {
        Ok(malformed) => DecodeError::Base64(malformed),
        Err(error) => DecodeError::Corrupt {
            compress: match compress {
                Compress::None => "uncompressed",
                Compress::Zlib => "zlib",
                Compress::Zstd => "zstd",
            },
            reason: error.to_string(),
        },
    }
}

fn mismatch(came: &str, came_shape: &[u64], dtype: Dtype, extents: &[u64]) -> DecodeError {
    DecodeError::Mismatch {
        came: format!("{came} of shape {}", shown(came_shape)),
        wanted: format!("{dtype} of shape {}", shown(extents)),
    }
}
