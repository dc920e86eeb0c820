//! Textures and surfaces: global memory that kernels access by coordinates. The main types are [`Texture`] and [`Texels`].

/// Type of one channel of a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TexelType {
    U8,
    U16,
    U32,
    S8,
    S16,
    S32,
    F16,
    F32,
}

impl TexelType {
    /// Returns the size of a channel, bytes.
    pub fn bytes(self) -> u8 {
        match self {
            Self::U8 | Self::S8 => 1,
            Self::U16 | Self::S16 | Self::F16 => 2,
            Self::U32 | Self::S32 | Self::F32 => 4,
        }
    }
}

/// Behaviour of a read whose coordinate is outside the texture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressMode {
    Wrap,
    Clamp,
    Mirror,
    /// The read returns zeros.
    Border,
}

/// Texels in global memory, row by row and slice by slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texels {
    /// Address of the first texel.
    pub base: u64,
    pub texel: TexelType,
    /// Number of channels of a texel: 1, 2 or 4.
    pub channels: u8,
    /// Number of dimensions, 1 to 3, not counting layers.
    pub dims: u8,
    /// Whether the third extent is the number of layers.
    pub layered: bool,
    /// Texels per row, rows per slice, and number of slices or layers. The extent of an absent
    /// dimension is 1.
    pub extents: [u64; 3],
    /// Distances between rows and between slices, bytes.
    pub pitches: [u64; 2],
}

/// Texels that kernels read by coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texture {
    pub texels: Texels,
    /// Whether the texels are linear memory, which kernels read only by index.
    pub is_linear_memory: bool,
    /// Address modes in x, y and z.
    pub modes: [AddressMode; 3],
    /// Whether adjacent texels are interpolated linearly. Otherwise the nearest texel is read.
    pub linear: bool,
    /// Whether coordinates are fractions of the extents.
    pub normalized: bool,
    /// Whether integers are read unchanged. Otherwise they are read as fractions of their range.
    pub as_integer: bool,
}

/// The object that a handle of the driver refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TexelObject {
    Texture(Texture),
    Surface(Texels),
}

impl Texels {
    /// Returns the size of a texel, bytes.
    pub fn bytes(&self) -> u64 {
        u64::from(self.texel.bytes()) * u64::from(self.channels)
    }

    /// Returns the address of the byte at offset `x_bytes` in row `y` of slice `z`.
    pub(crate) fn byte_at(&self, x_bytes: u64, y: u64, z: u64) -> u64 {
        let [row, slice] = self.pitches;
        self.base.wrapping_add(z * slice).wrapping_add(y * row).wrapping_add(x_bytes)
    }

    /// Returns the address of a texel.
    pub(crate) fn address(&self, [x, y, z]: [u64; 3]) -> u64 {
        self.byte_at(x * self.bytes(), y, z)
    }

    /// Describes the extents, for a message.
    pub(crate) fn described(&self) -> String {
        let [width, height, depth] = self.extents;
        let layers = if self.layered { format!(" in {depth} layers") } else { String::new() };
        match self.dims {
            1 => format!("{width} texels{layers}"),
            2 => format!("{width} × {height} texels{layers}"),
            _ => format!("{width} × {height} × {depth} texels"),
        }
    }
}

/// The texels that one read needs in one dimension, with their weights: at most two adjacent ones.
/// `None` means a texel outside the texture.
pub(crate) type Neighbours = [(Option<u64>, f32); 2];

impl Texture {
    /// Returns the texels of a dimension that a coordinate needs, as specified in the appendix on
    /// texture fetching of the CUDA programming guide. The weight of linear filtering has 8
    /// fractional bits.
    pub(crate) fn neighbours(&self, dimension: usize, coordinate: f32) -> Neighbours {
        let extent = self.texels.extents[dimension];
        let at = if self.normalized { coordinate * extent as f32 } else { coordinate };
        if !self.linear {
            return [(self.texel_at(dimension, at.floor()), 1.0), (None, 0.0)];
        }
        let shifted = at - 0.5;
        let first = shifted.floor();
        let weight = ((shifted - first) * 256.0).round_ties_even() / 256.0;
        [
            (self.texel_at(dimension, first), 1.0 - weight),
            (self.texel_at(dimension, first + 1.0), weight),
        ]
    }

