//! The variables of a linked image, by its sections.
//!
//! Each byte of a section of variables must belong to a symbol, since the driver places variables by
//! their symbols, and tells addresses for these alone. An image that shows anything else is refused with
//! the reason: a stranger may have written it.

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

/// The driver gives each variable whole pieces of this many bytes. A larger gap between variables is no
/// matter of alignment, however a section says it is aligned.
const PIECE: u64 = 256;

/// A variable, as an image lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub name: String,
    pub bytes: u64,
    pub is_constant: bool,
}

/// What a section holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Variables,
    Constants,
    /// A bank of constants that the compiler fills.
    Literals,
}

/// A section of variables.
struct Section {
    name: String,
    home: Home,
    start: u64,
    bytes: u64,
    align: u64,
    /// Parts that symbols cover: where they begin in the section, and their sizes.
    covered: Vec<(u64, u64)>,
}

/// Lists all variables of an image, each under its name.
///
/// # Errors
/// Why they are not certain to be all: a sentence's end for a report.
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
            return Err(format!("variable {name} reaches out of section {}", section.name));
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
    // What has no size takes no memory.
    Ok(found.into_values().filter(|one| one.bytes > 0).collect())
}

/// The sections that hold variables.
fn sections(elf: &ElfFile64<'_, Endianness>) -> Result<HashMap<SectionIndex, Section>, String> {
    let endian = elf.endian();
    let headers = elf.elf_header().section_headers(endian, elf.data());
    let headers = headers.map_err(|error| format!("the image cannot be read: {error}"))?;
    let tables = headers.iter().filter(|header| header.sh_type(endian) == SHT_SYMTAB).count();
    if tables != 1 {
        return Err(format!("the image has {tables} tables of symbols"));
    }
    let mut found = HashMap::new();
    for section in elf.sections().filter(|section| section.size() > 0) {
        let name = section.name().map_err(|error| format!("a section has no name: {error}"))?;
        let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
        let Some(home) = home(name) else {
            let both = u64::from(SHF_ALLOC | SHF_WRITE);
            if sh_flags & both == both && !is_of_a_launch(name) {
                return Err(format!("section {name} can be written to"));
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
    /// Whether symbols name all of it but for gaps that alignment explains.
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

/// Whether an image may import `name` and still be scrubbed for certain.
///
/// `.nv.reservedSmem.*` stands for the system's part of shared memory (compute capability 9.0 and
/// up): an offset, no memory of its own.
fn is_harmless(name: &str) -> bool {
    HARMLESS_IMPORTS.contains(&name) || name.starts_with(".nv.reservedSmem.")
}

/// Whether a section that can be written to stands for memory that each launch has for itself.
fn is_of_a_launch(name: &str) -> bool {
    name.starts_with(".nv.shared.") || name.starts_with(".nv.local.")
}

/// What a section holds, if it is variables. Of the banks of constants the third is the program's. The
/// others hold literals of the compiler, and with a kernel's name behind the number its arguments.
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
