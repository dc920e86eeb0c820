//! Python interpreters that run a stranger's code, once they have confined themselves: how they are
//! started, and what the sources of all of them begin with.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::program::{ChildProgram, Environment};

/// Frames, and `allow_only`, which installs [`encoded_with_asking`](super::calls::encoded_with_asking) filters.
const PRELUDE: &str = include_str!("prelude.py");

/// Runs the source that the arguments behind the settings make together.
const JOIN: &str = "import sys\nparts = sys.argv[2:]\ndel sys.argv[2:]\n\
                    exec(compile(''.join(parts), '<string>', 'exec'))";

/// Most bytes of an argument of ours: the system takes no more than 128 KiB.
const PART_BYTES: usize = 64 << 10;

/// An interpreter that runs `source`, behind the prelude, and is told `settings` as JSON in its argument.
/// It finds nothing of our environment, no packages but those whose place it is told, and writes nothing.
///
/// # Errors
/// The settings are none that JSON has.
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
        // The same code for the same source, whatever order sets have.
        .variable("PYTHONHASHSEED", "0")
        .variable("PYTHONDONTWRITEBYTECODE", "1")
        .variable("PYTHONUTF8", "1")
        .variable("PYTHONSAFEPATH", "1")
        .variable("HOME", "/");
    // Where our files are is nobody's business.
    program.directory = Some("/".into());
    Ok(program)
}

/// A text in parts that are arguments.
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
