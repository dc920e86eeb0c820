//! Inputs of torch kernels whose contract does not define them.

use serde_json::{Value, json};

use super::{available, bare, on_cpu, wrong};
use crate::server::Server;

/// A report on a kernel that ran, and is compared with nothing.
#[track_caller]
fn ran(server: &Server, what: &str, source: &str) -> Value {
    let report = server.evaluate(&bare(source));
    let result = &report["kernel_exec_result"];
    assert!(result["runtime"].as_f64().is_some(), "{what}: {report:#}\n{}", server.output());
    assert_eq!(report["validation"]["status"], "not_checked", "{what}: {report:#}");
    report["torch"]["inputs"].clone()
}

#[test]
fn inputs_come_from_the_source_or_are_generated_by_rules() {
    needs!("PyTorch", available());
    let server = on_cpu();
    made(&server);
    generated(&server);
    let fails = "def get_inputs():\n    raise ValueError('no inputs')\ndef f(x):\n    return x";
    let report = wrong(&server, "get_inputs", &bare(fails), "launch_failed", "no inputs");
    assert_eq!(report["failure"]["code"], "inputs_failed");
    raised(&server);
    let named = wrong(
        &server,
        "by name",
        &bare("def f(*, x):\n    return x"),
        "launch_failed",
        "only by name",
    );
    assert_eq!(named["failure"]["code"], "inputs_failed");
}

/// What a submission without inputs raises is reported as its own, with its traceback.
fn raised(server: &Server) {
    let calls = "def inner(x):\n    return missing(x)\ndef f(x):\n    return inner(x)";
    let raises = "def f(x):\n    raise ValueError('boom')";
    let strange = "def f(x, /):\n    return x.no_such_method()";
    let shapes = "def f(x):\n    return x.view(7, 11, 13)";
    for (what, source, told, code, frames) in [
        ("a name", calls, "NameError: name 'missing' is not defined (line 2)", "call_failed", 2),
        ("raise", raises, "ValueError: boom (line 2)", "call_failed", 1),
        ("an attribute", strange, "attribute 'no_such_method' (line 2)", "call_failed", 1),
        ("shapes", shapes, "RuntimeError: shape '[7, 11, 13]' is invalid", "inputs_failed", 1),
    ] {
        let mut request = bare(source);
        if what == "a name" {
            request["kernel"]["metadata"] = json!({"function_name": "f"});
        }
        let report = wrong(server, what, &request, "launch_failed", told);
        assert_eq!(report["failure"]["code"], code, "{what}: {report:#}");
        let message = report["failure"]["message"].as_str().unwrap();
        assert!(message.contains("define `get_inputs()`"), "{what}: {message}");
        let trace = report["torch"]["traceback"].as_str().unwrap();
        assert_eq!(trace.matches("File \"kernel.py\"").count(), frames, "{what}: {trace}");
    }
}

fn made(server: &Server) {
    let source = "
class Model(nn.Module):
    def __init__(self, width, depth=1):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)])
    def forward(self, pair, n):
        x, y = pair
        return {'sum': self.layers(x) + y, 'n': n, 'parts': (x, [y, None, 'text', True])}
def get_inputs():
    return [(torch.randn(4, 8), torch.randn(4, 8)), 3]
def get_init_inputs():
    return [8, 2]
";
    let inputs = ran(server, "made", source);
    assert_eq!(inputs["source"], "get_inputs");
    assert_eq!(
        inputs["arguments"][0],
        json!({"name": "inputs[0][0]", "dtype": "float32", "shape": [4, 8]})
    );
    assert_eq!(inputs["arguments"][2], json!({"name": "inputs[1]"}));
    let report = server.evaluate(&bare(source));
    let names: Vec<&String> = report["outputs"].as_object().unwrap().keys().collect();
    let expected =
        ["output.n", "output.parts[0]", "output.parts[1][0]", "output.parts[1][3]", "output.sum"];
    assert_eq!(names, expected, "{report:#}");
    assert_eq!(report["torch"]["parameters"]["count"], 4);
}

fn generated(server: &Server) {
    let module = |init: &str, forward: &str| {
        format!(
            "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n    \
             def forward(self, x):\n        {forward}\n"
        )
    };
    let attention = "
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(512, 8)
    
    def forward(self, x):
        return self.attention(x, x, x)[0]
";
    let convolution = module("self.c = nn.Conv2d(3, 8, 3)", "return F.relu(self.c(x))");
    let embedding = module("self.e = nn.Embedding(100, 16)", "return self.e(x).sum(dim=1)");
    let linear = module("self.l = nn.Linear(37, 5)", "return self.l(x)");
    let recurrent = module("self.r = nn.GRU(12, 7, batch_first=True)", "return self.r(x)[0]");
    for (what, source, shape, dtype, rule) in [
        (
            "relu",
            "class Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)",
            json!([256, 256]),
            "float32",
            "the ladder",
        ),
        (
            "matmul",
            "class Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.matmul(x, x.T)",
            json!([256, 256]),
            "float32",
            "the ladder",
        ),
        (
            "attention",
            attention,
            json!([32, 8, 512]),
            "float32",
            "`attention` (MultiheadAttention)",
        ),
        ("convolution", &convolution, json!([8, 3, 32, 32]), "float32", "`c` (Conv2d)"),
        ("embedding", &embedding, json!([8, 32]), "int64", "`e` (Embedding)"),
        ("linear", &linear, json!([64, 37]), "float32", "`l` (Linear)"),
        ("recurrent", &recurrent, json!([8, 32, 12]), "float32", "`r` (GRU)"),
        (
            "four dimensions",
            "def f(x):\n    return F.max_pool2d(x, 2)",
            json!([8, 32, 256]),
            "float32",
            "ladder",
        ),
        (
            "branches",
            "def f(x):\n    return x * 2 if x.sum() > 0 else x",
            json!([256, 256]),
            "float32",
            "tried on real ones",
        ),
    ] {
        let inputs = ran(server, what, source);
        assert_eq!(inputs["source"], "generated", "{what}");
        let argument = &inputs["arguments"][0];
        assert_eq!(
            (&argument["shape"], &argument["dtype"]),
            (&shape, &json!(dtype)),
            "{what}: {inputs}"
        );
        assert!(argument["init"]["seed"].is_u64(), "{what}: {inputs}");
        assert!(inputs["rule"].as_str().unwrap().contains(rule), "{what}: {inputs}");
    }
    let inputs = ran(
        server,
        "several",
        "def f(x, weight, n: int, scale=2.0):\n    return F.linear(x, weight) * n * scale",
    );
    assert_eq!(inputs["arguments"].as_array().unwrap().len(), 3, "{inputs}");
    let inputs =
        ran(server, "an index", "def f(table, index):\n    return F.embedding(index, table)");
    assert_eq!(inputs["arguments"][1]["dtype"], "int64", "{inputs}");
}
