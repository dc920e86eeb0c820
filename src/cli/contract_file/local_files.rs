//! Local files that a CUDA source includes. They travel with it in `files`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::{ContractFileError, MAX_SOURCE_BYTES, read_source};
use warpgauge_code::source::{TokenKind, included_header, tokens};
use warpgauge_contract::KernelType;

/// Most files of one source; a server accepts no more.
const MAX_FILES: usize = 256;

/// Extensions of files that are collected: a source cannot have other files of the caller's sent.
const EXTENSIONS: [&str; 16] = [
    "h", "hh", "hpp", "hxx", "cuh", "cu", "c", "cc", "cpp", "cxx", "inl", "inc", "ipp", "tpp",
    "impl", "def",
];

/// Files that a source includes, directly or through others.
#[derive(Debug, Default)]
pub(crate) struct LocalFiles {
    /// Texts by their paths from the innermost directory that contains all of them and the source.
    pub files: BTreeMap<String, String>,
    /// Path of the source from that directory, if it lies deeper.
    pub source_path: Option<String>,
}

impl LocalFiles {
    /// Whether sources of this type include files.
    pub(crate) fn belong_to(kernel_type: KernelType) -> bool {
        matches!(kernel_type, KernelType::Cuda | KernelType::Program)
    }

    /// Collects the files that the source at `path` includes by name in quotes. Files that do not exist are those of a
    /// toolkit, or the compiler reports them.
    ///
    /// # Errors
    /// A file cannot be read, is too large, or is no text, or there are too many.
    pub(crate) fn of(source: &str, path: &Path) -> Result<Self, ContractFileError> {
        let failed = |error| ContractFileError::Read { path: path.to_owned(), source: error };
        let path = path.canonicalize().map_err(failed)?;
        let own = directory_of(&path);
        let mut found: BTreeMap<PathBuf, String> = BTreeMap::new();
        let mut waiting = included(source, [&own, &own]);
        let mut bytes = 0;
        while let Some(next) = waiting.pop_first() {
            if next == path || found.contains_key(&next) {
                continue;
            }
            let text = read_source(&next)?;
            bytes += text.len() as u64;
            if bytes > MAX_SOURCE_BYTES || found.len() == MAX_FILES {
                return Err(ContractFileError::TooLarge { path, limit: MAX_SOURCE_BYTES });
            }
            waiting.extend(included(&text, [&directory_of(&next), &own]));
            found.insert(next, text);
        }
        let directories = found.keys().map(|file| directory_of(file));
        let root = directories.fold(own.clone(), |root, directory| common(&root, &directory));
        let source_path = Some(named(&path, &root)).filter(|_| !found.is_empty() && root != own);
        let files = found.into_iter().map(|(file, text)| (named(&file, &root), text)).collect();
        Ok(Self { files, source_path })
    }
}

/// Returns the files that a text includes and that exist in one of the directories.
fn included(text: &str, directories: [&PathBuf; 2]) -> BTreeSet<PathBuf> {
    let directives = tokens(text).filter(|token| token.kind == TokenKind::Directive);
    let quoted = directives.filter(|token| token.text.contains('"'));
    let headers = quoted.filter_map(|token| included_header(token.text));
    let file = |header: &str| {
        let name = Path::new(header);
        let extension = name.extension()?.to_str()?;
        if name.is_absolute() || !EXTENSIONS.contains(&extension) {
            return None;
        }
        let paths = directories.iter().map(|directory| directory.join(name));
        paths.filter(|path| path.is_file()).find_map(|path| path.canonicalize().ok())
    };
    headers.filter_map(file).collect()
}

fn directory_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Returns the innermost directory that contains both.
fn common(one: &Path, other: &Path) -> PathBuf {
    let both = one.components().zip(other.components());
    both.take_while(|(one, other)| one == other).map(|(one, _)| one).collect()
}

/// Returns a path from the root, with `/` between its components.
fn named(path: &Path, root: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let parts = below.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn files_are_collected_through_one_another_from_their_common_directory() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("project");
        let source = "#include \"../include/a.cuh\"\n#include \"own.h\"\n#include \"cuda_runtime.h\"\n#include <x.h>";
        write(
            &root,
            &[
                ("src/kernel.cu", source),
                (
                    "src/own.h",
                    "#include \"kernel.cu\"\n#include \"notes.txt\"\n#include \"/etc/hostname.h\"",
                ),
                ("src/notes.txt", "mine"),
                ("src/x.h", "in angle brackets"),
                ("include/a.cuh", "#include \"b/b.h\"\n#include \"a.cuh\""),
                ("include/b/b.h", "#include \"own.h\""),
            ],
        );
        let LocalFiles { files, source_path } =
            LocalFiles::of(source, &root.join("src/kernel.cu")).unwrap();
        assert_eq!(
            files.keys().collect::<Vec<_>>(),
            ["include/a.cuh", "include/b/b.h", "src/own.h"]
        );
        assert_eq!(source_path.as_deref(), Some("src/kernel.cu"));
        let below = LocalFiles::of("#include \"b/b.h\"", &root.join("include/a.cuh")).unwrap();
        assert_eq!(below.files.keys().collect::<Vec<_>>(), ["b/b.h"]);
        assert_eq!(below.source_path, None);
        let none = LocalFiles::of("int a;", &root.join("src/kernel.cu")).unwrap();
        assert!(none.files.is_empty() && none.source_path.is_none());
    }

    #[test]
    fn too_many_files_and_files_that_are_no_text_are_reported() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        write(root, &[("k.cu", "")]);
        let mut source = String::new();
        for index in 0..257 {
            write(root, &[(&format!("{index}.h"), "")]);
            source.push_str(&format!("#include \"{index}.h\"\n"));
        }
        let error = LocalFiles::of(&source, &root.join("k.cu")).unwrap_err();
        assert!(matches!(error, ContractFileError::TooLarge { .. }), "{error}");
        std::fs::write(root.join("0.h"), [0xff]).unwrap();
        let error = LocalFiles::of("#include \"0.h\"", &root.join("k.cu")).unwrap_err();
        assert!(
            error.to_string().contains("0.h") && error.to_string().contains("UTF-8"),
            "{error}"
        );
    }
}
