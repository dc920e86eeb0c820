//! One convention for modules that have modules: `x/mod.rs`, and not `x.rs` beside `x/`. So a folder is
//! all of a module, and a move of it is the move of one thing.

use std::collections::BTreeSet;

use super::{Source, Violation};

/// Crates that still have the other form. The list only shrinks.
const NOT_YET: [&str; 14] = [
    "crates/config",
    "crates/contract",
    "crates/device",
    "crates/emulator",
    "crates/gate",
    "crates/history",
    "crates/mcp",
    "crates/profile",
    "crates/sparse",
    "crates/tensor",
    "crates/validate",
    "src",
    "tests",
    "xtask",
];

/// Checks every file.
pub fn check(files: &[Source], violations: &mut Vec<Violation>) {
    check_but(&NOT_YET, files, violations);
}

fn check_but(not_yet: &[&str], files: &[Source], violations: &mut Vec<Violation>) {
    let folders: BTreeSet<&str> = files
        .iter()
        .filter(|source| source.path.ends_with(".rs"))
        .filter_map(|source| source.path.rsplit_once('/').map(|(folder, _)| folder))
        .flat_map(|folder| folder.match_indices('/').map(|(at, _)| &folder[..at]).chain([folder]))
        .collect();
    let mut needed = BTreeSet::new();
    for source in files {
        let Some(home) = home_of(&source.path) else { continue };
        let Some(module) = source.path.strip_suffix(".rs") else { continue };
        if !folders.contains(module) {
            continue;
        }
        if not_yet.contains(&home) {
            needed.insert(home);
            continue;
        }
        violations.push(Violation {
            path: source.path.clone(),
            line: 0,
            message: format!("a module with modules is one folder: move this to {module}/mod.rs"),
        });
    }
    for home in not_yet.iter().filter(|home| !needed.contains(**home)) {
        violations.push(Violation {
            path: (*home).to_owned(),
            line: 0,
            message: "has no such module any more: take it out of xtask/src/tidy/modules.rs".into(),
        });
    }
}

/// The package that a source belongs to; tests of all are one.
fn home_of(path: &str) -> Option<&str> {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["crates", name, "src", ..] => Some(&path[.."crates/".len() + name.len()]),
        ["xtask", "src", ..] => Some("xtask"),
        ["src", ..] => Some("src"),
        ["tests", ..] => Some("tests"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(not_yet: &[&str], paths: &[&str]) -> Vec<String> {
        let source = |path: &&str| Source { path: (*path).to_owned(), text: String::new() };
        let files: Vec<Source> = paths.iter().map(source).collect();
        let mut violations = Vec::new();
        check_but(not_yet, &files, &mut violations);
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
        assert_eq!(messages(&[], &FOLDER), [""; 0]);
        assert_eq!(messages(&[], &["crates/a/fuzz/x.rs", "crates/a/fuzz/x/y.rs"]), [""; 0]);
    }

    #[test]
    fn a_file_beside_its_folder_is_told() {
        let told = messages(&[], &[&FOLDER[..], &["crates/a/src/hall.rs"]].concat());
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("crates/a/src/hall.rs: "), "{told:?}");
        assert!(told[0].ends_with("crates/a/src/hall/mod.rs"), "{told:?}");
        // Also where the folder has but folders.
        assert_eq!(messages(&[], &["src/x.rs", "src/x/y/z.rs"]).len(), 1);
    }

    #[test]
    fn the_list_has_no_more_than_it_needs() {
        let both = [&FOLDER[..], &["crates/a/src/hall.rs"]].concat();
        assert_eq!(messages(&["crates/a"], &both), [""; 0]);
        let told = messages(&["crates/a"], &FOLDER);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("crates/a: has no such module"), "{told:?}");
    }
}
