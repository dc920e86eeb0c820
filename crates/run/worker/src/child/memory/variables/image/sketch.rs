//! Builds images as small ELF files, section by section, for tests.

/// A section: name, size, flags and alignment.
pub(super) struct Sketched {
    pub name: &'static str,
    pub bytes: u64,
    pub flags: u64,
    pub align: u64,
}

/// Symbol of a variable: name, index of its section (0: none), offset, size and `st_other`.
pub(super) struct Symbol {
    pub name: &'static str,
    pub section: u16,
    pub at: u64,
    pub bytes: u64,
    /// `st_other`.
    pub other: u8,
}

/// `SHF_ALLOC | SHF_WRITE`
pub(super) const WRITABLE: u64 = 3;

const NOBITS: u32 = 8;
const HEADER: usize = 64;

/// Returns a section of variables.
pub(super) fn section(name: &'static str, bytes: u64) -> Sketched {
    Sketched { name, bytes, flags: WRITABLE, align: 4 }
}

/// Returns a symbol in a section.
pub(super) fn symbol(name: &'static str, section: u16, at: u64, bytes: u64) -> Symbol {
    Symbol { name, section, at, bytes, other: 0 }
}

/// Returns an image with these sections, numbered from 1, and these symbols. `tables` is the number
/// of symbol tables.
pub(super) fn image(sections: &[Sketched], symbols: &[Symbol], tables: usize) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut named = |name: &str| {
        let at = names.len() as u32;
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        at
    };
    let mut table = vec![0u8; 24];
    for symbol in symbols {
        table.extend(named(symbol.name).to_le_bytes());
        // Binding global, type object.
        table.extend([0x11, symbol.other]);
        table.extend(symbol.section.to_le_bytes());
        table.extend(symbol.at.to_le_bytes());
        table.extend(symbol.bytes.to_le_bytes());
    }
    let strings = (sections.len() + 1) as u32;
    // Name, type, flags, offset, size, link, alignment, size of an entry.
    let mut headers = vec![[0u64; 8]];
    for one in sections {
        let (name, kind) = (u64::from(named(one.name)), u64::from(NOBITS));
        headers.push([name, kind, one.flags, HEADER as u64, one.bytes, 0, one.align, 0]);
    }
    let (strtab, symtab) = (u64::from(named(".strtab")), u64::from(named(".symtab")));
    let (of_table, of_names) = (HEADER, HEADER + table.len());
    headers.push([strtab, 3, 0, of_names as u64, names.len() as u64, 0, 1, 0]);
    for _ in 0..tables {
        let bytes = table.len() as u64;
        headers.push([symtab, 2, 0, of_table as u64, bytes, strings.into(), 8, 24]);
    }
    let of_headers = (of_names + names.len()).next_multiple_of(8);
    let mut file = b"\x7fELF\x02\x01\x01\x33\x07\0\0\0\0\0\0\0".to_vec();
    file.extend([2, 0, 190, 0, 1, 0, 0, 0]);
    file.extend([0; 16]);
    file.extend((of_headers as u64).to_le_bytes());
    file.extend([0, 0, 0, 0, HEADER as u8, 0, 56, 0, 0, 0, 64, 0]);
    file.extend((headers.len() as u16).to_le_bytes());
    file.extend((strings as u16).to_le_bytes());
    file.extend(table);
    file.extend(names);
    file.resize(of_headers, 0);
    for [name, kind, flags, offset, bytes, link, align, entry] in headers {
        file.extend((name as u32).to_le_bytes());
        file.extend((kind as u32).to_le_bytes());
        [flags, 0, offset, bytes].iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend((link as u32).to_le_bytes());
        // For a symbol table: index of the first global symbol.
        file.extend(1u32.to_le_bytes());
        [align, entry].iter().for_each(|word| file.extend(word.to_le_bytes()));
    }
    file
}
