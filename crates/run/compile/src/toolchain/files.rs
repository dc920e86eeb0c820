//! Finds shared objects by the names under which programs load them, such as `libcupti.so.13`.

use std::cmp::Reverse;
use std::path::PathBuf;

/// Returns the shared objects in these folders, in the order of the folders, and newest first
/// within a folder. `major` returns the major version in a file name, or `None` if the name is not
/// suitable. A file with two names is listed once.
pub(super) fn find(
    folders: impl IntoIterator<Item = PathBuf>,
    major: impl Fn(&str) -> Option<u32>,
) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut real: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let Ok(listing) = folder.read_dir() else { continue };
        let wanted = listing.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((Reverse(major(&name)?), name))
        });
        let mut wanted: Vec<_> = wanted.collect();
        wanted.sort();
        for (_, name) in wanted {
            let path = folder.join(name);
            let Ok(target) = path.canonicalize() else { continue };
            if !real.contains(&target) {
                real.push(target);
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpgauge_device::libraries::major_version;

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
        let found = find([a, none, b], major_version);
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
