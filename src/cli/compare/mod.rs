//! `warpgauge compare`: compares kernels with a reference.

mod names;

use std::path::Path;

use serde_json::{Map, Value, json};

use self::names::Names;
use super::args::CompareArgs;
use super::compile::{OnlyKernel, kernel_file, kernel_type_of};
use super::contract_file::ContractFile;
use super::progress::Progress;
use super::report::Beside;
use super::terminal::Terminal;
use super::{CliError, json, kernel_contract, matrix_files, report};
use crate::exit::Exit;
use warpgauge_client::Reply;
use warpgauge_code::infer;
use warpgauge_config::Config;
use warpgauge_contract::{KernelCode, KernelType};
use warpgauge_page::PageOf;

/// Fields that have the same name in an evaluation and in a comparison.
const SHARED: [&str; 9] = [
    "num_trials",
    "timeout",
    "allow_weak",
    "work",
    "measure",
    "profile",
    "isolation",
    "requires",
    "compare_as",
];

pub(super) fn run(
    args: &CompareArgs,
    config: &Config,
    terminal: Terminal,
) -> Result<Exit, CliError> {
    args.html.check(std::iter::once(&args.reference).chain(&args.custom))?;
    let progress = Progress::start(terminal);
    let wishes = args.assume.single_wishes(args.kernel_name.as_deref());
    let opened = kernel_contract::open(
        &args.reference,
        (&args.target, args.patience.seconds),
        (config, terminal),
        (&progress, "comparing"),
        |kernel, place| kernel.contract(place, terminal, &wishes),
        |file| {
            let is_whole = file.fields.contains_key("ref_kernel");
            args.assume.apply(&mut file.fields, if is_whole { "ref_kernel" } else { "kernel" })?;
            let notes = complete(args, &mut file.fields, config.server.body_limit_bytes)?;
            for note in notes {
                terminal.note(&format!("{}: {note}", args.reference.display()));
            }
            matrix_files::put_into(file, matrix_files::max_bytes(config))
        },
    );
    let (mut place, file) = opened?;
    let Reply { text, value: response } = place.compare(file, &progress)?;
    drop((place, progress));
    let names = Names::of(&args.reference, &args.custom);
    if args.json {
        terminal.print_line(&text)?;
    } else {
        let beside = Beside { reference: &names.reference, diff: args.diff };
        terminal.print(&report::comparison(&response, beside, terminal.style()))?;
        report::print_page(&args.target, &response.job_id, terminal)?;
    }
    args.html.write(PageOf::Comparison(&response, &names.reference), terminal)?;
    Ok(Exit::of_comparison(&response))
}

/// Fills in a comparison from the reference's file and the command line. Returns notes for the
/// user.
fn complete(
    args: &CompareArgs,
    fields: &mut Map<String, Value>,
    limit: u64,
) -> Result<Vec<String>, CliError> {
    let mut notes = Vec::new();
    // Two sources are the original form of a comparison in the CUDA Evaluation Server.
    let is_two_sources = ["ref_code", "custom_code"].iter().all(|name| fields.contains_key(*name));
    if !is_two_sources && !fields.contains_key("ref_kernel") {
        notes.extend(from_contract(fields));
    }
    let given = is_two_sources
        || ["custom_kernel", "candidates"].iter().any(|name| fields.contains_key(*name));
    match (given, args.custom.as_slice()) {
        (true, []) => {}
        (false, [_, ..]) => {
            let names = Names::of(&args.reference, &args.custom);
            let mut candidates = Vec::new();
            for (path, name) in args.custom.iter().zip(names.candidates) {
                let kernel = candidate(args, path, &fields["ref_kernel"], limit)?;
                candidates.push(json!({"name": name, "kernel": kernel}));
            }
            fields.insert("candidates".to_owned(), Value::Array(candidates));
        }
        (true, [first, ..]) => {
            return Err(CliError::Usage(format!(
                "{} already names the kernels to compare; omit {}",
                args.reference.display(),
                first.display()
            )));
        }
        (false, []) => {
            return Err(CliError::Usage(format!(
                "there is no kernel to compare {} with; name one or more kernels (.cu, .py, .ptx, \
                 .cubin, .fatbin, or a contract) after it",
                args.reference.display()
            )));
        }
    }
    for (name, value) in [("atol", args.atol), ("rtol", args.rtol)] {
        if let Some(value) = value {
            fields.insert(name.to_owned(), json!(value));
        }
    }
    if args.allow_weak {
        fields.insert("allow_weak".to_owned(), json!(true));
    }
    if let Some(trials) = args.trials {
        fields.insert("num_trials".to_owned(), json!(trials));
    }
    if let Some(preset) = &args.preset {
        let measure = fields.entry("measure").or_insert_with(|| json!({}));
        if let Value::Object(measure) = measure {
            measure.insert("preset".to_owned(), json!(preset));
        }
    }
    Ok(notes)
}

