//! Wire types of stored matrices. The main type is [`MatrixSummary`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Csr, FileKind};
use warpgauge_tensor::Blob;

/// Longest name of a matrix, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// `POST /upload_mtx` as JSON: a Matrix Market or SPASM file and its name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadRequest {
    /// Name of the matrix: 1 to 128 letters, digits, `.`, `_` and `-`, the first a letter or digit.
    pub filename: String,
    /// The file, base64.
    pub content: Blob,
}

/// A matrix that is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixSummary {
    /// Its name.
    pub filename: String,
    /// What it consists of.
    #[serde(flatten)]
    pub shape: MatrixShape,
    /// blake3 of what was uploaded, hex.
    pub blake3: String,
    /// Bytes that it takes of the quota.
    pub bytes: u64,
    /// When it was uploaded, seconds since the Unix epoch.
    pub uploaded_at: f64,
}

/// What a matrix consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixShape {
    /// Rows.
    pub num_rows: u64,
    /// Columns.
    pub num_cols: u64,
    /// Entries, those among them that a symmetric file writes once.
    pub nnz: u64,
    /// Entries of the longest row.
    pub longest_row: u64,
    /// Rows without entries.
    pub empty_rows: u64,
    /// `coordinate`, `array` or `spasm`.
    pub layout: String,
    /// `real`, `integer` or `pattern`.
    pub field: String,
    /// `general`, `symmetric` or `skew-symmetric`.
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

/// How far an upload is that is being worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadProgress {
    /// Name that the matrix will have.
    pub filename: String,
    /// What is done with it.
    pub state: UploadState,
    /// Bytes of the file that were read.
    pub bytes_read: u64,
    /// Bytes of the file.
    pub bytes_total: u64,
}

/// What is done with an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UploadState {
    /// It came, and others are read.
    Waiting,
    /// It is read.
    Reading,
    /// It was read, and is put into the store.
    Keeping,
}

/// What the Remote GPU Execution Service says of a matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixInfo {
    /// Rows.
    pub num_rows: u64,
    /// Columns.
    pub num_cols: u64,
    /// Entries.
    pub nnz: u64,
    /// Always true.
    pub exists: bool,
}

/// Answer of `POST /upload_mtx` and `GET /check_mtx/{name}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixReply {
    /// Whether it was done.
    pub success: bool,
    /// Whether there is such a matrix.
    pub exists: bool,
    /// Its name.
    pub filename: String,
    /// The matrix, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<MatrixSummary>,
    /// The same, in short: as the Remote GPU Execution Service has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<MatrixInfo>,
    /// Uploads of this name that are being worked on.
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

/// Answer of `GET /list_mtx`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatrixList {
    /// Whether it was done.
    pub success: bool,
    /// Names, in order.
    pub files: Vec<String>,
    /// The matrices, in the same order.
    pub matrices: Vec<MatrixSummary>,
    /// Uploads that are being worked on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uploads: Vec<UploadProgress>,
}

/// Checks the name of a matrix; a valid name is never a path.
///
/// # Errors
/// The rules for names.
pub fn check_matrix_name(name: &str) -> Result<(), String> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if first && name.len() <= MAX_NAME_BYTES && name.bytes().all(inner) {
        return Ok(());
    }
    let shown: String = name.chars().take(60).collect();
    Err(format!(
        "{shown:?} is no name of a matrix: 1 to {MAX_NAME_BYTES} letters, digits, `.`, `_` and `-`, the \
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
