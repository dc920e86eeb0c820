//! Surfaces over tensors. The main type is [`SurfaceSpec`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ArgSpec;
use crate::launches::ValueError;
use crate::texels::{Over, one};
use warpgauge_model::{TexelGrid, TexelReader};

/// Surface over a CUDA array that holds a tensor during a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SurfaceSpec {
    /// Name of the tensor, of shape `[width]`, `[height, width]` or `[depth, height, width]`, with the number of
    /// channels as the last extent if there are several.
    pub tensor: String,
    /// Number of elements in a texel: 1, 2 or 4.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4))]
    pub channels: u32,
    /// Whether the first of the three extents is the number of layers, as for `surf2DLayeredread`.
    #[serde(default)]
    pub layered: bool,
}

impl SurfaceSpec {
    /// Returns the index of its tensor among `args`, and the layout of its texels.
    ///
    /// # Errors The surface is invalid.
    pub fn grid(&self, args: &[ArgSpec]) -> Result<(usize, TexelGrid), ValueError> {
        let over = Over {
            what: "surface",
            tensor: &self.tensor,
            channels: self.channels,
            layered: self.layered,
        };
        let (of, grid) = over.grid(args)?;
        grid.check_array(TexelReader::Surface).map_err(|message| over.wrong(message))?;
        Ok((of, grid))
    }
}
