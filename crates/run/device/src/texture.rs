//! Texture objects over linear and pitched memory, and over CUDA arrays.

use std::ffi::{c_int, c_uint, c_void};

use super::{Context, DeviceArray, DeviceError};
use warpgauge_model::{
    FailureCode, TEXTURE_ALIGNMENT, TexelElement, TextureAddress, TextureFilter, TextureLayout,
    TextureRead,
};

/// `CU_RESOURCE_TYPE_ARRAY`, `_LINEAR`, `_PITCH2D`.
const ARRAY: c_uint = 0;
const LINEAR: c_uint = 2;
const PITCHED: c_uint = 3;

/// `CU_TRSF_READ_AS_INTEGER`, `_NORMALIZED_COORDINATES`.
const AS_INTEGER: c_uint = 1;
const NORMALIZED: c_uint = 2;

/// `CUDA_RESOURCE_DESC`, with the members of its union that linear and pitched memory share. The
/// first of them is also the handle of an array.
#[repr(C)]
#[derive(Default)]
pub(super) struct ResourceDescription {
    kind: c_uint,
    address: u64,
    format: c_uint,
    channels: c_uint,
    /// Size in bytes of linear memory, or number of texels in a row of pitched memory.
    width: usize,
    height: usize,
    pitch: usize,
    reserved: [u32; 22],
    flags: c_uint,
}

/// `CUDA_TEXTURE_DESC`.
#[repr(C)]
#[derive(Default)]
pub(super) struct TextureDescription {
    address_modes: [c_uint; 3],
    filter: c_uint,
    flags: c_uint,
    max_anisotropy: c_uint,
    mipmap_filter: c_uint,
    mipmap_levels: [f32; 3],
    border: [f32; 4],
    reserved: [c_int; 12],
}

/// A texture object. Dropping it destroys the object.
pub struct TextureObject {
    handle: u64,
    context: Context,
}

/// Returns the `CUarray_format` of an element.
pub(super) fn format(element: TexelElement) -> c_uint {
    match element {
        TexelElement::U8 => 0x01,
        TexelElement::U16 => 0x02,
        TexelElement::U32 => 0x03,
        TexelElement::I8 => 0x08,
        TexelElement::I16 => 0x09,
        TexelElement::I32 => 0x0a,
        TexelElement::F16 => 0x10,
        TexelElement::F32 => 0x20,
    }
}

impl ResourceDescription {
    /// Describes a CUDA array, given its handle.
    pub(super) fn of_array(array: *mut c_void) -> Self {
        Self { kind: ARRAY, address: array as u64, ..Self::default() }
    }

    /// Describes the memory that begins at `address`.
    fn of_memory(layout: &TextureLayout, address: u64) -> Self {
        let grid = &layout.grid;
        let pitch = grid.row_bytes() as usize;
        let (kind, width, height, row) = match grid.height {
            None => (LINEAR, pitch, 0, 0),
            Some(height) => (PITCHED, grid.width as usize, height as usize, pitch),
        };
        Self {
            kind,
            address,
            format: format(grid.element),
            channels: grid.channels,
            width,
            height,
            pitch: row,
            ..Self::default()
        }
    }
}

fn sampling(layout: &TextureLayout) -> TextureDescription {
    let mode = match layout.address {
        TextureAddress::Wrap => 0,
        TextureAddress::Clamp => 1,
        TextureAddress::Mirror => 2,
        TextureAddress::Border => 3,
    };
    let as_integer = !layout.grid.element.is_float() && layout.read == TextureRead::Element;
    let flags =
        if as_integer { AS_INTEGER } else { 0 } | if layout.normalized { NORMALIZED } else { 0 };
    TextureDescription {
        address_modes: [mode; 3],
        filter: c_uint::from(layout.filter == TextureFilter::Linear),
        flags,
        ..TextureDescription::default()
    }
}

const OPERATION: &str = "make a texture object";

fn invalid(text: String) -> DeviceError {
    DeviceError::local(OPERATION, FailureCode::InvalidValue, text)
}

impl TextureObject {
    /// Creates a texture object over the memory at `address`.
    ///
    /// # Errors
    /// Fails if the layout is invalid or the address is not aligned, or if the driver does not
    /// support textures or rejects this one.
    pub fn new(
        context: &Context,
        layout: &TextureLayout,
        address: u64,
    ) -> Result<Self, DeviceError> {
        if layout.in_array {
            return Err(invalid("it is in a CUDA array, not at an address".to_owned()));
        }
        layout.check().map_err(invalid)?;
        if !address.is_multiple_of(TEXTURE_ALIGNMENT) {
            let text = format!(
                "its memory begins at {address:#x}, not at a multiple of {TEXTURE_ALIGNMENT}"
            );
            return Err(invalid(text));
        }
        Self::made(context, &ResourceDescription::of_memory(layout, address), layout)
    }

    /// Creates a texture object over a CUDA array. It must be dropped before the array.
    ///
    /// # Errors
    /// Fails if the layout is invalid, or if the driver does not support textures or rejects this
    /// one.
    pub fn over(array: &DeviceArray, layout: &TextureLayout) -> Result<Self, DeviceError> {
        layout.check().map_err(invalid)?;
        Self::made(array.context(), &ResourceDescription::of_array(array.handle()), layout)
    }

    fn made(
        context: &Context,
        resource: &ResourceDescription,
        layout: &TextureLayout,
    ) -> Result<Self, DeviceError> {
        let api = context.api();
        let Some(create) = api.texture_create else {
            let text = "this driver has no cuTexObjectCreate";
            return Err(DeviceError::local(OPERATION, FailureCode::NotSupported, text));
        };
        let how = sampling(layout);
        let mut handle = 0;
        // SAFETY: the driver writes one handle and reads two descriptions, which have its layout.
        // It does not read the memory.
        let result = unsafe { create(&mut handle, resource, &how, std::ptr::null()) };
        api.check(result, OPERATION)?;
        Ok(Self { handle, context: context.clone() })
    }

    /// Returns the object's handle as a kernel argument.
    pub fn bytes(&self) -> [u8; 8] {
        self.handle.to_ne_bytes()
    }
}

impl Drop for TextureObject {
    fn drop(&mut self) {
        if let Some(destroy) = self.context.api().texture_destroy {
            // SAFETY: made by us, destroyed once. A failure means that the context is lost already.
            let _ = unsafe { destroy(self.handle) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    use cudarc::driver::sys::{CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC};

    #[test]
    fn descriptions_are_laid_out_as_the_driver_reads_them() {
        assert_eq!(size_of::<ResourceDescription>(), size_of::<CUDA_RESOURCE_DESC>());
        assert_eq!(size_of::<TextureDescription>(), size_of::<CUDA_TEXTURE_DESC>());
        assert_eq!(offset_of!(ResourceDescription, address), offset_of!(CUDA_RESOURCE_DESC, res));
        assert_eq!(offset_of!(ResourceDescription, flags), offset_of!(CUDA_RESOURCE_DESC, flags));
        assert_eq!(
            offset_of!(TextureDescription, border),
            offset_of!(CUDA_TEXTURE_DESC, borderColor)
        );
        assert_eq!(offset_of!(TextureDescription, flags), offset_of!(CUDA_TEXTURE_DESC, flags));
    }
}
