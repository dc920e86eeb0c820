//! Triton kernels outside single evaluations: artifacts, comparisons, the command line, gates,
//! sweeps, lines in findings, and requirements of orders.

use std::path::Path;

use serde_json::{Value, json};

use crate::server::{device, program};
use crate::support::outcome;

mod artifacts;
mod commands;
mod compared;
mod counted;
mod dependent;
mod descriptors;
mod lines;
mod pointers;
mod required;
mod within;

/// Adds two vectors; the store is in line 12.
pub(super) const ADD: &str = "\
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)
";

/// The same in CUDA C++.
pub(super) const CUDA: &str = r#"
extern "C" __global__ void add(const float* x, const float* y, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}"#;

pub(super) use crate::support::has_triton as available;

/// Exit code, standard output and standard error of a command on the device under test.
pub(super) fn run(data: &Path, at: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = program();
    command.args(["--device", &device()]).args(words).current_dir(at);
    outcome(command.env("WARPGAUGE_DATA_DIR", data).output().unwrap())
}

/// Arguments of 1000 elements that both kernels take.
fn arguments() -> Vec<Value> {
    let input = |name: &str, seed: u32| {
        json!({"name": name, "type": "tensor", "role": "input", "tensor_spec":
            {"shape": [1000], "dtype": "float32", "init": {"kind": "randn", "seed": seed}}})
    };
    let out = json!({"name": "out", "type": "tensor", "role": "output",
        "tensor_spec": {"shape": [1000], "dtype": "float32"}});
    vec![input("x", 1), input("y", 2), out, json!({"name": "n", "type": "int", "value": 1000})]
}

pub(super) fn block(elements: u32) -> Value {
    json!({"name": "BLOCK", "type": "int", "value": elements, "is_meta": true})
}

/// A kernel in Triton, with its arguments.
pub(super) fn triton(source: &str) -> Value {
    let mut args = arguments();
    args.push(block(256));
    let launch = json!({"grid": {"x": "ceil_div(n, BLOCK)"}, "num_warps": 4});
    json!({"source_code": source, "kernel_type": "triton",
        "io": {"args": args, "launch": launch}})
}

/// A kernel in CUDA C++, with its arguments.
pub(super) fn cuda() -> Value {
    let launch = json!({"grid": {"x": "ceil_div(n, 256)"}, "block": {"x": 256}});
    json!({"source_code": CUDA, "kernel_type": "cuda",
        "io": {"args": arguments(), "launch": launch}})
}

/// A kernel without the arguments that it shares with another one.
pub(super) fn bare(mut kernel: Value) -> Value {
    let args = kernel["io"]["args"].as_array_mut().unwrap();
    args.retain(|arg| arg["is_meta"] == true);
    kernel
}
