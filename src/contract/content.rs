//! Wire types of tensors: what they are, and what is in them.

use poem_openapi::{Enum, Object};
use serde::{Deserialize, Serialize};

use crate::tensor::{Blob, Dtype};

/// A tensor argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none)]
pub struct TensorSpec {
    /// Extent of each dimension, slowest first (C order).
    pub shape: Vec<u64>,
    /// Element type.
    #[serde(default)]
    #[oai(default)]
    pub dtype: Dtype,
    /// Generated content. At most one of `init` and `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<TensorInit>,
    /// Given content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<TensorData>,
}

/// Generated tensor content. Equal seeds and names give equal bits everywhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none)]
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
    /// Content of a kind with every parameter at its default.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(Enum)]
#[oai(rename_all = "lowercase")]
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

/// Tensor content on the wire: little-endian, C order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[derive(Object)]
#[oai(deny_unknown_fields, skip_serializing_if_is_none)]
pub struct TensorData {
    /// The bytes, base64.
    pub data_b64: Blob,
    /// Element type; default: the tensor's. Must match it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    /// Shape; default: the tensor's. Must match it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// Compression under the base64.
    #[serde(default)]
    #[oai(default)]
    pub compress: Compress,
    /// Raw elements, or a `.npy` file.
    #[serde(default)]
    #[oai(default)]
    pub format: DataFormat,
}

/// Compression of tensor bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(Enum)]
#[oai(rename_all = "lowercase")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(Enum)]
#[oai(rename_all = "lowercase")]
pub enum DataFormat {
    /// The elements and nothing else.
    #[default]
    Raw,
    /// A numpy `.npy` file, version 1 to 3, C order.
    Npy,
}
