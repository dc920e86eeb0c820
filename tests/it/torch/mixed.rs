//! Torch kernels beside kernels for a device: each side gets a verdict, and their times are not
//! compared.

use serde_json::{Value, json};

use super::available;
use super::compared::is_of_the_reference;
use crate::server::{Server, emulated};
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

const TORCH: &str = "def f(x, n):\n    return F.softplus(x)";

fn args() -> Value {
    let tensor = json!({"shape": [1000], "dtype": "float32"});
    let mut input = tensor.clone();
    input["init"] = json!({"kind": "randn", "seed": 7});
    json!([
        {"name": "x", "type": "tensor", "tensor_spec": input},
        {"name": "y", "type": "tensor", "role": "output", "tensor_spec": tensor},
        {"name": "n", "type": "int", "value": 1000},
    ])
}

fn cuda(source: &str) -> Value {
    let launch = json!({"grid": {"x": "ceil_div(n, 128)"}, "block": {"x": 128}});
    json!({"kernel_type": "cuda", "source_code": source, "io": {"launch": launch}})
}

fn torch(source: &str) -> Value {
    json!({"kernel_type": "torch", "source_code": source})
}

/// The same as reference: it says what the arguments are.
fn with_args(mut kernel: Value) -> Value {
    kernel["io"]["args"] = args();
    kernel
}

fn compared(server: &Server, reference: &Value, candidates: &[(&str, Value)]) -> Value {
    let candidates =
        candidates.iter().map(|(name, kernel)| json!({"name": name, "kernel": kernel}));
    let candidates: Vec<_> = candidates.collect();
    let body = json!({"ref_kernel": reference, "candidates": candidates, "num_trials": 2});
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    answer.json
}

/// Whether a kernel for a device ran on a GPU.
fn on_gpu(report: &Value) -> bool {
    report["device"]["kind"] == "cuda" && report["torch"].is_null()
}

/// Verdicts by the names of candidates, none of which is ranked beside PyTorch.
fn verdicts(response: &Value) -> Vec<(String, Value)> {
    let candidates = response["candidates"].as_array().unwrap().iter();
    let verdict = |one: &Value| {
        let correct = one["evaluation"]["kernel_exec_result"]["correctness"].clone();
        // Only on a GPU, and of two kernels for it.
        let ranked = !emulated() && on_gpu(&response["reference"]) && on_gpu(&one["evaluation"]);
        assert!(one["comparison"].is_null() || ranked, "{one:#}");
        (one["name"].as_str().unwrap().to_owned(), correct)
    };
    candidates.map(verdict).collect()
}

fn said(pairs: &[(&str, bool)]) -> Vec<(String, Value)> {
    pairs.iter().map(|(name, right)| ((*name).to_owned(), json!(right))).collect()
}

