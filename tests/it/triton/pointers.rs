//! Arrays of pointers to tensors, which a Triton kernel takes as a tensor of addresses.

use serde_json::{Value, json};

use super::available;
use crate::server::{Server, emulated};

/// A grouped product, as the group's addresses and sizes come from the host.
const GROUPED: &str = "\
import torch
import triton
import triton.language as tl


@triton.jit
def grouped(a_ptrs, b_ptrs, c_ptrs, sizes, N: tl.constexpr):
    group = tl.program_id(0)
    rows = tl.load(sizes + group)
    a = tl.load(a_ptrs + group).to(tl.pointer_type(tl.float16))
    b = tl.load(b_ptrs + group).to(tl.pointer_type(tl.float16))
    at = tl.load(c_ptrs + group)
    c = at.to(tl.pointer_type(tl.float32))
    i = tl.arange(0, N)
    inside = i[:, None] < rows
    left = tl.load(a + i[:, None] * N + i[None, :], mask=inside, other=0.0)
    right = tl.load(b + i[:, None] * N + i[None, :])
    # A group without an output has a null pointer.
    tl.store(c + i[:, None] * N + i[None, :], tl.dot(left, right), mask=inside & (at != 0))
";

/// The same product of one group.
const PLAIN: &str = r#"
#include <cuda_fp16.h>
extern "C" __global__ void plain(const __half* a0, const __half* a1, const __half* b, const int* sizes, float* c0, float* c1) {
    int i = threadIdx.x / 16, j = threadIdx.x % 16;
    float* c = blockIdx.x ? c1 : c0;
    const __half* a = blockIdx.x ? a1 : a0;
    if (i >= sizes[blockIdx.x]) return;
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += __half2float(a[i * 16 + k]) * __half2float(b[blockIdx.x * 256 + k * 16 + j]);
    c[i * 16 + j] = sum;
}"#;

fn contract(source: &str, a: Value) -> Value {
    let tensor = |name: &str, role: &str, dtype: &str, shape: Value, init: Value| {
        let mut spec = json!({"shape": shape, "dtype": dtype});
        if !init.is_null() {
            spec["init"] = init;
        }
        json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
    };
    let array = |name: &str, pointers: Value| json!({"name": name, "type": "pointers", "pointers": pointers});
    let normal = json!({"kind": "randn", "seed": 3});
    let matrix = json!([16, 16]);
    let args = json!([
        array("a", a),
        array("bs", json!([{"tensor": "b", "step": 256, "count": 3}])),
        array("c", json!(["c0", "c1", null])),
        tensor("a0", "input", "float16", matrix.clone(), normal.clone()),
        tensor("a1", "input", "float16", matrix.clone(), normal.clone()),
        tensor("b", "input", "float16", json!([3, 16, 16]), normal),
        tensor("sizes", "input", "int32", json!([3]), json!({"kind": "choice", "values": [16, 7, 12]})),
        tensor("c0", "inout", "float32", matrix.clone(), json!({"kind": "zeros"})),
        tensor("c1", "inout", "float32", matrix, json!({"kind": "zeros"})),
        {"name": "N", "type": "int", "value": 16, "is_meta": true},
    ]);
    let reference = json!({"kernel": {
        "kernel_type": "cuda", "source_code": PLAIN, "io": {"launch": {"grid": {"x": 2}, "block": {"x": 256}}},
    }});
    json!({
        "kernel": {
            "kernel_type": "triton", "source_code": source,
            "io": {"args": args, "launch": {"grid": {"x": 3}}},
        },
        "num_trials": 4, "expected": {"c0": reference, "c1": reference},
    })
}

#[test]
fn a_triton_kernel_takes_arrays_of_pointers() {
    needs!("Triton", available());
    let server = Server::start();
    let honest = json!(["a0", "a1", "a0"]);
    for isolation in ["warm", "sealed"] {
        let mut contract = contract(GROUPED, honest.clone());
        contract["isolation"] = json!(isolation);
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{report:#}");
        assert_eq!(report["measurement"]["inputs"], "fresh", "{report:#}");
    }
    for (from, to) in [
        ("tl.load(a_ptrs + group)", "tl.load(a_ptrs)"),
        ("i[None, :], tl.dot", "i[None, :], 1.01 * tl.dot"),
    ] {
        assert!(GROUPED.contains(from), "{from}");
        let report = server.evaluate(&contract(&GROUPED.replace(from, to), honest.clone()));
        assert_eq!(report["verdict"], "wrong", "{to}: {report:#}");
    }
    let report = server.evaluate(&contract(GROUPED, json!(["a1", "a1", "a0"])));
    assert_eq!(report["verdict"], "wrong", "{report:#}");
    the_rest_needs!("the emulated device", emulated());
    // A pointer to nothing is followed.
    let report = server.evaluate(&contract(GROUPED, json!(["a0", null, "a1"])));
    assert_eq!(report["verdict"], "failed", "{report:#}");
    let message = report["failure"]["message"].to_string();
    assert!(message.contains("illegal memory access"), "{report:#}");
}

#[test]
fn arrays_that_do_not_fit_a_triton_kernel_are_refused() {
    needs!("Triton", available());
    let server = Server::start();
    let mut unknown = contract(GROUPED, json!(["a0", "a9", "a0"]));
    let answer = server.post_json("/evaluate", &unknown);
    assert!(answer.status == 400 && answer.text.contains("`a9`"), "{}", answer.text);
    // One parameter too many is counted without the tensors that arrays name.
    unknown = contract(GROUPED, json!(["a0", "a1", "a0"]));
    unknown["kernel"]["source_code"] =
        json!(GROUPED.replace("c_ptrs, sizes, N", "c_ptrs, sizes, more, N"));
    let answer = server.post_json("/evaluate", &unknown);
    assert!(answer.text.contains("(a, bs, c, sizes)"), "{}", answer.text);
}
