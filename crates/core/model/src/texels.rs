//! Texels of textures and surfaces. The main type is [`TexelGrid`].

use serde::{Deserialize, Serialize};

/// Largest extents of a CUDA array that textures and surfaces access: with one, two and three dimensions, and with
/// layers of two dimensions (width, height, number of layers) (CUDA Programming Guide, technical specifications by
/// compute capability).
const MAX_TEXTURE: [&[u64]; 4] =
    [&[131_072], &[131_072, 65_536], &[16_384; 3], &[32_768, 32_768, 2048]];
const MAX_SURFACE: [&[u64]; 4] =
    [&[32_768], &[131_072, 65_536], &[16_384; 3], &[32_768, 32_768, 2048]];

/// Format and extents of the memory that a texture or a surface accesses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TexelGrid {
    pub element: TexelElement,
    /// Number of elements per texel: 1, 2 or 4.
    pub channels: u32,
    /// Number of texels per row.
    pub width: u64,
    /// Number of rows; `None` for one dimension.
    pub height: Option<u64>,
    /// Number of slices or layers; `None` for one and two dimensions.
    pub depth: Option<u64>,
    /// Whether the slices are layers, between which the hardware does not interpolate.
    pub layered: bool,
}

/// Kind of object that accesses a grid of texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TexelReader {
    Texture,
    Surface,
}

/// Types of the elements of a texel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    /// Returns the size of an element, bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32)
    }
}

impl TexelGrid {
    /// Returns the size of a row, bytes.
    pub fn row_bytes(&self) -> u64 {
        let texel = self.element.bytes() * u64::from(self.channels);
        self.width.saturating_mul(texel)
    }

    /// Returns the total number of rows in all slices or layers.
    pub fn rows(&self) -> u64 {
        self.height.unwrap_or(1).saturating_mul(self.depth.unwrap_or(1))
    }

    fn extents(&self) -> Vec<u64> {
        [Some(self.width), self.height, self.depth].into_iter().flatten().collect()
    }

    /// Checks the conditions for texels in any memory.
    ///
    /// # Errors
    /// Returns a description of the violated condition.
    pub fn check(&self) -> Result<(), String> {
        if !matches!(self.channels, 1 | 2 | 4) {
            return Err(format!("it has {} channels; 1, 2 or 4 are possible", self.channels));
        }
        if self.extents().contains(&0) {
            return Err("it has no texels; at least one is needed".to_owned());
        }
        if self.layered && self.depth.is_none() {
            return Err(
                "`layered: true` is for a tensor of three dimensions, [layers, height, width]"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// Checks the driver's conditions for a CUDA array (CUDA Driver API, `cuArray3DCreate`).
    ///
    /// # Errors
    /// Returns a description of the violated condition.
    pub fn check_array(&self, reader: TexelReader) -> Result<(), String> {
        self.check()?;
        let extents = self.extents();
        let limits = match reader {
            TexelReader::Texture => MAX_TEXTURE,
            TexelReader::Surface => MAX_SURFACE,
        };
        let most = limits[if self.layered { 3 } else { extents.len() - 1 }];
        if extents.iter().zip(most).any(|(extent, most)| extent > most) {
            return Err(format!(
                "it has {} texels; at most {} are possible",
                listed(&extents),
                listed(most)
            ));
        }
        Ok(())
    }
}

/// Returns extents as `width × height × depth`.
fn listed(extents: &[u64]) -> String {
    extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(extents: [u64; 3], layered: bool) -> TexelGrid {
        let [width, height, depth] = extents;
        let some = |extent: u64| (extent != u64::MAX).then_some(extent);
        TexelGrid {
            element: TexelElement::F32,
            channels: 2,
            width,
            height: some(height),
            depth: some(depth),
            layered,
        }
    }

    #[test]
    fn arrays_have_the_limits_of_their_readers() {
        const NONE: u64 = u64::MAX;
        let check = |extents, layered, reader| grid(extents, layered).check_array(reader);
        for (extents, layered, texture, surface) in [
            ([32_768, NONE, NONE], false, true, true),
            ([131_072, NONE, NONE], false, true, false),
            ([131_073, NONE, NONE], false, false, false),
            ([131_072, 65_536, NONE], false, true, true),
            ([8, 65_537, NONE], false, false, false),
            ([16_384, 16_384, 16_384], false, true, true),
            ([8, 8, 16_385], false, false, false),
            ([32_768, 32_768, 2048], true, true, true),
            ([8, 8, 2049], true, false, false),
            ([8, 0, NONE], false, false, false),
            ([8, 8, NONE], true, false, false),
        ] {
            let found = [TexelReader::Texture, TexelReader::Surface]
                .map(|reader| check(extents, layered, reader).is_ok());
            assert_eq!(found, [texture, surface], "{extents:?}");
        }
        let message = check([8, 8, 16_385], false, TexelReader::Surface).unwrap_err();
        assert!(message.contains("8 × 8 × 16385"), "{message}");
        assert_eq!(grid([5, 3, 2], false).row_bytes(), 40);
        assert_eq!(grid([5, 3, 2], false).rows(), 6);
    }
}
