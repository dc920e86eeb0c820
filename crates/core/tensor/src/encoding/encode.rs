//! Encoding of raw elements for the wire. The main function is [`encode`].

use std::io::{self, Read, Write};

use base64::write::EncoderStringWriter;
use serde::{Deserialize, Serialize};

use super::npy::NpyHeader;
use crate::Dtype;
use crate::base64_stream::engine;
use crate::{Compress, DataFormat, OutputEncoding};

/// Compression level of zstd: the library's default, a compromise of size and time.
const ZSTD_LEVEL: i32 = 3;

/// A returned tensor. It can be sent as tensor data if `blake3` is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodedTensor {
    /// Encoded bytes, in base64.
    pub data_b64: String,
    pub dtype: Dtype,
    /// Extents in C order.
    pub shape: Vec<u64>,
    /// Compression applied before base64.
    pub compress: Compress,
    /// Raw elements, or a `.npy` file.
    pub format: DataFormat,
    /// BLAKE3 hash of the raw elements in hexadecimal, independent of the encoding.
    pub blake3: String,
}

/// Encodes raw little-endian elements as it reads them. `raw` must contain exactly the elements of
/// the tensor. The memory used is about the size of the result.
pub fn encode(
    mut raw: impl Read,
    dtype: Dtype,
    shape: &[u64],
    encoding: OutputEncoding,
) -> io::Result<EncodedTensor> {
    let mut base64 = EncoderStringWriter::new(engine());
    let mut hasher = blake3::Hasher::new();
    let header = match encoding.format {
        DataFormat::Raw => Vec::new(),
        DataFormat::Npy => NpyHeader::write(dtype, shape),
    };
    match encoding.compress {
        Compress::None => write_all(&header, &mut raw, &mut base64, &mut hasher)?,
        Compress::Zlib => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::ZlibEncoder::new(&mut base64, level);
            write_all(&header, &mut raw, &mut encoder, &mut hasher)?;
            encoder.finish()?;
        }
        Compress::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(&mut base64, ZSTD_LEVEL)?;
            write_all(&header, &mut raw, &mut encoder, &mut hasher)?;
            encoder.finish()?;
        }
    }
    Ok(EncodedTensor {
        data_b64: base64.into_inner(),
        dtype,
        shape: shape.to_vec(),
        compress: encoding.compress,
        format: encoding.format,
        blake3: hasher.finalize().to_hex().to_string(),
    })
}

fn write_all(
    header: &[u8],
    raw: &mut impl Read,
    out: &mut impl Write,
    hasher: &mut blake3::Hasher,
) -> io::Result<()> {
    out.write_all(header)?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let count = match raw.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if count == 0 {
            return Ok(());
        }
        hasher.update(&buffer[..count]);
        out.write_all(&buffer[..count])?;
    }
}
