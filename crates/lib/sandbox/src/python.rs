//! Starts Python interpreters that confine themselves before they run submitted code. The main
//! function is [`interpreter`].

use std::io;
use std::path::Path;

use serde::Serialize;

use super::program::{ChildProgram, Environment};

/// The common beginning of all sources: the functions for frames on a socket, and `allow_only`,
/// which installs the filters from [`encoded_with_asking`](super::calls::encoded_with_asking).
const PRELUDE: &str = include_str!("prelude.py");

/// A script that joins the arguments after the settings into one source and runs it.
const JOIN: &str = "import sys\nparts = sys.argv[2:]\ndel sys.argv[2:]\n\
                    exec(compile(''.join(parts), '<string>', 'exec'))";

/// The maximum length of an argument, in bytes. The system allows at most 128 KiB.
const PART_BYTES: usize = 64 << 10;

/// Prepares an interpreter that runs `source` after the prelude, with `settings` as JSON in its
/// first argument. It receives nothing from this process's environment, finds packages only at
/// locations in the settings, and writes no bytecode files.
///
/// # Errors
/// The settings cannot be represented in JSON.
pub fn interpreter(
    python: &Path,
    source: &str,
    settings: &impl Serialize,
) -> io::Result<ChildProgram> {
    let mut program = ChildProgram::new(python, Environment::Empty)
        .args(["-S", "-s", "-c", JOIN])
        .arg(serde_json::to_string(settings)?)
        .args(parts(&format!("{PRELUDE}\n{source}")))
        .variable("PATH", "/usr/bin:/bin")
        // The same source gives the same code, regardless of the order of sets.
        .variable("PYTHONHASHSEED", "0")
        .variable("PYTHONDONTWRITEBYTECODE", "1")
        .variable("PYTHONUTF8", "1")
        .variable("PYTHONSAFEPATH", "1")
        .variable("HOME", "/");
    // The working directory reveals no path of the server.
    program.directory = Some("/".into());
    Ok(program)
}

/// Splits text into parts that are short enough for arguments.
fn parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let mut end = PART_BYTES.min(rest.len());
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (part, others) = rest.split_at(end);
        parts.push(part.to_owned());
        rest = others;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_of_any_length_is_run_as_one() {
        let filler = format!("# {}\n", "é".repeat(1000)).repeat(200);
        let source =
            format!("{filler}def f():\n    return sys.argv\n{filler}print(len(f()), f()[1])");
        let parts = parts(&format!("{PRELUDE}\n{source}"));
        assert!(parts.len() > 6 && parts.iter().all(|part| part.len() <= PART_BYTES));
        let mut python = std::process::Command::new("python3");
        let ran = python.args(["-S", "-s", "-c", JOIN, "told"]).args(&parts).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "2 told\n", "{ran:?}");
    }
}
