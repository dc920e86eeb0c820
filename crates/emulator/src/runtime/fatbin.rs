//! Fat binaries: the containers in which nvcc embeds PTX and machine code in a program.
//!
//! The layout is not documented. The fields read here were checked against fat binaries of nvcc 13.5.

use std::ffi::c_void;

/// Magic numbers of the wrapper that the compiler registers, and of the container that it points
/// to.
const WRAPPER: u32 = 0x4662_43b1;
const CONTAINER: u32 = 0xba55_ed50;
/// The version of a wrapper for relocatable code.
const RELOCATABLE: u32 = 2;
/// Kind of an entry that contains PTX.
const PTX: u16 = 1;
/// Flag bits of an entry that is compressed by one of two methods.
const COMPRESSED: u64 = 0x2000 | 0x8000;
/// Number of header bytes of a container that are read, and minimum size of an entry's header.
const HEADER: usize = 16;
const ENTRY_HEADER: usize = 64;
/// Maximum size of a container, bytes. A larger size indicates corruption.
const MAX_BYTES: u64 = 1 << 30;

/// The structure that the compiler registers.
#[repr(C)]
#[derive(Clone, Copy)]
struct Wrapper {
    magic: u32,
    version: u32,
    container: *const u8,
    linked: *const c_void,
}

/// Returns the PTX in a fat binary for a device of compute capability `sm` (major · 10 + minor), or
/// a description of the problem.
///
/// # Safety
/// `wrapper` is null or points to the wrapper of a fat binary that nvcc generated.
pub unsafe fn ptx_at(wrapper: *const c_void, sm: u32) -> Result<String, String> {
    if wrapper.is_null() {
        return Err("the fat binary is null".to_owned());
    }
    // SAFETY: it is not null, so it is a wrapper by this function's contract.
    let wrapper = unsafe { wrapper.cast::<Wrapper>().read_unaligned() };
    if wrapper.magic != WRAPPER {
        return Err(format!(
            "the fat binary begins with {:#010x}, which is not the magic number of a wrapper",
            wrapper.magic
        ));
    }
    if wrapper.version == RELOCATABLE {
        return Err("the program has relocatable device code, which the emulator cannot link: \
                    compile without -rdc=true"
            .to_owned());
    }
    let mut head = [0; HEADER];
    // SAFETY: a wrapper points to a container, which begins with a header of that size.
    unsafe { std::ptr::copy_nonoverlapping(wrapper.container, head.as_mut_ptr(), HEADER) };
    let bytes = container_bytes(&head).ok_or("the fat binary is damaged")?;
    // SAFETY: the container is as long as its header says; it is part of the program.
    ptx_in(unsafe { std::slice::from_raw_parts(wrapper.container, bytes) }, sm)
}

/// Returns the length of a container, including its header.
fn container_bytes(head: &[u8]) -> Option<usize> {
    if number(head, 0, 4)? != u64::from(CONTAINER) {
        return None;
    }
    let bytes = number(head, 6, 2)?.checked_add(number(head, 8, 8)?)?;
    (bytes <= MAX_BYTES).then_some(bytes as usize)
}

/// An entry of a fat binary that contains PTX.
#[derive(Clone, Copy)]
struct Entry<'a> {
    sm: u32,
    compressed: bool,
    payload: &'a [u8],
}

/// Returns the PTX in a container for the newest architecture that the device supports.
fn ptx_in(container: &[u8], sm: u32) -> Result<String, String> {
    let entries = entries(container).ok_or("the fat binary is damaged")?;
    let fits = entries.iter().filter(|entry| entry.sm <= sm).max_by_key(|entry| entry.sm);
    let Some(entry) = fits else {
        return Err(match entries.iter().map(|entry| entry.sm).min() {
            Some(least) => format!(
                "the program contains PTX for sm_{least} and newer, but the emulated device is sm_{sm}: \
                 set WARPGAUGE_EMULATOR_CC={least} or compile with -gencode \
                 arch=compute_{sm},code=compute_{sm}"
            ),
            None => format!(
                "the program contains no PTX, and the emulator executes only PTX: compile with \
                 -gencode arch=compute_{sm},code=compute_{sm}"
            ),
        });
    };
    if entry.compressed {
        return Err("the PTX in the program is compressed: compile with --no-compress".to_owned());
    }
    let end = entry.payload.iter().position(|&byte| byte == 0).unwrap_or(entry.payload.len());
    Ok(String::from_utf8_lossy(&entry.payload[..end]).into_owned())
}

