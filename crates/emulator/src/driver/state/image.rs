//! Reads images to load: accepts PTX text, and rejects every other format with a message that names
//! the format.

use std::ffi::{CStr, c_char, c_void};

use super::jit::Jit;
use super::registry::registry;
use crate::driver::c::code::{Code, Res};
use crate::module::Module;

const ELF: [u8; 4] = *b"\x7fELF";
/// First words of a fat binary, and of the wrapper that compilers add.
const FATBIN: u32 = 0xba55_ed50;
const WRAPPER: u32 = 0x4662_43b1;

const NOT_PTX: &str = "the emulator executes PTX; give it PTX, not a cubin";

/// Reason why an image cannot be loaded.
pub struct Refusal {
    pub code: Code,
    pub message: String,
}

fn magic(head: [u8; 4]) -> Option<&'static str> {
    let number = u32::from_le_bytes(head);
    match head {
        ELF => Some("a cubin"),
        _ if number == FATBIN || number == WRAPPER => Some("a fat binary"),
        _ => None,
    }
}

fn refuse(what: &str) -> Refusal {
    Refusal { code: Code::NO_BINARY_FOR_GPU, message: format!("the image is {what}: {NOT_PTX}") }
}

/// Returns the PTX text at a pointer that a caller passed as an image.
///
/// # Safety
/// By the C contract the image is a NUL-terminated PTX text, a cubin or a fat binary.
pub unsafe fn text_at(image: *const c_void) -> Result<String, Refusal> {
    if image.is_null() {
        let message = "the image is null".to_owned();
        return Err(Refusal { code: Code::INVALID_VALUE, message });
    }
    let mut head = [0u8; 4];
    for (index, byte) in head.iter_mut().enumerate() {
        // SAFETY: all bytes up to the first NUL byte may be read, whatever the image is; a cubin
        // and a fat binary have no NUL among their first four.
        *byte = unsafe { image.cast::<u8>().add(index).read() };
        if *byte == 0 {
            break;
        }
    }
    if let Some(what) = magic(head) {
        return Err(refuse(what));
    }
    // SAFETY: it is neither of the binary formats, so by contract it is a NUL-terminated text.
    let text = unsafe { CStr::from_ptr(image.cast::<c_char>()) };
    Ok(text.to_string_lossy().into_owned())
}

/// Returns the PTX text in a file.
pub fn text_in(path: &str) -> Result<String, Refusal> {
    let bytes = std::fs::read(path).map_err(|error| Refusal {
        code: Code::FILE_NOT_FOUND,
        message: format!("cannot read {path}: {error}"),
    })?;
    let head = bytes.first_chunk::<4>().copied().unwrap_or_default();
    if let Some(what) = magic(head) {
        return Err(refuse(what));
    }
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// Loads PTX on a device. Writes errors to the log of the caller and to the report.
pub fn load(text: Result<String, Refusal>, device: u32, jit: &Jit) -> Res<(Module, String)> {
    let registry = registry()?;
    let loaded = text.and_then(|text| {
        if text.trim().is_empty() {
            let message = "the image is empty".to_owned();
            return Err(Refusal { code: Code::INVALID_IMAGE, message });
        }
        let module = Module::load(&text, &registry.memory, device).map_err(|error| {
            // The PTX may be valid: the emulator does not support a construct that a GPU would
            // accept.
            let code = if error.gap { Code::NOT_SUPPORTED } else { Code::INVALID_PTX };
            Refusal { code, message: error.to_string() }
        })?;
        fits(&module, device)?;
        Ok((module, text))
    });
    match loaded {
        Ok(loaded) => {
            jit.succeed();
            Ok(loaded)
        }
        Err(refusal) => {
            jit.fail(&refusal.message);
            registry.reports.message("module", &refusal.message);
            Err(refusal.code)
        }
    }
}

/// Checks that the device supports the target architecture of the PTX.
fn fits(module: &Module, device: u32) -> Result<(), Refusal> {
    let first = module.functions().next().and_then(|name| module.function(name));
    let wants = first.map_or(0, |function| function.target_sm());
    let devices = registry().map(|registry| &registry.devices);
    let arch = devices.ok().and_then(|list| list.get(device as usize)).map(|found| found.arch);
    let has = arch.map_or(0, |arch| arch.major * 10 + arch.minor);
    if wants <= has {
        return Ok(());
    }
    let message = format!(
        "the PTX is for sm_{wants}, but the emulated device is sm_{has}: \
         set WARPGAUGE_EMULATOR_CC={wants} or compile for compute_{has}"
    );
    Err(Refusal { code: Code::INVALID_PTX, message })
}
