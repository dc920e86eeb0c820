//! Triton: which interpreter it is installed for, what of it is not needed, and whether it compiles.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::triton::{self as found, PINNED, TRITON, TritonInstall};
use super::error::{InstallError, files};
use super::part::Part;
use super::{pip, strip};
use warpgauge_sandbox::contained::ProcessLaunch;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Oldest and newest version of Python 3 that wheels of the pinned versions are built for, PyTorch's as
/// well.
const PYTHONS: (u32, u32) = (10, 14);

/// Time that the first compilation may take.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(120);

/// Time that an assembler has to tell its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Time that compiling the package's own sources may take.
const BYTECODE_TIMEOUT: Duration = Duration::from_secs(300);

/// The kernel that is compiled to see that it works.
const CHECK: &str = include_str!("check.py");

/// Its name where it is run.
const SCRIPT: &str = "check.py";

/// What nothing needs that compiles for NVIDIA's devices: the profiler with its libraries, and what
/// tests of Triton's own use. The backend for AMD stays: it is small, and the metadata name it.
const NOT_NEEDED: [&str; 5] = [
    "triton/backends/nvidia/lib/cupti",
    "triton/_C/libproton.so",
    "triton/instrumentation",
    "triton/FileCheck",
    "bin",
];

/// The first Python with pip that there are wheels for; `title` is the part as people write it.
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

/// Makes what pip unpacked into `fresh` ready to be moved to `place`.
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

/// Compiles a part's Python, and writes down the interpreter that it is for.
pub(super) fn settle(
    python: &Path,
    part: &Part,
    fresh: &Path,
    place: &Path,
    temporary: &Path,
) -> Result<(), InstallError> {
    let broken = |what: String| InstallError::Broken { part: part.name.clone(), what };
    // An active environment may be deleted tomorrow: what is remembered is the Python behind it.
    let of_environment = found::ask(python, Some(fresh)).map_err(|why| broken(why.reason))?;
    let python = of_environment.outside_of_environments();
    let answer = found::ask(&python, Some(fresh)).map_err(|why| broken(why.reason))?;
    precompile(&python, part, fresh, place, temporary).map_err(broken)?;
    found::remember(fresh, &python, answer).map_err(files("write to", fresh))
}

/// Drops what is not needed.
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

/// Compiles the package's Python once: whoever uses it may not write here. The files do not depend
/// on the sources' times, which copies change.
fn precompile(
    python: &Path,
    part: &Part,
    fresh: &Path,
    place: &Path,
    temporary: &Path,
) -> Result<(), String> {
    // What comes with a package is imported with it.
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
        return Err(format!("its Python was not compiled within {} s", BYTECODE_TIMEOUT.as_secs()));
    }
    // A file that this Python does not understand is none that it imports: the check tells.
    tracing::debug!(end = end.description(), "compiled a package's Python");
    Ok(())
}

/// Compiles a kernel, and asks the assemblers.
fn verify(install: &TritonInstall, temporary: &Path) -> Result<(), String> {
    if install.version != PINNED {
        return Err(format!("it is {} and should be {PINNED}", install.version));
    }
    let script = temporary.join(SCRIPT);
    fs::write(&script, CHECK).map_err(|e| format!("cannot write {}: {e}", script.display()))?;
    compiles(install, temporary)?;
    for ptxas in [Some(&install.ptxas), install.ptxas_blackwell.as_ref()].into_iter().flatten() {
        let program =
            ChildProgram::new(ptxas, Environment::Empty).arg("--version").within(temporary);
        said(program, VERSION_TIMEOUT, "tells its version", "release")?;
    }
    Ok(())
}

/// Runs the script that lies in `temporary`.
fn compiles(install: &TritonInstall, temporary: &Path) -> Result<(), String> {
    let program = ChildProgram::new(&install.python, Environment::Empty)
        .args(["-I", "-B"])
        .args([&temporary.join(SCRIPT), &install.site_packages])
        .variable("HOME", temporary)
        .variable("TRITON_CACHE_DIR", temporary.join("cache"))
        .within(temporary);
    said(program, VERIFY_TIMEOUT, "compiles a kernel", "compiled")
}

/// Whether a program says a word while it does something.
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
