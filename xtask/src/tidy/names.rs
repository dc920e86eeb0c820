//! Checks the names of public types. Each name must have one meaning, so that a reader who sees
//! `Outcome` knows which type it is. If two crates use the same name, one of them must add a second
//! word.
//!
//! The emulator is excluded. Its types have the names of CUDA objects (`Context`, `Stream`,
//! `Event`), as in the crate `device`. No crate depends on the emulator, because devices load it as
//! a library. So no file uses the emulator's types together with those of another crate.

use std::collections::{BTreeMap, BTreeSet};

use super::rooms::{files_of, paths};
use super::{Source, Violation, crates};

/// Keywords that introduce a public type.
const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// The crate whose names are not checked.
const LEFT_OUT: &str = "emulator";

/// Checks the crates in `crates/`, except the emulator.
pub fn check(files: &[Source], violations: &mut Vec<Violation>) {
    // For each type name and crate, a file that defines the type.
    let mut homes: BTreeMap<String, BTreeMap<&str, &str>> = BTreeMap::new();
    for name in crates_of(files).into_iter().filter(|&name| name != LEFT_OUT) {
        for file in files_of(name, files) {
            for defined in types(&file.source.text) {
                let home = homes.entry(defined.to_owned()).or_default();
                home.entry(name).or_insert(&file.source.path);
            }
        }
    }
    for (name, home) in homes.iter().filter(|(_, home)| home.len() > 1) {
        for (own, path) in home {
            let others: Vec<&str> = home.keys().copied().filter(|other| other != own).collect();
            violations.push(Violation {
                path: (*path).to_owned(),
                line: 0,
                message: format!(
                    "a type in {} is also named `{name}`: add a second word to this name",
                    others.join(" and in ")
                ),
            });
        }
    }
}

/// Returns the names of the crates that have source files.
fn crates_of(files: &[Source]) -> BTreeSet<&str> {
    let own = files.iter().filter_map(|source| Some((source, crates::home(&source.path)?)));
    let in_sources =
        own.filter(|(source, (home, _))| source.path[home.len()..].starts_with("/src/"));
    in_sources.map(|(_, (_, name))| name).collect()
}

/// Returns the names of the types that a text defines as `pub` in modules. Types in functions are
/// ignored.
fn types(text: &str) -> Vec<&str> {
    let words = paths::words(text);
    let mut found = Vec::new();
    // For each open bracket, whether it is the brace of a module.
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

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("crates/{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<Source> = files.iter().map(source).collect();
        let mut violations = Vec::new();
        check(&files, &mut violations);
        violations.into_iter().map(|v| format!("{}: {}", v.path, v.message)).collect()
    }

    const TWO: [(&str, &str); 3] = [
        ("a/src/lib.rs", "pub struct Outcome;\npub struct Own;\n"),
        ("b/src/lib.rs", "mod run;\n"),
        ("b/src/run.rs", "pub enum Outcome {}\n"),
    ];

    #[test]
    fn public_types_of_modules_are_found() {
        let text = "pub struct A;\npub(crate) struct B;\nstruct C;\npub mod m { pub trait D {} }\n\
                    pub unsafe trait E {}\nfn f() { pub struct F; }\npub type G<T> = Vec<T>;\n\
                    // pub struct H;\n#[cfg(test)]\nmod tests { pub struct I; }\npub union J { x: u8 }";
        assert_eq!(types(text), ["A", "D", "E", "G", "J"]);
    }

    #[test]
    fn a_name_that_two_crates_have_is_told_in_both() {
        let told = messages(&TWO);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("crates/a/src/lib.rs: a type in b is also named `Outcome`"),
            "{told:?}"
        );
        assert!(told[1].contains("a type in a is also named `Outcome`"), "{told:?}");
        assert!(told[1].starts_with("crates/b/src/run.rs: "), "{told:?}");
    }

    #[test]
    fn the_emulator_may_have_a_name_of_another_crate() {
        let own = ("emulator/src/lib.rs", "pub struct Outcome;\n");
        assert_eq!(messages(&[TWO[0], own]), [""; 0]);
        assert_eq!(messages(&[&TWO[..], &[own]].concat()).len(), 2);
    }

    #[test]
    fn tests_may_name_theirs_as_they_like() {
        let tests = [
            ("a/src/lib.rs", "pub struct Outcome;\n"),
            ("b/src/lib.rs", "#[cfg(test)]\nmod fake;\n"),
            ("b/src/fake.rs", "pub struct Outcome;\n"),
            ("b/src/run_tests.rs", "pub struct Outcome;\n"),
        ];
        assert_eq!(messages(&tests), [""; 0]);
    }
}
