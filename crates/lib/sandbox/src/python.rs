//! Python interpreters that run a stranger's code, once they have confined themselves: how they are
//! started, and what the sources of all of them begin with.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::program::{ChildProgram, Environment};

/// Frames, and `allow_only`, which installs [`encoded_with_asking`](super::calls::encoded_with_asking) filters.
const PRELUDE: &str = include_str!("prelude.py");

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
        .args(["-S", "-s", "-c"])
        .arg(format!("{PRELUDE}\n{source}"))
        .arg(serde_json::to_string(settings)?)
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
