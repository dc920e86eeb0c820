//! Triton. This module chooses the interpreter to install it for, removes unneeded files, and
//! checks that it compiles.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::triton::{self as found, PINNED, TRITON, TritonInstall};
use super::error::{InstallError, files};
use super::part::Part;
use super::{pip, strip};
use warpgauge_sandbox::contained::ProcessLaunch;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Oldest and newest minor version of Python 3 with wheels of the pinned versions, including
/// PyTorch's.
const PYTHONS: (u32, u32) = (10, 14);

/// Maximum time for the first compilation.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum time for an assembler to report its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time for compiling the package's Python files to bytecode.
const BYTECODE_TIMEOUT: Duration = Duration::from_secs(300);

/// Script that compiles a kernel as a test.
const CHECK: &str = include_str!("check.py");

/// File name of the script.
const SCRIPT: &str = "check.py";

/// Files that are not needed to compile for NVIDIA's devices: the profiler with its libraries, and
/// files of Triton's tests. The backend for AMD stays, since it is small and the package metadata
/// names it.
const NOT_NEEDED: [&str; 5] = [
    "triton/backends/nvidia/lib/cupti",
    "triton/_C/libproton.so",
    "triton/instrumentation",
    "triton/FileCheck",
    "bin",
];

/// Returns the first Python with pip that has wheels. `title` is the display name of the part.
pub(super) fn python(part: &Part, title: &'static str) -> Result<PathBuf, InstallError> {
    let (oldest, newest) = PYTHONS;
    let by_version = (oldest..=newest).rev().map(|minor| PathBuf::from(format!("python3.{minor}")));
    python_among(pip::pythons().chain(by_version), part, title)
}

fn python_among(
    candidates: impl Iterator<Item = PathBuf>,
    part: &Part,
    title: &'static str,
) -> Result<PathBuf, InstallError> {
    let (oldest, newest) = PYTHONS;
    let mut seen: Vec<String> = Vec::new();
    for candidate in candidates {
        let Some(python) = found::located_on_path(&candidate) else { continue };
        let what = match found::ask(&python, None) {
            Err(why) => why.reason,
            Ok(answer) if !has_wheel(&answer.version) => {
                format!("{} is {}", python.display(), answer.version)
            }
            Ok(_) if !pip::has_pip(&python) => format!("{} has no pip", python.display()),
            Ok(_) => return Ok(python),
        };
        seen.push(what);
    }
    let found = match seen.is_empty() {
        true => "and no python3 was found".to_owned(),
        false => format!("and {}", seen.join(", ")),
    };
    let (range, packages) = (format!("3.{oldest} to 3.{newest}"), part.packages.join(" "));
    Err(InstallError::NoPythonFor { title, packages, range, found })
}

fn has_wheel(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    parts.next() == Some(3)
        && parts.next().is_some_and(|minor| (PYTHONS.0..=PYTHONS.1).contains(&minor))
}

/// Prepares the files that pip unpacked into `fresh` for their move to `place`.
pub(super) fn finish(
    python: &Path,
    part: &Part,
    fresh: &Path,
    place: &Path,
    temporary: &Path,
) -> Result<(), InstallError> {
    let broken = |what: String| InstallError::Broken { part: part.name.clone(), what };
    prune(fresh)?;
    settle(python, part, fresh, place, temporary)?;
    let install =
        found::find_in(fresh, &TRITON, found::install).map_err(|why| broken(why.to_string()))?;
    verify(&install, temporary).map_err(broken)
}

/// Compiles a part's Python files to bytecode, and records the interpreter for which the part is
/// installed.
pub(super) fn settle(
    python: &Path,
    part: &Part,
    fresh: &Path,
    place: &Path,
    temporary: &Path,
) -> Result<(), InstallError> {
    let broken = |what: String| InstallError::Broken { part: part.name.clone(), what };
    // An active environment may be deleted later, so the record contains the Python that the
    // environment is based on.
    let of_environment = found::ask(python, Some(fresh)).map_err(|why| broken(why.reason))?;
    let python = of_environment.outside_of_environments();
    let answer = found::ask(&python, Some(fresh)).map_err(|why| broken(why.reason))?;
    precompile(&python, part, fresh, place, temporary).map_err(broken)?;
    found::remember(fresh, &python, answer).map_err(files("write to", fresh))
}