    /// Returns the two texels of a dimension that linear filtering would interpolate. As in
    /// `neighbours`, the coordinate has 8 fractional bits.
    pub(crate) fn footprint(&self, dimension: usize, coordinate: f32) -> [Option<u64>; 2] {
        let extent = self.texels.extents[dimension];
        let at = if self.normalized { coordinate * extent as f32 } else { coordinate };
        let first = (((at - 0.5) * 256.0).round_ties_even() / 256.0).floor();
        [self.texel_at(dimension, first), self.texel_at(dimension, first + 1.0)]
    }

    /// Returns the texel of linear memory at an index, or `None` if the index is outside the
    /// memory.
    pub(crate) fn fetched(&self, index: i32) -> Option<u64> {
        u64::try_from(index).ok().filter(|index| *index < self.texels.extents[0])
    }

    /// Returns the layer for an index. An index beyond the last layer means the last layer.
    pub(crate) fn layer(&self, index: u32) -> u64 {
        u64::from(index).min(self.texels.extents[2] - 1)
    }

    fn texel_at(&self, dimension: usize, index: f32) -> Option<u64> {
        // Extents are far below 2^63. A NaN becomes 0.
        let (index, extent) = (index as i64, self.texels.extents[dimension] as i64);
        let clamped = index.clamp(0, extent - 1);
        let found = match self.modes[dimension] {
            AddressMode::Border => return (index == clamped).then_some(index as u64),
            AddressMode::Wrap if self.normalized => index.rem_euclid(extent),
            AddressMode::Mirror if self.normalized => {
                let folded = index.rem_euclid(2 * extent);
                folded.min(2 * extent - 1 - folded)
            }
            _ => clamped,
        };
        Some(found as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texture(mode: AddressMode, linear: bool, normalized: bool) -> Texture {
        let texels = Texels {
            base: 0x1000,
            texel: TexelType::F32,
            channels: 2,
            dims: 2,
            layered: false,
            extents: [4, 3, 1],
            pitches: [32, 96],
        };
        Texture {
            texels,
            is_linear_memory: false,
            modes: [mode; 3],
            linear,
            normalized,
            as_integer: false,
        }
    }

    #[test]
    fn coordinates_outside_follow_their_mode() {
        let at = |mode, normalized, x: f32| texture(mode, false, normalized).neighbours(0, x)[0].0;
        assert_eq!(at(AddressMode::Clamp, false, -3.5), Some(0));
        assert_eq!(at(AddressMode::Clamp, false, 9.0), Some(3));
        assert_eq!(at(AddressMode::Border, false, 4.0), None);
        assert_eq!(at(AddressMode::Border, false, 3.9), Some(3));
        assert_eq!(at(AddressMode::Wrap, true, 1.25), Some(1));
        assert_eq!(at(AddressMode::Wrap, true, -0.25), Some(3));
        assert_eq!(at(AddressMode::Wrap, false, 5.0), Some(3), "as clamp without normalisation");
        assert_eq!(at(AddressMode::Mirror, true, 1.1), Some(3));
        assert_eq!(at(AddressMode::Mirror, true, -0.1), Some(0));
        assert_eq!(at(AddressMode::Clamp, false, f32::NAN), Some(0));
        assert_eq!(at(AddressMode::Clamp, false, f32::INFINITY), Some(3));
        assert_eq!(
            texture(AddressMode::Clamp, false, false).texels.address([2, 1, 0]),
            0x1000 + 32 + 16
        );
    }

    #[test]
    fn a_footprint_is_what_linear_filtering_reads_whatever_the_filter_is() {
        let at = |mode, normalized, x| texture(mode, false, normalized).footprint(0, x);
        assert_eq!(at(AddressMode::Clamp, false, 1.6), [Some(1), Some(2)]);
        assert_eq!(at(AddressMode::Clamp, false, 0.25), [Some(0), Some(0)]);
        assert_eq!(at(AddressMode::Border, false, 0.25), [None, Some(0)]);
        assert_eq!(at(AddressMode::Wrap, true, 0.0), [Some(3), Some(0)]);
        assert_eq!(
            at(AddressMode::Clamp, false, 2.4999),
            [Some(2), Some(3)],
            "1/256 is the least step"
        );
    }

    #[test]
    fn weights_of_neighbours_have_eight_fractional_bits() {
        let near = texture(AddressMode::Clamp, true, false).neighbours(0, 1.6);
        assert_eq!((near[0].0, near[1].0), (Some(1), Some(2)));
        assert_eq!(near[1].1, 26.0 / 256.0);
        assert_eq!(near[0].1 + near[1].1, 1.0);
        let edge = texture(AddressMode::Clamp, true, false).neighbours(0, 0.25);
        assert_eq!((edge[0].0, edge[1].0, edge[1].1), (Some(0), Some(0), 0.75));
    }
}
