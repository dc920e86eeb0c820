//! The variables that machine code declares.

use std::collections::{BTreeSet, HashMap};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SectionIndex, SymbolKind, SymbolSection};

use super::{HARMLESS_IMPORTS, Variables};

/// What a section holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    Variables,
    Constants,
}

/// Part of a section: where it begins, and its size, bytes.
type Range = (u64, u64);

/// Finds the symbols of the sections of variables, which they must cover.
pub(crate) fn variables(bytes: &[u8]) -> Variables {
    let elf = match ElfFile64::<object::Endianness>::parse(bytes) {
        Ok(elf) => elf,
        Err(error) => return Variables::unprovable(format!("the image cannot be read: {error}")),
    };
    let homes = elf.sections().filter(|section| section.size() > 0).filter_map(|section| {
        let home = home(section.name().unwrap_or_default())?;
        Some((section.index(), (home, Vec::new())))
    });
    let mut homes = homes.collect::<HashMap<SectionIndex, (Home, Vec<Range>)>>();
    let (mut names, mut constants) = (BTreeSet::new(), BTreeSet::new());
    for symbol in elf.symbols() {
        let name = symbol.name().unwrap_or_default();
        match symbol.section() {
            SymbolSection::Undefined if !name.is_empty() && !is_harmless(name) => {
                return Variables::unprovable(format!("the image uses {name}"));
            }
            SymbolSection::Section(section) if symbol.kind() == SymbolKind::Data => {
                let Some((home, covered)) = homes.get_mut(&section) else { continue };
                covered.push((symbol.address(), symbol.size()));
                let list = if *home == Home::Constants { &mut constants } else { &mut names };
                list.insert(name.to_owned());
            }
            _ => {}
        }
    }
    let uncovered = elf.sections().any(|section| {
        let covered = homes.remove(&section.index());
        covered.is_some_and(|(_, covered)| !covers(covered, &section))
    });
    Variables {
        names: names.into_iter().collect(),
        constants: constants.into_iter().collect(),
        unprovable: uncovered.then(|| "the image has variables without a name".to_owned()),
    }
}

/// Whether symbols name all of a section but for gaps that alignment explains.
fn covers<'data>(mut covered: Vec<Range>, section: &impl ObjectSection<'data>) -> bool {
    covered.sort_unstable();
    let start = section.address();
    let mut end = start;
    let gap = |from: u64, to: u64| to.saturating_sub(from) >= section.align().max(1);
    for (at, bytes) in covered {
        if gap(end, at) {
            return false;
        }
        end = end.max(at.saturating_add(bytes));
    }
    !gap(end, start.saturating_add(section.size()))
}

/// Whether an image may import `name` and still be scrubbed for certain.
///
/// `.nv.reservedSmem.*` stands for the system's part of shared memory (compute capability 9.0 and
/// up): an offset, no memory of its own.
fn is_harmless(name: &str) -> bool {
    HARMLESS_IMPORTS.contains(&name) || name.starts_with(".nv.reservedSmem.")
}

/// What a section holds, if it is variables. Of the banks of constants the third is the program's; the
/// others hold arguments, and literals of the compiler.
fn home(name: &str) -> Option<Home> {
    match name {
        ".nv.constant3" => Some(Home::Constants),
        ".bss" | ".data" => Some(Home::Variables),
        _ => name.starts_with(".nv.global").then_some(Home::Variables),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_s_part_of_shared_memory_is_no_variable() {
        assert!(is_harmless("vprintf") && is_harmless(".nv.reservedSmem.offset0"));
        assert!(!is_harmless("malloc") && !is_harmless(".nv.global"));
    }

    #[test]
    fn constants_of_the_program_are_told_from_those_of_the_compiler() {
        assert!(home(".nv.constant3") == Some(Home::Constants));
        assert!(home(".nv.global.init") == Some(Home::Variables));
        assert!(home(".nv.constant0.k").is_none() && home(".text.k").is_none());
    }
}
