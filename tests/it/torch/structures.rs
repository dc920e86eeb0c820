//! Torch kernels receive what `get_inputs()` returns: strides, classes and arrays, on both sides.

use super::verdicts::verdict;
use super::{available, bare, on_cpu};
use crate::server::{Server, emulated};

/// A module whose call runs these statements.
fn module(name: &str, call: &str) -> String {
    let call = call.replace('\n', "\n        ");
    format!("class {name}(nn.Module):\n    def forward(self, x):\n        {call}\n")
}

/// What comes before the reference, what `get_inputs()` gives, and what both sides do with it.
const SOUND: [(&str, &str, &str); 11] = [
    (
        "",
        "torch.randn(2, 8, 4, 4).to(memory_format=torch.channels_last)",
        "assert x.stride() == (128, 1, 32, 8), x.stride()\nreturn x.permute(0, 2, 3, 1).sum(-1)",
    ),
    ("", "torch.randn(8, 64).T", "assert x.stride() == (1, 64), x.stride()\nreturn x @ x.T"),
    ("", "torch.randn(8, 1).expand(8, 64)", "assert x.stride() == (1, 0)\nreturn x.sum(1)"),
    ("", "torch.randn(8, 64, dtype=torch.complex64)", "return torch.fft.fft(x).conj() * 2"),
    // With gaps, the elements lie side by side in a copy.
    ("", "torch.randn(64, 64)[:, ::2]", "return x * 2"),
    (
        "from collections import namedtuple\nPair = namedtuple('Pair', ['a', 'b'])\n",
        "Pair(torch.randn(64), 3)",
        "assert isinstance(x, tuple)\nreturn x.a * x.b",
    ),
    (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Batch:\n    rows: torch.Tensor\n    \
         scale: float = 2.0\n",
        "Batch(torch.randn(64))",
        "return {'rows': x.rows * x.scale}",
    ),
    ("", "{0: torch.randn(64), 'b': (torch.randn(64), 2)}", "return x[0] * x['b'][0] * x['b'][1]"),
    (
        "import numpy as np\n",
        "np.random.randn(64).astype(np.float32)",
        "import numpy as np\nassert isinstance(x, np.ndarray)\nreturn torch.from_numpy(x) * 2",
    ),
    ("import numpy as np\n", "np.random.randn(4096)[::-1]", "return x * 2"),
    ("import numpy as np\n", "np.arange(64) * torch.rand(64).numpy()", "return x * 2"),
];

#[test]
fn both_sides_get_what_the_reference_makes() {
    needs!("PyTorch", available());
    made_alike(&on_cpu());
}

#[test]
fn both_sides_get_what_the_reference_makes_on_a_gpu() {
    needs!("PyTorch", available());
    needs!("a GPU", !emulated());
    let server = Server::start();
    made_alike(&server);
    buffers(&server);
}

fn made_alike(server: &Server) {
    for (before, inputs, call) in SOUND {
        let made = format!("def get_inputs():\n    return [{inputs}]\n");
        let reference = format!("{before}{}{made}", module("Model", call));
        let (found, evaluation) = verdict(server, &reference, &module("ModelNew", call));
        assert_eq!(found, "correct", "{inputs}: {evaluation:#}");
    }
}

#[test]
fn results_are_compared_by_their_places_whatever_holds_them() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let made = "def get_inputs():\n    return [torch.randn(64)]\n";
    let reference = "from dataclasses import dataclass\n@dataclass\nclass Out:\n    y: torch.Tensor\n    n: int\n";
    let reference = format!("{reference}{}{made}", module("Model", "return Out(x * 2, 3)"));
    for (call, expected) in [
        ("return {'y': x + x, 'n': 3}", "correct"),
        ("return {'y': x + x, 'n': 4}", "wrong"),
        ("import numpy as np\nreturn {'y': (x + x).numpy(), 'n': np.int64(3)}", "correct"),
        ("import numpy as np\nreturn {'y': (x + x).numpy()[::-1], 'n': 3}", "wrong"),
        ("return {0: x + x, 'n': 3}", "wrong"),
        ("return {'y': torch.complex(x + x, x * 0), 'n': 3}", "wrong"),
    ] {
        let (found, evaluation) = verdict(&server, &reference, &module("ModelNew", call));
        assert_eq!(found, expected, "{call}: {evaluation:#}");
    }
}

#[test]
fn layouts_that_are_not_judged_are_named() {
    needs!("PyTorch", available());
    let server = on_cpu();
    for (inputs, call, layout) in [
        ("torch.eye(8).to_sparse()", "return x.to_dense()", "torch.sparse_coo"),
        ("torch.eye(8).to_sparse_csr()", "return x.to_dense()", "torch.sparse_csr"),
        ("torch.eye(8)", "return x.to_sparse_csc()", "torch.sparse_csc"),
    ] {
        let source = format!(
            "import torch\nimport torch.nn as nn\n{}def get_inputs():\n    return [{inputs}]\n",
            module("Model", call)
        );
        let report = server.evaluate(&bare(&source));
        let message = report["failure"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(layout) && message.contains("to_dense"), "{report:#}");
    }
}

#[test]
fn buffers_that_the_reference_changes_are_changed_alike() {
    needs!("PyTorch", available());
    buffers(&on_cpu());
}

fn buffers(server: &Server) {
    let module = |name: &str, call: &str| {
        format!(
            "
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)
    def forward(self, x):
        n = self.norm
        {call}
def get_inputs():
    return [torch.randn(64, 16) * 2 + 1]
"
        )
    };
    let reference = module("Model", "return n(x)");
    let by_hand = "m, v = x.mean(0), x.var(0, unbiased=False)
        y = (x - m) * torch.rsqrt(v + n.eps) * n.weight + n.bias";
    let updates = "n.running_mean.lerp_(m, 0.1)
        n.running_var.lerp_(v * 64 / 63, 0.1)
        n.num_batches_tracked += 1";
    let (found, evaluation) = verdict(
        server,
        &reference,
        &module("ModelNew", &format!("{by_hand}\n        {updates}\n        return y")),
    );
    assert_eq!(found, "correct", "{evaluation:#}");
    for (left_out, buffer) in [
        ("n.running_mean.lerp_(m, 0.1)", "norm.running_mean"),
        ("n.num_batches_tracked += 1", "norm.num_batches_tracked"),
    ] {
        let updates = updates.replace(left_out, "pass");
        let call = format!("{by_hand}\n        {updates}\n        return y");
        let (found, evaluation) = verdict(server, &reference, &module("ModelNew", &call));
        assert_eq!(found, "wrong", "{evaluation:#}");
        let message =
            evaluation["validation"]["reasons"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains(buffer), "{message}");
    }
    // A candidate that has no such buffer is judged by what it returns.
    let (found, evaluation) = verdict(
        server,
        &reference,
        "
class ModelNew(nn.Module):
    def forward(self, x):
        m, v = x.mean(0), x.var(0, unbiased=False)
        return (x - m) * torch.rsqrt(v + 1e-5)
",
    );
    assert_eq!(found, "correct", "{evaluation:#}");
}
