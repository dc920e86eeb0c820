//! Textures over tensors. The main type is [`TextureLayout`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texels::{TexelGrid, TexelReader};

/// Row sizes of a two-dimensional texture are multiples of this number, bytes
/// (`CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT`).
const PITCH_UNIT: u64 = 32;

/// Addresses of textures are multiples of this number, bytes
/// (`CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT`).
pub const TEXTURE_ALIGNMENT: u64 = 512;

/// Largest number of texels of linear memory (`CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH`).
const MAX_LINEAR: u64 = 1 << 27;

/// Largest width and height of pitched memory, texels, and its largest pitch, bytes.
const MAX_PITCHED: [u64; 3] = [131_072, 65_000, 2_097_120];

/// Parameters of a `CUtexObject`, except its memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TextureLayout {
    pub grid: TexelGrid,
    /// Whether the texture reads a CUDA array, and not the memory of the tensor.
    pub in_array: bool,
    pub address: TextureAddress,
    pub filter: TextureFilter,
    /// Whether coordinates are fractions of the extents.
    pub normalized: bool,
    pub read: TextureRead,
}

/// Addressing mode: the result for a coordinate outside the texture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextureAddress {
    /// Texel inside the texture that is nearest to the coordinate.
    #[default]
    Clamp,
    /// Texel of the texture, which is repeated in each dimension.
    Wrap,
    /// Texel of the texture, which is repeated in each dimension and mirrored in every second
    /// repetition.
    Mirror,
    /// Zero for every coordinate outside the texture.
    Border,
}

/// Filter mode: the result between texels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextureFilter {
    /// Value of the nearest texel.
    #[default]
    Point,
    /// Linear interpolation between neighbouring texels.
    Linear,
}

/// Conversion of integer texels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextureRead {
    /// No conversion (`cudaReadModeElementType`).
    #[default]
    Element,
    /// Conversion to a fraction of the type's range (`cudaReadModeNormalizedFloat`).
    Normalized,
}

impl TextureLayout {
    /// Returns whether the hardware can read such a texture only from a CUDA array.
    pub fn needs_array(&self) -> bool {
        let TexelGrid { width, height, depth, .. } = self.grid;
        match (height, depth) {
            (_, Some(_)) => true,
            (None, None) => self.filter == TextureFilter::Linear || self.normalized,
            (Some(height), None) => {
                let [most_wide, most_high, most_pitch] = MAX_PITCHED;
                let pitch = self.grid.row_bytes();
                width > most_wide
                    || height > most_high
                    || pitch > most_pitch
                    || !pitch.is_multiple_of(PITCH_UNIT)
            }
        }
    }

    /// Checks the driver's conditions for a texture (CUDA Driver API, `cuTexObjectCreate`).
    ///
    /// # Errors
    /// Returns a description of the violated condition.
    pub fn check(&self) -> Result<(), String> {
        self.grid.check()?;
        let element = self.grid.element;
        let (is_float, is_wide) = (element.is_float(), element.bytes() == 4);
        let as_numbers = is_wide || self.read == TextureRead::Element;
        if self.filter == TextureFilter::Linear && !is_float && as_numbers {
            return Err(
                "`filter: linear` interpolates floats: give a tensor of floats, or `read: normalized` for integers of 8 \
                 or 16 bits"
                    .to_owned(),
            );
        }
        if self.read == TextureRead::Normalized && (is_float || is_wide) {
            return Err("`read: normalized` is for integers of 8 or 16 bits".to_owned());
        }
        if self.in_array {
            self.grid.check_array(TexelReader::Texture)?;
        } else if self.needs_array() {
            return Err("it needs a CUDA array, but reads the tensor's memory".to_owned());
        } else if self.grid.height.is_none() && self.grid.width > MAX_LINEAR {
            return Err(format!(
                "it has {} texels; at most {MAX_LINEAR} are possible",
                self.grid.width
            ));
        }
        let is_fetched = !self.in_array && self.grid.height.is_none();
        let repeats = matches!(self.address, TextureAddress::Wrap | TextureAddress::Mirror);
        if repeats && !self.normalized && !is_fetched {
            return Err(
                "`address: wrap` and `mirror` need `normalized: true`, coordinates that are fractions".to_owned()
            );
        }
        Ok(())
    }
}
