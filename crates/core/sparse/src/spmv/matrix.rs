//! The wire types of stored matrices. The main type is [`MatrixSummary`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Csr, FileKind};
use warpgauge_tensor::Blob;

/// The maximum length of a matrix's name, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Request of `POST /upload_mtx` in JSON: a Matrix Market or SPASM file and its name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadRequest {
    /// Name of the matrix: 1 to 128 letters, digits, `.`, `_` and `-`, the first a letter or digit.
    pub filename: String,
    /// Content of the file, in base64.
    pub content: Blob,
}

/// A stored matrix: its name, size and structure, without its entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixSummary {
    /// Name of the matrix.
    pub filename: String,
    /// Size and structure of the matrix.
    #[serde(flatten)]
    pub shape: MatrixShape,
    /// BLAKE3 hash of the uploaded file, hexadecimal.
    pub blake3: String,
    /// Size that counts towards the quota, bytes.
    pub bytes: u64,
    /// Time of the upload, seconds since the Unix epoch.
    pub uploaded_at: f64,
}

/// Size and structure of a matrix.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixShape {
    /// Number of rows.
    pub num_rows: u64,
    /// Number of columns.
    pub num_cols: u64,
    /// Number of entries, including the mirrored entries of a symmetric matrix.
    pub nnz: u64,
    /// Number of entries in the longest row.
    pub longest_row: u64,
    /// Number of rows without entries.
    pub empty_rows: u64,
    /// Layout of the file: `coordinate`, `array` or `spasm`.
    pub layout: String,
    /// Type of the values: `real`, `integer` or `pattern`.
    pub field: String,
    /// Symmetry: `general`, `symmetric` or `skew-symmetric`.
    pub symmetry: String,
}

impl MatrixShape {
    /// Describes a matrix that was read from a file.
    pub fn new(csr: &Csr, kind: &FileKind) -> Self {
        let [layout, field, symmetry] = kind.words().map(str::to_owned);
        Self {
            num_rows: u64::from(csr.rows()),
            num_cols: u64::from(csr.cols()),
            nnz: u64::from(csr.nnz()),
            longest_row: u64::from(csr.longest_row()),
            empty_rows: u64::from(csr.empty_rows()),
            layout,
            field,
            symmetry,
        }
    }
}

/// Progress of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadProgress {
    /// Name of the future matrix.
    pub filename: String,
    /// State of the upload.
    pub state: UploadState,
    /// Number of bytes of the file that have been read.
    pub bytes_read: u64,
    /// Size of the file, bytes.
    pub bytes_total: u64,
}

/// State of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UploadState {
    /// The upload has arrived and waits while others are read.
    Waiting,
    /// The file is being read.
    Reading,
    /// The matrix is being stored.
    Keeping,
}

/// Matrix, with the fields of the Remote GPU Execution Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixInfo {
    /// Number of rows.
    pub num_rows: u64,
    /// Number of columns.
    pub num_cols: u64,
    /// Number of entries.
    pub nnz: u64,
    /// Always true.
    pub exists: bool,
}

/// Result of a request about a matrix, with its properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixReply {
    /// Whether the request was fulfilled.
    pub success: bool,
    /// Whether the matrix exists.
    pub exists: bool,
    /// Name of the matrix.
    pub filename: String,
    /// Matrix. Absent if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixSummary>,
    /// Summary of the matrix, with the fields of the Remote GPU Execution Service. Absent if it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<MatrixInfo>,
    /// Current uploads with this name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uploads: Vec<UploadProgress>,
}

impl MatrixReply {
    /// Creates the reply for a name.
    pub fn new(filename: &str, matrix: Option<MatrixSummary>) -> Self {
        let (exists, filename) = (matrix.is_some(), filename.to_owned());
        let info = matrix.as_ref().map(|MatrixSummary { shape, .. }| MatrixInfo {
            num_rows: shape.num_rows,
            num_cols: shape.num_cols,
            nnz: shape.nnz,
            exists,
        });
        Self { success: true, exists, filename, matrix, info, uploads: Vec::new() }
    }
}

/// The stored matrices of the caller, and current uploads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixList {
    /// Whether the request was fulfilled.
    pub success: bool,
    /// Names of the matrices, in alphabetical order.
    pub files: Vec<String>,
    /// Matrices, in the order of `files`.
    pub matrices: Vec<MatrixSummary>,
    /// Current uploads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uploads: Vec<UploadProgress>,
}

/// Checks the name of a matrix. A valid name is never a path.
///
/// # Errors
/// Returns the rules for names if the name is invalid.
pub fn check_matrix_name(name: &str) -> Result<(), String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if first && name.len() <= MAX_NAME_BYTES && name.bytes().all(inner) {
        return Ok(());
    }
    let shown: String = name.chars().take(60).collect();
    Err(format!(
        "{shown:?} is not a valid matrix name: use 1 to {MAX_NAME_BYTES} letters, digits, `.`, `_` and `-`, the \
         first a letter or digit"
    ))
}

#[cfg(test)]
mod tests {
    use super::check_matrix_name;

    #[test]
    fn a_name_is_never_a_path() {
        for name in ["cant.mtx", "a", "x_1-2.MTX", "0..1"] {
            assert!(check_matrix_name(name).is_ok(), "{name}");
        }
        let long = "x".repeat(129);
        for name in ["", "../x", "/etc/passwd", "a/b", "..", ".x", "a\\b", "a\0", "ä", "a b", &long]
        {
            assert!(check_matrix_name(name).is_err(), "{name:?}");
        }
    }
}
