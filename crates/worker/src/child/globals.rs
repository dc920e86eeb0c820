//! Which variables an image has: their memory outlives the module and must be zeroed before.

use std::collections::{BTreeSet, HashSet};

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind, SymbolSection};

use warpgauge_model::{Image, ImageFormat};

/// Functions of the device runtime that keep nothing of a kernel's data once output is flushed.
const HARMLESS_IMPORTS: [&str; 3] = ["vprintf", "__assertfail", "__assert_fail"];

/// Most variables that are zeroed one by one.
const MAX_VARIABLES: usize = 4096;

/// Variables of an image.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Variables {
    /// Names of those that hold memory of the module's own.
    pub names: Vec<String>,
    /// Why zeroing those is not enough.
    pub unprovable: Option<String>,
}

impl Variables {
    fn unprovable(reason: impl Into<String>) -> Self {
        Self { names: Vec::new(), unprovable: Some(reason.into()) }
    }
}

/// Finds the variables of an image.
pub(super) fn variables(image: &Image) -> Variables {
    let found = match image.format {
        ImageFormat::Ptx => of_ptx(&image.bytes),
        ImageFormat::Cubin => of_cubin(&image.bytes),
        ImageFormat::Fatbin => Variables::unprovable("the variables of a fat binary are not known"),
    };
    if found.names.len() > MAX_VARIABLES {
        return Variables::unprovable(format!("{} variables", found.names.len()));
    }
    found
}

fn of_cubin(bytes: &[u8]) -> Variables {
    let elf = match ElfFile64::<object::Endianness>::parse(bytes) {
        Ok(elf) => elf,
        Err(error) => return Variables::unprovable(format!("the image cannot be read: {error}")),
    };
    let mut names = BTreeSet::new();
    let mut uncovered: HashSet<_> = elf
        .sections()
        .filter(|section| is_variable_section(section.name().unwrap_or_default()))
        .filter(|section| section.size() > 0)
        .map(|section| section.index())
        .collect();
    for symbol in elf.symbols() {
        let name = symbol.name().unwrap_or_default();
        match symbol.section() {
            SymbolSection::Undefined if !name.is_empty() && !is_harmless(name) => {
                return Variables::unprovable(format!("the image uses {name}"));
            }
            SymbolSection::Section(section) if symbol.kind() == SymbolKind::Data => {
                let home = elf.section_by_index(section);
                let home = home.as_ref().ok().and_then(|home| home.name().ok());
                if home.is_some_and(is_variable_section) {
                    uncovered.remove(&section);
                    names.insert(name.to_owned());
                }
            }
            _ => {}
        }
    }
    let unprovable =
        (!uncovered.is_empty()).then(|| "the image has variables without a name".to_owned());
    Variables { names: names.into_iter().collect(), unprovable }
}

/// Whether an image may import `name` and still be scrubbed for certain.
///
/// `.nv.reservedSmem.*` stands for the system's part of shared memory (compute capability 9.0 and
/// up): an offset, no memory of its own.
fn is_harmless(name: &str) -> bool {
    HARMLESS_IMPORTS.contains(&name) || name.starts_with(".nv.reservedSmem.")
}

/// Sections of writable variables. Constants are not among them: nothing can write them, and a
/// kernel's own constants are no data of its caller.
fn is_variable_section(name: &str) -> bool {
    name.starts_with(".nv.global") || name == ".bss" || name == ".data"
}

/// Finds declarations in module scope: `.global .align 4 .b8 name[16] = {…};`.
fn of_ptx(bytes: &[u8]) -> Variables {
    let text = strip_comments(&String::from_utf8_lossy(bytes));
    let mut names = Vec::new();
    let mut depth = 0usize;
    let mut statement = String::new();
    for character in text.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => {
                match declaration(&statement) {
                    Ok(name) => names.extend(name),
                    Err(reason) => return Variables::unprovable(reason),
                }
                statement.clear();
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            statement.push(character);
            // A body ends without a semicolon, an initialiser with one.
            if character == '}' && !statement.contains('=') {
                statement.clear();
            }
        }
    }
    // Variables may also be declared inside functions.
    if inner_global(&text, &names) {
        return Variables::unprovable("the image declares variables inside functions");
    }
    Variables { names, unprovable: None }
}

