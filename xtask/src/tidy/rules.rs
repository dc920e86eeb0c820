//! Rules for Rust files.

use super::{Source, Violation};

/// Most lines of code in one file, comments and blank lines not counted. Tests may be longer.
const CODE_LINES: usize = 450;

/// Where `unsafe` and the CUDA bindings may stand.
const UNSAFE_HOMES: [&str; 2] = ["src/device/", "crates/emulator/"];

/// What a module of the product must not use: whoever knows less can be tested and changed alone.
/// ARCHITECTURE.md draws the same picture.
const FORBIDDEN_USES: [(&str, &[&str]); 16] = [
    (
        "contained",
        &[
            "bind", "compile", "contract", "device", "measure", "profile", "queue", "report",
            "tensor", "tools", "validate", "worker",
        ],
    ),
    ("tensor", &["bind", "compile", "device", "measure", "queue", "report", "validate", "worker"]),
    (
        "contract",
        &["bind", "compile", "device", "measure", "queue", "report", "validate", "worker"],
    ),
    ("sandbox", &["bind", "compile", "contract", "device", "report", "tensor", "worker"]),
    ("compile", &["bind", "measure", "queue", "report", "validate", "worker"]),
    ("device", &["bind", "measure", "queue", "report", "validate"]),
    ("validate", &["bind", "compile", "device", "measure", "queue", "report", "worker"]),
    ("worker", &["bind", "report", "tools"]),
    ("tools", &["bind", "compile", "device", "measure", "queue", "report", "validate"]),
    ("queue", &["bind", "device", "measure", "report", "validate"]),
    ("bind", &["device", "measure", "queue", "report"]),
    ("measure", &["bind", "compile", "device", "queue", "report", "validate", "worker"]),
    ("report", &["bind", "device", "queue"]),
    ("pipeline", &[]),
    ("gate", &["bind", "compile", "device", "queue"]),
    ("api", &["bind", "compile", "device", "measure", "queue"]),
];

/// Only these know HTTP or the terminal; everything above in the list is below them.
const OUTER: [&str; 3] = ["pipeline", "api", "cli"];

/// Checks one file against every rule.
pub fn check(source: &Source, violations: &mut Vec<Violation>) {
    let product = source.path.starts_with("src/") || source.path.starts_with("crates/");
    let mut code_lines = 0;
    let mut in_tests = false;
    for (index, line) in source.text.lines().enumerate() {
        let mut report = |message: String| {
            violations.push(Violation { path: source.path.clone(), line: index + 1, message });
        };
        in_tests |= line.trim() == "#[cfg(test)]";
        let code = code_of(line);
        if !code.trim().is_empty() && !in_tests {
            code_lines += 1;
        }
        if let Some(marker) = unfinished_marker(line) {
            report(format!("`{marker}`: finish it, or describe the limit where users read it"));
        }
        if waits_blindly(&source.path, in_tests, code) {
            report("a fixed wait is a race or a block: wait for the event itself".to_owned());
        }
        if product {
            if let Some(word) = unsafe_word(&source.path, code) {
                report(format!("`{word}` belongs to {} only", UNSAFE_HOMES.join(" and ")));
            }
            if let Some(module) = forbidden_use(&source.path, code) {
                report(format!("uses `crate::{module}`, which stands above it"));
            }
        }
    }
    if code_lines > CODE_LINES && !is_test(&source.path) {
        violations.push(Violation {
            path: source.path.clone(),
            line: 0,
            message: format!("{code_lines} lines of code; more than {CODE_LINES} are two files"),
        });
    }
}

/// A line without its comment. A `//` in a string ends it too early, which only makes rules laxer.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

/// A marker of unfinished work. The words are put together here so as not to find themselves.
fn unfinished_marker(line: &str) -> Option<&'static str> {
    const MARKERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    MARKERS.into_iter().find(|marker| has_word(line, marker))
}

/// Tests never wait for a time; the product may back off, but not block a thread. The command line
/// has one thread, and nothing else to do while a server asks it to come back later.
fn waits_blindly(path: &str, in_tests: bool, code: &str) -> bool {
    let product = path.starts_with("src/") || path.starts_with("crates/");
    if is_test(path) || (in_tests && product) {
        has_word(code, "sleep") && code.contains(concat!("sleep", "("))
    } else {
        let blocks = code.contains(concat!("thread::", "sleep", "("));
        product && blocks && !path.starts_with("src/cli/")
    }
}

