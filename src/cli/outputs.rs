//! Writes the outputs of a kernel to files.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;

use warpgauge_report::OutputReport;
use warpgauge_tensor::{Compress, DataFormat};

/// Maximum size of the header in a `.npy` file, bytes.
const MAX_NPY_HEADER_BYTES: u64 = 64 << 10;

/// Reason why an output cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The name cannot safely be used as a file name.
    #[error("output {name:?} has a name that is not safe as a file name; it was not written")]
    Name {
        /// Name of the output.
        name: String,
    },
    /// The content does not match the dtype, shape or hash in the report.
    #[error("output `{name}` is damaged: {what}")]
    Content {
        /// Name of the output.
        name: String,
        /// Description of the mismatch.
        what: String,
    },
    /// The directory or file cannot be written.
    #[error("could not write {}", path.display())]
    Write {
        /// The file or directory that cannot be written.
        path: PathBuf,
        /// Cause of the failure.
        source: std::io::Error,
    },
}

/// Checks that the path is not an existing file. The check precedes the evaluation.
pub(super) fn check(directory: &Path) -> Result<(), OutputError> {
    match directory.metadata() {
        Ok(found) if !found.is_dir() => {
            let source = std::io::ErrorKind::NotADirectory.into();
            Err(OutputError::Write { path: directory.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Writes each output that has content into `directory`, which is created if it does not exist. The
/// file is `NAME.npy`, or `NAME.bin` for raw elements. Returns the paths.
pub(super) fn write(
    outputs: &BTreeMap<String, OutputReport>,
    directory: &Path,
) -> Result<Vec<PathBuf>, OutputError> {
    let failed = |path: &Path, source| OutputError::Write { path: path.to_owned(), source };
    std::fs::create_dir_all(directory).map_err(|source| failed(directory, source))?;
    let mut written = Vec::new();
    for (name, output) in outputs {
        let Some(data) = &output.data_b64 else {
            continue;
        };
        if !is_safe_name(name) {
            return Err(OutputError::Name { name: name.clone() });
        }
        let content = decode(output, data)
            .map_err(|what| OutputError::Content { name: name.clone(), what })?;
        let extension = match output.format.unwrap_or_default() {
            DataFormat::Raw => "bin",
            DataFormat::Npy => "npy",
        };
        let path = directory.join(format!("{name}.{extension}"));
        std::fs::write(&path, content).map_err(|source| failed(&path, source))?;
        written.push(path);
    }
    Ok(written)
}

/// Returns whether a name is a plain file name that is not hidden. The server chooses the name, so
/// it is not trusted.
fn is_safe_name(name: &str) -> bool {
    (1..=200).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

/// Decodes and verifies an output. The error describes the mismatch.
fn decode(output: &OutputReport, data_b64: &str) -> Result<Vec<u8>, String> {
    let elements = output
        .shape
        .iter()
        .try_fold(output.dtype.size() as u64, |bytes, extent| bytes.checked_mul(*extent))
        .ok_or("its shape overflows")?;
    let compressed = base64::engine::general_purpose::STANDARD
        .decode(data_b64)
        .map_err(|error| format!("base64: {error}"))?;
    let is_npy = output.format.unwrap_or_default() == DataFormat::Npy;
    let limit = elements.saturating_add(if is_npy { MAX_NPY_HEADER_BYTES } else { 0 });
    let content = decompress(compressed, output.compress.unwrap_or_default(), limit)?;
    let raw = match (content.len() as u64).checked_sub(elements) {
        Some(header) if is_npy || header == 0 => &content[header as usize..],
        _ => return Err(format!("{} bytes instead of {elements}", content.len())),
    };
    let hash = blake3::hash(raw).to_hex();
    if !hash.eq_ignore_ascii_case(&output.blake3) {
        return Err(format!("its blake3 is {hash}, not {}", output.blake3));
    }
    Ok(content)
}

fn decompress(bytes: Vec<u8>, compress: Compress, limit: u64) -> Result<Vec<u8>, String> {
    let mut reader: Box<dyn Read + '_> = match compress {
        Compress::None => Box::new(bytes.as_slice()),
        Compress::Zlib => Box::new(flate2::read::ZlibDecoder::new(bytes.as_slice())),
        Compress::Zstd => Box::new(
            zstd::stream::read::Decoder::new(bytes.as_slice()).map_err(|e| format!("zstd: {e}"))?,
        ),
    };
    let mut content = Vec::new();
    (&mut reader)
        .take(limit.saturating_add(1))
        .read_to_end(&mut content)
        .map_err(|error| format!("decompression: {error}"))?;
    if content.len() as u64 > limit {
        return Err(format!("it is larger than its shape allows ({limit} bytes)"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use warpgauge_tensor::Dtype;

    const RAW: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    fn output(content: &[u8], compress: Compress, format: DataFormat) -> OutputReport {
        OutputReport {
            dtype: Dtype::Float32,
            shape: vec![2],
            blake3: blake3::hash(&RAW).to_hex().to_string(),
            data_b64: Some(base64::engine::general_purpose::STANDARD.encode(content)),
            compress: Some(compress),
            format: Some(format),
        }
    }

    fn write_one(name: &str, output: OutputReport) -> Result<Vec<u8>, OutputError> {
        let directory = tempfile::tempdir().unwrap();
        let files = write(&BTreeMap::from([(name.to_owned(), output)]), directory.path())?;
        Ok(std::fs::read(&files[0]).unwrap())
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Default::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn every_encoding_is_undone_and_verified() {
        let npy: Vec<u8> = [b"\x93NUMPY header".as_slice(), &RAW].concat();
        let cases = [
            (output(&RAW, Compress::None, DataFormat::Raw), RAW.to_vec()),
            (output(&zlib(&RAW), Compress::Zlib, DataFormat::Raw), RAW.to_vec()),
            (
                output(
                    &zstd::encode_all(npy.as_slice(), 0).unwrap(),
                    Compress::Zstd,
                    DataFormat::Npy,
                ),
                npy,
            ),
        ];
        for (output, expected) in cases {
            assert_eq!(write_one("y", output).unwrap(), expected);
        }
    }

    #[test]
    fn names_cannot_leave_the_directory() {
        for name in ["../y", "/y", "a/b", ".hidden", "", "a\0b", "y\n"] {
            let refused = write_one(name, output(&RAW, Compress::None, DataFormat::Raw));
            assert!(matches!(refused, Err(OutputError::Name { .. })), "{name:?}");
        }
    }

    #[test]
    fn damage_and_bombs_are_noticed() {
        let cases = [
            (output(&[0; 8], Compress::None, DataFormat::Raw), "blake3"),
            (output(&RAW[..7], Compress::None, DataFormat::Raw), "7 bytes instead of 8"),
            (
                output(&zlib(&[0; 100_000]), Compress::Zlib, DataFormat::Raw),
                "larger than its shape",
            ),
            (output(b"no zlib", Compress::Zlib, DataFormat::Raw), "decompression"),
            (
                OutputReport {
                    data_b64: Some("?".into()),
                    ..output(&[], Compress::None, DataFormat::Raw)
                },
                "base64",
            ),
            (
                OutputReport {
                    shape: vec![u64::MAX, 3],
                    ..output(&RAW, Compress::None, DataFormat::Raw)
                },
                "overflows",
            ),
        ];
        for (output, expected) in cases {
            let message = write_one("y", output).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn outputs_without_content_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let bare = OutputReport { data_b64: None, ..output(&RAW, Compress::None, DataFormat::Raw) };
        let files = write(&BTreeMap::from([("y".to_owned(), bare)]), directory.path()).unwrap();
        assert!(files.is_empty());
    }
}
