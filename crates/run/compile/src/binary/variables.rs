//! Lists the global variables of an image that host code could fill: `__constant__` and
//! `__device__`.

use object::LittleEndian;
use object::elf::{FileHeader64, STT_OBJECT};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use serde::{Deserialize, Serialize};

use super::ptx::size_of;
use crate::demangle::demangle;
use warpgauge_code::source::{Token, TokenKind, tokenize};
use warpgauge_model::ImageFormat;

/// Maximum number of variables that are read from one image.
const MAX_VARIABLES: usize = 4096;

/// A `__constant__` or `__device__` variable of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageVariable {
    /// Symbol of the variable in the image.
    pub symbol: String,
    /// Name of the variable in the source, with namespaces.
    pub name: String,
    /// Size of the variable, bytes.
    pub bytes: u64,
    /// Whether the variable is declared `__constant__`.
    pub is_constant: bool,
    /// Whether the source initialises it with content other than zeros.
    pub is_initialised: bool,
}

impl ImageVariable {
    fn new(symbol: &str, bytes: u64, is_constant: bool, is_initialised: bool) -> Self {
        // In the symbol of a template instance, the parameter types that follow a function's name
        // are absent.
        let name = demangle(symbol).or_else(|| demangle(&format!("{symbol}vv")));
        let name = name.map_or_else(|| symbol.to_owned(), |function| plain(&function.name));
        Self { symbol: symbol.to_owned(), name, bytes, is_constant, is_initialised }
    }
}

/// Returns the variables of an image. The result is empty if the image does not list them.
pub(crate) fn variables_of(image: &[u8], format: ImageFormat) -> Vec<ImageVariable> {
    match format {
        ImageFormat::Ptx => in_ptx(&String::from_utf8_lossy(image)),
        ImageFormat::Cubin => in_cubin(image).unwrap_or_default(),
        ImageFormat::Fatbin | ImageFormat::Library => Vec::new(),
    }
}

/// Removes the names that compilers give to unnamed namespaces.
fn plain(name: &str) -> String {
    let is_own = |part: &&str| {
        !part.starts_with("_INTERNAL_")
            && !part.contains("_GLOBAL__N_")
            && *part != "(anonymous namespace)"
    };
    name.split("::").filter(is_own).collect::<Vec<_>>().join("::")
}

/// Reads declarations such as `.visible .const .align 4 .b8 c[16] = {…};` outside functions.
fn in_ptx(text: &str) -> Vec<ImageVariable> {
    let tokens = tokenize(text);
    let mut found = Vec::new();
    let (mut depth, mut at) = (0u32, 0);
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "." if depth == 0 => {
                let Some(word) = tokens.get(at).map(|token| token.text) else { break };
                if matches!(word, "global" | "const") && found.len() < MAX_VARIABLES {
                    let end = tokens[at..].iter().position(|token| matches!(token.text, ";" | "{"));
                    let end = end.map_or(tokens.len(), |end| at + end);
                    found.extend(declared(&tokens[at + 1..end], word == "const"));
                }
            }
            _ => {}
        }
    }
    found
}

