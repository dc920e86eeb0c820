//! Checks which modules of a crate use each other. Cargo forbids cycles between crates, but not
//! between modules. The tables forbid them in large crates. They list modules from low to high, so
//! that a part can be read separately.

pub mod paths;
mod tables;

use std::collections::{BTreeMap, BTreeSet};

use self::tables::{TABLES, Table};
use super::rules::is_test;
use super::{Source, Violation, crates};

/// Checks the source files of all crates that have a table.
pub fn check(files: &[Source], violations: &mut Vec<Violation>) {
    for table in TABLES {
        check_table(table, files, violations);
    }
}

/// A source file of a crate, with its module.
pub struct File<'a> {
    pub source: &'a Source,
    /// Path of the module from the root of the crate.
    pub module: Vec<&'a str>,
}

fn check_table(table: &Table, files: &[Source], violations: &mut Vec<Violation>) {
    let files = files_of(table.name, files);
    let depth = table.within.len();
    let inside = |module: &[&str]| module.len() > depth && module[..depth] == *table.within;
    let mut used: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| inside(&file.module)) {
        let room = file.module[depth];
        let known = used.contains_key(room);
        let edges = used.entry(room).or_default();
        let mut report = |line, message| {
            violations.push(Violation { path: file.source.path.clone(), line, message });
        };
        let Some((_, allowed)) = table.rows.iter().find(|(name, _)| *name == room) else {
            if !known {
                report(0, format!("`{room}` has no row in xtask/src/tidy/rooms/tables.rs"));
            }
            continue;
        };
        for path in paths::used(&file.source.text, &file.module) {
            let segments: Vec<&str> = path.segments.iter().map(String::as_str).collect();
            if !inside(&segments) || segments[depth] == room {
                continue;
            }
            let target = segments[depth];
            if !table.rows.iter().any(|(name, _)| *name == target) {
                let parent = ["crate"].iter().chain(table.within).copied().collect::<Vec<_>>();
                report(
                    path.line,
                    format!(
                        "`{room}` uses `{target}` of `{}`, which uses `{room}`: name the module that \
                         defines it, or move the definition to a lower module",
                        parent.join("::")
                    ),
                );
            } else if !allowed.contains(&target) {
                report(
                    path.line,
                    format!(
                        "`{room}` uses `{target}`, which its row in xtask/src/tidy/rooms/tables.rs does not \
                         list: move the shared code to a lower module"
                    ),
                );
            }
            edges.insert(target.to_owned());
        }
    }
    let directory = files
        .first()
        .and_then(|file| crates::home(&file.source.path))
        .map_or(table.name, |(directory, _)| directory);
    check_rows(table, directory, &used, violations);
}

/// Checks that every row refers to an existing module, and that every permitted use occurs.
fn check_rows(
    table: &Table,
    directory: &str,
    used: &BTreeMap<&str, BTreeSet<String>>,
    violations: &mut Vec<Violation>,
) {
    let path = [&[directory, "src"], table.within].concat().join("/");
    let mut report =
        |message: String| violations.push(Violation { path: path.clone(), line: 0, message });
    for (room, allowed) in table.rows {
        let Some(edges) = used.get(room) else {
            report(format!(
                "has no module `{room}`: remove its row from xtask/src/tidy/rooms/tables.rs"
            ));
            continue;
        };
        for other in allowed.iter().filter(|other| !edges.contains(**other)) {
            report(format!(
                "`{room}` does not use `{other}`: remove it from its row in xtask/src/tidy/rooms/tables.rs"
            ));
        }
    }
}

