//! The kernel of a request. The content of machine code determines its actual type. The main
//! function is [`code`].

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::request::{DEFAULT_KERNEL, SpmvOptions};
use warpgauge_contract::{CodeForm, IoContract, KernelCode, KernelMetadata, KernelType};
use warpgauge_tensor::Blob;

/// The number of base64 characters that are decoded to recognise the type of a kernel.
const HEAD_CHARACTERS: usize = 1 << 16;

/// The first bytes of an ELF image.
const ELF: &[u8] = b"\x7fELF";

/// The first bytes of a fat binary.
const FATBIN: &[u8] = &0xba55_ed50_u32.to_le_bytes();

/// Returns the kernel for a contract.
///
/// The Remote GPU Execution Service passes all code to the driver, which accepts cubins, fat
/// binaries and PTX. Therefore PTX is also accepted in place of machine code.
pub(crate) fn code(kernel: &str, options: &SpmvOptions, io: IoContract) -> KernelCode {
    let said = options.kernel_type.unwrap_or(KernelType::Cubin);
    let (kernel_type, text) = match said.code_form() {
        CodeForm::Binary => recognised(kernel, said),
        _ => (said, Some(kernel.to_owned())),
    };
    KernelCode {
        binary_b64: text.is_none().then(|| Blob::from_base64(kernel)),
        source_code: text,
        files: BTreeMap::new(),
        source_path: None,
        launches: Vec::new(),
        setup: Vec::new(),
        kernel_type,
        io: Some(io),
        metadata: Some(KernelMetadata {
            kernel_name: Some(
                options.kernel_name.clone().unwrap_or_else(|| DEFAULT_KERNEL.to_owned()),
            ),
            compiler_options: options.compiler_options.clone(),
            ..KernelMetadata::default()
        }),
    }
}

/// Returns the type according to the first bytes, and the text if it is PTX. If the content has
/// none of the three types, the requested type is kept, and its reader later reports the problem.
fn recognised(kernel: &str, said: KernelType) -> (KernelType, Option<String>) {
    if is_ptx(kernel) {
        return (KernelType::Ptx, Some(kernel.to_owned()));
    }
    let head = kernel.get(..HEAD_CHARACTERS).unwrap_or(kernel);
    let Ok(head) = STANDARD.decode(head) else { return (said, None) };
    if head.starts_with(ELF) {
        return (KernelType::Cubin, None);
    }
    if head.starts_with(FATBIN) {
        return (KernelType::Fatbin, None);
    }
    match is_ptx(&String::from_utf8_lossy(&head)).then(|| ptx(kernel)).flatten() {
        Some(text) => (KernelType::Ptx, Some(text)),
        None => (said, None),
    }
}

/// Returns the text of PTX in base64. Compilers add a NUL at the end.
fn ptx(kernel: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(kernel).ok()?).ok()?;
    Some(text.trim_end_matches('\0').to_owned())
}

/// Returns whether a text begins like every PTX module: with `.version`, possibly after comments.
fn is_ptx(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        let after = match rest.get(..2) {
            Some("//") => rest.split_once('\n'),
            Some("/*") => rest.split_once("*/"),
            _ => return rest.starts_with(".version"),
        };
        let Some((_, after)) = after else { return false };
        rest = after.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_decides_where_machine_code_is_expected() {
        let ptx = "// by nvcc\n/* of a\n file */ .version 8.0\n.target sm_70\n";
        let base64 = |bytes: &[u8]| STANDARD.encode(bytes);
        let with_nul = [ptx.as_bytes(), b"\0"].concat();
        let long = format!("{ptx}{}", "// padding\n".repeat(20_000));
        let text = |text: &str| Some(text.to_owned());
        for (kernel, kernel_type, source) in [
            (base64(ptx.as_bytes()), KernelType::Ptx, text(ptx)),
            (base64(&with_nul), KernelType::Ptx, text(ptx)),
            (base64(long.as_bytes()), KernelType::Ptx, text(&long)),
            (ptx.to_owned(), KernelType::Ptx, text(ptx)),
            (base64(b"\x7fELF\x02\x01"), KernelType::Cubin, None),
            (base64(&[0x50, 0xed, 0x55, 0xba, 1, 0]), KernelType::Fatbin, None),
            (base64(b"no image"), KernelType::Cubin, None),
            (base64(b".versions"), KernelType::Ptx, text(".versions")),
            (base64(b"// .version"), KernelType::Cubin, None),
            ("no base64!".to_owned(), KernelType::Cubin, None),
        ] {
            assert_eq!(
                recognised(&kernel, KernelType::Cubin),
                (kernel_type, source),
                "{kernel:.40}"
            );
        }
        let said = KernelType::Fatbin;
        assert_eq!(recognised(&base64(b"no image"), said).0, said);
    }
}
