//! Wire types of tensor content. The main types are [`TensorInit`] and [`TensorData`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Blob, Dtype};

/// Generated tensor content. Equal seeds and names give equal bits everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorInit {
    /// Distribution or pattern.
    pub kind: InitKind,
    /// Seed of the random kinds; default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// `randn`: mean, default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// `randn`: standard deviation, default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std: Option<f64>,
    /// `uniform`: lower bound, default 0; `randint`: smallest value, default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// `uniform`: upper bound, default 1 (100 for integers); `randint`: first value above the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// `full`: the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_value: Option<f64>,
    /// `arange`: first value, default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<f64>,
    /// `arange`: difference between neighbours, default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
}

impl TensorInit {
    /// Creates content of a kind with default parameters.
    pub fn of_kind(kind: InitKind) -> Self {
        Self {
            kind,
            seed: None,
            mean: None,
            std: None,
            low: None,
            high: None,
            fill_value: None,
            start: None,
            step: None,
        }
    }
}

/// Distribution or pattern of generated content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InitKind {
    /// All zero.
    Zeros,
    /// All one.
    Ones,
    /// All `fill_value`.
    Full,
    /// `start + i * step`.
    Arange,
    /// Uniform on [`low`, `high`).
    Uniform,
    /// Normal with `mean` and `std`.
    Randn,
    /// Uniform integers in [`low`, `high`).
    Randint,
}

/// Tensor content on the wire: bytes, little-endian, C order; or, by name, an array of a sparse matrix or a
/// shared tensor.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorData {
    /// The bytes, base64. Required, but beside `matrix` and `tensor_id`.
    #[serde(default = "Blob::empty", skip_serializing_if = "Blob::is_empty")]
    pub data_b64: Blob,
    /// In place of bytes: the name of a sparse matrix, an uploaded one of the caller's or a generated one
    /// such as `poisson2d:nx=512`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<String>,
    /// Beside `matrix`: which of its arrays, e.g. `values` or `col_indices`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// In place of bytes: the id of a shared tensor of the caller's (`POST /tensors`). Its content is copied
    /// when the request is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_id: Option<String>,
    /// Element type; default: the tensor's. Must match it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    /// Shape; default: the tensor's. Must match it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// Compression under the base64.
    #[serde(default)]
    pub compress: Compress,
    /// Raw elements, or a `.npy` file.
    #[serde(default)]
    pub format: DataFormat,
}

impl TensorData {
    /// Creates content from raw, uncompressed elements.
    pub fn raw(data_b64: Blob) -> Self {
        let (compress, format) = (Compress::None, DataFormat::Raw);
        let (matrix, part, tensor_id) = (None, None, None);
        Self { data_b64, matrix, part, tensor_id, dtype: None, shape: None, compress, format }
    }
}

/// Compression of tensor bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compress {
    /// Not compressed.
    #[default]
    None,
    /// RFC 1950.
    Zlib,
    /// RFC 8878.
    Zstd,
}

/// Layout of tensor bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DataFormat {
    /// The elements and nothing else.
    #[default]
    Raw,
    /// A numpy `.npy` file, version 1 to 3, C order.
    Npy,
}

/// Encoding of returned outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputEncoding {
    /// Compression under the base64.
    #[serde(default)]
    pub compress: Compress,
    /// Raw elements, or a `.npy` file.
    #[serde(default)]
    pub format: DataFormat,
}