/// Whether a whole file is tests.
fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests") || path.ends_with("tests.rs")
}

fn unsafe_word(path: &str, code: &str) -> Option<&'static str> {
    if UNSAFE_HOMES.iter().any(|home| path.starts_with(home)) {
        return None;
    }
    let code = without_strings(code);
    ["unsafe", "cudarc"].into_iter().find(|word| has_word(&code, word))
}

/// The first module that this file must not use and does.
fn forbidden_use(path: &str, code: &str) -> Option<&'static str> {
    let stage = path.strip_prefix("src/")?.split(['/', '.']).next()?;
    let own =
        FORBIDDEN_USES.iter().find(|(home, _)| *home == stage).map(|(_, modules)| *modules)?;
    let outer: &[&str] = match stage {
        "pipeline" => &OUTER[1..],
        "api" => &[],
        _ => &OUTER,
    };
    own.iter().chain(outer).copied().find(|module| uses(code, module))
}

fn uses(code: &str, module: &str) -> bool {
    code.match_indices("crate::").any(|(at, prefix)| {
        let rest = &code[at + prefix.len()..];
        rest.strip_prefix(module).is_some_and(|rest| !rest.starts_with(is_word_character))
    })
}

/// Whether `text` has `word` with no letter, digit or underscore beside it.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_word_character)
            && !text[at + word.len()..].starts_with(is_word_character)
    })
}

fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A line with the content of its string literals taken out.
fn without_strings(code: &str) -> String {
    code.split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
}

#[cfg(test)]
mod tests {
    use super::super::{Source, Violation};
    use super::check;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let mut violations: Vec<Violation> = Vec::new();
        check(&Source { path: path.to_owned(), text: text.to_owned() }, &mut violations);
        violations.into_iter().map(|v| format!("{}: {}", v.line, v.message)).collect()
    }

    #[test]
    fn unsafe_code_stays_at_home() {
        let text = "// unsafe in a comment\nunsafe { f() }\nlet s = \"unsafe\";\n";
        assert_eq!(messages("src/worker/child.rs", text).len(), 1);
        assert!(messages("src/worker/child.rs", text)[0].starts_with("2: `unsafe`"));
        assert!(messages("src/device/driver.rs", text).is_empty());
        assert_eq!(messages("src/compile/nvrtc.rs", "use cudarc::nvrtc;\n").len(), 1);
    }

    #[test]
    fn stages_do_not_look_up() {
        assert_eq!(messages("src/contract/bind.rs", "use crate::api::Error;\n").len(), 1);
        assert_eq!(messages("src/tensor/init.rs", "use crate::report::Report;\n").len(), 1);
        assert_eq!(messages("src/pipeline/mod.rs", "use crate::contract::Dtype;\n").len(), 0);
        assert_eq!(messages("src/pipeline/mod.rs", "use crate::api::Dtype;\n").len(), 1);
        assert_eq!(messages("src/contract/bind.rs", "use crate::apiary::Bee;\n").len(), 0);
    }

    #[test]
    fn no_fixed_waits_and_no_unfinished_work() {
        let wait = concat!("thread::sleep", "(Duration::from_secs(1));\n");
        assert_eq!(messages("tests/it/faults.rs", wait).len(), 1);
        assert_eq!(messages("src/worker/fleet.rs", wait).len(), 1);
        assert_eq!(messages("src/worker/fleet.rs", "tokio::time::sleep(delay).await;\n").len(), 0);
        assert_eq!(messages("xtask/src/bench/load.rs", wait).len(), 0);
        assert_eq!(messages("src/lib.rs", concat!("// TO", "DO: later\n")).len(), 1);
    }

    #[test]
    fn long_files_are_two() {
        assert_eq!(messages("src/a.rs", &"let a = 1;\n".repeat(451)).len(), 1);
        assert_eq!(messages("src/a.rs", &"/// Text.\n".repeat(900)).len(), 0);
    }
}
