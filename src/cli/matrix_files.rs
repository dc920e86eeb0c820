//! Contracts that refer to matrices in files on this machine: `matrix: ./cant.mtx` or
//! `./cant.spasm`, relative to the contract.
//!
//! A name that contains a slash is a path. Names of matrices on a server contain no slash, so a
//! request cannot refer to a file of the server.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::CliError;
use super::contract_file::ContractFile;
use warpgauge_config::Config;
use warpgauge_contract::{CompareRequest, EvaluateRequest, MatrixUsed};
use warpgauge_sparse::spmv::{Csr, NamedMatrix, SpmvError, TakesMatrices, read_matrix_file};

/// Returns the maximum size of a matrix file, bytes. It is the limit for the stored matrices of a
/// key on a server.
pub(super) fn max_bytes(config: &Config) -> u64 {
    match config.limits.max_matrix_bytes_per_key {
        0 => config.limits.max_tensor_bytes,
        bytes => bytes,
    }
}

/// Replaces the names of files by their matrices in the contract of an evaluation or a comparison.
///
/// # Errors
/// A file cannot be read, or its matrix does not fit the field that refers to it.
pub(super) fn put_into(contract: &mut ContractFile, max_bytes: u64) -> Result<(), CliError> {
    if !contract.fields.values().any(names_file) {
        return Ok(());
    }
    let place = contract.path().to_owned();
    if contract.fields.contains_key("axes") {
        return Err(CliError::Usage(format!(
            "{}: a sweep can name uploaded or generated matrices, but no files",
            place.display()
        )));
    }
    let whole = if contract.fields.contains_key("ref_kernel") {
        serde_json::to_value(filled::<CompareRequest>(contract, &place, max_bytes)?)
    } else {
        serde_json::to_value(filled::<EvaluateRequest>(contract, &place, max_bytes)?)
    };
    let whole = whole.map_err(|error| CliError::Internal(format!("contract to JSON: {error}")))?;
    if let Value::Object(fields) = whole {
        contract.fields = fields;
    }
    Ok(())
}

/// Returns the request, with matrices in place of the names of their files.
fn filled<R: TakesMatrices + DeserializeOwned>(
    contract: &ContractFile,
    place: &Path,
    max_bytes: u64,
) -> Result<R, CliError> {
    // A server limits the size of a request with its matrices. This limit does not apply to local
    // files.
    let mut left = u64::MAX;
    let unfit = |error: SpmvError| CliError::Usage(format!("{}: {error}", place.display()));
    let mut request: R = contract.clone().typed()?;
    let names = request.matrices_wanted().map_err(|error| unfit(error.into()))?;
    for (name, path) in names.into_iter().filter(|(name, _)| is_file(name)) {
        let (csr, used) = read(place, &name, &path, max_bytes)?;
        let named = NamedMatrix { name: &name, csr: &csr, max_bytes };
        request.put_matrix(&named, &mut left).map_err(unfit)?;
        if let Some(list) = request.matrices_used_mut() {
            list.push(used);
        }
    }
    Ok(request)
}

/// Returns whether the name of a matrix is a path.
fn is_file(name: &str) -> bool {
    name.contains('/')
}

/// Returns whether any field in the value contains the name of a matrix file.
fn names_file(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(field, value)| match value {
            Value::String(name) => field == "matrix" && is_file(name),
            value => names_file(value),
        }),
        Value::Array(items) => items.iter().any(names_file),
        _ => false,
    }
}

fn read(
    contract: &Path,
    name: &str,
    path: &str,
    max_bytes: u64,
) -> Result<(Csr, MatrixUsed), CliError> {
    let file: PathBuf = contract.parent().unwrap_or(Path::new("")).join(name);
    read_matrix_file(&file, name, max_bytes, |_, _| ()).map_err(|error| {
        CliError::Usage(format!("{}: {path}: {}: {error}", contract.display(), file.display()))
    })
}
