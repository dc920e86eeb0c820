//! Removes debugging information from a shared library.
//!
//! Loaders read program headers and the data that these refer to. Sections, and data that only they
//! refer to, come later in the file. Such data includes symbols for debuggers, which take 270 of
//! 415 MB in Triton's library. A library without them loads faster, too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use object::elf::{FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, pod};

/// Maximum size of the headers that are read, bytes. It is large enough for any library.
const HEADER_BYTES: u64 = 1 << 20;

/// Removes the data at the end of the file that no program header refers to. A file with such data
/// elsewhere is left unchanged.
pub(super) fn strip(library: &Path) -> io::Result<()> {
    let mut start = Vec::new();
    File::open(library)?.take(HEADER_BYTES).read_to_end(&mut start)?;
    let length = fs::metadata(library)?.len();
    let Some((header, end)) = loaded(&start).filter(|(_, end)| *end < length) else {
        return Ok(());
    };
    let mut file = OpenOptions::new().write(true).open(library)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(pod::bytes_of(&header))?;
    file.set_len(end)
}

/// Returns the file's header without its reference to sections, and the offset at which the loaded
/// data ends.
fn loaded(start: &[u8]) -> Option<(FileHeader64<Endianness>, u64)> {
    let header = FileHeader64::<Endianness>::parse(start).ok()?;
    let endian = header.endian().ok()?;
    let programs: &[ProgramHeader64<Endianness>] = header.program_headers(endian, start).ok()?;
    let table = header.e_phoff(endian).checked_add(size_of_val(programs) as u64)?;
    let ends = programs.iter().map(|one| one.p_offset(endian).checked_add(one.p_filesz(endian)));
    let end = ends.collect::<Option<Vec<u64>>>()?.into_iter().max()?.max(table);
    let sections = header.e_shoff(endian);
    // In most libraries the section headers come after the loaded data.
    if sections < end {
        return None;
    }
    let mut bare = *header;
    bare.e_shoff.set(endian, 0);
    bare.e_shnum.set(endian, 0);
    bare.e_shstrndx.set(endian, 0);
    Some((bare, end))
}

#[cfg(test)]
mod tests {
    use super::super::super::triton::testing::copied;
    use super::*;
    use warpgauge_sandbox::program::{ChildProgram, Environment};

    #[test]
    fn what_is_no_library_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        for bytes in [&b""[..], b"\x7fELF", b"text", &[0x7f; 200]] {
            fs::write(&path, bytes).unwrap();
            strip(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }

    /// A program is an ELF file like a library: this one continues to run without its sections.
    #[test]
    fn a_stripped_file_is_shorter_and_still_loads() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("program");
        fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let before = fs::metadata(&path).unwrap().len();
        strip(&path).unwrap();
        let after = fs::metadata(&path).unwrap().len();
        assert!(after < before, "{after} of {before} bytes");
        let short = place.path().join("short");
        copied(&path, &short);
        let program = ChildProgram::new(&short, Environment::Empty);
        let listed = program.args(["--list", "no_test_of_this_name"]).to_blocking().output();
        let listed = listed.unwrap();
        assert!(listed.status.success(), "{listed:?}");
        strip(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), after);
    }
}
