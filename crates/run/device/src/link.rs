//! The driver's linker, whose output lists the variables of a PTX text.

use std::ffi::{c_int, c_void};

use super::DeviceError;
use super::context::Context;
use warpgauge_model::FailureCode;

/// Type of the linker's input (`CUjitInputType`): PTX.
const INPUT_PTX: c_int = 1;

/// Maximum size of a linked image, bytes.
const MAX_IMAGE: usize = 1 << 30;

/// A linker invocation. Dropping it frees the linked image.
struct Linker<'a> {
    context: &'a Context,
    state: *mut c_void,
}

/// Links PTX for the context's device and returns the image: machine code as an ELF file, with a
/// symbol for each variable of the text. [`Module::load`](crate::Module::load) may generate shorter
/// code from the same text, but with the same variables.
///
/// # Errors
/// Returns the driver's error. Fails if the driver has no linker.
pub fn link_ptx(context: &Context, ptx: &[u8]) -> Result<Vec<u8>, DeviceError> {
    let api = context.api();
    let (Some(create), Some(add), Some(complete)) =
        (api.link_create, api.link_add, api.link_complete)
    else {
        return Err(DeviceError::local(
            "link PTX",
            FailureCode::NotSupported,
            "the driver has no linker",
        ));
    };
    let mut state = std::ptr::null_mut();
    // SAFETY: no options; writes a handle.
    let result = unsafe { create(0, std::ptr::null_mut(), std::ptr::null_mut(), &mut state) };
    api.check(result, "begin to link PTX")?;
    let linker = Linker { context, state };
    let mut text = ptx.to_vec();
    text.push(0);
    // SAFETY: the text ends with a NUL and outlives the call, which copies it; no options.
    let result = unsafe {
        add(
            linker.state,
            INPUT_PTX,
            text.as_mut_ptr().cast(),
            text.len(),
            c"kernel.ptx".as_ptr(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    api.check(result, "compile PTX for the linker")?;
    let (mut image, mut bytes) = (std::ptr::null_mut(), 0);
    // SAFETY: the linker is alive; writes an address and a size.
    let result = unsafe { complete(linker.state, &mut image, &mut bytes) };
    api.check(result, "link PTX")?;
    if image.is_null() || bytes > MAX_IMAGE {
        let text = format!("the linked image has {bytes} bytes");
        return Err(DeviceError::local("link PTX", FailureCode::NotSupported, text));
    }
    // SAFETY: the image belongs to the linker, which is alive, and has the returned number of
    // bytes.
    Ok(unsafe { std::slice::from_raw_parts(image.cast::<u8>(), bytes) }.to_vec())
}

impl Drop for Linker<'_> {
    fn drop(&mut self) {
        if let Some(destroy) = self.context.api().link_destroy {
            // SAFETY: created by us, destroyed once.
            let _ = unsafe { destroy(self.state) };
        }
    }
}
