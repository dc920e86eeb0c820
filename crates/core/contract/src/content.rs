//! Wire types of tensors: their shapes, element types and content. The main type is [`TensorSpec`].

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::Extent;
use super::named::{MatrixPart, default_dtype};
use warpgauge_tensor::{Dtype, TensorData, TensorInit};

/// A tensor argument.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "GivenSpec", into = "GivenSpec")]
#[schemars(!try_from, !into, deny_unknown_fields)]
pub struct TensorSpec {
    /// Extent of each dimension, slowest first (C order): numbers, or expressions over scalars, and over the shapes of
    /// arguments before this one, such as `2*n` or `a.shape[0]`. Required, but beside `shape_of`, and for the array of
    /// a matrix and a shared tensor, which have one.
    #[schemars(with = "Vec<Extent>", default)]
    pub shape: Vec<u64>,
    /// The extents as given, while an expression among them has no value; then `shape` is empty.
    #[serde(skip)]
    #[schemars(skip)]
    pub open: Vec<Extent>,
    /// In place of `shape`: a tensor like this part of a sparse matrix, such as its `x` or `y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape_of: Option<MatrixPart>,
    /// Element type; default: `float32`, or that of the content that is named.
    #[serde(default)]
    pub dtype: Dtype,
    /// Generated content. At most one of `init` and `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<TensorInit>,
    /// Given content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<TensorData>,
    /// Whether `dtype` is not given, and yet to be taken from a shared tensor.
    #[serde(skip)]
    #[schemars(skip)]
    pub dtype_follows: bool,
}

impl TensorSpec {
    /// Creates a tensor without content.
    pub fn new(shape: Vec<u64>, dtype: Dtype) -> Self {
        let open = Vec::new();
        Self { shape, open, shape_of: None, dtype, init: None, data: None, dtype_follows: false }
    }

    /// Returns the matrix and the part of it that is the tensor's content, if so.
    pub fn matrix_data(&self) -> Option<(&str, &str)> {
        let data = self.data.as_ref()?;
        Some((data.matrix.as_deref()?, data.part.as_deref().unwrap_or_default()))
    }
}

/// Serialised form of [`TensorSpec`].
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenSpec {
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<Extent>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shape_of: Option<MatrixPart>,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    dtype: Option<Dtype>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init: Option<TensorInit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<TensorData>,
}

/// Deserialises a value that must not be null.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl TryFrom<GivenSpec> for TensorSpec {
    type Error = &'static str;

    fn try_from(given: GivenSpec) -> Result<Self, Self::Error> {
        let GivenSpec { shape, shape_of, dtype, init, data } = given;
        let part = data.as_ref().and_then(|data| data.part.as_deref());
        let shared = data.as_ref().is_some_and(|data| data.tensor_id.is_some());
        if shape.is_none() && shape_of.is_none() && part.is_none() && !shared {
            return Err("missing field `shape`");
        }
        let dtype_follows = shared && dtype.is_none();
        let dtype = dtype.unwrap_or_else(|| part.map_or_else(Dtype::default, default_dtype));
        let given = shape.unwrap_or_default();
        let number = |extent: &Extent| match extent {
            Extent::Value(value) => Some(*value),
            Extent::Expression(_) => None,
        };
        let (shape, open) = match given.iter().map(number).collect() {
            Some(shape) => (shape, Vec::new()),
            None => (Vec::new(), given),
        };
        Ok(Self { shape, open, shape_of, dtype, init, data, dtype_follows })
    }
}

impl From<TensorSpec> for GivenSpec {
    fn from(spec: TensorSpec) -> Self {
        let TensorSpec { shape, open, shape_of, dtype, init, data, dtype_follows } = spec;
        let dtype = Some(dtype).filter(|_| !dtype_follows);
        let shape = match open.is_empty() {
            true => shape.into_iter().map(Extent::Value).collect(),
            false => open,
        };
        Self { shape: Some(shape), shape_of, dtype, init, data }
    }
}