/// Returns the files of a crate's library, each with its module. Files that contain only tests are
/// omitted.
pub fn files_of<'a>(name: &str, sources: &'a [Source]) -> Vec<File<'a>> {
    let mut files: Vec<File<'a>> = Vec::new();
    let mut tests: Vec<Vec<String>> = Vec::new();
    for source in sources {
        let Some((home, _)) = crates::home(&source.path).filter(|(_, own)| *own == name) else {
            continue;
        };
        let Some(path) = source.path[home.len()..]
            .strip_prefix("/src/")
            .and_then(|path| path.strip_suffix(".rs"))
        else {
            continue;
        };
        let mut module: Vec<&str> = path.split('/').collect();
        if matches!(module[..], [.., "mod"] | ["lib" | "main"]) {
            module.pop();
        }
        for test in paths::test_modules(&source.text) {
            tests.push(module.iter().map(|&it| it.to_owned()).chain([test]).collect());
        }
        files.push(File { source, module });
    }
    let for_tests = |module: &[&str]| {
        tests.iter().any(|test| test.len() <= module.len() && test.iter().eq(&module[..test.len()]))
    };
    files.retain(|file| !is_test(&file.source.path) && !for_tests(&file.module));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table {
        name: "house",
        within: &[],
        rows: &[("cellar", &[]), ("hall", &["cellar"]), ("attic", &["cellar", "hall"])],
    };
    const HALL: Table =
        Table { name: "house", within: &["hall"], rows: &[("door", &[]), ("stairs", &["door"])] };

    /// Returns the messages of the check about the files of a crate.
    fn messages(table: &Table, files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("crates/house/src/{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<Source> = files.iter().map(source).collect();
        let mut violations = Vec::new();
        check_table(table, &files, &mut violations);
        violations.into_iter().map(|v| format!("{}:{}: {}", v.path, v.line, v.message)).collect()
    }

    const SOUND: [(&str, &str); 5] = [
        ("lib.rs", "mod attic;\nmod cellar;\nmod hall;\npub use attic::Roof;\n"),
        ("cellar.rs", "pub struct Wine;\n"),
        ("hall/mod.rs", "mod door;\nmod stairs;\npub use door::Key;\n"),
        ("hall/door.rs", "use crate::cellar::Wine;\n"),
        ("attic.rs", "use crate::cellar::Wine;\nuse crate::hall::Key;\n"),
    ];

    /// Returns the files that pass, with another text for one of them.
    fn with(path: &'static str, text: &'static str) -> Vec<(&'static str, &'static str)> {
        let others = SOUND.into_iter().filter(|(other, _)| *other != path);
        others.chain([(path, text)]).collect()
    }

    #[test]
    fn the_tables_are_ordered_so_that_there_is_no_circle() {
        for table in TABLES {
            for (index, (room, uses)) in table.rows.iter().enumerate() {
                for used in *uses {
                    let below = table.rows[..index].iter().any(|(other, _)| other == used);
                    assert!(
                        below,
                        "{room} uses {used}, which does not stand above it in the table"
                    );
                }
            }
        }
    }

    #[test]
    fn modules_that_keep_to_the_table_pass() {
        assert_eq!(messages(&TABLE, &SOUND), [""; 0]);
    }

    #[test]
    fn an_edge_that_is_not_in_the_table_is_told_with_its_line() {
        let upwards = with("cellar.rs", "//! Dark.\n\nuse crate::hall::Key;\n");
        let told = messages(&TABLE, &upwards);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("crates/house/src/cellar.rs:3: `cellar` uses `hall`"));
        let inline = with("cellar.rs", "fn f() { super::attic::climb() }\n");
        assert!(messages(&TABLE, &inline)[0].contains("`cellar` uses `attic`"));
        let grouped = with("hall/door.rs", "use crate::{attic::Roof, cellar::Wine};\n");
        assert!(messages(&TABLE, &grouped)[0].contains("hall/door.rs:1: `hall` uses `attic`"));
    }

    #[test]
    fn what_the_parent_hands_on_is_a_circle() {
        let told = messages(&TABLE, &with("cellar.rs", "use crate::Roof;\n"));
        assert!(told[0].contains("`cellar` uses `Roof` of `crate`"), "{told:?}");
        let told = messages(&TABLE, &with("cellar.rs", "use super::*;\n"));
        assert!(told[0].contains("`cellar` uses `*` of `crate`"), "{told:?}");
    }

    #[test]
    fn every_module_has_a_row_and_every_row_a_module() {
        let more = [&SOUND[..], &[("shed/mod.rs", ""), ("shed/roof.rs", "")]].concat();
        let told = messages(&TABLE, &more);
        assert_eq!(
            told,
            ["crates/house/src/shed/mod.rs:0: `shed` has no row in xtask/src/tidy/rooms/tables.rs"]
        );
        let told = messages(&TABLE, &SOUND[..4]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("has no module `attic`"));
        let told = messages(&TABLE, &with("attic.rs", "use crate::cellar::Wine;\n"));
        assert!(told[0].contains("`attic` does not use `hall`: remove it"), "{told:?}");
    }

    #[test]
    fn a_module_can_have_a_table_too() {
        let stairs = |text| [&SOUND[..], &[("hall/stairs.rs", text)]].concat();
        assert_eq!(messages(&HALL, &stairs("use super::door::Key;\n")), [""; 0]);
        let told = messages(&HALL, &stairs("use super::door::Key;\nuse crate::hall::Key;\n"));
        assert!(told[0].contains("stairs.rs:2: `stairs` uses `Key` of `crate::hall`"), "{told:?}");
    }

    #[test]
    fn tests_may_use_what_they_like() {
        let tests = [
            &with(
                "cellar.rs",
                "#[cfg(test)]\nmod flood;\n#[cfg(test)]\nmod tests { use crate::Roof; }\n",
            )[..],
            &[("cellar/flood.rs", "use crate::attic::Roof;\n")],
        ]
        .concat();
        assert_eq!(messages(&TABLE, &tests), [""; 0]);
    }
}
