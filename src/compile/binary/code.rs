//! Whether two images hold the same machine code for a kernel.

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

/// What determines how a kernel runs, from its image; `None` if the image is no cubin, or does not
/// hold the kernel.
///
/// That is its instructions, its constants and the values that its variables start with. Names of kernels, debug information and the order of
/// sections are left out, so that the same code under another name is the same.
fn essence(image: &[u8], symbol: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let elf = ElfFile64::<object::Endianness>::parse(image).ok()?;
    let text = elf.section_by_name(&format!(".text.{symbol}"))?;
    // Functions that it may call. Those it does not call make a difference where there is none:
    // the answer errs on the side of "not the same".
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
        // Bank 0 holds arguments, whose size is part of the kernel.
        name.starts_with(".nv.constant") && !name.starts_with(".nv.constant0.")
            || name == format!(".nv.constant0.{symbol}")
            || name == ".nv.global.init"
    });
    let mut bytes = constants.filter_map(|section| section.data().ok()).collect::<Vec<_>>();
    bytes.sort_unstable();
    Some((code, bytes.concat()))
}

/// Whether both cubins run the same instructions with the same constants; `None` if that cannot be
/// told (PTX, fat binaries).
pub(crate) fn same_code(a: (&[u8], &str), b: (&[u8], &str)) -> Option<bool> {
    Some(essence(a.0, a.1)? == essence(b.0, b.1)?)
}
