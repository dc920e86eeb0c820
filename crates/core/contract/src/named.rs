//! Sparse matrices that a contract names in place of data. The service puts their arrays and
//! numbers into the contract before it checks the contract.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::{Mistakes, quoted};
use super::{CompareRequest, CompileRequest, EvaluateRequest, KernelCode};
use warpgauge_model::FailureCode;
use warpgauge_tensor::{Blob, Dtype};

/// Maximum number of different matrices that one contract names.
pub const MAX_MATRICES: usize = 16;

/// Part of a sparse matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixPart {
    /// Name of the matrix: an uploaded one of the caller, or a generated one, e.g. `poisson2d:nx=512`.
    pub matrix: String,
    /// Name of the part, e.g. `num_rows`, `nnz`, `values` or `x`.
    pub part: String,
}

/// Sparse matrix whose content was put into a contract, or with which a result was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixUsed {
    /// Name of the matrix.
    pub name: String,
    /// Origin of the matrix.
    pub origin: MatrixOrigin,
    /// BLAKE3 hash, hexadecimal: of the file for uploaded and local matrices, of the CSR form for generated ones.
    pub blake3: String,
    /// Number of rows.
    pub num_rows: u64,
    /// Number of columns.
    pub num_cols: u64,
    /// Number of non-zeros.
    pub nnz: u64,
}

/// Origin of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MatrixOrigin {
    /// The caller uploaded the matrix.
    Stored,
    /// The matrix was generated.
    Generated,
    /// The caller's program read the matrix from a local file and sent its content.
    File,
}

/// A stored matrix as it was when a sweep was accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptMatrix {
    pub used: MatrixUsed,
    /// CSR form of the matrix, in a packed binary format.
    pub packed: Blob,
}

/// Returns the element type of a part if the contract gives none.
pub(super) fn default_dtype(part: &str) -> Dtype {
    match part {
        "x" | "y" => Dtype::Float32,
        part if part.ends_with("values") => Dtype::Float32,
        _ => Dtype::Int32,
    }
}

/// Names of matrices, each with its first path.
pub type MatrixNames = BTreeMap<String, String>;

/// A request that names sparse matrices in place of data.
pub trait NamesMatrices {
    /// Returns the matrices that the request names in place of data.
    fn matrix_names(&self) -> MatrixNames;

    /// Returns the matrices that the request lists as its content.
    fn matrices_used(&self) -> &[MatrixUsed] {
        &[]
    }

    /// Returns the same list, mutable, or `None` if this kind of request has none.
    fn matrices_used_mut(&mut self) -> Option<&mut Vec<MatrixUsed>> {
        None
    }
}

impl NamesMatrices for EvaluateRequest {
    fn matrix_names(&self) -> MatrixNames {
        let mut names = MatrixNames::new();
        in_kernel(&self.kernel, "kernel", &mut names);
        for (output, expected) in &self.expected {
            let path = format!("expected.{}", quoted(output));
            if let Some(kernel) = &expected.kernel {
                in_kernel(kernel, &format!("{path}.kernel"), &mut names);
            }
            if let Some(name) = &expected.matrix {
                names.entry(name.clone()).or_insert_with(|| format!("{path}.matrix"));
            }
        }
        names
    }

    fn matrices_used(&self) -> &[MatrixUsed] {
        &self.matrices
    }

    fn matrices_used_mut(&mut self) -> Option<&mut Vec<MatrixUsed>> {
        Some(&mut self.matrices)
    }
}

impl NamesMatrices for CompareRequest {
    fn matrix_names(&self) -> MatrixNames {
        let mut names = MatrixNames::new();
        in_kernel(&self.ref_kernel, "ref_kernel", &mut names);
        for (path, kernel) in self.paths() {
            in_kernel(kernel, &path, &mut names);
        }
        names
    }

    fn matrices_used(&self) -> &[MatrixUsed] {
        &self.matrices
    }

    fn matrices_used_mut(&mut self) -> Option<&mut Vec<MatrixUsed>> {
        Some(&mut self.matrices)
    }
}

impl NamesMatrices for CompileRequest {
    fn matrix_names(&self) -> MatrixNames {
        let mut names = MatrixNames::new();
        in_kernel(&self.kernel, "kernel", &mut names);
        names
    }
}

fn in_kernel(kernel: &KernelCode, path: &str, names: &mut MatrixNames) {
    let args = kernel.io.iter().flat_map(|io| &io.args);
    for (index, arg) in args.enumerate() {
        let path = format!("{path}.io.args[{index}]");
        let mut add = |name: &str, field: &str| {
            names.entry(name.to_owned()).or_insert_with(|| format!("{path}.{field}"));
        };
        if let Some(part) = &arg.value_of {
            add(&part.matrix, "value_of.matrix");
        }
        let Some(spec) = &arg.tensor_spec else { continue };
        if let Some(part) = &spec.shape_of {
            add(&part.matrix, "tensor_spec.shape_of.matrix");
        }
        if let Some((name, _)) = spec.matrix_data() {
            add(name, "tensor_spec.data.matrix");
        }
    }
}

/// Rejects names of matrices that no component has resolved.
pub(super) fn unresolved(names: &MatrixNames, mistakes: &mut Mistakes) {
    for (name, path) in names {
        let message = format!(
            "names the matrix `{}`, and this operation does not support matrices by name: give \
             the content as data",
            quoted(name)
        );
        mistakes.add(path, FailureCode::InvalidData, message);
    }
}
