//! Lists the variables of a linked image by its sections.
//!
//! Each byte of a section of variables must belong to a symbol: the driver places variables by
//! their symbols, and returns addresses only for symbols. The image is submitted data, so a list
//! that may be incomplete is rejected with a reason.

use std::collections::{BTreeMap, HashMap};

use object::elf::{SHF_ALLOC, SHF_WRITE, SHT_SYMTAB};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, SectionFlags, SectionIndex, SymbolFlags,
    SymbolKind, SymbolSection,
};

use super::{HARMLESS_IMPORTS, managed, uses};

/// Bit of a symbol's `st_other`: the variable is managed memory (`STO_CUDA_MANAGED`).
const MANAGED: u8 = 4;

/// The driver allocates variables in multiples of this many bytes. A larger gap between variables
/// is not due to alignment, regardless of the alignment that the section declares.
const PIECE: u64 = 256;

/// A variable that an image lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub name: String,
    pub bytes: u64,
    pub is_constant: bool,
}

/// Kind of data in a section.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Variables,
    Constants,
    /// A bank of constants that the compiler fills, such as literals.
    Literals,
}

/// A section of variables.
struct Section {
    name: String,
    home: Home,
    start: u64,
    bytes: u64,
    align: u64,
    /// Ranges that symbols cover: offset in the section, and size.
    covered: Vec<(u64, u64)>,
}

/// Lists all variables of an image, each under its name.
///
/// # Errors
/// Returns why the list may be incomplete, in words that end a sentence of a report.
pub(super) fn listed(bytes: &[u8]) -> Result<Vec<Listed>, String> {
    let unreadable = |error: object::read::Error| format!("the image cannot be read: {error}");
    let elf = ElfFile64::<Endianness>::parse(bytes).map_err(unreadable)?;
    let mut sections = sections(&elf)?;
    let mut found = BTreeMap::new();
    for symbol in elf.symbols() {
        let name = symbol.name().map_err(unreadable)?;
        let index = match symbol.section() {
            SymbolSection::Undefined if !name.is_empty() && !is_harmless(name) => {
                return Err(uses(name));
            }
            SymbolSection::Common => return Err(format!("variable {name} has no section")),
            SymbolSection::Section(index) if symbol.kind() != SymbolKind::Section => index,
            _ => continue,
        };
        let Some(section) = sections.get_mut(&index) else { continue };
        let SymbolFlags::Elf { st_other, .. } = symbol.flags() else { continue };
        if st_other & MANAGED != 0 {
            return Err(managed(name));
        }
        if section.home == Home::Literals {
            return Err(format!("variable {name} is in section {}", section.name));
        }
        let at = symbol.address().checked_sub(section.start);
        let ends_within =
            |at: &u64| at.checked_add(symbol.size()).is_some_and(|end| end <= section.bytes);
        let Some(at) = at.filter(ends_within) else {
            return Err(format!("variable {name} extends beyond section {}", section.name));
        };
        section.covered.push((at, symbol.size()));
        let is_constant = section.home == Home::Constants;
        let one = Listed { name: name.to_owned(), bytes: symbol.size(), is_constant };
        if name.is_empty() || found.insert(name, one).is_some() {
            return Err(format!("there are several variables called \"{name}\""));
        }
    }
    let mut named = sections.values().filter(|section| section.home != Home::Literals);
    if let Some(section) = named.find(|section| !section.is_covered()) {
        return Err(format!("no symbol names a part of section {}", section.name));
    }
    // Symbols without a size occupy no memory.
    Ok(found.into_values().filter(|one| one.bytes > 0).collect())
}

/// Returns the sections that contain variables.
fn sections(elf: &ElfFile64<'_, Endianness>) -> Result<HashMap<SectionIndex, Section>, String> {
    let endian = elf.endian();
    let headers = elf.elf_header().section_headers(endian, elf.data());
    let headers = headers.map_err(|error| format!("the image cannot be read: {error}"))?;
    let tables = headers.iter().filter(|header| header.sh_type(endian) == SHT_SYMTAB).count();
    if tables != 1 {
        return Err(format!("the image has {tables} symbol tables"));
    }
    let mut found = HashMap::new();
    for section in elf.sections().filter(|section| section.size() > 0) {
        let name = section.name().map_err(|error| format!("a section has no name: {error}"))?;
        let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
        let Some(home) = home(name) else {
            let both = u64::from(SHF_ALLOC | SHF_WRITE);
            if sh_flags & both == both && !is_of_a_launch(name) {
                return Err(format!("section {name} is writable"));
            }
            continue;
        };
        let section_of = Section {
            name: name.to_owned(),
            home,
            start: section.address(),
            bytes: section.size(),
            align: section.align(),
            covered: Vec::new(),
        };
        found.insert(section.index(), section_of);
    }
    Ok(found)
}

impl Section {
    /// Returns whether symbols cover the whole section except for gaps due to alignment.
    fn is_covered(&self) -> bool {
        let mut covered = self.covered.clone();
        covered.sort_unstable();
        let gap = |from: u64, to: u64| to.saturating_sub(from) >= self.align.clamp(1, PIECE);
        let mut end = 0;
        for (at, bytes) in covered {
            if gap(end, at) {
                return false;
            }
            end = end.max(at + bytes);
        }
        !gap(end, self.bytes)
    }
}

/// Returns whether a module that imports `name` can still be scrubbed completely.
///
/// `.nv.reservedSmem.*` is the system's part of shared memory (compute capability 9.0 and up). It
/// is an offset without separate memory.
fn is_harmless(name: &str) -> bool {
    HARMLESS_IMPORTS.contains(&name) || name.starts_with(".nv.reservedSmem.")
}

/// Returns whether a writable section describes memory that is private to each launch.
fn is_of_a_launch(name: &str) -> bool {
    name.starts_with(".nv.shared.") || name.starts_with(".nv.local.")
}

/// Returns the kind of variables in a section; `None` for any other section. Constant bank 3 holds
/// the program's constants. The other banks hold the compiler's literals or, if a kernel's name
/// follows the number, that kernel's arguments.
fn home(name: &str) -> Option<Home> {
    if let Some(bank) = name.strip_prefix(".nv.constant") {
        let is_of_module = bank.bytes().all(|byte| byte.is_ascii_digit());
        let home = if bank == "3" { Home::Constants } else { Home::Literals };
        return is_of_module.then_some(home);
    }
    let is_variables = [".nv.global", ".bss", ".data"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    is_variables.then_some(Home::Variables)
}

#[cfg(test)]
mod sketch;
#[cfg(test)]
mod tests;
