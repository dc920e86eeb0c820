//! Tensor descriptors that host code would create. Devices without a copy engine for tensors get
//! their parts; from compute capability 9.0 on the engine gets maps. A map has the address of a
//! buffer, so the tests move buffers in all ways: other inputs, other processes, two kernels in
//! turns.

use serde_json::{Value, json};

use super::available;
use crate::server::{Server, emulated};

/// What later parts of these tests are about.
const ENGINE: &str = "a GPU of compute capability 9.0";

/// No extent is a multiple of the blocks.
const PRODUCT: &str = "
import triton
import triton.language as tl


@triton.jit
def product(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, k, BK):
        total = tl.dot(a.load([row, at]), b.load([at, column]), total)
    c.store([row, column], total.to(tl.float16))
";

/// The blocks of two configurations are a hook's.
const TUNED: &str = "
def blocks(given):
    given['a'].block_shape = [given['BM'], given['BK']]
    given['b'].block_shape = [given['BK'], given['BN']]
    given['c'].block_shape = [given['BM'], given['BN']]


@triton.autotune([triton.Config({'BM': 64, 'BN': 64, 'BK': size}, pre_hook=blocks)
                  for size in (16, 32)], key=[])
@triton.jit
";

/// Counts what lies beyond the tensor in each block.
const PADDING: &str = "
import triton
import triton.language as tl


@triton.jit
def padding(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1)
    value = x.load([row * ROWS, column * COLUMNS])
    beyond = tl.sum(tl.sum((value != value).to(tl.int32), axis=1), axis=0)
    tl.store(out + row * tl.num_programs(1) + column, beyond)
";

fn tensor(name: &str, role: &str, shape: [u32; 2], dtype: &str) -> Value {
    let mut spec = json!({"shape": shape, "dtype": dtype});
    if role == "input" {
        spec["init"] = json!({"kind": "randn", "seed": name.len() + shape[0] as usize});
    }
    json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
}

fn described(mut tensor: Value, block: [u32; 2]) -> Value {
    tensor["descriptor"] = json!({"block_shape": block});
    tensor
}

fn constant(name: &str, value: u32) -> Value {
    json!({"name": name, "type": "int", "value": value, "is_meta": true})
}

fn matrices() -> [Value; 4] {
    [
        tensor("a", "input", [200, 136], "float16"),
        tensor("b", "input", [136, 168], "float16"),
        tensor("c", "output", [200, 168], "float16"),
        json!({"name": "k", "type": "int", "value": 136}),
    ]
}

/// The product, for the newest architecture that the device has all of.
fn product(source: &str) -> Value {
    let [a, b, c, k] = matrices();
    let mut args = vec![described(a, [64, 32]), described(b, [32, 64]), described(c, [64, 64]), k];
    if !source.contains("autotune") {
        args.extend([constant("BM", 64), constant("BN", 64), constant("BK", 32)]);
    }
    let launch = json!({"grid": {"x": "cdiv(200, BM)", "y": "cdiv(168, BN)"}});
    json!({"source_code": source, "kernel_type": "triton", "io": {"args": args, "launch": launch}})
}

/// The same in CUDA C++, one thread for each element.
fn reference() -> Value {
    let source = "
#include <cuda_fp16.h>
extern \"C\" __global__ void reference(const __half* a, const __half* b, __half* c, int k) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = 168;
    if (i >= 200 * n) return;
    double sum = 0.0;
    for (int j = 0; j < k; ++j)
        sum += (double)__half2float(a[i / n * k + j]) * __half2float(b[j * n + i % n]);
    c[i] = __double2half(sum);
}";
    json!({"source_code": source, "kernel_type": "cuda",
        "io": {"launch": {"grid": {"x": "ceil_div(200 * 168, 256)"}, "block": {"x": 256}}}})
}

/// An evaluation that must end well; counts of elements may be the same everywhere.
fn right(server: &Server, kernel: Value, expected: Value, isolation: &str) -> Value {
    let report = server.evaluate(&json!({
        "kernel": kernel, "expected": expected, "isolation": isolation, "num_trials": 12,
        "tolerance": {"atol": 2e-3, "rtol": 2e-3}, "allow_weak": true,
    }));
    let verdict = &report["kernel_exec_result"]["correctness"];
    assert_eq!(verdict, true, "{isolation}: {report}\n{}", server.output());
    report
}

/// Whether what ran went through the copy engine.
fn used_engine(server: &Server, report: &Value) -> bool {
    let job = report["job_id"].as_str().unwrap();
    let ptx = server.get(&format!("/jobs/{job}/artifacts/ptx"));
    assert_eq!(ptx.status, 200, "{}", ptx.text);
    ptx.text.contains("cp.async.bulk.tensor")
}

fn has_engine(report: &Value) -> bool {
    let capability = report["device"]["compute_capability"].as_str().unwrap();
    let major: u32 = capability.split('.').next().unwrap().parse().unwrap();
    report["device"]["kind"] == "cuda" && major >= 9
}

#[test]
fn a_product_through_descriptors_is_right_in_every_isolation() {
    needs!("Triton", available());
    let server = Server::start();
    let expected = json!({"c": {"kernel": reference()}});
    let report = right(&server, product(PRODUCT), expected.clone(), "warm");
    right(&server, product(PRODUCT), expected, "sealed");
    the_rest_needs!(ENGINE, has_engine(&report));
    assert!(used_engine(&server, &report), "{}", report["compile"]);
}

