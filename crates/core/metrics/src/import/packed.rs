//! Unpacks files that are compressed with gzip.

use std::io::{ErrorKind, Read};

use flate2::read::MultiGzDecoder;

use super::ImportError;

/// Number of bytes by which the buffer for the unpacked content grows.
const STEP: usize = 8 << 20;

/// Unpacks a file that is compressed with gzip. Other files are returned unchanged. `most` is the
/// maximum size of the unpacked content, bytes.
///
/// # Errors
/// The file is damaged or truncated, or its unpacked content is larger than `most`.
pub fn unpacked(bytes: Vec<u8>, most: usize) -> Result<Vec<u8>, ImportError> {
    if !bytes.starts_with(b"\x1f\x8b") {
        return Ok(bytes);
    }
    let mut unpacked = Vec::new();
    // One byte beyond the limit shows that the content is too large.
    let mut reader = MultiGzDecoder::new(bytes.as_slice()).take(most as u64 + 1);
    loop {
        // The buffer grows by a fixed step. Doubling could reserve far more memory than the content
        // needs.
        unpacked.reserve_exact(STEP.min(most + 1));
        let before = unpacked.len();
        let step = reader.by_ref().take(STEP as u64).read_to_end(&mut unpacked);
        if let Err(error) = step {
            return Err(ImportError::Packed(match error.kind() {
                ErrorKind::UnexpectedEof => "it is cut off".to_owned(),
                _ => error.to_string(),
            }));
        }
        if unpacked.len() > most {
            return Err(ImportError::TooLongUnpacked { mib: most >> 20 });
        }
        if unpacked.len() == before {
            return Ok(unpacked);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn files_of_one_and_of_several_parts_are_unpacked() {
        assert_eq!(unpacked(b"text".to_vec(), 1).unwrap(), b"text");
        let two = [packed(b"one "), packed(b"two")].concat();
        assert_eq!(unpacked(two, 7).unwrap(), b"one two");
    }

    #[test]
    fn what_is_cut_damaged_or_a_bomb_is_refused_by_name() {
        let whole = packed(&b"0123456789".repeat(1_000));
        for cut in 2..whole.len() {
            let error = unpacked(whole[..cut].to_vec(), 1 << 20).unwrap_err();
            assert!(matches!(error, ImportError::Packed(_)), "{cut}: {error}");
        }
        let mut damaged = whole.clone();
        let end = damaged.len() - 6;
        damaged[end] ^= 1;
        assert!(unpacked(damaged, 1 << 20).unwrap_err().to_string().contains("gunzip"));
        let bomb = packed(&vec![0; 3 << 20]);
        assert!(bomb.len() < 8 << 10);
        let error = unpacked(bomb, 2 << 20).unwrap_err();
        assert_eq!(error, ImportError::TooLongUnpacked { mib: 2 });
    }
}