/// Looks at one statement of module scope.
fn declaration(statement: &str) -> Result<Option<String>, String> {
    let words: Vec<&str> = statement.split_whitespace().collect();
    // Directives without a semicolon (.version, .target, .address_size) may stand in front.
    let is = |word: &&str| words.contains(word);
    if is(&".extern") && is(&".func") {
        let name = imported_function(statement);
        let harmless = HARMLESS_IMPORTS.contains(&name.as_str());
        return if harmless { Ok(None) } else { Err(format!("the image uses {name}")) };
    }
    let Some(at) = words.iter().position(|word| *word == ".global") else {
        return Ok(None);
    };
    if is(&".extern") {
        return Err("the image uses a variable of another".to_owned());
    }
    let declared = words[at..].join(" ");
    let declared = declared.split('=').next().unwrap_or_default();
    let declared = declared.split('[').next().unwrap_or_default();
    match declared.split_whitespace().last() {
        Some(name) if !name.starts_with('.') && !declared.contains(',') => {
            Ok(Some(name.to_owned()))
        }
        _ => Err("the image declares variables in a form that is not understood".to_owned()),
    }
}

/// The last word outside parentheses: `.extern .func (.param .b32 r) name (.param .b64 a)`.
fn imported_function(statement: &str) -> String {
    let mut depth = 0usize;
    let mut outside = String::new();
    for character in statement.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            other if depth == 0 => outside.push(other),
            _ => {}
        }
    }
    outside.split_whitespace().next_back().unwrap_or_default().to_owned()
}

/// Whether `.global` begins a declaration anywhere but in those found: in instructions it follows
/// an opcode without a space (`ld.global.f32`).
fn inner_global(text: &str, names: &[String]) -> bool {
    let declared = text.split_whitespace().filter(|word| *word == ".global").count();
    declared != names.len()
}

fn strip_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        out.push_str(&rest[..at]);
        out.push(' ');
        let (end, skip) = if rest[at..].starts_with("/*") { ("*/", 2) } else { ("\n", 0) };
        rest = rest[at + 2..].find(end).map_or("", |end| &rest[at + 2 + end + skip..]);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ptx(text: &str) -> Variables {
        variables(&Image { bytes: text.as_bytes().into(), format: ImageFormat::Ptx })
    }

    #[test]
    fn ptx_declarations_are_found_and_instructions_are_not() {
        let found = ptx(".version 8.0\n.target sm_75\n.address_size 64\n\
             // .global .u32 commented;\n\
             .visible .global .align 4 .u32 counter;\n\
             .global .align 8 .b8 table[16] = {1, 2, 3};\n\
             .const .align 4 .f32 pi = 0f40490FDB;\n\
             .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b)\n;\n\
             .visible .entry k(.param .u64 p) { .reg .b32 %r<2>; ld.global.u32 %r1, [%rd1]; ret; }\n\
             .global .align 1 .b8 $str[4] = {104, 105, 10};\n");
        assert_eq!(found.names, ["counter", "table", "$str"]);
        assert_eq!(found.unprovable, None);
    }

    #[test]
    fn the_system_s_part_of_shared_memory_is_no_variable() {
        assert!(is_harmless(".nv.reservedSmem.offset0") && is_harmless("vprintf"));
        assert!(!is_harmless("malloc") && !is_harmless(".nv.global"));
    }

    #[test]
    fn what_zeroing_cannot_cover_is_said() {
        let malloc = ptx(".extern .func (.param .b64 r) malloc (.param .b64 n)\n;\n");
        assert!(malloc.unprovable.unwrap().contains("malloc"));
        assert!(ptx(".visible .entry k() { .global .u32 hidden; ret; }").unprovable.is_some());
        assert!(ptx(".extern .global .u32 elsewhere;").unprovable.is_some());
        assert!(ptx(".global .u32 a, b;").unprovable.is_some());
        let fatbin = Image { bytes: [].into(), format: ImageFormat::Fatbin };
        assert!(variables(&fatbin).unprovable.is_some());
        let cubin = Image { bytes: b"\x7fELF rubbish"[..].into(), format: ImageFormat::Cubin };
        assert!(variables(&cubin).unprovable.is_some());
    }
}
