//! Requests of a suite's cases: the kernel of one tree beside that of another.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::GateError;
use crate::cli::compile::{kernel_file, kernel_type_of};
use crate::cli::contract_file::ContractFile;
use crate::cli::{CliError, compare, json};
use crate::contract::{CompareRequest, DecisionSpec, Isolation, PresetName};
use crate::gate::CaseSpec;

/// Timed launches where counts decide: they are there to be verified, not to be timed.
const COUNTED_TRIALS: u32 = 3;

/// The contract of a case as it stands in one tree, ready to be compared.
#[derive(Debug, Clone)]
pub(super) struct Side {
    /// Fields of a comparison, the tree's kernel in `ref_kernel`.
    fields: Map<String, Value>,
    /// What of the contract a comparison does not use.
    pub notes: Vec<String>,
}

/// How a case is to be compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub preset: PresetName,
    pub decision: DecisionSpec,
    /// In processes of its own, whatever the contract says.
    pub fresh: bool,
    /// The device counts: effort spent on times would be for nothing.
    pub counted: bool,
}

impl Side {
    /// Reads the case from the tree whose suite would lie in `directory`. `None` if that lacks it.
    pub(super) fn read(
        case: &CaseSpec,
        directory: &Path,
        limit: u64,
    ) -> Result<Option<Self>, CliError> {
        let contract = directory.join(&case.contract);
        let source = case.source.as_ref().map(|source| directory.join(source));
        for file in std::iter::once(&contract).chain(&source) {
            if !exists(file)? {
                return Ok(None);
            }
        }
        let mut fields = ContractFile::read(&contract, limit)?.fields;
        let Some(Value::Object(kernel)) = fields.get_mut("kernel") else {
            return Err(GateError::NoContract { case: case.name.clone(), path: contract }.into());
        };
        if let Some(path) = source {
            replace_code(case, kernel, &path)?;
        }
        let notes = compare::from_contract(&mut fields);
        Ok(Some(Self { fields, notes }))
    }

    /// As [`Side::read`] of the tree that must have it.
    pub(super) fn required(
        case: &CaseSpec,
        directory: &Path,
        limit: u64,
    ) -> Result<Self, CliError> {
        if let Some(side) = Self::read(case, directory, limit)? {
            return Ok(side);
        }
        let files = std::iter::once(&case.contract).chain(&case.source);
        let mut paths = files.map(|file| directory.join(file));
        let missing = paths.find(|path| !path.exists());
        let path = missing.unwrap_or_else(|| directory.join(&case.contract));
        Err(GateError::NoFile { case: case.name.clone(), path }.into())
    }

    /// This tree's kernel, with everything else of the contract, beside the baseline's.
    pub(super) fn against(
        &self,
        baseline: &Side,
        manner: &Manner,
    ) -> Result<CompareRequest, CliError> {
        let mut fields = self.fields.clone();
        let own = fields.remove("ref_kernel").unwrap_or(Value::Null);
        let theirs = baseline.fields.get("ref_kernel").cloned().unwrap_or(Value::Null);
        fields.insert("ref_kernel".to_owned(), theirs);
        fields.insert("custom_kernel".to_owned(), own);
        fields.insert("decision".to_owned(), json::tree("decision", &manner.decision)?);
        if manner.fresh {
            fields.insert("isolation".to_owned(), json::tree("isolation", &Isolation::Fresh)?);
        }
        let measure = fields.entry("measure").or_insert_with(|| json!({}));
        if let Value::Object(measure) = measure {
            measure.insert("preset".to_owned(), json::tree("preset", &manner.preset)?);
            if manner.counted {
                measure.insert("min_warmup_time".to_owned(), json!(0.0));
            }
        }
        if manner.counted {
            fields.insert("num_trials".to_owned(), json!(COUNTED_TRIALS));
        }
        serde_path_to_error::deserialize(Value::Object(fields))
            .map_err(|error| CliError::Usage(format!("{}: {}", error.path(), error.inner())))
    }
}

fn exists(path: &Path) -> Result<bool, CliError> {
    path.try_exists().map_err(|source| CliError::System { operation: "look for a file", source })
}

/// Puts the code of a file in place of the contract's.
fn replace_code(
    case: &CaseSpec,
    kernel: &mut Map<String, Value>,
    path: &Path,
) -> Result<(), CliError> {
    let kind = kernel_type_of(path)
        .ok_or_else(|| GateError::NoKernel { case: case.name.clone(), path: path.to_owned() })?;
    let code = kernel_file(path, kind)?;
    for name in ["source_code", "binary_b64"] {
        kernel.remove(name);
    }
    if let Value::Object(code) = json::tree("kernel", &code)? {
        kernel.extend(code.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Ok(())
}
