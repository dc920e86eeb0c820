//! CUDA arrays, and texture and surface objects.

use std::ffi::{c_int, c_uint};

use super::call::{driver, runtime};
use super::memory::Extent;
use crate::driver::api::array::{
    cuArray3DCreate_v2, cuArrayDestroy, cuSurfObjectCreate, cuSurfObjectDestroy,
};
use crate::driver::api::texture::{cuTexObjectCreate, cuTexObjectDestroy};
use crate::driver::c::abi::{Address, ArrayDesc3D, Handle, ResourceDesc, TextureDesc};
use crate::driver::c::code::{Code, Res};
use crate::driver::c::entry::{In, Out};
use crate::driver::state::registry::registry;

/// Values of `cudaResourceTypeArray`, `cudaResourceTypeLinear` and `cudaResourceTypePitch2D`.
const ARRAY: c_uint = 0;
const LINEAR: c_uint = 2;
const PITCHED: c_uint = 3;

/// Values of `CU_TRSF_READ_AS_INTEGER` and `CU_TRSF_NORMALIZED_COORDINATES`.
const AS_INTEGER: c_uint = 1;
const NORMALIZED: c_uint = 2;

/// Values of `cudaChannelFormatKindSigned`, `cudaChannelFormatKindUnsigned` and
/// `cudaChannelFormatKindFloat`.
const SIGNED: c_uint = 0;
const UNSIGNED: c_uint = 1;
const FLOAT: c_uint = 2;

/// Codes of `CUarray_format`, with the kind and the number of bits of a channel.
const FORMATS: [(c_uint, c_uint, c_int); 8] = [
    (0x01, UNSIGNED, 8),
    (0x02, UNSIGNED, 16),
    (0x03, UNSIGNED, 32),
    (0x08, SIGNED, 8),
    (0x09, SIGNED, 16),
    (0x0a, SIGNED, 32),
    (0x10, FLOAT, 16),
    (0x20, FLOAT, 32),
];

/// The C structure `cudaChannelFormatDesc`: the numbers of bits of up to four channels, and their
/// kind.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ChannelDesc {
    bits: [c_int; 4],
    kind: c_uint,
}

/// The C structure `cudaResourceDesc`, with the members of its union that linear and pitched memory
/// share. The first of them is also the handle of an array.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Resource {
    kind: c_uint,
    address: Address,
    channels: ChannelDesc,
    /// Size of linear memory in bytes, or texels per row of pitched memory.
    width: usize,
    height: usize,
    pitch: usize,
}

/// The first members of the C structure `cudaTextureDesc`, up to those for mipmaps.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Sampling {
    address_modes: [c_uint; 3],
    filter: c_uint,
    read: c_uint,
    srgb: c_int,
    border: [f32; 4],
    normalized: c_int,
    max_anisotropy: c_uint,
}