/// Returns the entries that contain PTX, or `None` if the container is corrupt.
fn entries(container: &[u8]) -> Option<Vec<Entry<'_>>> {
    let mut found = Vec::new();
    let mut rest = container.get(number(container, 6, 2)? as usize..)?;
    while !rest.is_empty() {
        let header = number(rest, 4, 4)? as usize;
        let end = header.checked_add(usize::try_from(number(rest, 8, 8)?).ok()?)?;
        let payload = rest.get(header..end).filter(|_| header >= ENTRY_HEADER)?;
        if number(rest, 0, 2)? == u64::from(PTX) {
            let compressed = number(rest, 40, 8)? & COMPRESSED != 0;
            found.push(Entry { sm: number(rest, 28, 4)? as u32, compressed, payload });
        }
        rest = &rest[end..];
    }
    Some(found)
}

/// Reads a little-endian number of up to eight bytes.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let mut whole = [0; 8];
    whole[..width].copy_from_slice(bytes.get(at..at.checked_add(width)?)?);
    Some(u64::from_le_bytes(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u16, sm: u32, flags: u64, payload: &[u8]) -> Vec<u8> {
        let mut out = vec![0; ENTRY_HEADER];
        out[..2].copy_from_slice(&kind.to_le_bytes());
        out[4..8].copy_from_slice(&64u32.to_le_bytes());
        out[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        out[28..32].copy_from_slice(&sm.to_le_bytes());
        out[40..48].copy_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(payload);
        out
    }

    fn container(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut out = CONTAINER.to_le_bytes().to_vec();
        out.extend_from_slice(&[1, 0, 16, 0]);
        out.extend_from_slice(&(body.len() as u64).to_le_bytes());
        out.extend_from_slice(&body);
        out
    }

    #[test]
    fn the_newest_ptx_that_fits_is_taken() {
        let all = container(&[
            entry(2, 90, 0x11, b"machine code"),
            entry(PTX, 75, 0x11, b"for 75\0\0\0"),
            entry(PTX, 80, 0x11, b"for 80\0"),
            entry(PTX, 90, 0x11, b"for 90"),
        ]);
        assert_eq!(container_bytes(&all), Some(all.len()));
        assert_eq!(ptx_in(&all, 90).unwrap(), "for 90");
        assert_eq!(ptx_in(&all, 86).unwrap(), "for 80");
        assert_eq!(ptx_in(&all, 75).unwrap(), "for 75");
        assert!(ptx_in(&all, 70).unwrap_err().contains("WARPGAUGE_EMULATOR_CC=75"));
    }

    #[test]
    fn what_cannot_be_read_says_what_to_do() {
        let packed = container(&[entry(PTX, 80, 0x8011, b"\x28\xb5\x2f\xfd")]);
        assert!(ptx_in(&packed, 90).unwrap_err().contains("--no-compress"));
        let native = container(&[entry(2, 90, 0x11, b"machine code")]);
        assert!(ptx_in(&native, 90).unwrap_err().contains("code=compute_90"));
        let whole = container(&[entry(PTX, 80, 0x11, b"text")]);
        for length in 0..whole.len() {
            let cut = &whole[..length];
            assert!(length == HEADER || ptx_in(cut, 90).is_err(), "{length}");
        }
        assert_eq!(container_bytes(&[0; HEADER]), None);
        let relocatable = Wrapper {
            magic: WRAPPER,
            version: RELOCATABLE,
            container: whole.as_ptr(),
            linked: std::ptr::null(),
        };
        // SAFETY: a wrapper around a container, both of which are there.
        let refused = unsafe { ptx_at((&raw const relocatable).cast(), 90) };
        assert!(refused.unwrap_err().contains("-rdc=true"));
    }
}
