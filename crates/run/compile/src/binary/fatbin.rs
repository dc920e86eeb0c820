//! Reads fat binaries: containers of images for several architectures.
//!
//! The layout is not documented. This reader was checked against fat binaries of nvcc 13.5, with
//! and without compression.

use std::borrow::Cow;
use std::io::Read;

/// First word of a fat binary.
const MAGIC: u32 = 0xba55_ed50;

/// Maximum number of images that are read from one fat binary.
const MAX_ENTRIES: usize = 256;

/// Maximum size of an unpacked image, in bytes.
const MAX_IMAGE_BYTES: u64 = 256 << 20;

const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;

/// Kind of an image in a fat binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FatbinKind {
    /// The image is PTX text.
    Ptx,
    /// The image is machine code.
    Cubin,
    /// Another kind, such as relocatable code or intermediate code.
    Other(u16),
}

/// One image of a fat binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FatbinEntry<'a> {
    pub kind: FatbinKind,
    /// Architecture of the image: the number in `sm_NN`.
    pub arch: u32,
    payload: &'a [u8],
    flags: u64,
    unpacked_size: u64,
}

/// Reason why bytes are not a valid fat binary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FatbinError {
    #[error("the fatbin begins with {found:#010x} instead of {MAGIC:#010x}")]
    Magic { found: u32 },
    #[error("the fatbin is truncated: {missing} of {expected} bytes are missing")]
    Truncated { missing: u64, expected: u64 },
    #[error("the fatbin is damaged at byte {at}")]
    Damaged { at: usize },
}

/// Lists the images of a fat binary.
pub(crate) fn read_fatbin(bytes: &[u8]) -> Result<Vec<FatbinEntry<'_>>, FatbinError> {
    let truncated = |expected: u64| FatbinError::Truncated {
        missing: expected.saturating_sub(bytes.len() as u64),
        expected,
    };
    let magic = u32_at(bytes, 0).ok_or_else(|| truncated(16))?;
    if magic != MAGIC {
        return Err(FatbinError::Magic { found: magic });
    }
    let header = u64::from(u16_at(bytes, 6).ok_or_else(|| truncated(16))?);
    let size = u64_at(bytes, 8).ok_or_else(|| truncated(16))?;
    let expected = header.saturating_add(size);
    if expected > bytes.len() as u64 {
        return Err(truncated(expected));
    }
    let mut at = header as usize;
    let end = expected as usize;
    let mut entries = Vec::new();
    while at < end && entries.len() < MAX_ENTRIES {
        let (entry, next) = read_entry(&bytes[..end], at).ok_or(FatbinError::Damaged { at })?;
        entries.push(entry);
        at = next;
    }
    Ok(entries)
}

/// Reads the image whose header is at the offset `at`. Also returns the offset of the next header.
fn read_entry(bytes: &[u8], at: usize) -> Option<(FatbinEntry<'_>, usize)> {
    let head = bytes.get(at..)?;
    let header_size = u32_at(head, 4)? as usize;
    let padded = usize::try_from(u64_at(head, 8)?).ok()?;
    if header_size < 64 {
        return None;
    }
    let end = header_size.checked_add(padded)?;
    let mut payload = head.get(header_size..end)?;
    let flags = u64_at(head, 40)?;
    let packed = u32_at(head, 16)? as usize;
    if packed != 0 {
        payload = payload.get(..packed)?;
    }
    let kind = match u16_at(head, 0)? {
        1 => FatbinKind::Ptx,
        2 => FatbinKind::Cubin,
        other => FatbinKind::Other(other),
    };
    let arch = u32_at(head, 28)?;
    let unpacked_size = u64_at(head, 56)?;
    Some((FatbinEntry { kind, arch, payload, flags, unpacked_size }, at.checked_add(end)?))
}

impl<'a> FatbinEntry<'a> {
    /// Returns the unpacked image, or `None` if its compression is not supported.
    pub(crate) fn image(&self) -> Option<Cow<'a, [u8]>> {
        if self.flags & FLAG_ZSTD != 0 {
            return unpack_zstd(self.payload, self.unpacked_size).map(Cow::Owned);
        }
        (self.flags & FLAG_LZ4 == 0).then_some(Cow::Borrowed(self.payload))
    }
}

fn unpack_zstd(payload: &[u8], size: u64) -> Option<Vec<u8>> {
    if size > MAX_IMAGE_BYTES {
        return None;
    }
    let mut image = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(payload).ok()?;
    decoder.take(size).read_to_end(&mut image).ok()?;
    (image.len() as u64 == size).then_some(image)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
#[path = "fatbin_tests.rs"]
mod tests;
