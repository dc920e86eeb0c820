//! Exported functions on texture objects of linear and pitched memory.

use std::ffi::c_uint;

use crate::driver::c::abi::{ResourceDesc, TextureDesc};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, api};
use crate::driver::state::registry::{fresh, registry};
use crate::memory::{AddressMode, TexelType, Texture};

/// `CU_RESOURCE_TYPE_LINEAR`, `_PITCH2D`.
const LINEAR: c_uint = 2;
const PITCHED: c_uint = 3;

/// `CU_TRSF_READ_AS_INTEGER`, `_NORMALIZED_COORDINATES`.
const AS_INTEGER: c_uint = 1;
const NORMALIZED: c_uint = 2;

/// Values of `CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT` and `_TEXTURE_PITCH_ALIGNMENT` of all devices, bytes.
const ALIGNMENT: u64 = 512;
const PITCH_ALIGNMENT: usize = 32;

/// Largest extents of linear and of pitched memory.
const MAX_LINEAR: u64 = 1 << 28;
const MAX_PITCHED: (usize, usize) = (131_072, 65_000);

fn texel(format: c_uint) -> Res<TexelType> {
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

fn mode(mode: c_uint) -> Res<AddressMode> {
    Ok(match mode {
        0 => AddressMode::Wrap,
        1 => AddressMode::Clamp,
        2 => AddressMode::Mirror,
        3 => AddressMode::Border,
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// Converts the C descriptions of a texture, after the checks of the real driver.
fn described(resource: &ResourceDesc, how: &TextureDesc) -> Res<Texture> {
    if !matches!(resource.kind, LINEAR | PITCHED)
        || how.flags & !(AS_INTEGER | NORMALIZED) != 0
        || how.border.iter().any(|value| *value != 0.0)
    {
        return Err(Code::NOT_SUPPORTED);
    }
    let texel = texel(resource.format)?;
    let is_float = matches!(texel, TexelType::F16 | TexelType::F32);
    let (linear, as_integer) = (how.filter == 1, how.flags & AS_INTEGER != 0);
    // Integers of 32 bits are read as they are.
    let is_wide = matches!(texel, TexelType::U32 | TexelType::S32);
    let channels = resource.channels;
    let valid = matches!(channels, 1 | 2 | 4)
        && resource.address.is_multiple_of(ALIGNMENT)
        && how.filter <= 1
        && !(linear && (as_integer && !is_float || is_wide));
    if !valid {
        return Err(Code::INVALID_VALUE);
    }
    let bytes = u64::from(texel.bytes()) * u64::from(channels);
    let (width, rows, end) = match resource.kind {
        LINEAR => {
            let width = resource.width as u64 / bytes;
            if !(1..=MAX_LINEAR).contains(&width) {
                return Err(Code::INVALID_VALUE);
            }
            (width, None, width * bytes)
        }
        _ => {
            let ResourceDesc { width, height, pitch, .. } = *resource;
            let row = (width as u64).saturating_mul(bytes);
            let fits = (1..=MAX_PITCHED.0).contains(&width)
                && (1..=MAX_PITCHED.1).contains(&height)
                && pitch.is_multiple_of(PITCH_ALIGNMENT)
                && (row..=1 << 21).contains(&(pitch as u64));
            if !fits {
                return Err(Code::INVALID_VALUE);
            }
            (
                width as u64,
                Some((height as u64, pitch as u64)),
                (height - 1) as u64 * pitch as u64 + row,
            )
        }
    };
    let memory = registry()?.memory.allocation(resource.address).ok_or(Code::INVALID_VALUE)?;
    if end > memory.base + memory.bytes - resource.address {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Texture {
        base: resource.address,
        texel,
        channels: channels as u8,
        width,
        rows,
        modes: [mode(how.address_modes[0])?, mode(how.address_modes[1])?],
        linear,
        normalized: how.flags & NORMALIZED != 0,
        as_integer: as_integer || is_wide,
    })
}

api! {
    fn cuTexObjectCreate(
        out: Out<u64>,
        resource: In<ResourceDesc>,
        how: In<TextureDesc>,
        view: In<u64>,
    ) {
        out.required()?;
        if !view.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        let texture = described(&resource.get()?, &how.get()?)?;
        let handle = fresh() as u64;
        registry()?.memory.add_texture(handle, texture);
        out.set(handle)
    }

    fn cuTexObjectDestroy(handle: u64) {
        match registry()?.memory.remove_texture(handle) {
            true => Ok(()),
            false => Err(Code::INVALID_VALUE),
        }
    }
}