/// Converts the fields of an evaluation to those of a comparison whose reference is the
/// evaluation's kernel. Returns a note on the fields that are omitted because the reference defines
/// the expected outputs.
pub(super) fn from_contract(fields: &mut Map<String, Value>) -> Vec<String> {
    let mut contract = std::mem::take(fields);
    let kernel = contract.remove("kernel").unwrap_or(Value::Null);
    fields.insert("ref_kernel".to_owned(), kernel);
    for name in SHARED {
        if let Some(value) = contract.remove(name) {
            fields.insert(name.to_owned(), value);
        }
    }
    if let Some(Value::Object(tolerance)) = contract.remove("tolerance") {
        fields.extend(tolerance.into_iter().filter(|(_, value)| !value.is_null()));
    }
    // An inferred contract has all fields, and most of them are empty.
    contract.retain(|_, value| asks(value));
    if contract.get("return_outputs").is_some_and(|chosen| chosen == "none") {
        contract.remove("return_outputs");
    }
    if !contract.contains_key("return_outputs") {
        contract.remove("output_encoding");
    }
    let left_out = contract.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let expected = contract.contains_key("expected");
    let what = if expected { "; the reference's outputs are expected" } else { "" };
    let note = format!("a comparison does not use {}{what}", left_out.join(", "));
    if left_out.is_empty() { Vec::new() } else { vec![note] }
}

/// Returns whether a field with this value has an effect.
fn asks(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Returns the kernel in a file, as JSON. If the file contains only code, the kernel uses the
/// launch and the options of the reference.
fn candidate(
    args: &CompareArgs,
    path: &Path,
    reference: &Value,
    limit: u64,
) -> Result<Value, CliError> {
    let kernel: KernelCode = match kernel_type_of(path) {
        Some(kind) => {
            let mut kernel = kernel_file(path, kind)?;
            let metadata = reference.get("metadata").and_then(Value::as_object);
            let mut metadata = metadata.cloned().unwrap_or_default();
            let of_reference = reference.get("kernel_type").and_then(Value::as_str);
            let source = kernel.source_code.as_deref().unwrap_or_default();
            // A file's extension does not show whether Python code is Triton or PyTorch.
            let is_torch = of_reference.is_some_and(|kind| kind.starts_with("torch"))
                && (!source.contains("triton.jit") || source.contains("class Model"));
            if kind == KernelType::Triton && is_torch {
                kernel.kernel_type = KernelType::Torch;
            }
            let is_same_language = match kernel.kernel_type {
                own @ (KernelType::Triton | KernelType::Torch) => of_reference == Some(own.name()),
                _ => !of_reference.is_some_and(|kind| {
                    kind == KernelType::Triton.name() || kind.starts_with("torch")
                }),
            };
            if !is_same_language {
                // Names and options for C++ have no meaning in Python, and vice versa.
                metadata.clear();
            }
            let named = metadata.get("kernel_name").and_then(Value::as_str);
            if let (Some(named), Some(only)) = (named, only_kernel(kernel.kernel_type, source))
                && args.kernel_name.is_none()
                && named.split(['<', '(']).next() != Some(only.as_str())
            {
                metadata.insert("kernel_name".to_owned(), json!(only));
            }
            metadata.remove("description");
            if let Some(name) = &args.kernel_name {
                // Template instantiations of the reference are not kernels of this source.
                metadata.remove("name_expressions");
                metadata.insert("kernel_name".to_owned(), json!(name));
            }
            kernel.metadata = serde_json::from_value(Value::Object(metadata)).map_err(|error| {
                let reference = args.reference.display();
                CliError::Usage(format!("{reference}: the reference kernel's metadata: {error}"))
            })?;
            kernel
        }
        None => {
            let mut contract = ContractFile::read(path, limit)?;
            contract.fields.retain(|name, _| name == "kernel");
            contract.typed::<OnlyKernel>()?.kernel
        }
    };
    json::tree("kernel", &kernel)
}

/// Returns the name of the only kernel in the source; `None` if there is not exactly one.
fn only_kernel(kind: KernelType, source: &str) -> Option<String> {
    let names = match kind {
        KernelType::Cuda => infer::entries(source).into_iter().map(|entry| entry.name).collect(),
        KernelType::Triton => {
            infer::python::contract(source, &infer::Wishes::default()).ok()?.entries
        }
        _ => Vec::new(),
    };
    <[String; 1]>::try_from(names).ok().map(|[only]| only)
}

#[cfg(test)]
mod tests;
