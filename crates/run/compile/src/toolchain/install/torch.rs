//! PyTorch. This module checks that the installed package works.

use std::path::Path;
use std::time::Duration;

use super::super::torch::{self as found, PINNED, TorchInstall};
use super::error::InstallError;
use super::part::Part;
use super::triton;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Maximum time for the first import.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(180);

/// Python program that imports PyTorch and computes a sum as a test.
const CHECK: &str = "import sys; sys.path.insert(0, sys.argv[1]); import numpy, torch; \
    print('computed', int(torch.ones(3).numpy().sum()))";

/// Prepares the files that pip unpacked into `fresh` for their move to `place`.
pub(super) fn finish(
    python: &Path,
    part: &Part,
    fresh: &Path,
    place: &Path,
    temporary: &Path,
) -> Result<(), InstallError> {
    let broken = |what: String| InstallError::Broken { part: part.name.clone(), what };
    triton::settle(python, part, fresh, place, temporary)?;
    let install = found::find_in(fresh).map_err(|why| broken(why.to_string()))?;
    verify(&install, temporary).map_err(broken)
}

fn verify(install: &TorchInstall, temporary: &Path) -> Result<(), String> {
    // Versions of builds for the CPU have a suffix.
    if install.version.split('+').next() != Some(PINNED) {
        return Err(format!("its version is {}, but should be {PINNED}", install.version));
    }
    let program = ChildProgram::new(&install.python, Environment::Empty)
        .args(["-S", "-s", "-B", "-c", CHECK])
        .arg(&install.site_packages)
        .variable("HOME", temporary)
        .within(temporary);
    triton::said(program, VERIFY_TIMEOUT, "adds three numbers", "computed 3")
}
