//! `warpgauge compile`: compiles a kernel and prints its resources.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;

use super::args::CompileArgs;
use super::contract_file::{ContractFile, ContractFileError, LocalFiles, read_binary, read_source};
use super::progress::Progress;
use super::source_view::SourceView;
use super::terminal::Terminal;
use super::{CliError, place, report};
use crate::exit::Exit;
use warpgauge_client::Reply;
use warpgauge_config::Config;
use warpgauge_contract::{CodeForm, CompileRequest, KernelCode, KernelMetadata, KernelType};
use warpgauge_report::{CompileResponse, ResponseStatus};
use warpgauge_tensor::Blob;

pub(super) fn run(
    args: &CompileArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    let progress = Progress::start(terminal);
    let request = request(args, config.server.body_limit_bytes)?;
    let source = kernel_type_of(&args.file).and(request.kernel.source_code.as_deref());
    let source = source.map(|text| SourceView::new(&args.file, text));
    let mut place = place::open(&args.target, place::NONE, config, terminal)?;
    progress.stage(&place.stage("compiling", "compiling"));
    let Reply { text, value: mut response } = place.compile(request)?;
    drop((place, progress));
    if let Some(source) = source {
        source.explain(&mut response.diagnostics);
    }
    if args.json {
        terminal.print_line(&text)?;
    } else {
        terminal.print_line(&report::compilation(&response, terminal.style()))?;
    }
    if let Some(path) = &args.output
        && response.compiled
    {
        write_image(&response, path)?;
        terminal.note(&format!("wrote {}", path.display()));
    }
    Ok(match (response.status, response.compiled) {
        (_, true) => Exit::Success,
        (ResponseStatus::Success, false) => Exit::NotCompiled,
        (ResponseStatus::Error, false) => Exit::Environment,
    })
}

/// Returns the request for a kernel file, or for the kernel of a contract.
fn request(args: &CompileArgs, limit: u64) -> Result<CompileRequest, CliError> {
    let mut kernel = match kernel_type_of(&args.file) {
        Some(KernelType::Triton) => {
            return Err(CliError::Usage(format!(
                "{0}: a Triton kernel is compiled for the types of its arguments and the values of \
                 its compile-time constants, which its source does not contain; name a contract file \
                 with `kernel_type: triton`, `source_file: {0}` and `io.args`",
                args.file.display()
            )));
        }
        Some(kind) => kernel_file(&args.file, kind)?,
        None => {
            let mut contract = ContractFile::read(&args.file, limit)?;
            // Only the kernel matters here; the rest of the contract may be incomplete.
            contract.fields.retain(|name, _| name == "kernel");
            contract.typed::<OnlyKernel>()?.kernel
        }
    };
    if args.kernel_name.is_some() || !args.compiler_option.is_empty() {
        let metadata = kernel.metadata.get_or_insert_with(KernelMetadata::default);
        if args.kernel_name.is_some() {
            metadata.kernel_name.clone_from(&args.kernel_name);
        }
        metadata.compiler_options.extend(args.compiler_option.iter().cloned());
    }
    Ok(CompileRequest { kernel, arch: args.arch.clone(), return_image: args.output.is_some() })
}

/// A contract from which only the kernel is read.
#[derive(serde::Deserialize)]
pub(super) struct OnlyKernel {
    pub kernel: KernelCode,
}

/// Returns the kernel type to which the file's extension belongs.
pub(super) fn kernel_type_of(path: &Path) -> Option<KernelType> {
    KernelType::of_extension(path.extension()?.to_str()?)
}

/// Returns a kernel that consists of code only, without a contract.
pub(super) fn kernel_file(
    path: &Path,
    kernel_type: KernelType,
) -> Result<KernelCode, ContractFileError> {
    let is_binary = kernel_type.code_form() == CodeForm::Binary;
    let (source_code, binary_b64) = if is_binary {
        (None, Some(Blob::from_base64(read_binary(path)?)))
    } else {
        (Some(read_source(path)?), None)
    };
    let mut kernel = KernelCode {
        source_code,
        files: BTreeMap::new(),
        source_path: None,
        launches: Vec::new(),
        setup: Vec::new(),
        binary_b64,
        kernel_type,
        io: None,
        metadata: None,
    };
    LocalFiles::add_to(&mut kernel, path)?;
    Ok(kernel)
}

/// Checks that the format of the image matches the extension of the file.
fn fits_name(format: Option<&str>, path: &Path) -> Result<(), CliError> {
    match (path.extension().and_then(|ending| ending.to_str()), format) {
        (Some("cubin"), Some("ptx")) => Err(CliError::Usage(format!(
            "{}: the compiled image is PTX, which the emulated device runs, not a cubin: name the file .ptx, or compile \
             for a GPU",
            path.display()
        ))),
        (Some("ptx"), Some("cubin")) => Err(CliError::Usage(format!(
            "{}: the compiled image is a cubin, not PTX: name the file .cubin",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn write_image(response: &CompileResponse, path: &Path) -> Result<(), CliError> {
    let image = response
        .image_b64
        .as_deref()
        .map(|text| base64::engine::general_purpose::STANDARD.decode(text));
    match image {
        Some(Ok(bytes)) => {
            fits_name(response.image_format.as_deref(), path)?;
            std::fs::write(path, bytes)
                .map_err(|source| CliError::Write { path: path.to_owned(), source })
        }
        Some(Err(error)) => Err(CliError::Internal(format!("the image is not base64: {error}"))),
        None => Err(CliError::Internal("the answer contains no image".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::args::Command;
    use super::super::args::testing::command;
    use super::*;

    /// Returns the request as JSON, as a server would receive it.
    fn request_json(arguments: &[&str]) -> Value {
        let Command::Compile(args) = command(&[&["compile"], arguments].concat()) else {
            panic!("parses as compile");
        };
        let request = request(&args, 1 << 20).expect("a request");
        serde_json::to_value(request).expect("JSON")
    }

    fn file(directory: &tempfile::TempDir, name: &str, content: &[u8]) -> String {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn kernel_files_and_flags() {
        let directory = tempfile::tempdir().unwrap();
        let source = file(&directory, "k.cu", b"code");
        assert_eq!(
            request_json(&[&source]),
            json!({"kernel": {"source_code": "code", "kernel_type": "cuda"},
                   "return_image": false})
        );
        let flags = ["--arch", "sm_90", "-o", "x", "--kernel-name", "k", "--compiler-option=-G"];
        let whole = request_json(&[&[source.as_str()], flags.as_slice()].concat());
        assert_eq!(whole["arch"], "sm_90");
        assert_eq!(whole["return_image"], true);
        assert_eq!(
            whole["kernel"]["metadata"],
            json!({"kernel_name": "k", "compiler_options": ["-G"]})
        );
        let cubin = file(&directory, "k.cubin", &[0, 1]);
        assert_eq!(
            request_json(&[&cubin])["kernel"],
            json!({"binary_b64": "AAE=", "kernel_type": "cubin"})
        );
    }

    #[test]
    fn the_kernel_of_a_contract_is_enough() {
        let directory = tempfile::tempdir().unwrap();
        file(&directory, "k.cu", b"code");
        let contract = file(
            &directory,
            "c.yaml",
            b"kernel: {source_file: k.cu, kernel_type: cuda}\nunfinished: yes\n",
        );
        assert_eq!(request_json(&[&contract])["kernel"]["source_code"], "code");
    }
}
