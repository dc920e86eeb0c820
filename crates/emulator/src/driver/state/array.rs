//! CUDA arrays: device memory with the format and the extents of its texels. The main type is [`Array`].

use super::context::current;
use super::ledger::Kind;
use super::registry::registry;
use crate::driver::c::abi::{ArrayDesc3D, Handle};
use crate::driver::c::code::{Code, Res};
use crate::memory::{TexelType, Texels};

/// Values of `CUDA_ARRAY3D_LAYERED`, `_SURFACE_LDST` and `_TEXTURE_GATHER`.
const LAYERED: u32 = 1;
const SURFACE: u32 = 2;
const GATHER: u32 = 8;

/// Alignment of rows in bytes, so that data of any size are aligned in each row.
const ROW_UNIT: u64 = 32;

/// Maximum extents of arrays of one, two and three dimensions, and of layered arrays with their
/// number of layers.
pub const MAX_EXTENTS: [[u64; 3]; 4] =
    [[131_072, 1, 1], [131_072, 65_536, 1], [16_384; 3], [32_768, 32_768, 2048]];

/// Maximum width of a one-dimensional array that surfaces access.
const MAX_SURFACE_LINE: u64 = 32_768;

/// A CUDA array: its texels in device memory, and the description with which it was created.
pub struct Array {
    pub description: ArrayDesc3D,
    pub texels: Texels,
    pub context: Handle,
}

/// Converts a `CUarray_format` to the type of a texel.
pub fn texel(format: u32) -> Res<TexelType> {
    Ok(match format {
        0x01 => TexelType::U8,
        0x02 => TexelType::U16,
        0x03 => TexelType::U32,
        0x08 => TexelType::S8,
        0x09 => TexelType::S16,
        0x0a => TexelType::S32,
        0x10 => TexelType::F16,
        0x20 => TexelType::F32,
        _ => return Err(Code::INVALID_VALUE),
    })
}

impl Array {
    /// Returns the texels of an array whose memory begins at address 0, and the size of the array
    /// in bytes.
    pub fn laid_out(description: &ArrayDesc3D) -> Res<(Texels, usize)> {
        let ArrayDesc3D { width, height, depth, format, channels, flags } = *description;
        if flags & !(LAYERED | SURFACE | GATHER) != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let layered = flags & LAYERED != 0;
        let texel = texel(format)?;
        let dims = match (height, depth, layered) {
            (0, 0, false) | (0, 1.., true) => 1,
            (1.., 0, false) | (1.., 1.., true) => 2,
            (1.., 1.., false) => 3,
            _ => return Err(Code::INVALID_VALUE),
        };
        let extents = [width, height.max(1), depth.max(1)].map(|extent| extent as u64);
        let most = match (dims, layered) {
            (1, false) if flags & SURFACE != 0 => [MAX_SURFACE_LINE, 1, 1],
            (_, true) => MAX_EXTENTS[3],
            (dims, false) => MAX_EXTENTS[dims - 1],
        };
        let fits = extents.iter().zip(most).all(|(extent, most)| (1..=most).contains(extent));
        if !fits || !matches!(channels, 1 | 2 | 4) {
            return Err(Code::INVALID_VALUE);
        }
        // The product is far below 2^64: at most 2^17 texels of 2^4 bytes, times 2^16 or 2^28 rows.
        let row = extents[0] * u64::from(texel.bytes()) * u64::from(channels);
        let row = row.next_multiple_of(ROW_UNIT);
        let slice = row * extents[1];
        let bytes = usize::try_from(slice * extents[2]).map_err(|_| Code::OUT_OF_MEMORY)?;
        let texels = Texels {
            base: 0,
            texel,
            channels: channels as u8,
            dims: dims as u8,
            layered,
            extents,
            pitches: [row, slice],
        };
        Ok((texels, bytes))
    }

    /// Releases an array after the work that may use it has finished. Accesses through remaining
    /// texture or surface objects of the array then fail.
    pub fn destroy(handle: Handle) -> Res {
        let context = current()?;
        let registry = registry()?;
        let array = registry.arrays.get(handle)?;
        registry.ledger.begin(array.texels.base, &[Kind::Array])?;
        context.drain();
        context.core.check()?;
        registry.arrays.remove(handle)?;
        registry.ledger.release(array.texels.base)
    }

    /// Returns the size of a row without padding, bytes.
    pub fn row_bytes(&self) -> u64 {
        self.texels.extents[0] * self.texels.bytes()
    }
}
