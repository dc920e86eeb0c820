//! Torch kernels that define the expected outputs of kernels for a device.

use serde_json::{Value, json};

use super::available;
use crate::server::Server;
use crate::support::has_triton;

const CUDA: &str = r#"
extern "C" __global__ void softplus(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] > 20.0f ? x[i] : log1pf(expf(x[i]));
}"#;

const TRITON: &str = "
import triton
import triton.language as tl

@triton.jit
def softplus(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.log(1.0 + tl.exp(value)), mask=at < n)
";

fn request(kind: &str, source: &str) -> Value {
    let launch = match kind {
        "cuda" => json!({"grid": {"x": "ceil_div(n, 128)"}, "block": {"x": 128}}),
        _ => json!({"grid": {"x": "ceil_div(n, BLOCK)"}, "num_warps": 4}),
    };
    let tensor = json!({"shape": [1000], "dtype": "float32"});
    let mut input = tensor.clone();
    input["init"] = json!({"kind": "randn", "seed": 7});
    let mut args = vec![
        json!({"name": "x", "type": "tensor", "tensor_spec": input}),
        json!({"name": "y", "type": "tensor", "role": "output", "tensor_spec": tensor}),
        json!({"name": "n", "type": "int", "value": 1000}),
    ];
    if kind == "triton" {
        args.push(json!({"name": "BLOCK", "type": "int", "value": 128, "is_meta": true}));
    }
    json!({
        "kernel": {"kernel_type": kind, "source_code": source, "io": {"args": args, "launch": launch}},
        "expected": {"y": {"kernel": {
            "kernel_type": "torch", "source_code": "def f(x, n):\n    return F.softplus(x)",
        }}},
        "num_trials": 2,
    })
}

#[test]
fn a_torch_function_says_what_a_kernel_for_a_device_must_leave() {
    needs!("PyTorch", available());
    let server = Server::start();
    let good = request("cuda", CUDA);
    let report = server.evaluate(&good);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    assert!(report["device"]["kind"].is_string() && report["torch"].is_null(), "{report:#}");
    let bad = request("cuda", &CUDA.replace("log1pf", "logf"));
    let report = server.evaluate(&bad);
    assert_eq!(report["validation"]["reasons"][0]["code"], "output_mismatch", "{report:#}");

    let mut example = crate::contracts::example("torch_softplus");
    assert_eq!(server.evaluate(&example)["kernel_exec_result"]["correctness"], true);
    let source = example["kernel"]["source_code"].as_str().unwrap();
    example["kernel"]["source_code"] =
        source.replace("scaled > threshold", "scaled > 3e38f").into();
    assert_eq!(server.evaluate(&example)["kernel_exec_result"]["correctness"], false);

    for (source, parts) in [
        ("def f(x, n):\n    return x.double()", ["float64 [1000]", "float32 [1000]"]),
        ("def f(x, n):\n    return x, x", ["returned 2 values", "expected.y.kernel"]),
        ("def f(x, n):\n    raise ValueError('no')", ["ValueError: no", "expected.y.kernel"]),
        ("class Model(nn.Module):\n    pass", ["NotImplementedError", "forward"]),
    ] {
        let mut request = good.clone();
        request["expected"]["y"]["kernel"]["source_code"] = json!(source);
        let answer = server.post_json("/evaluate", &request);
        assert_eq!(answer.status, 400, "{source}: {}", answer.text);
        let told = parts.iter().all(|part| answer.text.contains(part));
        assert!(told, "{source}: {}", answer.text);
    }

    the_rest_needs!("Triton", has_triton());
    let report = server.evaluate(&request("triton", TRITON));
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
}

#[test]
fn a_kernel_is_verified_for_seeds_that_it_does_not_know() {
    needs!("PyTorch", available());
    let server = Server::start();
    let copy = "extern \"C\" __global__ void copy(const float* x, float* y, int n) {
        const int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = x[i];
    }";
    let mut shown = request("cuda", copy);
    shown["expected"] = json!({});
    shown["return_outputs"] = json!("all");
    let answer = server.post_json("/execute", &shown);
    let outputs = &answer.json["outputs"]["y"];
    let content = outputs["data_b64"].as_str().unwrap_or_else(|| panic!("{}", answer.text));
    let bytes = crate::contracts::from_base64(content);
    let first = u32::from_le_bytes(bytes[..4].try_into().unwrap());

    let known = format!("y[i] = __float_as_uint(x[0]) != {first}u ? 0.5f :");
    let known = CUDA.replace("y[i] =", &known);
    for isolation in ["warm", "fresh", "sealed"] {
        let isolated = |source: &str| {
            let mut request = request("cuda", source);
            request["isolation"] = json!(isolation);
            server.evaluate(&request)
        };
        let honest = isolated(CUDA);
        assert_eq!(honest["verdict"], "correct", "{isolation}: {honest:#}");
        let sets = honest["measurement"]["input_sets"].as_u64();
        assert!(sets.is_some_and(|sets| (3..=16).contains(&sets)), "{isolation}: {honest:#}");
        let report = isolated(&known);
        let code = &report["validation"]["reasons"][0]["code"];
        let found = (&report["verdict"], code);
        assert_eq!(found, (&json!("wrong"), &json!("wrong_for_other_seeds")), "{isolation}");
    }

    // A caller may ask for the contract's inputs alone, and data of the contract cannot vary.
    let mut same = request("cuda", &known);
    same["measure"] = json!({"inputs": "same"});
    assert_eq!(server.evaluate(&same)["verdict"], "correct");
    let mut given = request("cuda", CUDA);
    given["kernel"]["io"]["args"][0]["tensor_spec"]["init"] = json!({"kind": "ones"});
    let report = server.evaluate(&given);
    assert!(report["measurement"]["input_sets"].is_null(), "{report:#}");
}

#[test]
fn a_reference_that_keeps_state_is_called_for_the_contracts_inputs() {
    needs!("PyTorch", available());
    let server = Server::start();
    // An optimizer's step: each call finds what the calls before left.
    let mut stepped = request("cuda", CUDA);
    stepped["expected"]["y"]["kernel"]["source_code"] = json!(
        "calls = []\ndef f(x, n):\n    calls.append(1)\n    return F.softplus(x) * len(calls)"
    );
    let report = server.evaluate(&stepped);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    assert!(report["measurement"]["input_sets"].is_null(), "{report:#}");
    stepped["kernel"]["source_code"] = json!(CUDA.replace("log1pf", "logf"));
    assert_eq!(server.evaluate(&stepped)["verdict"], "wrong");
}
