//! Textures over tensors. The main type is [`TextureSpec`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ArgSpec;
use crate::launches::ValueError;
use crate::texels::{Over, one};
use warpgauge_model::{TextureAddress, TextureFilter, TextureLayout, TextureRead};

/// Texture over a tensor. The texture reads the tensor's own memory if the hardware supports this. Otherwise it reads
/// a CUDA array that holds the tensor during a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextureSpec {
    /// Name of the tensor, of shape `[width]`, `[height, width]` or `[depth, height, width]`, with the channels as a
    /// further extent if there are several.
    pub tensor: String,
    /// Number of elements in a texel: 1, 2 or 4.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4))]
    pub channels: u32,
    /// Addressing mode: the result for a coordinate outside the texture.
    #[serde(default)]
    pub address: TextureAddress,
    /// Filter mode: the result between texels.
    #[serde(default)]
    pub filter: TextureFilter,
    /// Whether coordinates are fractions of the extents.
    #[serde(default)]
    pub normalized: bool,
    /// Conversion of integer texels.
    #[serde(default)]
    pub read: TextureRead,
    /// Whether the first of the three extents is the number of layers, as for `tex2DLayered`.
    #[serde(default)]
    pub layered: bool,
    /// Whether the texture uses a CUDA array even if it could read the tensor's own memory. `tex1D` requires it.
    #[serde(default)]
    pub array: bool,
}

impl TextureSpec {
    /// Returns the index of its tensor among `args`, and its layout.
    ///
    /// # Errors The texture is invalid.
    pub fn layout(&self, args: &[ArgSpec]) -> Result<(usize, TextureLayout), ValueError> {
        let over = Over {
            what: "texture",
            tensor: &self.tensor,
            channels: self.channels,
            layered: self.layered,
        };
        let (of, grid) = over.grid(args)?;
        let TextureSpec { address, filter, normalized, read, .. } = *self;
        let mut layout = TextureLayout { grid, in_array: false, address, filter, normalized, read };
        // A surface writes only to the array.
        let has_surface = || {
            let mut surfaces = args.iter().filter_map(|arg| arg.surface.as_ref());
            surfaces.any(|surface| surface.tensor == self.tensor)
        };
        layout.in_array = self.array || layout.needs_array() || has_surface();
        layout.check().map_err(|message| over.wrong(message))?;
        Ok((of, layout))
    }
}
