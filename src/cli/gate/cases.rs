//! Reads the contracts of a suite's cases from the candidate's or the baseline's tree.

use std::path::Path;

use serde_json::{Map, Value};

use super::GateError;
use crate::cli::compile::{kernel_file, kernel_type_of};
use crate::cli::contract_file::ContractFile;
use crate::cli::{CliError, json};
use warpgauge_contract::EvaluateRequest;
use warpgauge_gate::CaseSpec;

/// Reads the contract of a case. `directory` is the directory of the suite in that tree. Returns
/// `None` if a file of the case is missing in the tree.
pub(super) fn read(
    case: &CaseSpec,
    directory: &Path,
    limit: u64,
) -> Result<Option<EvaluateRequest>, CliError> {
    let contract = directory.join(&case.contract);
    let source = case.source.as_ref().map(|source| directory.join(source));
    for file in std::iter::once(&contract).chain(&source) {
        if !exists(file)? {
            return Ok(None);
        }
    }
    let mut file = ContractFile::read(&contract, limit)?;
    let Some(Value::Object(kernel)) = file.fields.get_mut("kernel") else {
        return Err(GateError::NoContract { case: case.name.clone(), path: contract }.into());
    };
    if let Some(path) = source {
        replace_code(case, kernel, &path)?;
    }
    Ok(Some(file.typed()?))
}

/// Reads a case's contract like [`read`]. A missing file is an error.
pub(in crate::cli) fn required(
    case: &CaseSpec,
    directory: &Path,
    limit: u64,
) -> Result<EvaluateRequest, CliError> {
    if let Some(contract) = read(case, directory, limit)? {
        return Ok(contract);
    }
    let files = std::iter::once(&case.contract).chain(&case.source);
    let mut paths = files.map(|file| directory.join(file));
    let missing = paths.find(|path| !path.exists());
    let path = missing.unwrap_or_else(|| directory.join(&case.contract));
    Err(GateError::NoFile { case: case.name.clone(), path }.into())
}

fn exists(path: &Path) -> Result<bool, CliError> {
    path.try_exists().map_err(|source| CliError::System { operation: "look for a file", source })
}

/// Replaces the kernel's code with the code in a file.
fn replace_code(
    case: &CaseSpec,
    kernel: &mut Map<String, Value>,
    path: &Path,
) -> Result<(), CliError> {
    let kind = kernel_type_of(path)
        .ok_or_else(|| GateError::NoKernel { case: case.name.clone(), path: path.to_owned() })?;
    let code = kernel_file(path, kind)?;
    for name in ["source_code", "files", "source_path", "binary_b64"] {
        kernel.remove(name);
    }
    if let Value::Object(code) = json::tree("kernel", &code)? {
        kernel.extend(code.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(())
}
