//! Textures: global memory that kernels read by coordinates. The main type is [`Texture`].

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

/// What a coordinate outside of the texture means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressMode {
    Wrap,
    Clamp,
    Mirror,
    /// Zero.
    Border,
}

/// A texture in linear or pitched global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texture {
    /// Address of the first texel.
    pub base: u64,
    pub texel: TexelType,
    /// Channels of a texel: 1, 2 or 4.
    pub channels: u8,
    /// Texels of a row.
    pub width: u64,
    /// Rows, and the bytes from one to the next; `None` for linear memory.
    pub rows: Option<(u64, u64)>,
    /// Modes in x and y.
    pub modes: [AddressMode; 2],
    /// Whether neighbours are interpolated linearly, and not the nearest texel read.
    pub linear: bool,
    /// Whether coordinates are fractions of the extents.
    pub normalized: bool,
    /// Whether integers are read as they are, and not as fractions of their range.
    pub as_integer: bool,
}

/// The texels that one read needs in one dimension: two neighbours at most, with their weights. `None` is a texel outside.
pub(crate) type Neighbours = [(Option<u64>, f32); 2];

impl Texture {
    /// Returns the extent of a dimension.
    fn extent(&self, dimension: usize) -> u64 {
        match (dimension, self.rows) {
            (1, Some((rows, _))) => rows,
            _ => self.width,
        }
    }

    /// Returns the texels of a dimension that a coordinate needs, as the appendix on texture fetching of the CUDA
    /// programming guide has it. The weight of linear filtering has 8 fractional bits.
    pub(crate) fn neighbours(&self, dimension: usize, coordinate: f32) -> Neighbours {
        let extent = self.extent(dimension);
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

    /// Returns the texel of linear memory at an index.
    pub(crate) fn fetched(&self, index: i32) -> Option<u64> {
        u64::try_from(index).ok().filter(|index| *index < self.width)
    }

    fn texel_at(&self, dimension: usize, index: f32) -> Option<u64> {
        // Extents are far below 2^63, and a NaN becomes 0.
        let (index, extent) = (index as i64, self.extent(dimension) as i64);
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

    /// Returns the address of a texel.
    pub(crate) fn address(&self, x: u64, y: u64) -> u64 {
        let pitch = self.rows.map_or(0, |(_, pitch)| pitch);
        let texel = u64::from(self.texel.bytes()) * u64::from(self.channels);
        self.base.wrapping_add(y * pitch).wrapping_add(x * texel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texture(mode: AddressMode, linear: bool, normalized: bool) -> Texture {
        Texture {
            base: 0x1000,
            texel: TexelType::F32,
            channels: 2,
            width: 4,
            rows: Some((3, 32)),
            modes: [mode; 2],
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
        assert_eq!(texture(AddressMode::Clamp, false, false).address(2, 1), 0x1000 + 32 + 16);
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
