//! Verdicts on torch kernels without a tolerance: useless kernels are not correct, and sound
//! kernels are.

use serde_json::{Value, json};

use super::{available, bare, on_cpu};
use crate::server::Server;

/// The verdict on a candidate, and its evaluation. Each module ends with `get_inputs` of its own.
pub(super) fn verdict(server: &Server, reference: &str, custom: &str) -> (String, Value) {
    let source = |code: &str| format!("import torch\nimport torch.nn as nn\n{code}");
    let mut body = json!({
        "ref_kernel": bare(&source(reference))["kernel"],
        "custom_kernel": bare(&source(custom))["kernel"],
        "num_trials": 4,
    });
    if reference.contains("# backward") {
        for kernel in ["ref_kernel", "custom_kernel"] {
            body[kernel]["metadata"] = json!({"backward": true});
        }
    }
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    let verdict = answer.json["verdict"].as_str().unwrap_or_default().to_owned();
    (verdict, answer.json["candidates"][0]["evaluation"].clone())
}

/// A module of one expression, and its inputs.
fn module(name: &str, expression: &str, inputs: &str) -> String {
    format!(
        "
class {name}(nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [{inputs}]
"
    )
}

/// (inputs, reference, candidate).
const USELESS: [(&str, &str, &str); 7] = [
    ("torch.rand(64, 4096)", "torch.softmax(x, 1)", "torch.zeros_like(x)"),
    ("torch.rand(64, 4096)", "torch.softmax(x, 1)", "torch.full_like(x, 1 / 4096)"),
    ("torch.rand(128, 256)", "x @ x.T", "x @ x.T + 1"),
    ("torch.rand(128, 256)", "x @ x.T", "(x @ x.T) * 1.005"),
    ("torch.randn(128, 256)", "x @ x.T", "(x.bfloat16() @ x.T.bfloat16()).float()"),
    ("torch.randn(64, 4096)", "x.mean(1)", "x[:, :2048].mean(1)"),
    ("torch.randn(64, 128)", "x.argmax(1)", "(x.argmax(1) + 1).clamp(max=127)"),
];

/// As [`USELESS`].
const SOUND: [(&str, &str, &str); 8] = [
    ("torch.randn(128, 2048)", "x @ x.T", "sum(a @ a.T for a in x.split(64, 1))"),
    ("torch.rand(64, 4096)", "torch.softmax(x, 1)", "x.exp() / x.exp().sum(1, keepdim=True)"),
    ("torch.randn(64, 4096)", "x.sum(1)", "x.view(64, 64, 64).sum(1).sum(1)"),
    ("torch.randn(64, 4096)", "x.sum()", "x.sum(0).sum()"),
    ("torch.randn(64, 512).half()", "x @ x.T", "(x.float() @ x.T.float()).half()"),
    (
        "torch.randn(16, 16)",
        "x.masked_fill(torch.ones(16, 16).triu(1).bool(), float('-inf'))",
        "torch.where(torch.ones(16, 16).tril() == 1, x, float('-inf'))",
    ),
    (
        "torch.randint(0, 5, (64, 128)).float()",
        "torch.topk(x, 8, dim=1)",
        "[y[:, :8] for y in torch.sort(x, dim=1, descending=True, stable=True)]",
    ),
    ("torch.randint(0, 5, (64, 128))", "x.argmin(0)", "127 * 0 + x.flip(0).argmin(0).neg() + 63"),
];

#[test]
fn without_a_tolerance_useless_kernels_are_wrong_and_sound_ones_correct() {
    needs!("PyTorch", available());
    let server = on_cpu();
    for (cases, expected) in [(&USELESS[..], "wrong"), (&SOUND[..], "correct")] {
        for (inputs, reference, candidate) in cases {
            let reference = module("Model", reference, inputs);
            let (verdict, evaluation) =
                verdict(&server, &reference, &module("ModelNew", candidate, inputs));
            assert_eq!(verdict, expected, "{candidate}: {:#}", evaluation["validation"]);
        }
    }
}

#[test]
fn a_contract_that_a_useless_kernel_passes_is_weak() {
    needs!("PyTorch", available());
    let server = on_cpu();
    // Zero by mathematics, a constant, and one that any input has.
    for (inputs, reference, code) in [
        ("torch.randn(64, 1)", "torch.relu(x - x.mean(1, keepdim=True))", "expected_constant"),
        ("torch.randn(64, 64)", "(x > -100).float()", "expected_constant"),
        ("torch.randn(64, 64)", "x.clamp(min=-100)", "input_passes"),
        ("torch.randn(64, 64)", "torch.arange(64.) + 0 * x[0]", "seed_invariant"),
    ] {
        let both = ["Model", "ModelNew"].map(|name| module(name, reference, inputs));
        let (verdict, evaluation) = verdict(&server, &both[0], &both[1]);
        let weaknesses = &evaluation["validation"]["weaknesses"];
        assert_eq!(verdict, "weak", "{reference}: {weaknesses:#}");
        let codes: Vec<&str> = weaknesses
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|weakness| weakness["code"].as_str())
            .collect();
        assert!(codes.contains(&code), "{reference}: {codes:?}");
        assert!(evaluation["kernel_exec_result"]["correctness"].is_null());
    }
}

