//! Checks that images are complete before the driver reads them.

use super::DeviceError;
use warpgauge_model::{FailureCode, Image, ImageFormat};

/// Checks that the sizes in an image's headers do not exceed the image. The driver receives a start
/// address and no length, so it relies on the headers.
pub(super) fn check_image(image: &Image) -> Result<(), DeviceError> {
    let claimed = match image.format {
        ImageFormat::Ptx => match image.bytes.iter().position(|&byte| byte == 0) {
            None => return Ok(()),
            Some(at) => Err(format!("the PTX text has a NUL byte at {at}")),
        },
        ImageFormat::Cubin => elf_bytes(&image.bytes),
        ImageFormat::Fatbin => fatbin_bytes(&image.bytes),
        ImageFormat::Library => {
            Err("the image is the name of a library function, not code".to_owned())
        }
    };
    let there = image.bytes.len() as u64;
    let text = match claimed {
        Ok(claimed) if claimed <= there => return Ok(()),
        Ok(claimed) => format!("truncated: {there} of {claimed} bytes"),
        Err(text) => text,
    };
    Err(DeviceError::local("load the module", FailureCode::InvalidImage, text))
}

fn field(bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
    let raw = bytes.get(offset..offset.checked_add(size)?)?;
    Some(raw.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// Returns the number of bytes that the headers of an ELF64 file refer to.
fn elf_bytes(bytes: &[u8]) -> Result<u64, String> {
    elf_extent(bytes).ok_or_else(|| "not a 64-bit ELF file, or truncated".to_owned())
}

fn elf_extent(bytes: &[u8]) -> Option<u64> {
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    const NO_BITS: u64 = 8;
    let (program, sections) = (field(bytes, 0x20, 8)?, field(bytes, 0x28, 8)?);
    let (program_size, program_count) = (field(bytes, 0x36, 2)?, field(bytes, 0x38, 2)?);
    let (section_size, section_count) = (field(bytes, 0x3a, 2)?, field(bytes, 0x3c, 2)?);
    let mut extent = program.checked_add(program_size * program_count)?;
    extent = extent.max(sections.checked_add(section_size * section_count)?);
    for index in 0..section_count {
        let header = usize::try_from(sections.checked_add(index * section_size)?).ok()?;
        if field(bytes, header.checked_add(4)?, 4)? != NO_BITS {
            let (offset, size) = (field(bytes, header + 0x18, 8)?, field(bytes, header + 0x20, 8)?);
            extent = extent.max(offset.checked_add(size)?);
        }
    }
    for index in 0..program_count {
        let header = usize::try_from(program.checked_add(index * program_size)?).ok()?;
        let (offset, size) =
            (field(bytes, header.checked_add(8)?, 8)?, field(bytes, header + 0x20, 8)?);
        extent = extent.max(offset.checked_add(size)?);
    }
    Some(extent)
}

/// Returns the size that the header of a fat binary states. The header consists of the magic number
/// 0xBA55ED50, the version, the header's size, and the payload's size.
fn fatbin_bytes(bytes: &[u8]) -> Result<u64, String> {
    let claimed = (|| {
        (field(bytes, 0, 4)? == 0xBA55_ED50).then_some(())?;
        field(bytes, 6, 2)?.checked_add(field(bytes, 8, 8)?)
    })();
    claimed.ok_or_else(|| "not a fat binary, or truncated".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(format: ImageFormat, bytes: &[u8]) -> Image {
        Image { format, bytes: bytes.into() }
    }

    /// Returns a header and two section headers: the null section and one with 16 bytes at 192.
    fn elf() -> Vec<u8> {
        let mut bytes = vec![0; 208];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x28..0x30].copy_from_slice(&64u64.to_le_bytes());
        bytes[0x3a] = 64;
        bytes[0x3c] = 2;
        bytes[128 + 4] = 1;
        bytes[128 + 0x18..128 + 0x20].copy_from_slice(&192u64.to_le_bytes());
        bytes[128 + 0x20..128 + 0x28].copy_from_slice(&16u64.to_le_bytes());
        bytes
    }

    #[test]
    fn every_truncation_of_a_cubin_is_refused_before_the_driver_sees_it() {
        let whole = elf();
        assert!(check_image(&image(ImageFormat::Cubin, &whole)).is_ok());
        for end in 0..whole.len() {
            let error = check_image(&image(ImageFormat::Cubin, &whole[..end])).unwrap_err();
            assert_eq!(error.code, FailureCode::InvalidImage, "{end} bytes");
        }
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let mut bytes = elf();
        bytes[128 + 0x20..128 + 0x28].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(check_image(&image(ImageFormat::Cubin, &bytes)).is_err());
    }

    #[test]
    fn a_fat_binary_must_hold_its_payload_and_ptx_no_nul() {
        let mut bytes = vec![0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0, 8, 0, 0, 0, 0, 0, 0, 0];
        assert!(check_image(&image(ImageFormat::Fatbin, &bytes)).is_err());
        bytes.extend([0; 8]);
        assert!(check_image(&image(ImageFormat::Fatbin, &bytes)).is_ok());
        assert!(check_image(&image(ImageFormat::Ptx, b".version 8.0\0")).is_err());
    }
}
