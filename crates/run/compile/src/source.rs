//! Source text of a kernel, with the files that it includes.

use std::borrow::Cow;

use super::error::CompileError;
use super::limits::MAX_SOURCE_BYTES;
use super::prelude::{PRELUDE_NAME, SOURCE_NAME};
use warpgauge_code::source::{UnitedSource, united};
use warpgauge_contract::KernelCode;
use warpgauge_model::FailureCode;

/// Name of a program's source in the compiler's messages.
pub(crate) const PROGRAM_NAME: &str = "program.cu";

/// Returns the text of a kernel that was sent as text.
pub(crate) fn source_text(kernel: &KernelCode) -> Result<&str, CompileError> {
    let text = kernel.source_code.as_deref().unwrap_or("");
    // Editors on Windows begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        let kind = format!("{:?}", kernel.kernel_type).to_lowercase();
        let message = format!("kernel.source_code is empty; send the {kind} kernel there as text");
        return Err(CompileError::rejected(FailureCode::MissingSource, message));
    }
    if text.len() > MAX_SOURCE_BYTES {
        let message = format!(
            "kernel.source_code has {} bytes; at most {MAX_SOURCE_BYTES} are compiled",
            text.len()
        );
        return Err(CompileError::rejected(FailureCode::SourceTooLarge, message));
    }
    if text.contains('\0') {
        let message = "kernel.source_code contains a NUL byte";
        return Err(CompileError::rejected(FailureCode::InvalidSource, message));
    }
    Ok(text)
}

/// Returns the text of a kernel with the files that it includes.
///
/// # Errors
/// Fails if the text is unusable, or an `#include` is ambiguous.
pub(crate) fn source_of(kernel: &KernelCode) -> Result<UnitedSource<'_>, CompileError> {
    let text = source_text(kernel)?;
    if kernel.files.is_empty() {
        return Ok(UnitedSource { text: Cow::Borrowed(text), files: Vec::new() });
    }
    let at = kernel.source_path.as_deref().unwrap_or_default();
    let reserved = [SOURCE_NAME, PROGRAM_NAME, PRELUDE_NAME];
    united(text, at, &kernel.files, &reserved)
        .map_err(|error| CompileError::rejected(FailureCode::InvalidSource, error.to_string()))
}
