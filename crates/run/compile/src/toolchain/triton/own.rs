//! An installation of a package by this program. It is a directory with the package and a record of
//! the interpreter for which it was installed.
//!
//! It is not a virtual environment, because virtual environments contain absolute paths and cannot
//! be moved. The record also contains the interpreter's answer, so that the interpreter is not
//! started again while its file is unchanged.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ask::{self, Answer};
use super::types::{NoTriton, NoTritonCode, Package};

/// File name of the record in the directory.
const RECORD: &str = "warpgauge-python.json";

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// Absolute path of the interpreter for which the package was installed.
    python: PathBuf,
    /// Identity of the interpreter's executable file.
    identity: Identity,
    /// The interpreter's answer. Its path of the package is outdated, because the package has been
    /// moved.
    answer: Answer,
}

/// Identity of an executable file. A changed file has another size or modification time. (Inodes
/// change when container images are unpacked.)
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    path: PathBuf,
    bytes: u64,
    modified_ns: i64,
}

impl Identity {
    fn of(python: &Path) -> std::io::Result<Self> {
        let path = python.canonicalize()?;
        let file = path.metadata()?;
        Ok(Self {
            bytes: file.len(),
            modified_ns: file
                .mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(file.mtime_nsec()),
            path,
        })
    }
}

/// Writes the record of the interpreter and its answer for the installation in `directory`.
pub(in super::super) fn remember(
    directory: &Path,
    python: &Path,
    answer: Answer,
) -> std::io::Result<()> {
    let record = Record { python: python.to_owned(), identity: Identity::of(python)?, answer };
    let text = serde_json::to_string_pretty(&record)?;
    fs::write(directory.join(RECORD), text + "\n")
}

/// Returns whether a directory is an installation by this program.
pub(super) fn is_own(directory: &Path) -> bool {
    directory.join(RECORD).is_file()
}

/// Returns the interpreter of the installation of a package in `directory`, and its current answer.
pub(super) fn answer(directory: &Path, package: &Package) -> Result<(PathBuf, Answer), NoTriton> {
    let Package { name, title } = package;
    let again = format!("`warpgauge toolchain install --with {name}` installs it again");
    let directory = &std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let path = directory.join(RECORD);
    let broken = |what: String| {
        let reason =
            format!("the installed {title} in {} is not usable: {what}", directory.display());
        NoTriton::new(NoTritonCode::Incomplete, reason, &*again)
    };
    let text = fs::read_to_string(&path)
        .map_err(|error| broken(format!("cannot read {}: {error}", path.display())))?;
    let Record { python, identity, answer } = serde_json::from_str(&text)
        .map_err(|error| broken(format!("{} is damaged: {error}", path.display())))?;
    let changed = |what: String| {
        let reason =
            format!("the Python {} that {title} was installed for {what}", python.display());
        NoTriton::new(NoTritonCode::Interpreter, reason, &*again)
    };
    let now = Identity::of(&python).map_err(|_| changed("no longer exists".to_owned()))?;
    let origin = directory.join(name).join("__init__.py");
    if !origin.is_file() {
        return Err(broken(format!("there is no {}", origin.display())));
    }
    if now == identity {
        return Ok((python, answer.with_package(package, origin)));
    }
    // The interpreter was upgraded in place. Within a minor version the package continues to work.
    let asked = ask::ask(&python, Some(directory))?;
    if minor(&asked.version) != minor(&answer.version) {
        let what = format!("had version {} then, but has {} now", answer.version, asked.version);
        return Err(changed(what));
    }
    Ok((python, asked))
}

/// Returns the minor version of Python: `3.11` for `3.11.7`.
fn minor(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(minor, _)| minor)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{interpreter, package, script};
    use super::super::types::TRITON;
    use super::*;

    /// Returns an environment, and the interpreter that it was installed for.
    fn environment() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let directory = package(&place.path().join("triton"), "3.6.0");
        let python = interpreter(&place.path().join("bin/python3"), Some(&directory));
        remember(&directory, &python, ask::ask(&python, None).unwrap()).unwrap();
        (place, directory, python)
    }

    #[test]
    fn an_environment_may_be_moved_and_its_interpreter_is_not_asked_again() {
        let (place, directory, python) = environment();
        let moved = place.path().join("moved");
        fs::rename(&directory, &moved).unwrap();
        let (found, answer) = answer(&moved, &TRITON).unwrap();
        assert_eq!(found, python);
        let install = ask::install(&found, &answer, crate::toolchain::PartOrigin::Cache).unwrap();
        assert_eq!((install.site_packages, install.version.as_str()), (moved, "3.6.0"));
    }

    #[test]
    fn an_interpreter_that_is_gone_or_another_one_is_said() {
        let (_place, directory, python) = environment();
        let text = fs::read_to_string(&python).unwrap().replace("#!/bin/sh", "");
        // An interpreter of the same minor version is accepted, whatever the rest of its answer.
        script(&python, &text.replace("3.11.7", "3.11.12"));
        assert_eq!(answer(&directory, &TRITON).unwrap().1.version, "3.11.12");
        script(&python, &text.replace("3.11.7", "3.12.1"));
        let why = answer(&directory, &TRITON).unwrap_err();
        assert!(why.reason.contains("had version 3.11.7 then, but has 3.12.1 now"), "{why}");
        assert!(why.remedy.contains("toolchain install --with triton"), "{why}");
        fs::remove_file(&python).unwrap();
        let why = answer(&directory, &TRITON).unwrap_err();
        assert_eq!(why.code, NoTritonCode::Interpreter);
        assert!(why.reason.contains("no longer exists"), "{why}");
    }

    #[test]
    fn one_that_is_not_whole_is_said() {
        let (_place, directory, _) = environment();
        fs::remove_file(directory.join("triton/__init__.py")).unwrap();
        assert!(answer(&directory, &TRITON).unwrap_err().reason.contains("__init__.py"));
        fs::write(directory.join(RECORD), "{").unwrap();
        assert!(answer(&directory, &TRITON).unwrap_err().reason.contains("damaged"));
        fs::remove_file(directory.join(RECORD)).unwrap();
        let why = answer(&directory, &TRITON).unwrap_err();
        assert!(why.code == NoTritonCode::Incomplete && why.reason.contains(RECORD), "{why}");
    }
}
