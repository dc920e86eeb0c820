//! A copy of the emulator under the other name that programs open the driver by.
//!
//! The library's SONAME is `libcuda.so.1`. A program that opens `libcuda.so` on a host with a real
//! driver would get that one, even with the emulator open, because the loader compares names. A
//! copy whose SONAME is `libcuda.so` answers to it. The names differ in their ends only, so the
//! copy is the same file with two bytes cleared.

use std::io::{self, Error, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FULL: &[u8] = b"libcuda.so.1\0";
const SHORT: &[u8] = b"libcuda.so";

/// ELF constants (System V ABI, chapters 4 and 5).
const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_NULL: u64 = 0;
const DT_STRTAB: u64 = 5;
const DT_SONAME: u64 = 14;

fn bad(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what.to_owned())
}

/// A little-endian number of `len` bytes at an offset of the file.
fn number(file: &[u8], at: usize, len: usize) -> io::Result<u64> {
    let bytes = at.checked_add(len).and_then(|end| file.get(at..end));
    let bytes = bytes.ok_or_else(|| bad("the ELF file ends within its headers"))?;
    Ok(bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    bytes: u64,
}

fn segments(file: &[u8]) -> io::Result<Vec<Segment>> {
    // 64-bit, little-endian.
    if file.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err(bad("not a 64-bit little-endian ELF file"));
    }
    let table = number(file, 32, 8)? as usize;
    let (size, count) = (number(file, 54, 2)? as usize, number(file, 56, 2)? as usize);
    let segment = |index: usize| {
        let at = index.checked_mul(size).and_then(|skip| skip.checked_add(table));
        let at = at.ok_or_else(|| bad("the ELF file's program headers are nowhere"))?;
        Ok(Segment {
            kind: number(file, at, 4)?,
            offset: number(file, at + 8, 8)?,
            address: number(file, at + 16, 8)?,
            bytes: number(file, at + 32, 8)?,
        })
    };
    (0..count).map(segment).collect()
}

/// Where in the file the SONAME is.
fn soname_offset(file: &[u8]) -> io::Result<usize> {
    let segments = segments(file)?;
    let dynamic = segments.iter().find(|segment| segment.kind == PT_DYNAMIC);
    let dynamic = dynamic.ok_or_else(|| bad("the ELF file has no dynamic section"))?;
    let (mut strings, mut soname) = (None, None);
    for index in 0..dynamic.bytes / 16 {
        let at = (dynamic.offset + 16 * index) as usize;
        let value = number(file, at + 8, 8)?;
        match number(file, at, 8)? {
            DT_NULL => break,
            DT_STRTAB => strings = Some(value),
            DT_SONAME => soname = Some(value),
            _ => {}
        }
    }
    let strings = strings.ok_or_else(|| bad("the ELF file has no dynamic strings"))?;
    let soname = soname.ok_or_else(|| bad("the library has no SONAME"))?;
    let address = strings.checked_add(soname).ok_or_else(|| bad("the SONAME is nowhere"))?;
    let inside = |segment: &&Segment| {
        segment.kind == PT_LOAD && address.wrapping_sub(segment.address) < segment.bytes
    };
    let load = segments.iter().find(inside).ok_or_else(|| bad("the SONAME is not in the file"))?;
    Ok((address - load.address + load.offset) as usize)
}

/// Writes a copy of the emulator that answers to `libcuda.so` to `dir/libcuda.so`, and returns
/// its path. Open the copy *instead of* the original: each has its own state.
///
/// # Errors
/// `emulator` cannot be read or is not a library with SONAME `libcuda.so.1`; `dir` cannot be
/// written to.
pub fn soname_alias(emulator: &Path, dir: &Path) -> io::Result<PathBuf> {
    let mut file = std::fs::read(emulator)?;
    let at = soname_offset(&file)?;
    let name = at.checked_add(FULL.len()).and_then(|end| file.get_mut(at..end));
    let name = name.filter(|name| *name == FULL);
    let name = name.ok_or_else(|| bad("the library's SONAME is not libcuda.so.1"))?;
    name[SHORT.len()..].fill(0);
    let path = dir.join("libcuda.so");
    // Written beside and renamed, so that nobody opens half a library.
    let part = dir.join(format!("libcuda.so.{}.part", std::process::id()));
    std::fs::write(&part, &file)?;
    std::fs::set_permissions(&part, std::fs::Permissions::from_mode(0o755))?;
    std::fs::rename(&part, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_libraries_are_refused() {
        for file in [&b""[..], b"#!/bin/sh", b"\x7fELF\x02\x01", &[0x7f; 200]] {
            assert!(soname_offset(file).is_err());
        }
        let mut hostile = vec![0xff; 64];
        hostile[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert!(soname_offset(&hostile).is_err());
    }
}
