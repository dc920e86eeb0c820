//! Contracts of commands that take a kernel file in place of a contract: `warpgauge eval kernel.cu`.
//!
//! The contract is the file NAME.yaml beside the kernel, or stands in the kernel's first comment; otherwise it is
//! inferred as `warpgauge init` does. One line on the error stream says which.

use std::path::Path;

use serde_json::{Map, Value};

use super::CliError;
use super::compile::kernel_type_of;
use super::contract_file::{ContractFile, LocalFiles, read_file};
use super::place::Place;
use super::terminal::Terminal;
use crate::exit::Exit;
use warpgauge_watch::{ContractFrom, EvaluatorError, KernelRequest, request_of};

/// Largest kernel file, bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Endings of contract files beside a kernel, in the order in which they are looked for.
const CONTRACTS: [&str; 3] = ["yaml", "yml", "json"];

/// Most assumptions that the line names.
const SHOWN: usize = 8;

/// What a command was given.
pub(super) enum Given {
    /// A contract.
    Contract(ContractFile),
    /// A kernel without a contract; [`inferred`] makes one.
    Kernel,
}

/// Reads a contract, or the contract beside a kernel; a kernel without one is left to [`inferred`].
pub(super) fn read(path: &Path, limit: u64, terminal: Terminal) -> Result<Given, CliError> {
    if kernel_type_of(path).is_none() {
        return Ok(Given::Contract(ContractFile::read(path, limit)?));
    }
    let beside = CONTRACTS.map(|ending| path.with_extension(ending));
    match beside.iter().find(|contract| contract.is_file()) {
        Some(contract) => {
            terminal.note(&format!("warpgauge: the contract is {}", contract.display()));
            Ok(Given::Contract(ContractFile::read(contract, limit)?))
        }
        None => Ok(Given::Kernel),
    }
}

/// Infers the contract of a kernel file. `Err(Ok(exit))`: the kernel does not compile, which has been reported.
pub(super) fn inferred(
    path: &Path,
    place: &mut dyn Place,
    terminal: Terminal,
) -> Result<ContractFile, Result<Exit, CliError>> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let content = read_file(path, MAX_BYTES).map_err(|error| Err(error.into()))?;
    let mut failed = None;
    let found = request_of(&name, &content, None, &mut |request| {
        let mut request = request.clone();
        let added = LocalFiles::add_to(&mut request.kernel, path).map_err(CliError::from);
        let reply = added.and_then(|()| place.compile(request));
        reply.map(|reply| reply.value).map_err(|error| {
            failed = Some(error);
            EvaluatorError::Stopped
        })
    });
    let KernelRequest { mut request, from, assumed } = match (found, failed) {
        (Ok(found), _) => found,
        (Err(_), Some(error)) => return Err(Err(error)),
        (Err(EvaluatorError::Refused(refusal)), None) if refusal.code == "compile_error" => {
            super::terminal::write_error_stream(&format!(
                "error: {}",
                super::terminal::plain(&refusal.message)
            ));
            return Err(Ok(Exit::NotCompiled));
        }
        (Err(trouble), None) => return Err(Err(CliError::Usage(format!("{name}: {trouble}")))),
    };
    LocalFiles::add_to(&mut request.kernel, path).map_err(|error| Err(error.into()))?;
    if from == ContractFrom::Inferred {
        let fields = serde_json::to_value(&request.kernel).unwrap_or_default();
        terminal.note(&line(path, &fields, &assumed));
    } else {
        terminal.note(&format!("warpgauge: the contract is in the first comment of {name}"));
    }
    match serde_json::to_value(&request) {
        Ok(Value::Object(fields)) => Ok(ContractFile::of(&name, given(fields))),
        Ok(_) | Err(_) => Err(Err(CliError::Usage(format!("{name}: its contract is no object")))),
    }
}

/// The fields that have a value: a contract leaves the others out.
fn given(fields: Map<String, Value>) -> Map<String, Value> {
    fields.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// What is assumed, in one line.
fn line(path: &Path, kernel: &Value, assumed: &[String]) -> String {
    let args = kernel["io"]["args"].as_array().map_or(&[][..], Vec::as_slice);
    let mut parts = args.iter().filter_map(assumption).collect::<Vec<_>>();
    if let Some(more) = parts.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        parts.truncate(SHOWN);
        parts.push(format!("{more} more"));
    }
    let name = path.display();
    if parts.is_empty() {
        let first = assumed.first().map_or("a kernel without arguments", String::as_str);
        return format!("warpgauge: assumed: {first}");
    }
    format!(
        "warpgauge: assumed {}; `warpgauge init {name}` writes the contract down",
        parts.join(", ")
    )
}

/// What is assumed of an argument.
fn assumption(arg: &Value) -> Option<String> {
    let name = arg["name"].as_str()?;
    match arg["tensor_spec"]["shape"].as_array() {
        Some(shape) => {
            let extents = shape.iter().map(|extent| match extent {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            });
            let dtype = arg["tensor_spec"]["dtype"].as_str().unwrap_or_default();
            Some(format!("{name}: {dtype}[{}]", extents.collect::<Vec<_>>().join(", ")))
        }
        None if arg["value"].is_null() => None,
        None => Some(format!("{name} = {}", arg["value"])),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_line_names_each_argument() {
        let kernel = json!({"io": {"args": [
            {"name": "x", "tensor_spec": {"dtype": "float32", "shape": [65536]}},
            {"name": "a", "value": 2.0},
            {"name": "n", "value": 65536},
        ]}});
        let text = line(Path::new("scale.cu"), &kernel, &[]);
        assert_eq!(
            text,
            "warpgauge: assumed x: float32[65536], a = 2.0, n = 65536; `warpgauge init scale.cu` writes the \
             contract down"
        );
        let many = json!({"io": {"args": vec![json!({"name": "n", "value": 1}); 10]}});
        assert!(line(Path::new("k.cu"), &many, &[]).contains("n = 1, 2 more; "));
        let torch =
            line(Path::new("m.py"), &json!({}), &["inputs: those of `get_inputs()`".to_owned()]);
        assert_eq!(torch, "warpgauge: assumed: inputs: those of `get_inputs()`");
    }

    #[test]
    fn a_contract_beside_a_kernel_is_its_contract() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("k.cu");
        std::fs::write(&kernel, "__global__ void k() {}").unwrap();
        let quiet = Terminal { quiet: true, colour: false, interactive: false };
        assert!(matches!(read(&kernel, 1 << 20, quiet), Ok(Given::Kernel)));
        std::fs::write(
            kernel.with_extension("yaml"),
            "kernel: {kernel_type: cuda, source_file: k.cu}\n",
        )
        .unwrap();
        let Ok(Given::Contract(contract)) = read(&kernel, 1 << 20, quiet) else {
            panic!("no contract")
        };
        assert_eq!(contract.fields["kernel"]["source_code"], "__global__ void k() {}");
    }
}
