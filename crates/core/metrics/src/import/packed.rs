//! Unpacks files that are compressed with gzip.

use std::io::{ErrorKind, Read};

use flate2::bufread::GzDecoder;

use super::ImportError;

/// Number of bytes by which the buffer for the unpacked content grows.
const STEP: usize = 8 << 20;
/// First bytes of each part of a gzip file.
const MAGIC: &[u8] = b"\x1f\x8b";

/// Unpacks a file that is compressed with gzip. Other files are returned unchanged. `most` is the
/// maximum size of the unpacked content, bytes.
///
/// A file may have several parts. Zeros after a part are ignored, because programs that write whole
/// blocks add them.
///
/// # Errors
/// The file is damaged or truncated, other bytes follow it, or its unpacked content is larger than
/// `most`.
pub fn unpacked(bytes: Vec<u8>, most: usize) -> Result<Vec<u8>, ImportError> {
    if !bytes.starts_with(MAGIC) {
        return Ok(bytes);
    }
    let mut unpacked = Vec::new();
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        // The rest may end within these bytes.
        if !rest.starts_with(&MAGIC[..rest.len().min(MAGIC.len())]) {
            return Err(ImportError::Packed(format!(
                "bytes that are not gzip follow its end, from byte {} on",
                bytes.len() - rest.len()
            )));
        }
        rest = part(rest, &mut unpacked, most)?;
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        rest = &rest[zeros..];
    }
    Ok(unpacked)
}

/// Unpacks the first part of a file, and returns the bytes after it.
fn part<'a>(bytes: &'a [u8], unpacked: &mut Vec<u8>, most: usize) -> Result<&'a [u8], ImportError> {
    let mut decoder = GzDecoder::new(bytes);
    loop {
        // One byte beyond the limit shows that the content is too large.
        let left = most + 1 - unpacked.len();
        if unpacked.len() == unpacked.capacity() {
            // The buffer grows by a fixed step. Doubling could reserve far more memory than the
            // content needs.
            unpacked.reserve_exact(STEP.min(left));
        }
        let step = left.min(unpacked.capacity() - unpacked.len());
        let before = unpacked.len();
        if let Err(error) = decoder.by_ref().take(step as u64).read_to_end(unpacked) {
            return Err(ImportError::Packed(match error.kind() {
                ErrorKind::UnexpectedEof => "it is cut off".to_owned(),
                _ => error.to_string(),
            }));
        }
        if unpacked.len() > most {
            return Err(ImportError::TooLongUnpacked { mib: most >> 20 });
        }
        if unpacked.len() == before {
            return Ok(decoder.into_inner());
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
        assert_eq!(unpacked(packed(b""), 7).unwrap(), b"");
    }

    /// Tapes and disk images have whole blocks.
    #[test]
    fn zeros_after_a_part_are_ignored() {
        let (one, two, zeros) = (packed(b"one "), packed(b"two"), vec![0; 512]);
        let padded = |parts: &[&Vec<u8>]| {
            let parts: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
            unpacked(parts, 7)
        };
        assert_eq!(padded(&[&one, &zeros]).unwrap(), b"one ");
        assert_eq!(padded(&[&one, &vec![0]]).unwrap(), b"one ");
        assert_eq!(padded(&[&one, &zeros, &two, &zeros]).unwrap(), b"one two");
    }

    #[test]
    fn other_bytes_after_the_end_are_refused_with_their_place() {
        let one = packed(b"one");
        for (end, why) in [
            (&b"garbage"[..], format!("not gzip follow its end, from byte {} on", one.len())),
            (b"\0\0x", format!("not gzip follow its end, from byte {} on", one.len() + 2)),
            (b"\x1f", "it is cut off".to_owned()),
            (b"\x1f\x8b\x08", "it is cut off".to_owned()),
        ] {
            let error = unpacked([&one, end].concat(), 1 << 20).unwrap_err().to_string();
            assert!(error.contains(&why), "{error}");
        }
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