#[test]
fn torch_kernels_and_kernels_for_a_device_are_compared_for_what_they_leave() {
    needs!("PyTorch", available());
    let server = Server::start();
    let wrong = CUDA.replace("log1pf", "logf");

    // What PyTorch computes is right.
    let response = compared(
        &server,
        &with_args(torch(TORCH)),
        &[
            ("cuda", cuda(CUDA)),
            ("bad cuda", cuda(&wrong)),
            ("torch", torch("def f(x, n):\n    return torch.log1p(torch.exp(x))")),
            ("bad torch", torch("def f(x, n):\n    return x")),
        ],
    );
    let wanted =
        said(&[("cuda", true), ("bad cuda", false), ("torch", true), ("bad torch", false)]);
    assert_eq!(verdicts(&response), wanted, "{response:#}");
    assert_eq!(response["verdict_by"], "nothing");
    assert!(response["ref_runtime"]["mean"].as_f64().unwrap() > 0.0, "{response:#}");
    assert_eq!(response["reference"]["torch"]["clock"], "cpu");
    let kind = |report: &Value| report["device"]["kind"].clone();
    assert!(kind(&response["reference"]).is_null(), "{response:#}");
    assert_eq!(kind(&response), kind(&response["candidates"][0]["evaluation"]));
    assert!(
        kind(&response).is_string() && kind(&response["candidates"][2]["evaluation"]).is_null()
    );
    let why = |index: usize| response["candidates"][index]["not_compared"].as_str().unwrap();
    assert!(why(0).contains("never compared") && why(0).contains("the CPU"), "{}", why(0));
    assert!(why(1).contains("not right") && why(2).contains("not ranked"), "{}", why(2));
    assert!(response["candidates"][1]["evaluation"]["kernel_exec_result"]["runtime"].is_null());

    // What the kernel for the device leaves is right.
    let response = compared(
        &server,
        &with_args(cuda(CUDA)),
        &[
            ("torch", torch(TORCH)),
            ("cuda", cuda(CUDA)),
            ("bad", torch("def f(x, n):\n    return x")),
        ],
    );
    let wanted = said(&[("torch", true), ("cuda", true), ("bad", false)]);
    assert_eq!(verdicts(&response), wanted, "{response:#}");
    let torch_side = &response["candidates"][0]["evaluation"];
    assert_eq!(torch_side["torch"]["clock"], "cpu");
    // It was computed once, for the contract's own inputs.
    assert_eq!(torch_side["measurement"]["inputs"], "same", "{torch_side:#}");
    assert_eq!(response["kernel_exec_result"], torch_side["kernel_exec_result"]);
    assert!(kind(&response["reference"]).is_string(), "{response:#}");

    one_against_one(&server);
    the_rest_needs!("Triton", has_triton());
    let mut triton = json!({
        "kernel_type": "triton", "source_code": TRITON,
        "io": {"launch": {"grid": {"x": "ceil_div(n, BLOCK)"}, "num_warps": 4}},
    });
    triton["io"]["args"] = json!([{"name": "BLOCK", "type": "int", "value": 128, "is_meta": true}]);
    let response = compared(&server, &with_args(torch(TORCH)), &[("triton", triton)]);
    assert_eq!(verdicts(&response), said(&[("triton", true)]), "{response:#}");
}

fn one_against_one(server: &Server) {
    for (reference, custom) in [(torch(TORCH), cuda(CUDA)), (cuda(CUDA), torch(TORCH))] {
        let body = json!({
            "ref_kernel": with_args(reference), "custom_kernel": custom, "num_trials": 1,
            "requires": {"device": if emulated() { "emulator" } else { "cuda" }},
        });
        let answer = server.post_json("/compare", &body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.json["kernel_exec_result"]["correctness"], true, "{}", answer.text);
        let why = answer.json["not_compared"].as_str().unwrap();
        let device = if emulated() { "the emulated device" } else { "GPU" };
        assert!(why.contains(device) && why.contains("the CPU"), "{why}");
    }
    // Faults are told where they are.
    let mut body = json!({
        "ref_kernel": with_args(torch("def f(x, n):\n    raise ValueError('no')")),
        "custom_kernel": cuda(CUDA), "num_trials": 1,
    });
    let answer = server.post_json("/compare", &body);
    is_of_the_reference(&answer, "ValueError: no");
    body = json!({
        "ref_kernel": with_args(cuda("int x")), "custom_kernel": torch(TORCH), "num_trials": 1,
    });
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.json["reference"]["verdict"], "not_compiled", "{}", answer.text);
    assert_eq!(answer.json["kernel_exec_result"]["correctness"], false, "{}", answer.text);
    body = json!({"ref_kernel": with_args(torch(TORCH)), "custom_kernel": {
        "kernel_type": "cuda", "source_code": CUDA}});
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("custom_kernel.io.launch"), "{}", answer.text);

    // An evaluation may expect what a kernel for a device leaves, too.
    let mut request = json!({"kernel": with_args(torch(TORCH)), "num_trials": 1});
    request["expected"] = json!({"y": {"kernel": cuda(CUDA)}});
    assert_eq!(server.evaluate(&request)["kernel_exec_result"]["correctness"], true);
    request["expected"]["y"]["kernel"]["source_code"] = json!("int x");
    let answer = server.post_json("/evaluate", &request);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("expected.y.kernel"), "{}", answer.text);
}

const SUBTRACT: &str = r#"
extern "C" __global__ void subtract(const float* a, const float* b, float* c, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] - b[i];
}"#;

