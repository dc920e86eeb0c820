//! The examples in Triton, and the reference system's request: correct as they are, and wrong after
//! a change.

use serde_json::{Value, json};

use crate::contracts::example;
use crate::server::{Server, root};
use crate::support::has_triton;

/// Every example, and a change to its kernel that makes it wrong.
const EXAMPLES: [(&str, &str, &str); 6] = [
    ("triton_vector_add", ") + tl.load(b", ") - tl.load(b"),
    ("triton_softmax", "values - tl.max(values, axis=0)", "values"),
    ("triton_matmul", "range(0, k, BLOCK_K)", "range(0, k - BLOCK_K, BLOCK_K)"),
    ("triton_layernorm", "* weight + shift", "* weight"),
    ("triton_attention", "queries[:, None] >= keys", "queries[:, None] > keys"),
    ("triton_matmul_persistent", "range(tl.cdiv(k, BLOCK_K))", "range(k // BLOCK_K)"),
];

/// As it stands in the documentation of the CUDA Evaluation Server: the names of the contract's arguments
/// are not those of the kernel's parameters.
fn reference_request() -> Value {
    json!({
        "kernel": {
            "source_code": "
import triton
import triton.language as tl

@triton.jit
def vector_add(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, x + y, mask=mask)
",
            "kernel_type": "triton",
            "io": {
                "args": [
                    {"name": "x", "type": "tensor", "tensor_spec": {"shape": [1024], "dtype": "float32", "init": {"kind": "randn", "seed": 42}}, "role": "input"},
                    {"name": "y", "type": "tensor", "tensor_spec": {"shape": [1024], "dtype": "float32", "init": {"kind": "randn", "seed": 43}}, "role": "input"},
                    {"name": "output", "type": "tensor", "tensor_spec": {"shape": [1024], "dtype": "float32"}, "role": "output"},
                    {"name": "n_elements", "type": "int", "value": 1024, "role": "input"},
                    {"name": "BLOCK_SIZE", "type": "int", "value": 256, "role": "input", "is_meta": true}
                ],
                "launch": {"grid": {"x": 4}, "num_warps": 4}
            }
        },
        "num_trials": 100
    })
}

#[test]
fn the_reference_systems_request_runs_unchanged() {
    needs!("Triton", has_triton());
    let server = Server::start();
    let mut new = reference_request();
    let source = new["kernel"]["source_code"].as_str().unwrap();
    // New to a cache that outlives this test.
    new["kernel"]["source_code"] = format!("{source}# {}\n", uuid::Uuid::new_v4()).into();
    new["num_trials"] = json!(3);
    let first = server.evaluate(&new);
    assert_eq!(first["compile"]["cache_hit"], false, "{first}");
    assert!(first["timings"]["compile"].as_f64() > Some(10.0), "{}", first["timings"]);
    assert_eq!(server.evaluate(&new)["compile"]["cache_hit"], true);
    let report = server.evaluate(&reference_request());
    let result = &report["kernel_exec_result"];
    assert_eq!(result["compiled"], true, "{report}");
    assert!(result["runtime"].as_f64().is_some_and(|ms| ms > 0.0), "{report}");
    assert_eq!(result["runtime_stats"]["samples"], 100, "{report}");
    assert_eq!(result["metadata"]["kernel_type"], "triton", "{report}");
    let compiler = report["compile"]["compiler"].as_str().unwrap();
    assert!(compiler.starts_with("triton ") && compiler.contains(" for sm_"), "{compiler}");
    // What is computed is checked where something is expected.
    let mut checked = reference_request();
    checked["expected"] = json!({"output": {"kernel": {
        "kernel_type": "cuda",
        "source_code": "extern \"C\" __global__ void r(const float* x, const float* y, float* out, \
                        int n) { int i = threadIdx.x + blockIdx.x * blockDim.x; out[i] = x[i] + y[i]; }",
        "io": {"launch": {"grid": {"x": 4}, "block": {"x": 256}}}
    }}});
    checked["num_trials"] = json!(3);
    let report = server.evaluate(&checked);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    assert_eq!(report["compile"]["cache_hit"], true, "{report}");
}

#[test]
fn every_example_is_correct_and_its_expectation_tells_a_wrong_kernel() {
    needs!("Triton", has_triton());
    let server = Server::start();
    for (name, right, wrong) in EXAMPLES {
        let mut contract = example(name);
        // Correctness is the matter here; the emulator takes its time for each launch.
        contract["num_trials"] = json!(2);
        contract["measure"] = json!({"min_warmup_time": 0.0});
        let report = server.evaluate(&contract);
        let result = &report["kernel_exec_result"];
        assert_eq!(result["correctness"], true, "{name}: {report}\n{}", server.output());
        assert!(result["runtime"].as_f64().is_some_and(|ms| ms > 0.0), "{name}");

        let source = contract["kernel"]["source_code"].as_str().unwrap();
        assert!(source.contains(right), "{name} has no `{right}`");
        contract["kernel"]["source_code"] = source.replace(right, wrong).into();
        let report = server.evaluate(&contract);
        let result = &report["kernel_exec_result"];
        assert_eq!(result["compiled"], true, "{name}, broken: {report}");
        assert_eq!(result["correctness"], false, "{name}, broken: {report}");
        assert!(result["runtime"].is_null(), "{name}: a wrong kernel has no rank");
    }
}

#[test]
fn the_examples_are_all_listed() {
    let mut found: Vec<String> = std::fs::read_dir(root().join("kernels"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("triton_"))
        .collect();
    found.sort();
    let mut listed = EXAMPLES.map(|(name, _, _)| name);
    listed.sort();
    assert_eq!(found, listed);
}
