//! A module that has submodules must be `x/mod.rs`, not `x.rs` next to `x/`. Then one folder
//! contains the whole module, which can be moved in one step.

use std::collections::BTreeSet;

use super::{Source, Violation};

pub fn check(files: &[Source], violations: &mut Vec<Violation>) {
    let folders: BTreeSet<&str> = files
        .iter()
        .filter(|source| source.path.ends_with(".rs"))
        .filter_map(|source| source.path.rsplit_once('/').map(|(folder, _)| folder))
        .flat_map(|folder| folder.match_indices('/').map(|(at, _)| &folder[..at]).chain([folder]))
        .collect();
    for source in files.iter().filter(|source| is_module(&source.path)) {
        let Some(module) = source.path.strip_suffix(".rs") else { continue };
        if folders.contains(module) {
            violations.push(Violation {
                path: source.path.clone(),
                line: 0,
                message: format!(
                    "a module with submodules must be one folder: move this file to {module}/mod.rs"
                ),
            });
        }
    }
}

/// Returns whether the file is a module of a package, as opposed to the root file of a program.
fn is_module(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/")
        || ["xtask/src/", "src/", "tests/"].iter().any(|root| path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(paths: &[&str]) -> Vec<String> {
        let source = |path: &&str| Source { path: (*path).to_owned(), text: String::new() };
        let files: Vec<Source> = paths.iter().map(source).collect();
        let mut violations = Vec::new();
        check(&files, &mut violations);
        violations.into_iter().map(|v| format!("{}: {}", v.path, v.message)).collect()
    }

    const FOLDER: [&str; 4] = [
        "crates/a/src/lib.rs",
        "crates/a/src/hall/mod.rs",
        "crates/a/src/hall/door.rs",
        "crates/a/src/cellar.rs",
    ];

    #[test]
    fn a_folder_that_is_all_of_its_module_passes() {
        assert_eq!(messages(&FOLDER), [""; 0]);
        assert_eq!(messages(&["crates/a/fuzz/x.rs", "crates/a/fuzz/x/y.rs"]), [""; 0]);
    }

    #[test]
    fn a_file_beside_its_folder_is_reported() {
        let reported = messages(&[&FOLDER[..], &["crates/a/src/hall.rs"]].concat());
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].starts_with("crates/a/src/hall.rs: "), "{reported:?}");
        assert!(reported[0].ends_with("crates/a/src/hall/mod.rs"), "{reported:?}");
        // The folder may contain folders only.
        assert_eq!(messages(&["src/x.rs", "src/x/y/z.rs"]).len(), 1);
    }
}