/// Parses `.align 4 .b8 c[16] =` after the state space.
fn declared(tokens: &[Token<'_>], is_constant: bool) -> Option<ImageVariable> {
    let is_initialised = tokens.iter().any(|token| token.text == "=");
    let (mut element, mut rest) = (None, tokens);
    let symbol = loop {
        match rest {
            // `.attribute(.managed)`
            [dot, word, tail @ ..] if dot.text == "." && word.text == "attribute" => {
                rest = tail.get(tail.iter().position(|token| token.text == ")")? + 1..)?;
            }
            [dot, word, tail @ ..] if dot.text == "." => {
                element = size_of(word.text).or(element);
                rest = if word.text == "align" { tail.get(1..)? } else { tail };
            }
            [name, tail @ ..] if name.kind == TokenKind::Word => {
                rest = tail;
                break name.text;
            }
            _ => return None,
        }
    };
    let mut bytes = u64::from(element?);
    while let [open, count, close, tail @ ..] = rest
        && (open.text, close.text) == ("[", "]")
    {
        bytes = bytes.checked_mul(count.text.parse().ok()?)?;
        rest = tail;
    }
    Some(ImageVariable::new(symbol, bytes, is_constant, is_initialised))
}

fn in_cubin(bytes: &[u8]) -> Result<Vec<ImageVariable>, object::Error> {
    let header = FileHeader64::<LittleEndian>::parse(bytes)?;
    let endian = LittleEndian;
    let sections = header.sections(endian, bytes)?;
    let symbols = sections.symbols(endian, bytes, object::elf::SHT_SYMTAB)?;
    let mut found = Vec::new();
    for symbol in symbols.iter().filter(|symbol| symbol.st_type() == STT_OBJECT) {
        let index = object::SectionIndex(symbol.st_shndx(endian).into());
        let Ok(section) = sections.section(index) else { continue };
        let home = sections.section_name(endian, section)?;
        let is_constant = home == b".nv.constant3";
        if !is_constant && !home.starts_with(b".nv.global") || found.len() == MAX_VARIABLES {
            continue;
        }
        let name = String::from_utf8_lossy(symbol.name(endian, symbols.strings())?).into_owned();
        let is_initialised = match is_constant {
            false => home.starts_with(b".nv.global.init"),
            // The compiler stores constants without an initialiser as zeros.
            true => {
                let from = symbol.st_value(endian).saturating_sub(section.sh_addr(endian));
                let data = section.data(endian, bytes)?.get(from as usize..).unwrap_or_default();
                let own = data.len().min(symbol.st_size(endian) as usize);
                data[..own].iter().any(|byte| *byte != 0)
            }
        };
        found.push(ImageVariable::new(&name, symbol.st_size(endian), is_constant, is_initialised));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_ptx_are_read() {
        let text = ".version 8.0\n.target sm_80\n.const .align 4 .b8 plain[16];\n\
            .visible .const .align 4 .u32 count;\n.global .align 4 .b8 init[8] = {1, 0, 0, 0, 2};\n\
            .global .align 8 .b8 _ZN2ns4innsE[24];\n.global .align 4 .f32 _Z2tvIfE;\n\
            .global .align 4 .f32 square[3][5];\n\
            .global .align 4 .u32 _ZN30_INTERNAL_00000000_4_a_cu_init32_GLOBAL__N__00000000_4_a_cu_init6hiddenE;\n\
            .visible .entry k(.param .u64 p) { .shared .align 4 .b8 s[4]; ld.const.u32 %r1, [count]; ret; }\n\
            .extern .global .align 4 .f32 last;\n\
            .global .attribute(.managed) .align 4 .b8 shared[16];\n";
        let found = in_ptx(text);
        let shown = found.iter().map(|one| (one.name.as_str(), one.bytes, one.is_constant));
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                ("plain", 16, true),
                ("count", 4, true),
                ("init", 8, false),
                ("ns::inns", 24, false),
                ("tv<float>", 4, false),
                ("square", 60, false),
                ("hidden", 4, false),
                ("last", 4, false),
                ("shared", 16, false),
            ]
        );
        let initialised = found.iter().filter(|one| one.is_initialised);
        assert_eq!(initialised.map(|one| one.symbol.as_str()).collect::<Vec<_>>(), ["init"]);
    }

    #[test]
    fn cut_declarations_are_no_variables() {
        for text in [
            ".const",
            ".const .align",
            ".const .align 4 .b8",
            ".global .b8 x[",
            ".global x",
            ".global .attribute(",
        ] {
            let found = in_ptx(text);
            assert!(found.iter().all(|one| one.bytes <= 1), "{text}: {found:?}");
        }
        assert_eq!(variables_of(b"\x7fELF", ImageFormat::Cubin), []);
    }
}
