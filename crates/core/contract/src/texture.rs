//! Textures over tensors. The main type is [`TextureSpec`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::quoted;
use crate::launches::ValueError;
use crate::{ArgKind, ArgSpec};
use warpgauge_model::{
    FailureCode, TexelElement, TextureAddress, TextureFilter, TextureLayout, TextureRead,
};
use warpgauge_tensor::Dtype;

/// A texture of linear or pitched memory over a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextureSpec {
    /// Name of the tensor: of shape `[n]` for `tex1Dfetch`, or `[height, width]` for `tex2D`, with the channels as a further
    /// extent if there are several.
    pub tensor: String,
    /// Elements of a texel: 1, 2 or 4.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4))]
    pub channels: u32,
    /// What a coordinate outside of the texture means.
    #[serde(default)]
    pub address: TextureAddress,
    /// What is read between texels.
    #[serde(default)]
    pub filter: TextureFilter,
    /// Whether coordinates are fractions of the extents.
    #[serde(default)]
    pub normalized: bool,
    /// How integers are read.
    #[serde(default)]
    pub read: TextureRead,
}

fn one() -> u32 {
    1
}

impl TextureSpec {
    /// Returns the index of its tensor among `args`, and its layout.
    ///
    /// # Errors
    /// What is wrong about the texture.
    pub fn layout(&self, args: &[ArgSpec]) -> Result<(usize, TextureLayout), ValueError> {
        let unknown = || {
            let message = format!("no tensor is named `{}`", quoted(&self.tensor));
            (FailureCode::UnknownTensor, message)
        };
        let of = args.iter().position(|arg| arg.name == self.tensor).ok_or_else(unknown)?;
        let arg = &args[of];
        let spec = arg.tensor_spec.as_ref().filter(|_| arg.kind == ArgKind::Tensor && !arg.is_meta);
        let spec = spec.ok_or_else(unknown)?;
        let wrong = |message: String| {
            (
                FailureCode::InvalidValue,
                format!("a texture over `{}`: {message}", quoted(&self.tensor)),
            )
        };
        let element = element(spec.dtype).ok_or_else(|| {
            wrong(format!(
                "a texel has elements of float32, float16, or integers of 8 to 32 bits, not {}; a double is read as two \
                 of int32 (`channels: 2`)",
                spec.dtype
            ))
        })?;
        let extents = match (self.channels, &spec.shape[..]) {
            (1, extents) => extents,
            (channels, [extents @ .., last]) if *last == u64::from(channels) => extents,
            (channels, _) => {
                return Err(wrong(format!(
                    "its last extent is the {channels} channels of a texel"
                )));
            }
        };
        let (width, height) = match extents {
            [width] => (*width, None),
            [height, width] => (*width, Some(*height)),
            _ => {
                return Err(wrong(format!(
                    "{} extents without channels; textures of one and two dimensions are possible, of shape [n] and [height, \
                     width]: a texture of three dimensions needs a CUDA array, so lay its slices under each other",
                    extents.len()
                )));
            }
        };
        let TextureSpec { channels, address, filter, normalized, read, .. } = *self;
        let layout =
            TextureLayout { element, channels, width, height, address, filter, normalized, read };
        layout.check().map_err(wrong)?;
        Ok((of, layout))
    }
}

fn element(dtype: Dtype) -> Option<TexelElement> {
    Some(match dtype {
        Dtype::Uint8 => TexelElement::U8,
        Dtype::Uint16 => TexelElement::U16,
        Dtype::Uint32 => TexelElement::U32,
        Dtype::Int8 => TexelElement::I8,
        Dtype::Int16 => TexelElement::I16,
        Dtype::Int32 => TexelElement::I32,
        Dtype::Float16 => TexelElement::F16,
        Dtype::Float32 => TexelElement::F32,
        _ => return None,
    })
}