impl ChannelDesc {
    /// Returns the driver's format and the number of channels.
    fn format(&self) -> Res<(c_uint, c_uint)> {
        let [first, ..] = self.bits;
        let channels = self.bits.iter().take_while(|bits| **bits != 0).count();
        let alike = self.bits[..channels].iter().all(|bits| *bits == first);
        let rest = self.bits[channels..].iter().all(|bits| *bits == 0);
        let found = FORMATS.iter().find(|(_, kind, bits)| (*kind, *bits) == (self.kind, first));
        match found {
            Some((format, ..)) if alike && rest => Ok((*format, channels as c_uint)),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Returns the channel description for the driver's format.
    fn of(format: c_uint, channels: c_uint) -> Res<Self> {
        let found = FORMATS.iter().find(|(code, ..)| *code == format);
        let (_, kind, bits) = found.ok_or(Code::INVALID_VALUE)?;
        let bits = [0, 1, 2, 3].map(|channel| if channel < channels { *bits } else { 0 });
        Ok(Self { bits, kind: *kind })
    }
}

fn create(out: Out<Handle>, channels: In<ChannelDesc>, extent: Extent, flags: c_uint) -> Res {
    out.required()?;
    let (format, channels) = channels.get()?.format()?;
    let Extent { width, height, depth } = extent;
    let description = ArrayDesc3D { width, height, depth, format, channels, flags };
    driver!(cuArray3DCreate_v2(out, input(&description)))
}

/// Passes a value as the input of a driver function.
fn input<T: Copy>(value: &T) -> In<T> {
    // SAFETY: the value exists until the call returns, and the call does not keep the pointer.
    unsafe { In::from_address(std::ptr::from_ref(value) as usize) }
}

fn resource(given: &Resource) -> Res<ResourceDesc> {
    let (format, channels) = match given.kind {
        ARRAY => (0, 0),
        LINEAR | PITCHED => given.channels.format()?,
        _ => return Err(Code::NOT_SUPPORTED),
    };
    let Resource { kind, address, width, height, pitch, .. } = *given;
    let whole = ResourceDesc {
        kind,
        address,
        format,
        channels,
        width,
        height,
        pitch,
        reserved: [0; 22],
        flags: 0,
    };
    Ok(match kind {
        // The other members of the union are undefined.
        ARRAY => ResourceDesc { width: 0, height: 0, pitch: 0, ..whole },
        LINEAR => ResourceDesc { height: 0, pitch: 0, ..whole },
        _ => whole,
    })
}

fn sampling(given: &Sampling) -> Res<TextureDesc> {
    if given.srgb != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let flags = if given.read == 0 { AS_INTEGER } else { 0 }
        | if given.normalized != 0 { NORMALIZED } else { 0 };
    Ok(TextureDesc {
        address_modes: given.address_modes,
        filter: given.filter,
        flags,
        max_anisotropy: given.max_anisotropy,
        mipmap_filter: 0,
        mipmap_levels: [0.0; 3],
        border: given.border,
        reserved: [0; 12],
    })
}

/// Returns a description of channels. It requires neither a device nor a context, and cannot fail.
#[unsafe(no_mangle)]
pub extern "C" fn cudaCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: c_uint,
) -> ChannelDesc {
    ChannelDesc { bits: [x, y, z, w], kind }
}

runtime! {
    fn cudaMallocArray(
        out: Out<Handle>,
        channels: In<ChannelDesc>,
        width: usize,
        height: usize,
        flags: c_uint,
    ) {
        create(out, channels, Extent { width, height, depth: 0 }, flags)
    }

    fn cudaMalloc3DArray(
        out: Out<Handle>,
        channels: In<ChannelDesc>,
        extent: Extent,
        flags: c_uint,
    ) {
        create(out, channels, extent, flags)
    }

    fn cudaFreeArray(array: Handle) {
        if array == 0 { Ok(()) } else { driver!(cuArrayDestroy(array)) }
    }

    fn cudaGetChannelDesc(out: Out<ChannelDesc>, array: Handle) {
        let ArrayDesc3D { format, channels, .. } = registry()?.arrays.get(array)?.description;
        out.set(ChannelDesc::of(format, channels)?)
    }

    fn cudaArrayGetInfo(
        out: Out<ChannelDesc>,
        extent: Out<Extent>,
        flags: Out<c_uint>,
        array: Handle,
    ) {
        let description = registry()?.arrays.get(array)?.description;
        let ArrayDesc3D { width, height, depth, format, channels, .. } = description;
        out.set_if_asked(ChannelDesc::of(format, channels)?);
        extent.set_if_asked(Extent { width, height, depth });
        flags.set_if_asked(description.flags);
        Ok(())
    }

    fn cudaCreateTextureObject(
        out: Out<u64>,
        given: In<Resource>,
        how: In<Sampling>,
        view: In<u64>,
    ) {
        let (resource, how) = (resource(&given.get()?)?, sampling(&how.get()?)?);
        driver!(cuTexObjectCreate(out, input(&resource), input(&how), view))
    }

    fn cudaDestroyTextureObject(texture: u64) {
        driver!(cuTexObjectDestroy(texture))
    }

    fn cudaCreateSurfaceObject(out: Out<u64>, given: In<Resource>) {
        let resource = resource(&given.get()?)?;
        driver!(cuSurfObjectCreate(out, input(&resource)))
    }

    fn cudaDestroySurfaceObject(surface: u64) {
        driver!(cuSurfObjectDestroy(surface))
    }
}
