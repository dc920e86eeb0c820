//! Reads the suite and its calibration.

use std::path::{Path, PathBuf};

use super::GateError;
use crate::cli::CliError;
use crate::cli::contract_file::read_file;
use warpgauge_gate::{Calibration, MAX_SUITE_BYTES, Suite};

pub(in crate::cli) fn read(path: &Path) -> Result<Suite, CliError> {
    let bytes = read_file(path, MAX_SUITE_BYTES)?;
    let suite = Suite::parse(&bytes);
    Ok(suite
        .map_err(|source| GateError::Suite { path: path.to_owned(), source: Box::new(source) })?)
}

/// Returns the path of a suite's calibration: `suite.calibration.json` for `suite.yaml`, in the
/// same directory.
pub(super) fn calibration_path(suite: &Path) -> PathBuf {
    suite.with_extension("calibration.json")
}

/// Returns the calibration of a suite, if the file exists.
pub(super) fn calibration(suite: &Path) -> Result<Option<(PathBuf, Calibration)>, CliError> {
    let path = calibration_path(suite);
    let there = path.try_exists().map_err(|source| CliError::System {
        operation: "look for the suite's calibration",
        source,
    })?;
    if !there {
        return Ok(None);
    }
    let bytes = read_file(&path, MAX_SUITE_BYTES)?;
    match Calibration::parse(&bytes) {
        Ok(calibration) => Ok(Some((path, calibration))),
        Err(source) => Err(GateError::Calibration { path, source: Box::new(source) }.into()),
    }
}
