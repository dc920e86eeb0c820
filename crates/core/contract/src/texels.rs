//! Texels of tensors: the parts that textures and surfaces have in common.

use crate::error::quoted;
use crate::launches::ValueError;
use crate::{ArgKind, ArgSpec};
use warpgauge_model::{FailureCode, TexelElement, TexelGrid};
use warpgauge_tensor::Dtype;

/// Maximum number of dimensions of a texture or a surface.
const MAX_DIMENSIONS: usize = 3;

/// A texture or a surface (`what`), and its tensor.
pub(crate) struct Over<'a> {
    pub what: &'a str,
    pub tensor: &'a str,
    pub channels: u32,
    pub layered: bool,
}

impl Over<'_> {
    /// Returns an error about the texture or the surface.
    pub(crate) fn wrong(&self, message: String) -> ValueError {
        let message = format!("a {} over `{}`: {message}", self.what, quoted(self.tensor));
        (FailureCode::InvalidValue, message)
    }

    /// Returns the index of its tensor among `args`, and its texels.
    ///
    /// # Errors There is no such tensor, or its texels have no valid format.
    pub(crate) fn grid(&self, args: &[ArgSpec]) -> Result<(usize, TexelGrid), ValueError> {
        let unknown = || {
            let message = format!("no tensor is named `{}`", quoted(self.tensor));
            (FailureCode::UnknownTensor, message)
        };
        let of = args.iter().position(|arg| arg.name == self.tensor).ok_or_else(unknown)?;
        let arg = &args[of];
        let spec = arg.tensor_spec.as_ref().filter(|_| arg.kind == ArgKind::Tensor && !arg.is_meta);
        let spec = spec.ok_or_else(unknown)?;
        let element = element(spec.dtype).ok_or_else(|| {
            self.wrong(format!(
                "a texel has elements of float32, float16, or integers of 8 to 32 bits, not {}; a double is read as two \
                 of int32 (`channels: 2`)",
                spec.dtype
            ))
        })?;
        let extents = match (self.channels, &spec.shape[..]) {
            (1, extents) => extents,
            (channels, [extents @ .., last]) if *last == u64::from(channels) => extents,
            (channels, _) => {
                return Err(self.wrong(format!(
                    "its last extent must be {channels}, the number of \
                                        channels of a texel"
                )));
            }
        };
        let (width, height, depth) = match *extents {
            [width] => (width, None, None),
            [height, width] => (width, Some(height), None),
            [depth, height, width] => (width, Some(height), Some(depth)),
            _ => {
                return Err(self.wrong(format!(
                    "{} extents without channels; 1 to {MAX_DIMENSIONS} are possible: [width], [height, width] or [depth, \
                     height, width]",
                    extents.len()
                )));
            }
        };
        let (channels, layered) = (self.channels, self.layered);
        let grid = TexelGrid { element, channels, width, height, depth, layered };
        grid.check().map_err(|message| self.wrong(message))?;
        Ok((of, grid))
    }
}

pub(crate) fn one() -> u32 {
    1
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
