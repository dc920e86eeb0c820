//! Rules that Rust source files must follow.

use super::{Source, Violation};

/// Maximum number of lines of code in a file. Comments, blank lines and test code do not count.
const CODE_LINES: usize = 450;

/// Folders that may contain `unsafe` code and use the CUDA bindings.
const UNSAFE_HOMES: [&str; 3] =
    ["crates/run/device/", "crates/emulator/", "crates/lib/sandbox/src/threads/"];

/// The folder with the code that starts child processes and decides what they inherit.
const CHILD_HOME: &str = "crates/lib/sandbox/src/";

/// Checks a file against all rules in this module.
pub fn check(source: &Source, violations: &mut Vec<Violation>) {
    let product = source.path.starts_with("src/") || source.path.starts_with("crates/");
    let mut code_lines = 0;
    let mut in_tests = false;
    let mut in_example = false;
    for (index, line) in source.text.lines().enumerate() {
        let mut report = |message: String| {
            violations.push(Violation { path: source.path.clone(), line: index + 1, message });
        };
        in_tests |= line.trim() == "#[cfg(test)]";
        if let Some(fence) = fence_of(line) {
            in_example = !in_example;
            if in_example && (fence.is_empty() || fence.starts_with("rust")) {
                report(
                    "Rust examples in comments are not tested: make this a test, or mark the block as `text`".to_owned(),
                );
            }
        }
        let code = code_of(line);
        if !code.trim().is_empty() && !in_tests {
            code_lines += 1;
        }
        if let Some(marker) = unfinished_marker(line) {
            report(format!(
                "`{marker}`: finish the work, or describe the limitation in the user documentation"
            ));
        }
        if waits_blindly(&source.path, in_tests, code) {
            report(
                "a wait for a fixed time causes races or blocks a thread: wait for the event"
                    .to_owned(),
            );
        }
        if starts_a_child(&source.path, in_tests, code) {
            report(format!(
                "start child processes with `{CHILD_HOME}program.rs`, which limits them"
            ));
        }
        if let Some(word) = unsafe_word(&source.path, code).filter(|_| product) {
            report(format!("`{word}` is permitted only in {}", UNSAFE_HOMES.join(" and ")));
        }
    }
    if code_lines > CODE_LINES && !is_test(&source.path) {
        violations.push(Violation {
            path: source.path.clone(),
            line: 0,
            message: format!("{code_lines} lines of code; split files with more than {CODE_LINES}"),
        });
    }
}

/// Returns a line without its comment. A `//` in a string also ends the line; this can hide
/// violations, but never report a false one.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

/// Returns the text after the fence of a code block, if the line of a doc comment begins one.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    text.trim_start().strip_prefix("```")
}

/// Returns a marker of unfinished work. The markers are concatenated here, so that this file does
/// not contain them.
fn unfinished_marker(line: &str) -> Option<&'static str> {
    const MARKERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    MARKERS.into_iter().find(|marker| has_word(line, marker))
}

/// Returns whether the code waits for a fixed time. Tests must not do this. Product code may wait
/// before a retry, but must not block a thread. The command line has only one thread, and may wait
/// until a server is ready.
fn waits_blindly(path: &str, in_tests: bool, code: &str) -> bool {
    let product = path.starts_with("src/") || path.starts_with("crates/");
    if is_test(path) || (in_tests && product) {
        has_word(code, "sleep") && code.contains(concat!("sleep", "("))
    } else {
        let blocks = code.contains(concat!("thread::", "sleep", "("));
        product && blocks && !path.starts_with("src/cli/")
    }
}

/// Returns whether the code starts a child process outside the permitted folder.
fn starts_a_child(path: &str, in_tests: bool, code: &str) -> bool {
    let product = path.starts_with("src/") || path.starts_with("crates/") && path.contains("/src/");
    let home = path.starts_with(CHILD_HOME);
    product && !home && !in_tests && !is_test(path) && code.contains(concat!("Command::", "new("))
}

/// Returns whether a file consists of tests only.
pub fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests") || path.ends_with("tests.rs")
}

fn unsafe_word(path: &str, code: &str) -> Option<&'static str> {
    if UNSAFE_HOMES.iter().any(|home| path.starts_with(home)) {
        return None;
    }
    let code = without_strings(code);
    ["unsafe", "cudarc"].into_iter().find(|word| has_word(&code, word))
}

/// Returns whether `text` contains `word` without a letter, digit or underscore next to it.
pub fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_word_character)
            && !text[at + word.len()..].starts_with(is_word_character)
    })
}

fn is_word_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns a line without the content of its string literals.
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
        assert_eq!(messages("crates/run/worker/src/child.rs", text).len(), 1);
        assert!(messages("crates/run/worker/src/child.rs", text)[0].starts_with("2: `unsafe`"));
        assert!(messages("crates/run/device/src/driver.rs", text).is_empty());
        assert_eq!(messages("crates/run/compile/src/nvrtc.rs", "use cudarc::nvrtc;\n").len(), 1);
    }

    #[test]
    fn no_fixed_waits_and_no_unfinished_work() {
        let wait = concat!("thread::sleep", "(Duration::from_secs(1));\n");
        assert_eq!(messages("tests/it/faults.rs", wait).len(), 1);
        assert_eq!(messages("crates/run/worker/src/fleet.rs", wait).len(), 1);
        assert_eq!(
            messages("crates/run/worker/src/fleet.rs", "tokio::time::sleep(delay).await;\n").len(),
            0
        );
        assert_eq!(messages("xtask/src/bench/load.rs", wait).len(), 0);
        assert_eq!(messages("src/lib.rs", concat!("// TO", "DO: later\n")).len(), 1);
    }

    #[test]
    fn examples_in_documentation_are_no_code() {
        let example = |kind: &str| format!("/// ```{kind}\n/// f();\n/// ```\nfn f() {{}}\n");
        assert_eq!(messages("src/a.rs", &example("")).len(), 1);
        assert_eq!(messages("src/a.rs", &example("rust,no_run")).len(), 1);
        assert_eq!(messages("src/a.rs", &example("text")).len(), 0);
    }

    #[test]
    fn children_are_started_in_one_place() {
        let start = concat!("fn f() { Command::", "new(\"ls\"); }\n");
        assert_eq!(messages("src/cli/a.rs", start).len(), 1);
        assert_eq!(messages("crates/run/worker/src/a.rs", start).len(), 1);
        let allowed =
            ["crates/lib/sandbox/src/a.rs", "crates/run/worker/src/a_tests.rs", "xtask/src/a.rs"];
        for path in allowed {
            assert!(messages(path, start).is_empty(), "{path}");
        }
        assert!(
            messages("src/a.rs", &format!("#[cfg(test)]\nmod tests {{ {start} }}\n")).is_empty()
        );
    }

    #[test]
    fn long_files_are_two() {
        assert_eq!(messages("src/a.rs", &"let a = 1;\n".repeat(451)).len(), 1);
        assert_eq!(messages("src/a.rs", &"/// Text.\n".repeat(900)).len(), 0);
    }
}
