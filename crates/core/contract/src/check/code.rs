//! Checks of a kernel's code and metadata.

use super::family;
use crate::MAX_FIELDS;
use crate::error::{Mistakes, quoted};
use crate::{CodeForm, ContractLimits, KernelCode, KernelMetadata, launches, library};

use warpgauge_model::FailureCode;

/// Checks a kernel's code; `path` is its path in the request.
pub(super) fn check(
    kernel: &KernelCode,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    match kernel.kernel_type.code_form() {
        CodeForm::Binary => binary(kernel, limits, path, mistakes),
        CodeForm::Absent => library::check_code(kernel, path, mistakes),
        CodeForm::Text => source(kernel, limits, path, mistakes),
    }
    super::files::check(kernel, limits, path, mistakes);
    launches::check_fields(kernel, path, mistakes);
    let fields = kernel.field_paths().len();
    mistakes.require(
        fields <= MAX_FIELDS,
        format!("{path}.io.args"),
        FailureCode::TooLarge,
        || {
            format!(
                "its structures have {fields} different fields; at most {MAX_FIELDS} are passed"
            )
        },
    );
    if let Some(metadata) = &kernel.metadata {
        let at = format!("{path}.metadata");
        family::check_metadata(kernel.family(), metadata, &at, mistakes);
        let able = !metadata.backward || kernel.family().has_gradients();
        mistakes.require(
            able,
            format!("{path}.metadata.backward"),
            FailureCode::WrongField,
            || "only Python that is run (`torch`) has gradients: leave it out".to_owned(),
        );
        check_metadata(metadata, limits, &format!("{path}.metadata"), mistakes);
    }
}

fn source(kernel: &KernelCode, limits: &ContractLimits, path: &str, mistakes: &mut Mistakes) {
    let kind = kernel.kernel_type.name();
    if kernel.binary_b64.is_some() {
        mistakes.add(
            format!("{path}.binary_b64"),
            FailureCode::WrongField,
            format!("{kind} code is text: send it as `source_code`, without `binary_b64`"),
        );
    }
    let path = format!("{path}.source_code");
    let Some(source) = &kernel.source_code else {
        mistakes.add(
            path,
            FailureCode::MissingCode,
            format!("a {} needs `source_code`", kernel.kernel_type.title()),
        );
        return;
    };
    if source.trim().is_empty() {
        mistakes.add(path, FailureCode::MissingCode, "the source is empty");
    } else if source.len() > limits.max_source_bytes {
        mistakes.add(
            path,
            FailureCode::TooLarge,
            format!(
                "the source has {} bytes; at most {} are accepted",
                source.len(),
                limits.max_source_bytes
            ),
        );
    } else if let Some(offset) = source.find('\0') {
        mistakes.add(
            path,
            FailureCode::InvalidValue,
            format!("the source has a NUL at byte {offset}"),
        );
    }
}

fn binary(kernel: &KernelCode, limits: &ContractLimits, path: &str, mistakes: &mut Mistakes) {
    let kind = kernel.kernel_type.name();
    if kernel.source_code.is_some() {
        mistakes.add(
            format!("{path}.source_code"),
            FailureCode::WrongField,
            format!("a {kind} is binary: send it as `binary_b64`, without `source_code`"),
        );
    }
    let path = format!("{path}.binary_b64");
    let Some(binary) = &kernel.binary_b64 else {
        let message = format!("a {kind} kernel needs `binary_b64`, the file's bytes in base64");
        mistakes.add(path, FailureCode::MissingCode, message);
        return;
    };
    match binary.decoded_len() {
        Err(error) => mistakes.add(path, FailureCode::InvalidBase64, error.to_string()),
        Ok(0) => mistakes.add(path, FailureCode::MissingCode, "the binary is empty"),
        Ok(bytes) if bytes > limits.max_binary_bytes => mistakes.add(
            path,
            FailureCode::TooLarge,
            format!(
                "the binary has {bytes} bytes; at most {} are accepted",
                limits.max_binary_bytes
            ),
        ),
        Ok(_) => (),
    }
}

/// Checks the lengths of texts for the compiler. The compile stage checks which options it accepts.
fn check_metadata(
    metadata: &KernelMetadata,
    limits: &ContractLimits,
    path: &str,
    mistakes: &mut Mistakes,
) {
    if let Some(name) = &metadata.kernel_name {
        line(name, limits.max_name_len, format!("{path}.kernel_name"), mistakes);
    }
    for (field, lines) in [
        ("compiler_options", &metadata.compiler_options),
        ("name_expressions", &metadata.name_expressions),
    ] {
        let path = format!("{path}.{field}");
        if lines.len() > limits.max_compiler_options {
            let message =
                format!("{} entries; at most {}", lines.len(), limits.max_compiler_options);
            mistakes.add(path, FailureCode::TooLarge, message);
            continue;
        }
        for (index, text) in lines.iter().enumerate() {
            line(text, limits.max_compiler_option_len, format!("{path}[{index}]"), mistakes);
        }
    }
    if let Some(text) = &metadata.description {
        mistakes.require(
            text.len() <= limits.max_source_bytes,
            format!("{path}.description"),
            FailureCode::TooLarge,
            || format!("{} bytes; at most {}", text.len(), limits.max_source_bytes),
        );
    }
}

/// Checks that a text is one printable line of bounded length.
fn line(text: &str, most: usize, path: String, mistakes: &mut Mistakes) {
    if text.trim().is_empty() {
        mistakes.add(path, FailureCode::InvalidValue, "must not be empty");
    } else if text.len() > most {
        let message = format!("{} bytes long; at most {most} are accepted", text.len());
        mistakes.add(path, FailureCode::TooLarge, message);
    } else if text.chars().any(warpgauge_model::is_hidden) {
        let message = format!(
            "`{}` contains a control character, or a character that changes the text direction",
            quoted(text)
        );
        mistakes.add(path, FailureCode::InvalidValue, message);
    }
}
