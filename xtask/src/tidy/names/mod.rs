//! Names of public types: one name means one thing, so that whoever reads `Outcome` need not ask whose.
//! A name that two crates have wants a second word in one of them.

use std::collections::{BTreeMap, BTreeSet};

mod shared;

use self::shared::{Row, SHARED};
use super::rooms::{files_of, paths};
use super::{Source, Violation, crates};

/// What a public type begins with.
const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Checks the crates in `crates/`.
pub fn check(files: &[Source], violations: &mut Vec<Violation>) {
    check_but(SHARED, files, violations);
}

fn check_but(shared: &[Row], files: &[Source], violations: &mut Vec<Violation>) {
    // By name and crate: a file that defines it.
    let mut homes: BTreeMap<String, BTreeMap<&str, &str>> = BTreeMap::new();
    for name in crates_of(files) {
        for file in files_of(name, files) {
            for defined in types(&file.source.text) {
                let home = homes.entry(defined.to_owned()).or_default();
                home.entry(name).or_insert(&file.source.path);
            }
        }
    }
    for (name, home) in homes.iter().filter(|(_, home)| home.len() > 1) {
        let row = shared.iter().find(|(known, _)| known == name);
        let allowed = row.map_or(&[][..], |(_, crates)| crates);
        for (own, path) in home.iter().filter(|(own, _)| !allowed.contains(*own)) {
            let others: Vec<&str> = home.keys().copied().filter(|other| other != own).collect();
            violations.push(Violation {
                path: (*path).to_owned(),
                line: 0,
                message: format!(
                    "`{name}` is the name of a type in {}, too: give this one a second word",
                    others.join(" and in ")
                ),
            });
        }
    }
    for (name, crates) in shared {
        let home = homes.get(*name);
        let gone = |it: &&&str| home.is_none_or(|home| home.len() < 2 || !home.contains_key(**it));
        let gone: Vec<&str> = crates.iter().filter(gone).copied().collect();
        if !gone.is_empty() {
            violations.push(Violation {
                path: "xtask/src/tidy/names/shared.rs".to_owned(),
                line: 0,
                message: format!("`{name}` needs no place any more for {}", gone.join(", ")),
            });
        }
    }
}

/// Names of the directories in `crates/` that have sources.
fn crates_of(files: &[Source]) -> BTreeSet<&str> {
    let in_sources = |path: &'_ str| {
        let (home, _) = crates::home(path)?;
        path[home.len()..].starts_with("/src/").then_some(())
    };
    files
        .iter()
        .filter(|source| in_sources(&source.path).is_some())
        .filter_map(|source| crates::home(&source.path).map(|(_, name)| name))
        .collect()
}

/// Names of the types that a text defines as `pub`, in a module and not in a function.
fn types(text: &str) -> Vec<&str> {
    let words = paths::words(text);
    let mut found = Vec::new();
    // What is open, and whether it is a module.
    let mut open: Vec<bool> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match *word {
            "{" => open.push(at >= 2 && words[at - 2] == "mod"),
            "(" | "[" => open.push(false),
            "}" | ")" | "]" => drop(open.pop()),
            "pub" if open.iter().all(|&module| module) => {
                let kind = at + 1 + usize::from(words.get(at + 1) == Some(&"unsafe"));
                if let [kind, name, ..] = words[kind.min(words.len())..]
                    && KINDS.contains(&kind)
                {
                    found.push(name);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(shared: &[Row], files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("crates/{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<Source> = files.iter().map(source).collect();
        let mut violations = Vec::new();
        check_but(shared, &files, &mut violations);
        violations.into_iter().map(|v| format!("{}: {}", v.path, v.message)).collect()
    }

    const TWO: [(&str, &str); 3] = [
        ("a/src/lib.rs", "pub struct Outcome;\npub struct Own;\n"),
        ("b/src/lib.rs", "mod run;\n"),
        ("b/src/run.rs", "pub enum Outcome {}\n"),
    ];

    #[test]
    fn the_list_is_in_order_and_has_each_name_once() {
        assert!(SHARED.windows(2).all(|two| two[0].0 < two[1].0));
        assert!(SHARED.iter().all(|(_, crates)| crates.windows(2).all(|two| two[0] < two[1])));
    }

    #[test]
    fn public_types_of_modules_are_found() {
        let text = "pub struct A;\npub(crate) struct B;\nstruct C;\npub mod m { pub trait D {} }\n\
                    pub unsafe trait E {}\nfn f() { pub struct F; }\npub type G<T> = Vec<T>;\n\
                    // pub struct H;\n#[cfg(test)]\nmod tests { pub struct I; }\npub union J { x: u8 }";
        assert_eq!(types(text), ["A", "D", "E", "G", "J"]);
    }

    #[test]
    fn a_name_that_two_crates_have_is_told_in_both() {
        let told = messages(&[], &TWO);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("crates/a/src/lib.rs: `Outcome` is"), "{told:?}");
        assert!(told[0].contains("in b, too") && told[1].contains("in a, too"), "{told:?}");
        assert!(told[1].starts_with("crates/b/src/run.rs: "), "{told:?}");
    }

    #[test]
    fn a_row_allows_it_for_its_crates() {
        assert_eq!(messages(&[("Outcome", &["a", "b"])], &TWO), [""; 0]);
        let more = [&TWO[..], &[("c/src/lib.rs", "pub trait Outcome {}")]].concat();
        let told = messages(&[("Outcome", &["a", "b"])], &more);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with("crates/c/src/lib.rs: ") && told[0].contains("a and in b"));
    }

    #[test]
    fn a_row_that_is_not_needed_is_told() {
        let told = messages(&[("Outcome", &["a", "b"])], &TWO[..2]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].ends_with("`Outcome` needs no place any more for a, b"), "{told:?}");
        let told = messages(&[("Outcome", &["a", "b", "c"])], &TWO);
        assert!(told[0].ends_with("any more for c"), "{told:?}");
    }

    #[test]
    fn tests_may_name_theirs_as_they_like() {
        let tests = [
            ("a/src/lib.rs", "pub struct Outcome;\n"),
            ("b/src/lib.rs", "#[cfg(test)]\nmod fake;\n"),
            ("b/src/fake.rs", "pub struct Outcome;\n"),
            ("b/src/run_tests.rs", "pub struct Outcome;\n"),
        ];
        assert_eq!(messages(&[], &tests), [""; 0]);
    }
}
