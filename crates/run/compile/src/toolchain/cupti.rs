//! Finds CUPTI, the library that reads hardware counters in the process that launches kernels.

use std::path::{Path, PathBuf};

use super::files;
use warpgauge_device::cupti::major_version;

/// Folders of an installation that may contain CUPTI, in addition to its general library folders.
const EXTRA: [&str; 2] = ["extras/CUPTI/lib64", "extras/CUPTI/lib"];

/// Oldest major version of CUDA whose CUPTI provides the Range Profiler, which 12.6 introduced.
const OLDEST: u32 = 12;

/// Returns the CUPTI libraries in these installations, in the order of the installations. A file
/// with several names is listed once.
pub(super) fn find(places: &[&Path], library_dirs: impl Fn(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    let folders = places.iter().flat_map(|place| {
        let extra = EXTRA.map(|extra| place.join(extra));
        library_dirs(place).into_iter().chain(extra)
    });
    files::find(folders, |name| major_version(name).filter(|&major| major >= OLDEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_once_and_those_too_old_are_not() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        };
        file("a/extras/CUPTI/lib64/libcupti.so.12");
        file("a/extras/CUPTI/lib64/libcupti.so.2025.1.1");
        file("a/extras/CUPTI/lib64/libcupti.so.11");
        file("b/lib/libcupti.so.13");
        std::os::unix::fs::symlink(
            root.path().join("b/lib/libcupti.so.13"),
            root.path().join("b/libcupti.so.13"),
        )
        .unwrap();
        let places = [root.path().join("a"), root.path().join("b"), root.path().join("none")];
        let places: Vec<&Path> = places.iter().map(PathBuf::as_path).collect();
        let found = find(&places, |place| vec![place.to_owned(), place.join("lib")]);
        let short = |paths: &[PathBuf]| -> Vec<String> {
            let inside = |path: &PathBuf| path.strip_prefix(root.path()).unwrap().to_owned();
            paths.iter().map(|path| inside(path).display().to_string()).collect()
        };
        assert_eq!(short(&found), ["a/extras/CUPTI/lib64/libcupti.so.12", "b/libcupti.so.13"]);
    }
}
