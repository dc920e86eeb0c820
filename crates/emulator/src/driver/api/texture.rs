//! Exported functions for texture objects of linear memory, pitched memory and arrays.

use std::ffi::c_uint;

use crate::driver::c::abi::{ResourceDesc, TextureDesc};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out, api};
use crate::driver::state::array::texel;
use crate::driver::state::registry::{fresh, registry};
use crate::memory::{AddressMode, TexelObject, TexelType, Texels, Texture};

/// Values of `CU_RESOURCE_TYPE_ARRAY`, `_LINEAR` and `_PITCH2D`.
const ARRAY: c_uint = 0;
const LINEAR: c_uint = 2;
const PITCHED: c_uint = 3;

/// Values of `CU_TRSF_READ_AS_INTEGER` and `_NORMALIZED_COORDINATES`.
const AS_INTEGER: c_uint = 1;
const NORMALIZED: c_uint = 2;

/// Values of `CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT` and `_TEXTURE_PITCH_ALIGNMENT` of all devices, bytes.
const ALIGNMENT: u64 = 512;
const PITCH_ALIGNMENT: usize = 32;

/// Maximum extents of textures of linear and of pitched memory.
const MAX_LINEAR: u64 = 1 << 28;
const MAX_PITCHED: (usize, usize) = (131_072, 65_000);

fn mode(mode: c_uint) -> Res<AddressMode> {
    Ok(match mode {
        0 => AddressMode::Wrap,
        1 => AddressMode::Clamp,
        2 => AddressMode::Mirror,
        3 => AddressMode::Border,
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// Returns the texels of linear or pitched memory, after the checks of the real driver.
fn in_memory(resource: &ResourceDesc) -> Res<Texels> {
    let (texel, channels) = (texel(resource.format)?, resource.channels);
    if !matches!(channels, 1 | 2 | 4) || !resource.address.is_multiple_of(ALIGNMENT) {
        return Err(Code::INVALID_VALUE);
    }
    let bytes = u64::from(texel.bytes()) * u64::from(channels);
    let (dims, extents, pitch, end) = match resource.kind {
        LINEAR => {
            let width = resource.width as u64 / bytes;
            if !(1..=MAX_LINEAR).contains(&width) {
                return Err(Code::INVALID_VALUE);
            }
            (1, [width, 1, 1], width * bytes, width * bytes)
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
            let (height, pitch) = (height as u64, pitch as u64);
            (2, [width as u64, height, 1], pitch, (height - 1) * pitch + row)
        }
    };
    let memory = registry()?.memory.allocation(resource.address).ok_or(Code::INVALID_VALUE)?;
    if end > memory.base + memory.bytes - resource.address {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Texels {
        base: resource.address,
        texel,
        channels: channels as u8,
        dims,
        layered: false,
        extents,
        // Pitched memory has one slice.
        pitches: [pitch, 0],
    })
}

/// Converts the C structures of a texture, after the checks of the real driver.
fn described(resource: &ResourceDesc, how: &TextureDesc) -> Res<Texture> {
    let is_known = matches!(resource.kind, ARRAY | LINEAR | PITCHED);
    if !is_known
        || how.flags & !(AS_INTEGER | NORMALIZED) != 0
        || how.border.iter().any(|value| *value != 0.0)
    {
        return Err(Code::NOT_SUPPORTED);
    }
    let texels = match resource.kind {
        ARRAY => registry()?.arrays.get(resource.array())?.texels,
        _ => in_memory(resource)?,
    };
    let is_float = matches!(texels.texel, TexelType::F16 | TexelType::F32);
    let (linear, as_integer) = (how.filter == 1, how.flags & AS_INTEGER != 0);
    // 32-bit integers are read unchanged.
    let is_wide = matches!(texels.texel, TexelType::U32 | TexelType::S32);
    let is_linear_memory = resource.kind == LINEAR;
    if how.filter > 1 || linear && (as_integer && !is_float || is_wide) {
        return Err(Code::INVALID_VALUE);
    }
    let [x, y, z] = how.address_modes;
    Ok(Texture {
        texels,
        is_linear_memory,
        modes: [mode(x)?, mode(y)?, mode(z)?],
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
        registry()?.memory.add_object(handle, TexelObject::Texture(texture));
        out.set(handle)
    }

    fn cuTexObjectDestroy(handle: u64) {
        let is_texture = |object: &TexelObject| matches!(object, TexelObject::Texture(_));
        match registry()?.memory.remove_object(handle, is_texture) {
            true => Ok(()),
            false => Err(Code::INVALID_VALUE),
        }
    }
}
