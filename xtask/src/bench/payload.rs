//! Contracts that the benchmarks send.

use serde_json::{Value, json};

/// Number of elements in each vector: 1 M, as the performance targets specify.
const ELEMENTS: u64 = 1 << 20;

/// Number of timed launches in an evaluation, as the performance targets specify.
const TRIALS: u32 = 100;

/// Returns a contract that adds two vectors of 1 M floats, with 100 trials.
pub fn vector_add() -> Value {
    vector_add_from(&vector_add_source("a[i] + b[i]"))
}

/// Returns the contract of [`vector_add`] with a reference kernel that checks the result.
pub fn vector_add_checked() -> Value {
    let mut body = vector_add();
    body["expected"] = json!({"c": {"kernel": {
        "kernel_type": "cuda",
        "source_code": vector_add_source("(float)((double)a[i] + (double)b[i])"),
        "metadata": {"kernel_name": "vector_add"}
    }}});
    body
}

/// Returns the contract of [`vector_add`] with a different source for each `salt`. So the compiler
/// cache does not contain it.
pub fn vector_add_unique(salt: u64) -> Value {
    vector_add_from(&vector_add_source(&format!("a[i] + b[i] + 0.0f * {salt}.0f")))
}

fn vector_add_source(expression: &str) -> String {
    format!(
        "extern \"C\" __global__ void vector_add(const float* a, const float* b, float* c, int n) \
         {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) {{\n        c[i] = \
         {expression};\n    }}\n}}\n"
    )
}

fn vector_add_from(source: &str) -> Value {
    let tensor = |name: &str, role: &str, init: Value| {
        let mut spec = json!({"shape": [ELEMENTS], "dtype": "float32"});
        if !init.is_null() {
            spec["init"] = init;
        }
        json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
    };
    json!({
        "kernel": {
            "kernel_type": "cuda",
            "source_code": source,
            "metadata": {"kernel_name": "vector_add"},
            "io": {
                "args": [
                    tensor("a", "input", json!({"kind": "randn", "seed": 1})),
                    tensor("b", "input", json!({"kind": "randn", "seed": 2})),
                    tensor("c", "output", Value::Null),
                    {"name": "n", "type": "int", "value": ELEMENTS},
                ],
                "launch": {"grid": {"x": "ceil_div(n, 256)"}, "block": {"x": 256}}
            }
        },
        "num_trials": TRIALS
    })
}

/// Returns a contract whose kernel writes through a null pointer. The device reports a fault, and
/// the CUDA context is lost.
pub fn crash() -> Value {
    let source = "extern \"C\" __global__ void crash(int* out) {\n    int* nowhere = \
                  (int*)(unsigned long long)(out[0] == 12345);\n    *nowhere = 1;\n}\n";
    single_output("crash", source, 60.0)
}

/// Returns a contract whose kernel never ends. The process of the kernel is killed after
/// `timeout_s`.
pub fn hang(timeout_s: f64) -> Value {
    let source = "extern \"C\" __global__ void hang(volatile int* out) {\n    while (out[0] != \
                  12345) {\n    }\n}\n";
    single_output("hang", source, timeout_s)
}

fn single_output(name: &str, source: &str, timeout_s: f64) -> Value {
    json!({
        "kernel": {
            "kernel_type": "cuda",
            "source_code": source,
            "metadata": {"kernel_name": name},
            "io": {
                "args": [{
                    "name": "out", "type": "tensor", "role": "inout",
                    "tensor_spec": {"shape": [1], "dtype": "int32", "init": {"kind": "zeros"}}
                }],
                "launch": {"grid": {"x": 1}, "block": {"x": 32}}
            }
        },
        "num_trials": 1,
        "timeout": timeout_s
    })
}

/// Returns a request of about `bytes` bytes: a large base64 tensor, and a kernel that reads a part
/// of it.
pub fn big_body(bytes: usize) -> Vec<u8> {
    const MARK: &str = "@DATA@";
    // Four base64 characters encode three bytes, so sixteen characters encode three floats.
    let floats = bytes / 16 * 3;
    let text = json!({
        "kernel": {
            "kernel_type": "cuda",
            "source_code": "extern \"C\" __global__ void first(const float* x, float* y) {\n    \
                            y[threadIdx.x] = x[threadIdx.x];\n}\n",
            "metadata": {"kernel_name": "first"},
            "io": {
                "args": [
                    {"name": "x", "type": "tensor", "role": "input", "tensor_spec": {
                        "shape": [floats], "dtype": "float32", "data": {"data_b64": MARK}}},
                    {"name": "y", "type": "tensor", "role": "output", "tensor_spec": {
                        "shape": [32], "dtype": "float32"}},
                ],
                "launch": {"grid": {"x": 1}, "block": {"x": 32}}
            }
        },
        "num_trials": 1
    })
    .to_string();
    let (before, after) = text.split_once(MARK).unwrap_or((&text, ""));
    let data = floats / 3 * 16;
    let mut body = Vec::with_capacity(before.len() + data + after.len());
    body.extend_from_slice(before.as_bytes());
    // All data are zero: in base64, `A` encodes six zero bits.
    body.resize(before.len() + data, b'A');
    body.extend_from_slice(after.as_bytes());
    body
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{big_body, vector_add_unique};

    #[test]
    fn the_big_body_is_json_of_about_the_size_asked_for() {
        let body = big_body(1_000_000);
        assert!((990_000..1_010_000).contains(&body.len()));
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        let spec = &value["kernel"]["io"]["args"][0]["tensor_spec"];
        let text = spec["data"]["data_b64"].as_str().unwrap_or_default();
        let floats = spec["shape"][0].as_u64().unwrap_or_default();
        assert_eq!(text.len() as u64 / 4 * 3, floats * 4);
    }

    #[test]
    fn unique_sources_differ() {
        assert_ne!(vector_add_unique(1), vector_add_unique(2));
    }
}
