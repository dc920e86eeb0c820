//! Names of public types: one name, one thing. A name that two crates define makes a reader ask which of
//! them is meant.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::is_test;
use super::{Source, Violation};

/// Names that several crates define, and those crates. The list gets shorter: a new name has two words
/// where one is taken.
const SHARED: &[(&str, &[&str])] = &[
];

/// Kinds of items that name a type.
const KINDS: [&str; 6] = ["struct", "enum", "trait", "type", "union", "unsafe trait"];

/// Where the rule's rows are.
const HERE: &str = "xtask/src/tidy/names.rs";

/// A name's crates, and where each defines it.
type Definitions<'a> = BTreeMap<&'a str, BTreeMap<&'a str, (&'a str, usize)>>;

/// Checks the public types of all crates.
pub fn check(files: &[Source], violations: &mut Vec<Violation>) {
    check_against(SHARED, files, violations);
}

fn check_against(
    shared: &[(&str, &[&str])],
    files: &[Source],
    violations: &mut Vec<Violation>,
) {
    let found = definitions(files);
    for (name, crates) in found.iter().filter(|(_, crates)| crates.len() > 1) {
        let known = shared.iter().find(|(shared, _)| shared == name);
        let known = known.map_or(&[][..], |(_, crates)| crates);
        for (krate, (path, line)) in crates.iter().filter(|(krate, _)| !known.contains(krate)) {
            let others = crates.keys().filter(|other| *other != krate);
            let others = others.copied().collect::<Vec<_>>().join(", ");
            violations.push(Violation {
                path: (*path).to_owned(),
                line: *line,
                message: format!("`{name}` is a public type of {others}, too: give it two words"),
            });
        }
    }
    for (name, crates) in shared {
        let defining: BTreeSet<_> = found.get(name).into_iter().flat_map(BTreeMap::keys).collect();
        for krate in crates.iter().filter(|krate| defining.len() < 2 || !defining.contains(krate)) {
            violations.push(Violation {
                path: HERE.to_owned(),
                line: 0,
                message: format!("`{name}` is not shared with {krate}: take that out of its row"),
            });
        }
    }
}

fn definitions(files: &[Source]) -> Definitions<'_> {
    let mut found = Definitions::new();
    for source in files.iter().filter(|source| !is_test(&source.path)) {
        let Some((krate, "src")) = source.path.strip_prefix("crates/").and_then(|path| {
            let (krate, rest) = path.split_once('/')?;
            Some((krate, rest.split_once('/')?.0))
        }) else {
            continue;
        };
        for (index, line) in source.text.lines().enumerate() {
            if let Some(name) = defined(line) {
                found.entry(name).or_default().entry(krate).or_insert((&source.path, index + 1));
            }
        }
    }
    found
}

/// The public type that a line defines at the level of a module.
fn defined(line: &str) -> Option<&str> {
    let item = line.strip_prefix("pub ")?;
    let name = KINDS.iter().find_map(|kind| item.strip_prefix(kind)?.strip_prefix(' '))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(shared: &[(&str, &[&str])], files: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        let files: Vec<_> = files.iter().map(source).collect();
        let mut violations = Vec::new();
        check_against(shared, &files, &mut violations);
        let shown = |one: Violation| format!("{}:{} {}", one.path, one.line, one.message);
        violations.into_iter().map(shown).collect()
    }

    #[test]
    fn a_name_that_two_crates_define_needs_a_row() {
        let files = [
            ("crates/a/src/lib.rs", "\npub struct Place<T>(T);\npub(crate) struct Own;"),
            ("crates/b/src/x.rs", "pub enum Place {}\nstruct Own;\n    pub struct Inner;"),
            ("crates/c/src/lib.rs", "pub type Own = u8;\npub trait Inner {}"),
            ("crates/c/src/tests.rs", "pub struct Place;"),
        ];
        let found = messages(&[], &files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/lib.rs:2 `Place` is a public type of b"));
        assert_eq!(messages(&[("Place", &["a", "b"])], &files), Vec::<String>::new());
    }

    #[test]
    fn a_row_that_is_not_needed_goes() {
        let files = [("crates/a/src/lib.rs", "pub struct Place;")];
        assert_eq!(messages(&[("Place", &["a", "b"])], &files).len(), 2);
        assert_eq!(messages(&[("Gone", &["a"])], &files).len(), 1);
    }
}