/// The kernels take turns in blocks, and either may be the one with descriptors.
#[test]
fn a_product_through_descriptors_is_compared_with_one_in_cuda() {
    needs!("Triton", available());
    let server = Server::start();
    let mut cuda = reference();
    cuda["io"]["args"] = json!(matrices());
    let mut last = Value::Null;
    for (first, second) in [(cuda, product(PRODUCT)), (product(PRODUCT), reference())] {
        for isolation in ["warm", "sealed"] {
            let body = json!({"ref_kernel": first, "custom_kernel": second, "num_trials": 4,
                "measure": {"preset": "quick"}, "isolation": isolation, "atol": 2e-3, "rtol": 2e-3});
            let answer = server.post_json("/compare", &body);
            assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
            let evaluation = &answer.json["candidates"][0]["evaluation"];
            let verdict = &evaluation["kernel_exec_result"]["correctness"];
            assert_eq!(verdict, true, "{isolation}: {evaluation}");
            last = evaluation.clone();
        }
    }
    the_rest_needs!(ENGINE, has_engine(&last));
}

#[test]
fn blocks_of_descriptors_are_what_a_hook_of_the_configuration_says() {
    needs!("Triton", available());
    let server = Server::start();
    let source = PRODUCT.replace("@triton.jit\n", TUNED);
    let expected = json!({"c": {"kernel": reference()}});
    let report = right(&server, product(&source), expected, "warm");
    let tried = report["tuning"]["configurations"].as_array().unwrap();
    assert_eq!(tried.len(), 2, "{}", report["tuning"]);
    let ran = |one: &Value| one["outcome"] == "chosen" || one["outcome"] == "outdone";
    assert!(tried.iter().all(ran), "{}", report["tuning"]);
    the_rest_needs!(ENGINE, has_engine(&report));
    assert!(used_engine(&server, &report), "{}", report["compile"]);
}

#[test]
fn beyond_a_tensor_is_what_its_descriptor_says() {
    needs!("Triton", available());
    let server = Server::start();
    // 100 rows in blocks of 32, 208 columns in blocks of 64: of the last ones 28 and 48 lie beyond.
    let count = "
extern \"C\" __global__ void count(const float* x, int* out) {
    const int i = threadIdx.x, rows = i / 4 == 3 ? 4 : 32, columns = i % 4 == 3 ? 16 : 64;
    out[i] = COUNTED;
}";
    let mut last = Value::Null;
    for (padding, counted) in [("zero", "0 * rows * columns"), ("nan", "2048 - rows * columns")] {
        let mut x = described(tensor("x", "input", [100, 208], "float32"), [32, 64]);
        x["descriptor"]["padding"] = json!(padding);
        let args = json!([
            x,
            tensor("out", "output", [4, 4], "int32"),
            constant("ROWS", 32),
            constant("COLUMNS", 64)
        ]);
        let kernel = json!({"source_code": PADDING, "kernel_type": "triton",
            "io": {"args": args, "launch": {"grid": {"x": 4, "y": 4}}}});
        let reference = json!({"source_code": count.replace("COUNTED", counted),
            "kernel_type": "cuda", "io": {"launch": {"grid": {"x": 1}, "block": {"x": 16}}}});
        last = right(&server, kernel, json!({"out": {"kernel": reference}}), "warm");
    }
    the_rest_needs!(ENGINE, has_engine(&last));
    assert!(used_engine(&server, &last), "{}", last["compile"]);
}

#[test]
fn padding_with_nan_is_for_elements_that_have_one() {
    let server = Server::start();
    let mut x = described(tensor("x", "inout", [64, 64], "int32"), [32, 32]);
    x["tensor_spec"]["init"] = json!({"kind": "zeros"});
    x["descriptor"]["padding"] = json!("nan");
    let kernel = json!({"source_code": PADDING, "kernel_type": "triton",
        "io": {"args": [x], "launch": {"grid": {"x": 1}}}});
    let answer = server.post_json("/evaluate", &json!({"kernel": kernel}));
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("descriptor.padding"), "{}", answer.text);
}

/// Neither instructions of the engine, nor a map for a kernel that has none of them.
#[test]
fn the_emulated_device_has_no_copy_engine_and_says_so() {
    needs!("Triton", available());
    needs!("the emulated device", emulated());
    let server = Server::start();
    let unread = PRODUCT.replace("tl.dot(a.load([row, at]), b.load([at, column]), total)", "total");
    let unread = unread.replace("    c.store([row, column], total.to(tl.float16))\n", "");
    for source in [PRODUCT, &unread] {
        let mut kernel = product(source);
        kernel["metadata"] = json!({"compiler_options": ["arch=sm_90"]});
        for isolation in ["warm", "sealed"] {
            let report = server.evaluate(&json!({"kernel": kernel, "isolation": isolation,
                "expected": {"c": {"kernel": reference()}}}));
            assert_eq!(report["status"], "error", "{report}");
            assert_eq!(report["failure"]["code"], "not_supported", "{report}");
            assert!(report["kernel_exec_result"]["correctness"].is_null(), "{report}");
            assert_eq!(report["kernel_exec_result"]["compiled"], true, "{report}");
            let message = report["failure"]["message"].as_str().unwrap();
            let engine = source == PRODUCT || message.contains("make a tensor descriptor");
            assert!(engine && message.contains("not supported on the emulated"), "{message}");
        }
    }
}