/// Removes files that are not needed to compile for NVIDIA's devices.
fn prune(fresh: &Path) -> Result<(), InstallError> {
    for name in NOT_NEEDED {
        let path = fresh.join(name);
        let removed = match path.is_dir() {
            true => fs::remove_dir_all(&path),
            false if path.exists() => fs::remove_file(&path),
            false => Ok(()),
        };
        removed.map_err(files("remove", &path))?;
    }
    let library = fresh.join("triton/_C/libtriton.so");
    if library.is_file() {
        strip::strip(&library).map_err(files("shorten", &library))?;
    }
    Ok(())
}

/// Compiles the package's Python files to bytecode once, because users of the package may not be
/// able to write here. The compiled files do not depend on the modification times of the sources,
/// which copying changes.
fn precompile(
    python: &Path,
    part: &Part,
    fresh: &Path,
    place: &Path,
    temporary: &Path,
) -> Result<(), String> {
    // Dependencies are imported together with the package.
    let compiled = if part.with_needs { fresh.to_owned() } else { fresh.join(&part.name) };
    let program = ChildProgram::new(python, Environment::Empty)
        .args(["-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"])
        .arg("-s")
        .arg(fresh)
        .arg("-p")
        .arg(place)
        .arg(compiled)
        .within(temporary);
    let end = found::run_blocking(&ProcessLaunch::new(program), BYTECODE_TIMEOUT);
    let end = end.map_err(|error| format!("cannot start {}: {error}", python.display()))?;
    if end.status.is_none() {
        return Err(format!(
            "its Python files were not compiled within {} s",
            BYTECODE_TIMEOUT.as_secs()
        ));
    }
    // An import of such a file would fail, but this Python does not import it. The later check
    // finds real problems.
    tracing::debug!(end = end.description(), "compiled a package's Python");
    Ok(())
}

/// Compiles a kernel, and checks the assemblers' versions.
fn verify(install: &TritonInstall, temporary: &Path) -> Result<(), String> {
    if install.version != PINNED {
        return Err(format!("its version is {}, but should be {PINNED}", install.version));
    }
    let script = temporary.join(SCRIPT);
    fs::write(&script, CHECK).map_err(|e| format!("cannot write {}: {e}", script.display()))?;
    compiles(install, temporary)?;
    for ptxas in [Some(&install.ptxas), install.ptxas_blackwell.as_ref()].into_iter().flatten() {
        let program =
            ChildProgram::new(ptxas, Environment::Empty).arg("--version").within(temporary);
        said(program, VERSION_TIMEOUT, "prints its version", "release")?;
    }
    Ok(())
}

/// Runs the test script that is in the directory `temporary`.
fn compiles(install: &TritonInstall, temporary: &Path) -> Result<(), String> {
    let program = ChildProgram::new(&install.python, Environment::Empty)
        .args(["-I", "-B"])
        .args([&temporary.join(SCRIPT), &install.site_packages])
        .variable("HOME", temporary)
        .variable("TRITON_CACHE_DIR", temporary.join("cache"))
        .within(temporary);
    said(program, VERIFY_TIMEOUT, "compiles a kernel", "compiled")
}

/// Runs a program, and checks that its output contains a word.
pub(super) fn said(
    program: ChildProgram,
    limit: Duration,
    does: &str,
    word: &str,
) -> Result<(), String> {
    let name = program.name().into_owned();
    let end = found::run_blocking(&ProcessLaunch::new(program), limit);
    let end = end.map_err(|error| format!("cannot start {name}: {error}"))?;
    if end.succeeded() && end.stdout.text.contains(word) {
        return Ok(());
    }
    let what = end.description();
    Err(format!("while {name} {does}: {what}; it said: {}", found::quoted(&end)))
}

#[cfg(test)]
#[path = "triton_tests.rs"]
mod tests;
