//! Checks whether the files of the repository conform to the project's rules: [`run`].
//!
//! ARCHITECTURE.md lists all invariants.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell;

mod crates;
mod links;
mod modules;
mod names;
mod rooms;
mod rules;
mod words;

/// Directories that contain no handwritten files.
const SKIPPED: [&str; 7] =
    ["target", ".git", ".venv", "bundle", "node_modules", "__pycache__", "fixtures"];

/// A text file of the repository.
struct Source {
    /// Path relative to the root of the repository, with `/`.
    path: String,
    text: String,
}

/// A violation of a rule.
struct Violation {
    path: String,
    /// Number of the line, from 1. 0 means the whole file.
    line: usize,
    message: String,
}

/// Checks all rules and prints all violations.
pub fn run() -> Result<()> {
    let violations = check(shell::root())?;
    for violation in &violations {
        eprintln!("{}:{}: {}", violation.path, violation.line, violation.message);
    }
    if !violations.is_empty() {
        bail!("{} violations of the rules in xtask/src/tidy", violations.len());
    }
    Ok(())
}

fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    let mut violations = Vec::new();
    crates::check(root, &mut violations)?;
    rooms::check(&files, &mut violations);
    modules::check(&files, &mut violations);
    names::check(&files, &mut violations);
    for source in &files {
        if source.path.ends_with(".rs") {
            rules::check(source, &mut violations);
            words::check(source, &mut violations);
        } else {
            links::check(root, source, &mut violations);
        }
    }
    Ok(violations)
}

/// Reads every `.rs` and `.md` file below a directory.
fn collect(root: &Path, directory: &Path, files: &mut Vec<Source>) -> Result<()> {
    let entries = fs::read_dir(directory)
        .with_context(|| format!("cannot read {}", directory.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    for entry in entries {
        let path: PathBuf = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if !SKIPPED.contains(&name.as_ref()) {
                collect(root, &path, files)?;
            }
        } else if name.ends_with(".rs") || name.ends_with(".md") {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(Source { path, text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::shell;

    #[test]
    fn the_repository_keeps_its_rules() {
        let violations: Vec<String> = match check(shell::root()) {
            Ok(violations) => {
                violations.iter().map(|v| format!("{}:{}: {}", v.path, v.line, v.message)).collect()
            }
            Err(error) => vec![format!("{error:#}")],
        };
        assert!(violations.is_empty(), "\n{}", violations.join("\n"));
    }
}
