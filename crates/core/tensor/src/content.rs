//! Wire types of tensor content. The main types are [`TensorInit`] and [`TensorData`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Blob, Dtype, ScaleLayout};

/// Specification of generated content. Equal seeds and tensor names give identical bits on every
/// platform.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorInit {
    /// Distribution or pattern of the elements.
    pub kind: InitKind,
    /// Seed of the random kinds; default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// `randn` and `quantized`: mean, default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// `randn` and `quantized`: standard deviation, default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub std: Option<f64>,
    /// `uniform` and `sorted`: lower bound, default 0 (`uniform` of float8_e8m0fnu: 0.25);
    /// `randint` and `permutation`: smallest value, default 0; `offsets`: first value, default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// `uniform` and `sorted`: upper bound, default 1 (integers: 100, or less if the type cannot
    /// hold 99; float8_e8m0fnu: 4); `randint`: first value above the range; `permutation`: first
    /// value above the range, default `low` + number of elements; `offsets`: last value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// `full`: value of all elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_value: Option<f64>,
    /// `arange`: first value, default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<f64>,
    /// `arange`: difference between neighbours, default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// `choice`: possible values, with equal probability, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// `uniform` and `randint`: a range for each index of the last dimension, in place of `low` and `high`, at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnRange>,
    /// `sorted` integers: whether all values must be different; default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unique: bool,
    /// Name of another tensor. `randint` and `permutation`: values are indices into its first dimension; `offsets`: the
    /// last value is its number of elements; `lengths` and `segments`: the tensor of kind `offsets` that they belong
    /// to; `quantized`: its tensor of kind `scales`, which others may share; `scales`, `zero_points` and `global_scale`:
    /// the tensor of kind `quantized`, or one of those that share them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// `quantized`: name of its tensor of kind `zero_points`, for uint4x2 and uint8. Default: every
    /// zero point is 8 (uint4x2) or 128 (uint8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zeros: Option<String>,
    /// `quantized`: name of its tensor of kind `global_scale`, which applies to all numbers in
    /// addition to the scales of their blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<String>,
    /// `scales`: number of adjacent values that share a scale, for each dimension, e.g. `[1, 32]`
    /// or `[128, 128]`. Blocks at the end of a dimension may be smaller. Default: derived from the
    /// shapes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub block: Vec<u64>,
    /// `scales`: order in memory; default `rows`.
    #[serde(default, skip_serializing_if = "ScaleLayout::is_rows")]
    pub layout: ScaleLayout,
    /// `lengths` and `segments`: content of the tensor that `of` names. The contract's other
    /// tensors determine this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub offsets: Option<Box<OffsetsInit>>,
    /// `quantized`: its scales. `scales`, `zero_points` and `global_scale`: their values. The
    /// contract's other tensors determine this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub pair: Option<Box<PairInit>>,
    /// `quantized`: the tensor that `zeros` names. The contract's other tensors determine this
    /// field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub zeros_pair: Option<Box<PairInit>>,
    /// `quantized`: the tensor that `global` names. The contract's other tensors determine this
    /// field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub global_pair: Option<Box<PairInit>>,
}

/// Range of the generated values in one column of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColumnRange {
    /// Smallest value that may occur in the column.
    pub low: f64,
    /// First value above the range of the column.
    pub high: f64,
}

/// Content of a tensor of kind `offsets` that another tensor depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OffsetsInit {
    /// Name of the tensor.
    pub name: String,
    /// Number of elements of the tensor.
    pub elements: u64,
    /// Difference between the last and the first value of the tensor.
    pub top: u64,
    /// Seed of the tensor; default 0.
    pub seed: Option<u64>,
}

/// The other tensor of a pair of quantised values and their scales, zero points or global scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairInit {
    /// Name of the tensor.
    pub name: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// Seed of the tensor; default 0.
    pub seed: Option<u64>,
    /// Standard deviation of the values, if the other tensor holds the values; default 1.
    #[serde(default)]
    pub std: Option<f64>,
    /// `block` of the scales, if the other tensor holds the scales.
    #[serde(default)]
    pub block: Vec<u64>,
    /// `layout` of the scales, if the other tensor holds the scales.
    #[serde(default)]
    pub layout: ScaleLayout,
    /// Whether the values have a global scale, if the other tensor holds the values.
    #[serde(default)]
    pub has_global: bool,
}

