//! Triton kernels that are defined within a function.

use serde_json::{Value, json};

use super::available;
use crate::server::Server;

/// A function that makes a kernel, and host code that would launch it.
const FACTORY: &str = "\
import functools
import torch
import triton
import triton.language as tl


@functools.lru_cache
def make(scale=2, dtype=None):
    factor = tl.constexpr(scale)

    @triton.jit
    def scaled(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(y_ptr + at, x * factor, mask=at < n)

    def launch(x):
        y = torch.empty_like(x)
        scaled[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y

    return launch
";

fn contract(source: &str, scale: Option<i32>, expected: i32) -> Value {
    let tensor = |name: &str, role: &str| {
        let mut spec = json!({"shape": [1000]});
        if role == "input" {
            spec["init"] = json!({"kind": "randn", "seed": 3});
        }
        json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
    };
    let mut args = vec![
        tensor("x", "input"),
        tensor("y", "output"),
        json!({"name": "n", "type": "int", "value": 1000}),
        json!({"name": "BLOCK", "type": "int", "value": 256, "is_meta": true}),
    ];
    args.extend(
        scale.map(|scale| json!({"name": "scale", "type": "int", "value": scale, "is_meta": true})),
    );
    let body =
        format!("int i = blockIdx.x * 256 + threadIdx.x; if (i < n) y[i] = x[i] * {expected};");
    let reference =
        format!("extern \"C\" __global__ void r(const float* x, float* y, int n) {{ {body} }}");
    json!({
        "kernel": {
            "kernel_type": "triton", "source_code": source,
            "io": {"args": args, "launch": {"grid": {"x": "cdiv(n, BLOCK)"}}},
        },
        "num_trials": 3,
        "expected": {"y": {"kernel": {
            "kernel_type": "cuda", "source_code": reference,
            "io": {"launch": {"grid": {"x": 4}, "block": {"x": 256}}},
        }}},
    })
}

#[test]
fn a_kernel_within_a_function_is_found_and_gets_its_constants() {
    needs!("Triton", available());
    let server = Server::start();
    let returned = FACTORY.replace("    return launch", "    return scaled");
    let decorated = FACTORY.replace("@functools.lru_cache\n", "");
    let needing = decorated.replace("scale=2", "scale");
    for (source, scale, factor) in [
        (FACTORY, None, 2),
        (FACTORY, Some(3), 3),
        (&returned, None, 2),
        (&decorated, None, 2),
        (&needing, Some(5), 5),
    ] {
        let report = server.evaluate(&contract(source, scale, factor));
        assert_eq!(report["verdict"], "correct", "{source}: {report:#}");
    }
    let report = server.evaluate(&contract(FACTORY, Some(3), 4));
    assert_eq!(report["verdict"], "wrong", "{report:#}");
    // What the function needs, what it raises, and two functions with kernels of one name.
    let twice = format!("{decorated}\n\n{}", decorated.replace("def make", "def other"));
    let failing =
        decorated.replace("    factor = ", "    raise ValueError('no such scale')\n    factor = ");
    for (source, words) in [
        (&needing, "needs values for scale"),
        (&failing, "no such scale"),
        (&twice, "within each of make, other"),
    ] {
        let answer = server.post_json("/evaluate", &contract(source, None, 2));
        assert!(answer.text.contains(words), "{words}: {}", answer.text);
    }
}

#[test]
fn a_kernel_within_a_function_can_be_named() {
    needs!("Triton", available());
    let server = Server::start();
    let source = format!("{}\n{FACTORY}", super::ADD);
    let mut named = contract(&source, None, 2);
    named["kernel"]["metadata"] = json!({"kernel_name": "scaled"});
    let report = server.evaluate(&named);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    // Without a name it is the one at the top level.
    let answer = server.post_json("/evaluate", &contract(&source, None, 2));
    assert!(answer.text.contains("add takes 4 arguments"), "{}", answer.text);
}
