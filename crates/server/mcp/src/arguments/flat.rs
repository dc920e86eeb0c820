//! Kernels whose fields are separate arguments, as in the older tools of the CUDA Evaluation
//! Server.

use serde_json::{Map, Value, json};

use super::unknown_argument;
use crate::backend::JobBackendError;

/// Suffixes of the arguments that describe a kernel, and the corresponding fields of a contract.
const KERNEL: [(&str, &str); 2] = [("source", "source_code"), ("type", "kernel_type")];

/// Names of arguments that are the same in both forms.
const SHARED: [&str; 2] = ["num_trials", "timeout"];

const KNOWN: &str = "kernel_source, kernel_type, io_contract, metadata, reference_kernel_source, \
    reference_kernel_type, reference_kernel_metadata, enable_device_metrics; or ref_kernel_source, \
    ref_kernel_type, ref_kernel_io, ref_kernel_metadata, custom_kernel_source, custom_kernel_type, \
    custom_kernel_io, custom_kernel_metadata; num_trials, num_warmup, timeout, atol, rtol";

/// Returns whether the arguments are in this form.
pub(super) fn is(arguments: &Map<String, Value>) -> bool {
    let names = ["kernel_source", "ref_kernel_source", "custom_kernel_source"];
    names.iter().any(|name| arguments.contains_key(*name))
}

/// Returns the body of `POST /evaluate`, or of `POST /compare` if there is a reference.
pub(super) fn body(mut arguments: Map<String, Value>) -> Result<Value, JobBackendError> {
    // The number of warm-up launches is ignored, because warpgauge derives it from the kernel's
    // times.
    arguments.remove("num_warmup");
    let mut body = Map::new();
    for field in SHARED {
        if let Some(value) = arguments.remove(field) {
            body.insert(field.to_owned(), value);
        }
    }
    let metrics = arguments.remove("enable_device_metrics") == Some(Value::Bool(true));
    let tolerance = ["atol", "rtol"].map(|name| arguments.remove(name));
    if arguments.contains_key("kernel_source") {
        let own = kernel(&mut arguments, "kernel", "io_contract", "metadata");
        let reference = arguments.contains_key("reference_kernel_source").then(|| {
            let fields = ("reference_kernel_io", "reference_kernel_metadata");
            kernel(&mut arguments, "reference_kernel", fields.0, fields.1)
        });
        match reference {
            Some(reference) => pair(&mut body, reference, own, tolerance),
            None => {
                body.insert("kernel".to_owned(), Value::Object(own));
                if metrics {
                    body.insert("profile".to_owned(), json!({}));
                }
            }
        }
    } else {
        let reference =
            kernel(&mut arguments, "ref_kernel", "ref_kernel_io", "ref_kernel_metadata");
        let fields = ("custom_kernel_io", "custom_kernel_metadata");
        let custom = kernel(&mut arguments, "custom_kernel", fields.0, fields.1);
        pair(&mut body, reference, custom, tolerance);
    }
    match arguments.keys().next() {
        Some(unknown) => Err(unknown_argument(unknown, KNOWN)),
        None => Ok(Value::Object(body)),
    }
}

/// Removes the fields of a kernel from the arguments, and returns them.
fn kernel(
    arguments: &mut Map<String, Value>,
    prefix: &str,
    io: &str,
    metadata: &str,
) -> Map<String, Value> {
    let mut kernel = Map::new();
    for (field, name) in KERNEL {
        if let Some(value) = arguments.remove(&format!("{prefix}_{field}")) {
            kernel.insert(name.to_owned(), value);
        }
    }
    if let Some(io) = arguments.remove(io) {
        kernel.insert("io".to_owned(), io);
    }
    if let Some(mut metadata) = arguments.remove(metadata) {
        // The documentation of the older server uses this name; its types use the name in the
        // contract.
        if let Some(fields) = metadata.as_object_mut()
            && let Some(options) = fields.remove("compile_options")
        {
            fields.insert("compiler_options".to_owned(), options);
        }
        kernel.insert("metadata".to_owned(), metadata);
    }
    kernel
}

/// Adds both kernels. A reference without arguments uses those of the other kernel.
fn pair(
    body: &mut Map<String, Value>,
    mut reference: Map<String, Value>,
    custom: Map<String, Value>,
    tolerance: [Option<Value>; 2],
) {
    if let (None, Some(io)) = (reference.get("io"), custom.get("io")) {
        reference.insert("io".to_owned(), io.clone());
    }
    body.insert("ref_kernel".to_owned(), Value::Object(reference));
    body.insert("custom_kernel".to_owned(), Value::Object(custom));
    for (name, value) in ["atol", "rtol"].into_iter().zip(tolerance) {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    }
}
