//! The OpenAPI documents: the full document, and the document for client generators.
//!
//! poem-openapi describes types and operations. This module adds what poem-openapi leaves out, and
//! corrects output that validators or generators reject.

use poem_openapi::OpenApiService;

use super::described::Described;
use super::examples::{add_examples, add_parameter_examples};
use super::rewrite::operation;
use super::{generators, rewrite};
use crate::request::submission;
use crate::routes::functions::Functions;
use crate::routes::gate::operations::Gate;
use crate::routes::imports::operations::Imports;
use crate::routes::jobs::operations::Jobs;
use crate::routes::kernels::operations::Kernels;
use crate::routes::machine::operations::Machine;
use crate::routes::spmv::operations::Spmv;
use crate::routes::tensors::operations::Tensors;
use crate::schema;
use crate::tree::{Mapping, Value, parsed};

const DESCRIPTION: &str = "Send a GPU kernel and a contract. The report says whether the kernel compiles, whether it \
is correct, and how fast it is.\n\nRequest bodies may be JSON, YAML or MessagePack; answers are \
JSON. A kernel that does not compile or is wrong is a result (200); an error means that the \
request could not be served, and has the schema `ErrorBody`.";

/// All operations that the documents describe, in the order in which a new user needs them. The
/// APIs of other systems come last.
type Operations = (Kernels, Jobs, Gate, Imports, Machine, Spmv, Tensors, Functions);

/// Operations that create a job.
const SUBMISSIONS: [&str; 8] = [
    "/",
    "/evaluate",
    "/execute",
    "/compare",
    "/sweep",
    "/gate",
    "/execute_spmv",
    "/execute_spmv_mtx",
];

/// Returns the full document.
pub(crate) fn full() -> Value {
    let service =
        OpenApiService::new(Described::<Operations>::new(), "warpgauge", env!("CARGO_PKG_VERSION"))
            .description(DESCRIPTION)
            .server("/")
            .license(
                poem_openapi::LicenseObject::new("Apache-2.0")
                    .url("https://www.apache.org/licenses/LICENSE-2.0"),
            );
    let mut document: Value =
        serde_json::from_str(&service.spec()).expect("poem-openapi writes JSON");
    schema::unpack(&mut document);
    rewrite::order_tags(&mut document);
    rewrite::drop_empty_defaults(&mut document);
    for path in SUBMISSIONS {
        if let Some(operation) = operation(&mut document, path, "post") {
            submission::describe(operation);
        }
    }
    add_security(&mut document);
    add_examples(&mut document, &SUBMISSIONS);
    add_parameter_examples(&mut document);
    document
}

/// Returns the full document as YAML.
pub fn full_yaml() -> String {
    yaml(&full())
}

/// Returns the full document as JSON.
pub fn full_json() -> String {
    json(&full())
}

/// Returns the document for client generators, as JSON. It contains only JSON bodies, one type of
/// answer for each operation, and integers of 32 or 64 bits. It contains no defaults, because
/// generated clients would send them.
pub fn client_json() -> String {
    json(&client())
}

/// Returns the document for client generators, as YAML.
pub fn client_yaml() -> String {
    yaml(&client())
}

fn client() -> Value {
    let mut document = full();
    generators::for_generators(&mut document);
    document
}

/// Returns the path templates of the document, with their methods in upper case.
pub(crate) fn operations(document: &Value) -> Vec<(String, Vec<String>)> {
    let Some(paths) = document.get("paths").and_then(Value::as_mapping) else {
        return Vec::new();
    };
    paths
        .iter()
        .map(|(path, operations)| {
            let methods = operations.as_mapping().into_iter().flat_map(Mapping::keys);
            (path.clone(), methods.map(|method| method.to_uppercase()).collect())
        })
        .collect()
}

fn json(document: &Value) -> String {
    let mut text =
        serde_json::to_string_pretty(document).expect("all keys of the document are strings");
    text.push('\n');
    text
}

fn yaml(document: &Value) -> String {
    serde_saphyr::to_string(document).expect("the document contains only JSON values")
}

/// Adds the authentication schemes. A server may require no key, which the document can express
/// only as an empty alternative.
fn add_security(document: &mut Value) {
    let schemes = parsed(
        "ApiKey: {type: apiKey, in: header, name: X-API-Key}\n\
         Bearer: {type: http, scheme: bearer}",
    );
    let any_of = parsed("[{ApiKey: []}, {Bearer: []}, {}]");
    if let Some(components) = document.get_mut("components").and_then(Value::as_mapping_mut) {
        components.insert("securitySchemes".into(), schemes);
    }
    if let Some(root) = document.as_mapping_mut() {
        root.insert("security".into(), any_of);
    }
    for path in ["/health", "/live"] {
        if let Some(probe) = operation(document, path, "get") {
            probe.insert("security".into(), Value::Sequence(Vec::new()));
        }
    }
}
