//! Wire types of tensors: their shapes, element types and content. The main type is [`TensorSpec`].

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::Extent;
use super::named::{MatrixPart, default_dtype};
use warpgauge_tensor::{Dtype, TensorData, TensorInit};

/// Shape, element type and content of a tensor argument.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "GivenSpec", into = "GivenSpec")]
#[schemars(!try_from, !into, deny_unknown_fields)]
pub struct TensorSpec {
    /// Extents of the dimensions, slowest first (C order). An extent is a number, or an expression over scalars and
    /// over the shapes of earlier arguments, e.g. `2*n` or `a.shape[0]`. Required unless `shape_of`, an array of a
    /// matrix or a shared tensor gives the shape.
    #[schemars(with = "Vec<Extent>", default)]
    pub shape: Vec<u64>,
    /// The given extents, if an expression among them has no value yet. `shape` is then empty.
    #[serde(skip)]
    #[schemars(skip)]
    pub open: Vec<Extent>,
    /// Part of a sparse matrix whose shape the tensor has, e.g. `x` or `y`, in place of `shape`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape_of: Option<MatrixPart>,
    /// Element type. Default: `float32`, or the type of the matrix's array or the shared tensor.
    #[serde(default)]
    pub dtype: Dtype,
    /// Rule of generated content. At most one of `init` and `data` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<TensorInit>,
    /// Given content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<TensorData>,
    /// Whether `dtype` is missing and must still be taken from a shared tensor.
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

    /// Returns the names of the matrix and of its part, if the tensor's content is a part of a
    /// matrix.
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
