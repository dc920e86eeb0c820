//! Textures over linear and pitched memory. The main type is [`TextureLayout`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes that the rows of a texture of two dimensions are a multiple of (`CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT`).
const PITCH_UNIT: u64 = 32;

/// Bytes that the address of a texture is a multiple of (`CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT`).
pub const TEXTURE_ALIGNMENT: u64 = 512;

/// Largest number of texels of linear memory (`CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH`).
const MAX_LINEAR: u64 = 1 << 27;

/// Largest width and height of pitched memory, texels, and its largest pitch, bytes.
const MAX_PITCHED: [u64; 3] = [131_072, 65_000, 2_097_120];

/// A `CUtexObject`, except the address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextureLayout {
    pub element: TexelElement,
    /// Elements of a texel: 1, 2 or 4.
    pub channels: u32,
    /// Texels of a row.
    pub width: u64,
    /// Number of rows; `None` for linear memory.
    pub height: Option<u64>,
    pub address: TextureAddress,
    pub filter: TextureFilter,
    /// Whether coordinates are fractions of the extents.
    pub normalized: bool,
    pub read: TextureRead,
}

/// Types of the elements of a texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TexelElement {
    U8,
    U16,
    U32,
    I8,
    I16,
    I32,
    F16,
    F32,
}

impl TexelElement {
    /// Bytes of an element.
    fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
        }
    }
}

/// What a coordinate outside of a texture means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextureAddress {
    /// The nearest texel inside.
    #[default]
    Clamp,
    /// The texture, repeated.
    Wrap,
    /// The texture, repeated, every second one reversed.
    Mirror,
    /// Zero.
    Border,
}

/// What is read between texels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextureFilter {
    /// The nearest texel.
    #[default]
    Point,
    /// The linear interpolation of neighbours.
    Linear,
}

/// How integers are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TextureRead {
    /// As they are (`cudaReadModeElementType`).
    #[default]
    Element,
    /// As fractions of their range (`cudaReadModeNormalizedFloat`).
    Normalized,
}

impl TextureLayout {
    /// Returns the bytes from one row to the next.
    pub fn pitch(&self) -> u64 {
        let texel = self.element.bytes() * u64::from(self.channels);
        self.width.saturating_mul(texel)
    }

    /// Checks the driver's conditions on a texture (CUDA Driver API, `cuTexObjectCreate`).
    ///
    /// # Errors
    /// A description of the violated condition.
    pub fn check(&self) -> Result<(), String> {
        if !matches!(self.channels, 1 | 2 | 4) {
            return Err(format!("it has {} channels; 1, 2 or 4 are possible", self.channels));
        }
        if self.width == 0 || self.height == Some(0) {
            return Err("it has no texels; a texture has at least one".to_owned());
        }
        let is_float = matches!(self.element, TexelElement::F16 | TexelElement::F32);
        let is_wide = self.element.bytes() == 4;
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
        let Some(height) = self.height else {
            if self.filter == TextureFilter::Linear || self.normalized {
                return Err(
                    "a texture of one dimension is read by tex1Dfetch, with whole numbers and without a filter: give a tensor of \
                     two dimensions, such as [1, n]"
                        .to_owned(),
                );
            }
            if self.width > MAX_LINEAR {
                return Err(format!(
                    "it has {} texels; at most {MAX_LINEAR} are possible",
                    self.width
                ));
            }
            return Ok(());
        };
        let [most_wide, most_high, most_pitch] = MAX_PITCHED;
        if self.width > most_wide || height > most_high || self.pitch() > most_pitch {
            return Err(format!(
                "it has {} × {height} texels; at most {most_wide} × {most_high} are possible, with rows of at most \
                 {most_pitch} bytes",
                self.width
            ));
        }
        if !self.pitch().is_multiple_of(PITCH_UNIT) {
            return Err(format!(
                "a row has {} bytes, and rows of a texture of two dimensions are multiples of {PITCH_UNIT} bytes: make the \
                 tensor wider",
                self.pitch()
            ));
        }
        if !self.normalized && matches!(self.address, TextureAddress::Wrap | TextureAddress::Mirror)
        {
            return Err(
                "`address: wrap` and `mirror` need `normalized: true`, coordinates that are fractions".to_owned()
            );
        }
        Ok(())
    }
}