#[test]
fn what_a_reference_changes_a_candidate_may_change_alike() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let step = |name: &str, call: &str| {
        format!(
            "
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(64))
        self.steps = 0
    def forward(self, x, m):
        self.steps += 1
        {call}
def get_inputs():
    return [torch.randn(64), torch.randn(64)]
"
        )
    };
    let whole =
        "m.mul_(0.5).add_(x); self.w.data.sub_(m, alpha=0.1 / self.steps); return self.w + 0";
    let parts =
        "m.copy_(m * 0.5 + x); self.w.data.add_(m * (-0.1 / self.steps)); return self.w + 0";
    let (correct, evaluation) = verdict(&server, &step("Model", whole), &step("ModelNew", parts));
    assert_eq!(correct, "correct", "{evaluation:#}");
    assert!(evaluation["validation"]["outputs"]["inputs[1]"]["passed"] == json!(true));
    // It returns what is right, and leaves the input as it was.
    let stale = "n = m * 0.5 + x; self.w.data.sub_(n, alpha=0.1 / self.steps); return self.w + 0";
    let (wrong, evaluation) = verdict(&server, &step("Model", whole), &step("ModelNew", stale));
    assert_eq!(wrong, "wrong", "{evaluation:#}");
    // It changes what the reference does not.
    let more = whole.replace("m.mul_", "x.mul_(1.5); m.mul_");
    let (wrong, _) = verdict(&server, &step("Model", whole), &step("ModelNew", &more));
    assert_eq!(wrong, "wrong");
}

#[test]
fn constructors_get_types_and_functions() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let module = |name: &str, ends: &str| {
        format!(
            "
class {name}(nn.Module):
    def __init__(self, width, dtype, act, layer):
        super().__init__()
        self.layer, self.act = layer(width, width).to(dtype), act
    def forward(self, x):
        return self.act(self.layer(x))
def get_inputs():
    return [torch.randn(8, 16, dtype=torch.float64)]
{ends}"
        )
    };
    let init = "
def get_init_inputs():
    return [16, torch.float64, torch.nn.functional.gelu, nn.Linear]
";
    let (correct, evaluation) = verdict(&server, &module("Model", init), &module("ModelNew", ""));
    assert_eq!(correct, "correct", "{evaluation:#}");
}

#[test]
fn inputs_that_repeat_are_the_same() {
    needs!("PyTorch", available());
    let server = on_cpu();
    for (inputs, shown) in [
        ("torch.randn(64, generator=torch.Generator().manual_seed(1))", "same"),
        ("torch.ones(64)", "same"),
        ("torch.randn(64)", "fresh"),
    ] {
        let both = ["Model", "ModelNew"].map(|name| module(name, "x * x + x.abs()", inputs));
        let (_, evaluation) = verdict(&server, &both[0], &both[1]);
        assert_eq!(evaluation["measurement"]["inputs"], shown, "{inputs}");
    }
}

#[test]
fn gradients_that_a_candidate_does_not_compute_are_missed() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let module = |name: &str, weight: &str| {
        format!(
            "
# backward
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        {weight}
    def forward(self, x):
        return x @ self.w
def get_inputs():
    return [torch.randn(8, 16)]
"
        )
    };
    let reference = module("Model", "self.w = nn.Parameter(torch.randn(16, 4))");
    let buffer = module("ModelNew", "self.register_buffer('w', torch.randn(16, 4))");
    let (wrong, evaluation) = verdict(&server, &reference, &buffer);
    assert_eq!(wrong, "wrong", "{evaluation:#}");
    let message = evaluation["validation"]["reasons"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("grad.parameters.w"), "{message}");
}
