//! Renames a shared object within its file.
//!
//! For a `dlopen` of a plain name, the dynamic loader returns an object that is already open under
//! that name. cudarc requests `libcuda.so` first, but the emulator is called `libcuda.so.1`. On a
//! host that also has NVIDIA's `libcuda.so`, cudarc would thus get that library. If a copy of the
//! emulator whose name is shortened to `libcuda.so` is opened first, cudarc gets the copy.

use thiserror::Error;

/// Reason why a file could not be renamed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SonameError {
    /// The file is not a little-endian ELF64 shared object with a dynamic section, or is truncated.
    #[error("not a little-endian 64-bit ELF shared object with a dynamic section")]
    NotSharedObject,
    /// The shared object has no SONAME.
    #[error("the shared object has no SONAME")]
    NoName,
    /// The new name is not the beginning of the old one.
    #[error("SONAME {old:?} does not begin with {wanted:?}")]
    NotAPrefix {
        /// SONAME in the file.
        old: String,
        /// The new SONAME that was requested.
        wanted: String,
    },
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_NULL: u64 = 0;
const DT_STRTAB: u64 = 5;
const DT_SONAME: u64 = 14;

/// Returns a copy of the shared object `elf` whose SONAME is shortened to `name`. The old name must
/// begin with `name`, so that no byte moves.
///
/// # Errors
/// Fails if `elf` is not a shared object, has no name, or has a name that does not begin with
/// `name`.
pub fn shorten_soname(elf: &[u8], name: &str) -> Result<Vec<u8>, SonameError> {
    let at = soname_offset(elf).ok_or(SonameError::NotSharedObject)?.ok_or(SonameError::NoName)?;
    let tail = elf.get(at..).ok_or(SonameError::NotSharedObject)?;
    let end = tail.iter().position(|&byte| byte == 0).ok_or(SonameError::NotSharedObject)?;
    let old = &tail[..end];
    if !old.starts_with(name.as_bytes()) {
        let old = String::from_utf8_lossy(old).into_owned();
        return Err(SonameError::NotAPrefix { old, wanted: name.to_owned() });
    }
    let mut copy = elf.to_vec();
    copy[at + name.len()..at + end].fill(0);
    Ok(copy)
}

/// Returns the file offset of the SONAME. The outer `None` means that the file is malformed, and
/// the inner `None` that it has no SONAME.
fn soname_offset(elf: &[u8]) -> Option<Option<usize>> {
    if elf.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let segments = segments(elf)?;
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC)?;
    let (mut table, mut name) = (None, None);
    let mut at = usize::try_from(dynamic.offset).ok()?;
    let end = at.checked_add(usize::try_from(dynamic.bytes).ok()?)?;
    while at < end {
        match word(elf, at)? {
            DT_NULL => break,
            DT_STRTAB => table = Some(word(elf, at + 8)?),
            DT_SONAME => name = Some(word(elf, at + 8)?),
            _ => {}
        }
        at = at.checked_add(16)?;
    }
    let Some(name) = name else { return Some(None) };
    let address = table?.checked_add(name)?;
    let holds = |segment: &&Segment| {
        segment.kind == PT_LOAD
            && address.checked_sub(segment.address).is_some_and(|offset| offset < segment.bytes)
    };
    let home = segments.iter().find(holds)?;
    Some(Some(usize::try_from(home.offset.checked_add(address - home.address)?).ok()?))
}

struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    bytes: u64,
}

fn segments(elf: &[u8]) -> Option<Vec<Segment>> {
    let start = usize::try_from(word(elf, 0x20)?).ok()?;
    let size = usize::from(u16::from_le_bytes(elf.get(0x36..0x38)?.try_into().ok()?));
    let count = usize::from(u16::from_le_bytes(elf.get(0x38..0x3a)?.try_into().ok()?));
    let segment = |index: usize| {
        let at = start.checked_add(index * size)?;
        Some(Segment {
            kind: word(elf, at)? & 0xffff_ffff,
            offset: word(elf, at.checked_add(0x08)?)?,
            address: word(elf, at.checked_add(0x10)?)?,
            bytes: word(elf, at.checked_add(0x20)?)?,
        })
    };
    (0..count).map(segment).collect()
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let raw = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(raw.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a header, two segments, a dynamic section and a string table at address 0x1000 +
    /// offset.
    fn shared_object(name: &str) -> Vec<u8> {
        let mut elf = vec![0u8; 64 + 2 * 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[0x20] = 64;
        elf[0x36] = 56;
        elf[0x38] = 2;
        let dynamic = elf.len();
        for value in [DT_STRTAB, 0x1000 + dynamic as u64 + 48, DT_SONAME, 1, DT_NULL, 0] {
            elf.extend(value.to_le_bytes());
        }
        elf.push(0);
        elf.extend(name.as_bytes());
        elf.extend(b"\0after\0");
        let whole = elf.len() as u64;
        let mut segment = |at: usize, fields: [u64; 4]| {
            elf[at..at + 8].copy_from_slice(&fields[0].to_le_bytes());
            elf[at + 0x08..at + 0x10].copy_from_slice(&fields[1].to_le_bytes());
            elf[at + 0x10..at + 0x18].copy_from_slice(&fields[2].to_le_bytes());
            elf[at + 0x20..at + 0x28].copy_from_slice(&fields[3].to_le_bytes());
        };
        segment(64, [PT_LOAD, 0, 0x1000, whole]);
        segment(64 + 56, [PT_DYNAMIC, dynamic as u64, 0x1000 + dynamic as u64, 48]);
        elf
    }

    #[test]
    fn the_name_is_cut_and_nothing_else_changes() {
        let old = shared_object("libcuda.so.1");
        let new = shorten_soname(&old, "libcuda.so").unwrap();
        let changed: Vec<usize> = (0..old.len()).filter(|&at| old[at] != new[at]).collect();
        assert_eq!(changed.len(), 2);
        assert_eq!(old[changed[0]..changed[0] + 2], *b".1");
        assert_eq!(shorten_soname(&new, "libcuda.so").unwrap(), new);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = shorten_soname(&shared_object("libother.so"), "libcuda.so");
        assert!(
            matches!(refused, Err(SonameError::NotAPrefix { old, .. }) if old == "libother.so")
        );
        assert_eq!(shorten_soname(b"#!/bin/sh", "x"), Err(SonameError::NotSharedObject));
        let whole = shared_object("libcuda.so.1");
        for end in 0..whole.len() - 7 {
            assert!(shorten_soname(&whole[..end], "libcuda.so").is_err(), "{end} bytes");
        }
    }

    #[test]
    fn hostile_offsets_do_not_panic() {
        let whole = shared_object("libcuda.so.1");
        for at in (0..whole.len() - 8).step_by(4) {
            let mut bytes = whole.clone();
            bytes[at..at + 8].fill(0xff);
            let _ = shorten_soname(&bytes, "libcuda.so");
        }
    }
}
