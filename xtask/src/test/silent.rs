//! Finds tests that pass without testing anything. A test that cannot run on this machine must
//! report this with `needs!`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::shell;

/// Folders that contain tests.
const ROOTS: [&str; 5] = ["tests", "src", "crates", "xtask", "benches"];

/// Code that tests a property of the machine. If a helper function returned early because of such a
/// condition, the calling test would pass without testing anything.
const MACHINE: [&str; 5] = ["emulated()", "on_gpu()", "device() ", "[\"kind\"]", "is_root()"];

/// An early `return` with which a test passes without testing anything.
#[derive(Debug, PartialEq)]
struct Silent {
    /// Number of the line, from 1.
    line: usize,
    text: String,
}

/// Finds silent returns in a file. A test may return early if it has started itself again in
/// another process.
fn check(text: &str, only_tests: bool) -> Vec<Silent> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut end_of_test = 0;
    for (index, line) in lines.iter().enumerate() {
        if is_test(line) {
            end_of_test = index + end_of_item(&lines[index..]);
        }
        if !returns_nothing(line) {
            continue;
        }
        let block = block_before(&lines[..=index]);
        let silent = if index < end_of_test {
            !block.iter().any(|line| line.contains("again("))
        } else {
            only_tests && block.iter().any(|line| MACHINE.iter().any(|asks| line.contains(asks)))
        };
        if silent {
            found.push(Silent { line: index + 1, text: line.trim().to_owned() });
        }
    }
    found
}

fn is_test(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("#[test]") || line.starts_with("#[tokio::test")
}

/// Returns whether a line is `return;` or ends with it, as in `else { return };`. Lines that
/// contain strings are ignored, because these may be kernel sources.
fn returns_nothing(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default().trim();
    if code.contains('"') {
        return false;
    }
    code == "return;" || code.ends_with("{ return; }") || code.ends_with("{ return };")
}

/// Returns the number of lines up to the end of the function. rustfmt aligns the closing brace with
/// the first line of the function.
fn end_of_item(lines: &[&str]) -> usize {
    let closing = format!("{}}}", &lines[0][..indent(lines[0])]);
    lines.iter().position(|line| line.trim_end() == closing).unwrap_or(lines.len())
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the lines of the block that contains the last of these lines, beginning with the block's
/// condition.
fn block_before<'a>(lines: &'a [&'a str]) -> &'a [&'a str] {
    let last = lines.len() - 1;
    let own = indent(lines[last]);
    let outside = |line: &&str| !line.trim().is_empty() && indent(line) < own;
    if lines[last].trim() != "return;" {
        return &lines[last..];
    }
    let mut start = lines[..last].iter().rposition(outside).unwrap_or(0);
    // A condition that takes several lines is followed by a line that contains only a brace.
    if lines[start].trim() == "{" {
        let level = indent(lines[start]);
        let begins = |line: &&str| line.trim_start().starts_with("if ") && indent(line) == level;
        start = lines[..start].iter().rposition(begins).unwrap_or(start);
    }
    &lines[start..]
}

/// Adds all silent returns in the files below a directory, as `path:line: text`.
fn below(directory: &Path, found: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "target" {
                below(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let only_tests = path.components().any(|part| part.as_os_str() == "tests");
            let told = check(&text, only_tests)
                .into_iter()
                .map(|silent| format!("{}:{}: {}", path.display(), silent.line, silent.text));
            found.extend(told);
        }
    }
    Ok(())
}

#[test]
fn no_test_returns_without_a_word() {
    let mut found = Vec::new();
    for root in ROOTS {
        below(&shell::root().join(root), &mut found).unwrap();
    }
    assert!(
        found.is_empty(),
        "these tests pass without testing; report what is missing with `needs!` or `the_rest_needs!` \
         (tests/support/needs.rs):\n{}",
        found.join("\n")
    );
}

#[test]
fn silent_returns_are_found() {
    const NONE: [usize; 0] = [];
    let lines = |text: &str, only_tests: bool| -> Vec<usize> {
        check(text, only_tests).iter().map(|silent| silent.line).collect()
    };
    let test = |body: &str| format!("#[test]\nfn a() {{\n{body}\n    assert!(true);\n}}\n");
    assert_eq!(lines(&test("    if !there() {\n        return;\n    }"), false), [4]);
    assert_eq!(lines(&test("    let Some(a) = b() else { return };"), false), [3]);
    assert_eq!(lines(&test("    if a {\n        assert!(b);\n        return;\n    }"), false), [5]);
    // The test is in a module and has tokio's attribute.
    let within = "mod tests {\n    #[tokio::test]\n    async fn a() {\n        if b() {\n            return;\n        }\n    }\n}\n";
    assert_eq!(lines(within, false), [5]);
    // The test has started itself again.
    assert_eq!(lines(&test("    if a {\n        again(b);\n        return;\n    }"), false), NONE);
    // A function that is not a test may return early, but helpers of tests must not do so because
    // of the device.
    let helper = "fn long() {\n    if device() != \"emulator\" {\n        return;\n    }\n}\n";
    assert_eq!(lines(helper, true), [3]);
    assert_eq!(lines(helper, false), NONE);
    let several =
        "fn long() {\n    if a\n        || !emulated()\n    {\n        return;\n    }\n}\n";
    assert_eq!(lines(several, true), [5]);
    assert_eq!(lines("fn b() {\n    if c.is_symlink() {\n        return;\n    }\n}\n", true), NONE);
    // The `return` is in CUDA code.
    assert_eq!(lines(&test("    let a = \"if (i >= n) return;\";"), false), NONE);
}
