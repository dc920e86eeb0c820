//! Where the libraries are: by looking at files, none is opened here.

use std::path::{Path, PathBuf};

/// What file names begin with: the libraries, and those that they need beside them.
pub const LIBRARY_FILES: [&str; 4] =
    ["libcusparse.so.", "libcublas.so.", "libcublasLt.so.", "libnvJitLink.so."];

/// Most entries of one folder that are looked at.
const MAX_ENTRIES: usize = 4096;

/// The libraries in these folders by the names that programs ask for (`libcusparse.so.12`), in the order of
/// the folders, and newest first within one. A file that has two names is there once.
pub fn library_files(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut real: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let Ok(listing) = folder.read_dir() else { continue };
        let files = listing.flatten().take(MAX_ENTRIES).map(|entry| entry.path());
        let mut files: Vec<(u32, PathBuf)> =
            files.filter_map(|path| Some((major(&path)?, path))).collect();
        files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        for (_, path) in files {
            let Ok(target) = path.canonicalize() else { continue };
            if !real.contains(&target) {
                real.push(target);
                found.push(path);
            }
        }
    }
    found
}

/// Major version in the name of a library that is looked for.
fn major(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    LIBRARY_FILES.iter().find_map(|stem| name.strip_prefix(stem))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_once_by_the_name_that_programs_ask_for() {
        let root = tempfile::tempdir().unwrap();
        let [a, b, none] = ["a", "b", "none"].map(|name| root.path().join(name));
        for folder in [&a, &b] {
            std::fs::create_dir(folder).unwrap();
        }
        for name in
            ["libcusparse.so.12.6.3.3", "libcublas.so.12", "libcublas.so.13", "libcudart.so.13"]
        {
            std::fs::write(a.join(name), b"").unwrap();
        }
        std::os::unix::fs::symlink("libcusparse.so.12.6.3.3", a.join("libcusparse.so.12")).unwrap();
        std::os::unix::fs::symlink(a.join("libcublas.so.13"), b.join("libcublas.so.13")).unwrap();
        std::fs::write(b.join("libnvJitLink.so.12"), b"").unwrap();
        let found = library_files(&[a, none, b]);
        let short = |path: &PathBuf| path.strip_prefix(root.path()).unwrap().display().to_string();
        assert_eq!(
            found.iter().map(short).collect::<Vec<_>>(),
            [
                "a/libcublas.so.13",
                "a/libcublas.so.12",
                "a/libcusparse.so.12",
                "b/libnvJitLink.so.12"
            ]
        );
    }
}