impl OffsetsInit {
    /// Returns the number of steps of the rising sequence, at least 1.
    pub fn points(&self) -> u64 {
        self.elements.saturating_sub(1).max(1)
    }
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
            values: Vec::new(),
            columns: Vec::new(),
            unique: false,
            of: None,
            zeros: None,
            global: None,
            block: Vec::new(),
            layout: ScaleLayout::Rows,
            offsets: None,
            pair: None,
            zeros_pair: None,
            global_pair: None,
        }
    }

    /// Returns the same content with another seed. The tensors that it depends on get this seed,
    /// too, since all tensors of a launch have the same one.
    pub fn reseeded(&self, seed: u64) -> Self {
        let mut init = Self { seed: Some(seed), ..self.clone() };
        if let Some(offsets) = &mut init.offsets {
            offsets.seed = Some(seed);
        }
        let pairs = [&mut init.pair, &mut init.zeros_pair, &mut init.global_pair];
        for pair in pairs.into_iter().flatten() {
            pair.seed = Some(seed);
        }
        init
    }
}

/// Distribution or pattern of generated content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InitKind {
    /// Every element is 0.
    Zeros,
    /// Every element is 1.
    Ones,
    /// Every element is `fill_value`.
    Full,
    /// Element `i` is `start + i * step`.
    Arange,
    /// Uniform random numbers in [`low`, `high`).
    Uniform,
    /// Normally distributed random numbers with `mean` and `std`.
    Randn,
    /// Uniform random integers in [`low`, `high`).
    Randint,
    /// Different integers in [`low`, `high`), in random order.
    Permutation,
    /// Ascending values in [`low`, `high`), spaced like sorted uniform random numbers.
    Sorted,
    /// Row offsets: ascending integers, of which the first is `low` and the last is `high`.
    Offsets,
    /// Lengths of the rows whose offsets are in the tensor `of`.
    Lengths,
    /// Index of the row that contains each position below the last offset of the tensor `of`.
    Segments,
    /// Independent random choices among `values`.
    Choice,
    /// Normal numbers with `mean` and `std`, each divided by the scale of its block, which is in
    /// the tensor `of`, and rounded to the element type.
    Quantized,
    /// Scales of the tensor `of`, one for each block of its numbers.
    Scales,
    /// Zero points of the tensor `of`, one for each of its scales: integers around the middle of
    /// its type's range.
    #[serde(rename = "zero_points")]
    ZeroPoints,
    /// One scale for all numbers of the tensor `of`, in addition to the scales of its blocks.
    #[serde(rename = "global_scale")]
    GlobalScale,
}

impl InitKind {
    /// Returns the name in a contract.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::Ones => "ones",
            Self::Full => "full",
            Self::Arange => "arange",
            Self::Uniform => "uniform",
            Self::Randn => "randn",
            Self::Randint => "randint",
            Self::Permutation => "permutation",
            Self::Sorted => "sorted",
            Self::Offsets => "offsets",
            Self::Lengths => "lengths",
            Self::Segments => "segments",
            Self::Choice => "choice",
            Self::Quantized => "quantized",
            Self::Scales => "scales",
            Self::ZeroPoints => "zero_points",
            Self::GlobalScale => "global_scale",
        }
    }

    /// Returns whether the content depends on the seed.
    pub fn is_random(self) -> bool {
        !matches!(self, Self::Zeros | Self::Ones | Self::Full | Self::Arange)
    }
}

/// Content of a tensor: little-endian bytes in C order, or the name of an array of a sparse matrix
/// or of a shared tensor.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TensorData {
    /// Content in base64. Required, unless `matrix` or `tensor_id` is given.
    #[serde(default = "Blob::empty", skip_serializing_if = "Blob::is_empty")]
    pub data_b64: Blob,
    /// Name of a sparse matrix, one that the caller uploaded or a generated one such as `poisson2d:nx=512`, in place
    /// of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<String>,
    /// Array of the matrix, e.g. `values` or `col_indices`. Only with `matrix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Id of a shared tensor of the caller (`POST /tensors`), in place of bytes. Its content is copied when the
    /// request is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_id: Option<String>,
    /// Element type. Default: the tensor's, which it must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    /// Shape. Default: the tensor's, which it must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// Compression before base64.
    #[serde(default)]
    pub compress: Compress,
    /// Format: raw elements, or a `.npy` file.
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
    /// No compression.
    #[default]
    None,
    /// zlib (RFC 1950).
    Zlib,
    /// Zstandard (RFC 8878).
    Zstd,
}

/// Format of tensor bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DataFormat {
    /// Elements without a header.
    #[default]
    Raw,
    /// A numpy `.npy` file, version 1 to 3, C order.
    Npy,
}

/// Encoding of returned outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputEncoding {
    /// Compression before base64.
    #[serde(default)]
    pub compress: Compress,
    /// Format: raw elements, or a `.npy` file.
    #[serde(default)]
    pub format: DataFormat,
}
