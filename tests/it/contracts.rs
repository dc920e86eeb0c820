//! Contracts that the tests send.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use warpgauge_contract::{BodyFormat, parse};

use crate::server;

/// The CUDA example of the CUDA Evaluation Server's README, as it stands there.
pub fn reference_readme_example() -> Value {
    let tensor = |name: &str, role: &str, init: Option<u64>| {
        let mut spec = json!({"shape": [4096], "dtype": "float32"});
        if let Some(seed) = init {
            spec["init"] = json!({"kind": "randn", "seed": seed});
        }
        json!({"name": name, "type": "tensor", "tensor_spec": spec, "role": role})
    };
    json!({
        "kernel": {
            "source_code": "\n__global__ void vector_add(float* a, float* b, float* c, int n) {\n    int tid = blockIdx.x * blockDim.x + threadIdx.x;\n    if (tid < n) {\n        c[tid] = a[tid] + b[tid];\n    }\n}\n",
            "kernel_type": "cuda",
            "metadata": {
                "kernel_name": "vector_add",
                "compiler_options": ["--use_fast_math"]
            },
            "io": {
                "args": [
                    tensor("a", "input", Some(1)),
                    tensor("b", "input", Some(2)),
                    tensor("c", "output", None),
                    {"name": "n", "type": "int", "value": 4096, "role": "input"}
                ],
                "launch": {"grid": {"x": 16}, "block": {"x": 256}}
            }
        },
        "num_trials": 100
    })
}

/// `out[i] = i + 1` for 256 elements, with its expectation as data: small, and checked.
pub fn increment() -> Value {
    let expected: Vec<u8> = (1..=256).flat_map(|i| (i as f32).to_le_bytes()).collect();
    json!({
        "kernel": {
            "kernel_type": "cuda",
            "source_code": "extern \"C\" __global__ void increment(const float* in, float* out, \
                            int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    \
                            if (i < n) out[i] = in[i] + 1.0f;\n}\n",
            "metadata": {"kernel_name": "increment"},
            "io": {
                "args": [
                    {"name": "in", "type": "tensor", "role": "input", "tensor_spec": {
                        "shape": [256], "dtype": "float32", "init": {"kind": "arange"}}},
                    {"name": "out", "type": "tensor", "role": "output", "tensor_spec": {
                        "shape": [256], "dtype": "float32"}},
                    {"name": "n", "type": "int", "value": 256}
                ],
                "launch": {"grid": {"x": "ceil_div(n, 64)"}, "block": {"x": 64}}
            }
        },
        "expected": {"out": {"data": {"data_b64": base64(&expected)}}},
        "num_trials": 3
    })
}

/// One thread that runs `body` with `int* out`, one element, zero at first.
pub fn single_thread(body: &str) -> Value {
    json!({
        "kernel": {
            "kernel_type": "cuda",
            "source_code": format!("extern \"C\" __global__ void k(volatile int* out) {{ {body} }}"),
            "metadata": {"kernel_name": "k"},
            "io": {
                "args": [{"name": "out", "type": "tensor", "role": "inout", "tensor_spec": {
                    "shape": [1], "dtype": "int32", "init": {"kind": "zeros"}}}],
                "launch": {"grid": {"x": 1}, "block": {"x": 1}}
            }
        },
        "num_trials": 1
    })
}

/// A kernel that never ends, with a timeout in seconds.
pub fn endless(timeout: f64) -> Value {
    let mut body = single_thread("while (*out != 12345) {}");
    body["timeout"] = json!(timeout);
    body
}

/// A contract of `kernels/`, with the sources in it.
pub fn example(name: &str) -> Value {
    with_sources(name, "contract.yaml")
}

/// A sweep of `kernels/`, with the sources in it.
pub fn sweep_example(name: &str) -> Value {
    with_sources(name, "sweep.yaml")
}

fn with_sources(name: &str, file: &str) -> Value {
    let directory = server::root().join("kernels").join(name);
    let text = fs::read_to_string(directory.join(file)).unwrap();
    let mut contract: Value = parse(BodyFormat::Yaml, text.as_bytes()).unwrap();
    inline_sources(&mut contract, &directory);
    contract
}

fn inline_sources(value: &mut Value, directory: &Path) {
    match value {
        Value::Object(fields) => {
            if let Some(file) = fields.remove("source_file") {
                let source = fs::read_to_string(directory.join(file.as_str().unwrap())).unwrap();
                fields.insert("source_code".to_owned(), source.into());
            }
            fields.values_mut().for_each(|field| inline_sources(field, directory));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| inline_sources(item, directory)),
        _ => {}
    }
}

/// Base64 of bytes.
pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Bytes of base64.
pub fn from_base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}