/// A CUDA kernel with all its arguments, and a launch.
fn subtract(source: &str) -> Value {
    let tensor = |name: &str, role: &str, seed: u64| {
        let mut spec = json!({"shape": [700], "dtype": "float32"});
        if role == "input" {
            spec["init"] = json!({"kind": "randn", "seed": seed});
        }
        json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
    };
    let mut kernel = cuda(source);
    kernel["io"]["args"] = json!([
        tensor("a", "input", 1), tensor("b", "input", 2), tensor("c", "output", 0),
        {"name": "n", "type": "int", "value": 700},
    ]);
    kernel
}

/// A module whose `forward` has these parameters and returns this expression.
fn module(parameters: &str, returned: &str) -> Value {
    torch(&format!(
        "class Model(nn.Module):\n    def forward(self, {parameters}):\n        return {returned}\n"
    ))
}

#[test]
fn a_reference_in_python_takes_the_arguments_that_its_parameters_name() {
    needs!("PyTorch", available());
    let server = Server::start();
    for (parameters, returned) in [
        ("a, b", "a - b"),
        ("b, a", "a - b"),
        ("x, y", "x - y"),
        ("b, x", "x - b"),
        ("a, b, n", "(a - b)[:n]"),
        ("a, b, scale=1.0, *, n", "(a - b)[:n] * scale"),
        ("a, *rest", "a - rest[0]"),
        ("a, b, **options", "a - b"),
    ] {
        let reference = module(parameters, returned);
        let mut contract = json!({"kernel": subtract(SUBTRACT), "num_trials": 2,
                                  "expected": {"c": {"kernel": reference}}});
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{parameters}: {report:#}");
        contract["kernel"]["source_code"] = json!(SUBTRACT.replace("a[i] - b[i]", "b[i] - a[i]"));
        assert_eq!(server.evaluate(&contract)["verdict"], "wrong", "{parameters}");
    }
    for (parameters, why) in [
        (
            "a, b, mask, n",
            "the parameter `mask` of Model.forward has no argument: there are a, b, n",
        ),
        ("a", "no parameter for the tensor `b`"),
    ] {
        let contract = json!({"kernel": subtract(SUBTRACT), "num_trials": 2,
                              "expected": {"c": {"kernel": module(parameters, "a")}}});
        let answer = server.post_json("/evaluate", &contract);
        assert!(answer.text.contains(why), "{parameters}: {}", answer.text);
    }
}

#[test]
fn a_reference_in_python_needs_no_contract_beside_a_kernel_that_has_one() {
    needs!("PyTorch", available());
    let server = Server::start();
    let wrong = SUBTRACT.replace(" - ", " + ");
    let candidates = [("right", subtract(SUBTRACT)), ("wrong", subtract(&wrong))];
    let expected = [("right".to_owned(), json!(true)), ("wrong".to_owned(), json!(false))];
    let bare = module("a, b", "a - b");
    assert_eq!(verdicts(&compared(&server, &bare, &candidates)), expected);
    // It may list what it takes, and what it returns.
    let all = subtract("")["io"]["args"].as_array().unwrap().clone();
    for listed in [&all[..2], &all[..3], &all[..]] {
        let mut reference = bare.clone();
        reference["io"] = json!({"args": listed});
        assert_eq!(verdicts(&compared(&server, &reference, &candidates)), expected);
    }
    // What differs is no longer the same problem.
    let mut reference = bare.clone();
    reference["io"] = json!({"args": all[..2]});
    reference["io"]["args"][0]["tensor_spec"]["init"]["seed"] = json!(5);
    let body = json!({"ref_kernel": reference, "custom_kernel": subtract(SUBTRACT)});
    let answer = server.post_json("/compare", &body);
    assert_eq!((answer.status, answer.json["code"].as_str()), (400, Some("invalid_contract")));
    // Python code beside a reference in CUDA.
    let candidates = [("right", module("a, b", "a - b")), ("wrong", module("a, b", "b - a"))];
    assert_eq!(verdicts(&compared(&server, &subtract(SUBTRACT), &candidates)), expected);
}
