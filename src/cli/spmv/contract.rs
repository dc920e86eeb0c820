//! Creates the contracts for sparse products.

use serde_json::{Map, Value, json};

use super::args::{Format, SpmvArgs};
use crate::cli::CliError;
use crate::cli::compile::{kernel_file, kernel_type_of};
use warpgauge_contract::{KernelCode, KernelType};
use warpgauge_model::Library;

/// Parameters that are numbers, not arrays, of a matrix.
const NUMBERS: [&str; 8] = [
    "num_rows",
    "num_cols",
    "nnz",
    "ell_width",
    "bsr_block",
    "bsr_block_rows",
    "spasm_tile",
    "spasm_tiles",
];

/// Reads the kernel's code.
///
/// # Errors
/// The file cannot be read, or the vector `x` or `y` is missing in `--args`.
pub(super) fn kernel(args: &SpmvArgs) -> Result<Value, CliError> {
    for needed in ["x", "y"] {
        if !parts(args).contains(&needed) {
            return Err(CliError::Usage(format!("--args: add the parameter `{needed}`")));
        }
    }
    let kind = kernel_type_of(&args.kernel).ok_or_else(|| {
        CliError::Usage(format!(
            "{}: expected a kernel: .cu, .py, .ptx, .cubin or .fatbin",
            args.kernel.display()
        ))
    })?;
    let code = kernel_file(&args.kernel, kind)?;
    serde_json::to_value(code)
        .map_err(|error| CliError::Internal(format!("kernel to JSON: {error}")))
}

/// Returns the contract for the kernel's product. It refers to the matrix by name.
pub(super) fn of(args: &SpmvArgs, kernel: &Value, matrix: &str) -> Map<String, Value> {
    let parts = parts(args);
    let adds = args.args.is_empty() && args.format.adds();
    let mut arguments: Vec<Value> =
        parts.iter().map(|part| argument(part, matrix, &args.dtype, adds)).collect();
    arguments.extend(args.constants.iter().map(
        |(name, value)| json!({"name": name, "type": "int", "value": value, "is_meta": true}),
    ));
    let triton = kernel["kernel_type"] == json!(KernelType::Triton);
    let mut kernel = kernel.clone();
    kernel["metadata"] =
        json!({"kernel_name": args.kernel_name, "compiler_options": args.compiler_option});
    kernel["io"] = json!({"args": arguments, "launch": launch(args, &parts, triton)});
    fields(args, kernel, matrix)
}

/// Returns the contract for the same product with cuSPARSE, which always uses CSR.
///
/// # Errors
/// A bug in warpgauge.
pub(super) fn of_cusparse(args: &SpmvArgs, matrix: &str) -> Result<Map<String, Value>, CliError> {
    let parts = Format::Csr.parts().iter();
    let arguments: Vec<Value> =
        parts.map(|part| argument(part, matrix, &args.dtype, false)).collect();
    let mut kernel = serde_json::to_value(KernelCode::of_library(Library::Cusparse, None))
        .map_err(|error| CliError::Internal(format!("kernel to JSON: {error}")))?;
    kernel["io"] = json!({"args": arguments});
    Ok(fields(args, kernel, matrix))
}

fn fields(args: &SpmvArgs, kernel: Value, matrix: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("kernel".to_owned(), kernel);
    fields.insert("expected".to_owned(), json!({"y": {"matrix": matrix, "times": "x"}}));
    if let Some(trials) = args.trials {
        fields.insert("num_trials".to_owned(), json!(trials));
    }
    fields
}

/// Returns the parameters of the kernel, in order.
fn parts(args: &SpmvArgs) -> Vec<&str> {
    match args.args.is_empty() {
        true => args.format.parts().to_vec(),
        false => args.args.iter().map(String::as_str).collect(),
    }
}

fn argument(part: &str, matrix: &str, dtype: &str, adds: bool) -> Value {
    let of = json!({"matrix": matrix, "part": part});
    match part {
        "x" => json!({"name": "x", "type": "tensor", "tensor_spec": {
            "shape_of": of, "dtype": dtype, "init": {"kind": "uniform", "low": -1, "high": 1, "seed": 1}}}),
        "y" if adds => json!({"name": "y", "type": "tensor", "role": "inout", "tensor_spec": {
            "shape_of": of, "dtype": dtype, "init": {"kind": "zeros"}}}),
        "y" => json!({"name": "y", "type": "tensor", "role": "output", "tensor_spec": {
            "shape_of": of, "dtype": dtype}}),
        part if NUMBERS.contains(&part) => json!({"name": part, "type": "int", "value_of": of}),
        part => {
            let mut spec = json!({"data": of});
            if part.ends_with("values") {
                spec["dtype"] = json!(dtype);
            }
            json!({"name": part, "type": "tensor", "tensor_spec": spec})
        }
    }
}

/// Returns the launch. By default it has one thread, or one Triton program, for each row.
fn launch(args: &SpmvArgs, parts: &[&str], triton: bool) -> Value {
    let threads = match parts {
        // If the kernel's first parameter is a number, it is the default number of threads.
        [first, ..] if NUMBERS.contains(first) => (*first).to_owned(),
        _ => "y.size".to_owned(),
    };
    let grid = args.grid.clone().unwrap_or_else(|| match triton {
        true => threads,
        false => format!("ceil_div({threads}, {})", args.block),
    });
    match triton {
        true => json!({"grid": {"x": grid}}),
        false => json!({"grid": {"x": grid}, "block": {"x": args.block}}),
    }
}
