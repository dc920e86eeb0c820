//! Collects the local files that a source includes or imports. They are sent with the source in
//! `files`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::python_imports::{imported, root_of};
use super::{ContractFileError, MAX_SOURCE_BYTES, read_source};
use warpgauge_code::source::{TokenKind, included_header, tokens};
use warpgauge_contract::{KernelCode, KernelType, MAX_FILES};

/// Extensions of the files that are collected. Because of the list, a source cannot cause other
/// files to be sent.
const EXTENSIONS: [&str; 16] = [
    "h", "hh", "hpp", "hxx", "cuh", "cu", "c", "cc", "cpp", "cxx", "inl", "inc", "ipp", "tpp",
    "impl", "def",
];

/// Files that a source includes or imports, directly or indirectly.
#[derive(Debug, Default)]
pub(crate) struct LocalFiles {
    /// Texts of the files by path. The paths are relative to one directory. For C++, it is the
    /// innermost directory that contains all files and the source; for Python, it contains the
    /// top-level package.
    pub files: BTreeMap<String, String>,
    /// Path of the source relative to that directory; `None` if the source is directly in it.
    pub source_path: Option<String>,
    /// Paths of the files on this machine.
    pub paths: Vec<PathBuf>,
}

impl LocalFiles {
    /// Adds to the kernel the local files that its source includes or imports. Returns the paths of
    /// these files. `path` is the path of the source.
    pub(crate) fn add_to(
        kernel: &mut KernelCode,
        path: &Path,
    ) -> Result<Vec<PathBuf>, ContractFileError> {
        let mut added = Vec::new();
        if let (Some(source), true) = (&kernel.source_code, kernel.kernel_type.has_files()) {
            let Self { files, source_path, paths } = Self::of(source, path, kernel.kernel_type)?;
            (kernel.files, kernel.source_path, added) = (files, source_path, paths);
        }
        Ok(added)
    }

    /// Collects the files that the source at `path` includes in quotes, or the modules that it
    /// imports. Files that do not exist are skipped: they may belong to a toolkit or a package;
    /// otherwise the compiler reports them.
    ///
    /// # Errors
    /// A file cannot be read, is too large or is not text, or there are too many files.
    pub(crate) fn of(
        source: &str,
        path: &Path,
        kernel_type: KernelType,
    ) -> Result<Self, ContractFileError> {
        let failed = |error| ContractFileError::Read { path: path.to_owned(), source: error };
        let path = path.canonicalize().map_err(failed)?;
        let own = directory_of(&path);
        let top = (kernel_type == KernelType::Triton).then(|| root_of(&own));
        let needed = |text: &str, directory: &PathBuf| match &top {
            Some(top) => imported(text, directory, [&own, top]),
            None => included(text, [directory, &own]),
        };
        let mut found: BTreeMap<PathBuf, String> = BTreeMap::new();
        let mut waiting = needed(source, &own);
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
            waiting.extend(needed(&text, &directory_of(&next)));
            found.insert(next, text);
        }
        let directories = found.keys().map(|file| directory_of(file));
        let common = directories.fold(own.clone(), |root, directory| common(&root, &directory));
        let root = top.unwrap_or(common);
        let source_path = Some(named(&path, &root)).filter(|_| !found.is_empty() && root != own);
        let paths = found.keys().cloned().collect();
        let files = found.into_iter().map(|(file, text)| (named(&file, &root), text)).collect();
        Ok(Self { files, source_path, paths })
    }
}

/// Returns the files that a text includes and that exist in one of the two directories.
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

/// Returns the innermost directory that contains both paths.
fn common(one: &Path, other: &Path) -> PathBuf {
    let both = one.components().zip(other.components());
    both.take_while(|(one, other)| one == other).map(|(one, _)| one).collect()
}

/// Returns a path relative to `root`, with `/` between its components.
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
        let LocalFiles { files, source_path, .. } =
            LocalFiles::of(source, &root.join("src/kernel.cu"), KernelType::Cuda).unwrap();
        assert_eq!(
            files.keys().collect::<Vec<_>>(),
            ["include/a.cuh", "include/b/b.h", "src/own.h"]
        );
        assert_eq!(source_path.as_deref(), Some("src/kernel.cu"));
        let below =
            LocalFiles::of("#include \"b/b.h\"", &root.join("include/a.cuh"), KernelType::Cuda)
                .unwrap();
        assert_eq!(below.files.keys().collect::<Vec<_>>(), ["b/b.h"]);
        assert_eq!(below.source_path, None);
        let none = LocalFiles::of("int a;", &root.join("src/kernel.cu"), KernelType::Cuda).unwrap();
        assert!(none.files.is_empty() && none.source_path.is_none());
    }

    #[test]
    fn modules_are_collected_from_the_directory_of_their_top_package() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("checkout");
        let source = "from .common import math, one\nfrom pkg.utils import settings\nimport helper\nimport triton\n";
        write(
            &root,
            &[
                ("pkg/__init__.py", "from .everything import all\n"),
                ("pkg/everything.py", ""),
                ("pkg/utils.py", "import pkg.deep.x as x\nimport os\n"),
                ("pkg/deep/x.py", "from ..ops import kernel\n"),
                ("pkg/ops/__init__.py", ""),
                ("pkg/ops/kernel.py", source),
                ("pkg/ops/helper.py", ""),
                ("pkg/ops/common/__init__.py", "one = 1\n"),
                ("pkg/ops/common/math.py", ""),
            ],
        );
        let found = LocalFiles::of(source, &root.join("pkg/ops/kernel.py"), KernelType::Triton);
        let LocalFiles { files, source_path, .. } = found.unwrap();
        assert_eq!(
            files.keys().collect::<Vec<_>>(),
            [
                "pkg/deep/x.py",
                "pkg/ops/common/__init__.py",
                "pkg/ops/common/math.py",
                "pkg/ops/helper.py",
                "pkg/utils.py"
            ]
        );
        assert_eq!(source_path.as_deref(), Some("pkg/ops/kernel.py"));
        let outside = "from ....secret import key\nfrom ...outside import x\n";
        write(&root, &[("outside.py", ""), ("../secret.py", "")]);
        let found = LocalFiles::of(outside, &root.join("pkg/ops/kernel.py"), KernelType::Triton);
        assert_eq!(found.unwrap().files.keys().collect::<Vec<_>>(), ["outside.py"]);
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
        let error = LocalFiles::of(&source, &root.join("k.cu"), KernelType::Cuda).unwrap_err();
        assert!(matches!(error, ContractFileError::TooLarge { .. }), "{error}");
        std::fs::write(root.join("0.h"), [0xff]).unwrap();
        let error =
            LocalFiles::of("#include \"0.h\"", &root.join("k.cu"), KernelType::Cuda).unwrap_err();
        assert!(
            error.to_string().contains("0.h") && error.to_string().contains("UTF-8"),
            "{error}"
        );
    }
}
