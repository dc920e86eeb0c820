//! Compares images: whether they contain the same machine code for a kernel, and whether they are
//! fully equivalent.

use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection};

/// Returns the parts of an image that determine how a kernel runs, or `None` if the image is not a
/// cubin or lacks the kernel.
///
/// These are its instructions, its constants and the initial values of its variables. Names of
/// kernels, debugging information and the order of sections are excluded, so that equal code under
/// different names compares equal.
fn essence(image: &[u8], symbol: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let elf = ElfFile64::<object::Endianness>::parse(image).ok()?;
    let text = elf.section_by_name(&format!(".text.{symbol}"))?;
    // The kernel may call any of these functions. A function that it does not call can make equal
    // kernels differ. The comparison then wrongly returns "different", which is harmless.
    let functions = elf.sections().filter(|section| {
        section
            .name()
            .is_ok_and(|name| name.starts_with(".text.") && name != format!(".text.{symbol}"))
    });
    let mut code = text.data().ok()?.to_vec();
    let mut others = functions.filter_map(|section| section.data().ok()).collect::<Vec<_>>();
    others.sort_unstable();
    others.into_iter().for_each(|other| code.extend_from_slice(other));
    let constants = elf.sections().filter(|section| {
        let name = section.name().unwrap_or_default();
        // Bank 0 contains the arguments; their size is part of the kernel.
        name.starts_with(".nv.constant") && !name.starts_with(".nv.constant0.")
            || name == format!(".nv.constant0.{symbol}")
            || name == ".nv.global.init"
    });
    let mut bytes = constants.filter_map(|section| section.data().ok()).collect::<Vec<_>>();
    bytes.sort_unstable();
    Some((code, bytes.concat()))
}

/// Returns whether both cubins run the same instructions with the same constants. Returns `None`
/// for other images (PTX, fat binaries).
pub(crate) fn same_code(a: (&[u8], &str), b: (&[u8], &str)) -> Option<bool> {
    Some(essence(a.0, a.1)? == essence(b.0, b.1)?)
}

/// A section: name, type, flags, size, link, info, alignment, and bytes.
type Section<'a> = (&'a [u8], u32, u64, u64, u32, u32, u64, &'a [u8]);

/// Returns whether no driver can distinguish two cubins. All sections must be equal, including
/// registers, sizes of variables and launch limits. Sections that describe the origin of the code
/// are ignored.
pub(crate) fn same_image(a: &[u8], b: &[u8]) -> bool {
    matches!((everything(a), everything(b)), (Some(a), Some(b)) if a == b)
}

/// Fields of an ELF header: machine, flags, ABI, and version of the ABI.
type Machine = (u16, u32, u8, u8);

/// Returns the header's architecture and flags, and every section that can affect a launch, in
/// order.
fn everything(image: &[u8]) -> Option<(Machine, Vec<Section<'_>>)> {
    let elf = ElfFile64::<Endianness>::parse(image).ok()?;
    let (endian, header) = (elf.endian(), elf.elf_header());
    let ident = header.e_ident();
    let machine =
        (header.e_machine(endian), header.e_flags(endian), ident.os_abi, ident.abi_version);
    let table = elf.elf_section_table();
    let mut sections = Vec::new();
    for section in table.iter() {
        let name = table.section_name(endian, section).ok()?;
        if tells_origin(name) {
            continue;
        }
        let data = section.data(endian, image).ok()?;
        sections.push((
            name,
            section.sh_type(endian),
            section.sh_flags(endian),
            section.sh_size(endian),
            section.sh_link(endian),
            section.sh_info(endian),
            section.sh_addralign(endian),
            data,
        ));
    }
    Some((machine, sections))
}

/// Returns whether a section is only for debuggers and people. No launch reads such a section.
fn tells_origin(name: &[u8]) -> bool {
    let prefixes: [&[u8]; 4] = [b".debug_", b".nv_debug_", b".note.nv.tkinfo", b".comment"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: &[u8] = include_bytes!("../../../../../tests/fixtures/cubin/cuda13_sm90.cubin");

    /// Returns name, offset and size of each section that has bytes in the file.
    fn places() -> Vec<(String, usize, usize)> {
        let elf = ElfFile64::<Endianness>::parse(IMAGE).unwrap();
        let place = |section: object::read::elf::ElfSection64<'_, '_, Endianness>| {
            let (offset, size) = section.file_range()?;
            (size > 0).then(|| (section.name().unwrap().to_owned(), offset as usize, size as usize))
        };
        elf.sections().filter_map(place).collect()
    }

    #[test]
    fn a_byte_makes_another_image_unless_it_is_for_people() {
        assert!(same_image(IMAGE, IMAGE));
        let (mut decisive, mut idle) = (0, 0);
        for (name, offset, size) in places() {
            let mut other = IMAGE.to_vec();
            other[offset + size / 2] ^= 1;
            let same = same_image(IMAGE, &other);
            assert_eq!(same, tells_origin(name.as_bytes()), "{name}");
            *(if same { &mut idle } else { &mut decisive }) += 1;
        }
        assert!(decisive > 5 && idle > 0, "{decisive} {idle}");
    }

    #[test]
    fn registers_and_shared_memory_are_part_of_it() {
        let elf = ElfFile64::<Endianness>::parse(IMAGE).unwrap();
        let table = elf.elf_header().e_shoff(elf.endian()) as usize;
        let mut changed = 0;
        for (index, section) in elf.elf_section_table().iter().enumerate() {
            let name = elf.elf_section_table().section_name(elf.endian(), section).unwrap();
            if !name.starts_with(b".text.") && !name.starts_with(b".nv.shared.") {
                continue;
            }
            // A kernel's registers are in its section's `sh_info`; its shared memory is a section
            // size.
            for field in [32, 44] {
                let mut other = IMAGE.to_vec();
                other[table + 64 * index + field] ^= 16;
                assert!(!same_image(IMAGE, &other), "{}", String::from_utf8_lossy(name));
                changed += 1;
            }
        }
        assert!(changed >= 4, "{changed}");
    }

    #[test]
    fn what_is_no_cubin_is_not_the_same() {
        assert!(!same_image(b"", b""));
        assert!(!same_image(&IMAGE[..IMAGE.len() / 2], &IMAGE[..IMAGE.len() / 2]));
        let other = include_bytes!("../../../../../tests/fixtures/cubin/cuda12_sm90.cubin");
        assert!(!same_image(IMAGE, other));
    }
}
