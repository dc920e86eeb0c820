//! Forward and backward: the kernels compute gradients from the judge's random values, and the
//! judge compares them.

use serde_json::{Value, json};

use super::{available, bare, expecting, on_cpu, right, vector, wrong};
use crate::server::Server;

/// With gradients.
pub(super) fn backward(mut request: Value) -> Value {
    for kernel in ["kernel", "ref_kernel"] {
        if request[kernel].is_object() {
            request[kernel]["metadata"]["backward"] = json!(true);
        }
    }
    request
}

/// The square, whose gradient somebody writes.
fn custom(gradient: &str) -> String {
    format!(
        "
class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(context, upstream):
        x, = context.saved_tensors
        return {gradient}
def f(x):
    return Square.apply(x)
"
    )
}

const SQUARE: &str = "def f(x):\n    return x ** 2";

#[test]
fn gradients_are_compared_and_timed_with_what_is_returned() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let report =
        right(&server, "custom", &backward(expecting(&custom("2 * x * upstream"), SQUARE)));
    let outputs = report["validation"]["outputs"].as_object().unwrap();
    assert_eq!(outputs.keys().collect::<Vec<_>>(), ["grad.x", "y"], "{report:#}");
    assert_eq!(report["torch"]["backward"], true);
    let measurement = &report["measurement"];
    assert_eq!((&measurement["inputs"], &measurement["audited"]), (&json!("fresh"), &json!(3)));
    assert!(measurement["notes"].to_string().contains("forward and backward"), "{report:#}");
    assert!(report["outputs"]["grad.x"]["blake3"].is_string(), "{report:#}");
    let without = right(&server, "without", &expecting(&custom("2 * x * upstream"), SQUARE));
    assert!(without["torch"]["backward"].is_null(), "{without:#}");

    cheats(&server);
    modules(&server);
    nothing_to_differentiate(&server);
    refused(&server);
}

/// Forward is right each time, and backward is not.
fn cheats(server: &Server) {
    for (what, gradient) in [
        ("another factor", "2.1 * x * upstream"),
        ("all ones in place of what it begins from", "2 * x"),
        ("none", "None"),
        ("of another call", "globals().setdefault('kept', 2 * x * upstream)"),
    ] {
        let report = server.evaluate(&backward(expecting(&custom(gradient), SQUARE)));
        let result = &report["kernel_exec_result"];
        assert_eq!(result["correctness"], false, "{what}: {report:#}");
        let reason = report["validation"]["reasons"][0]["message"].as_str().unwrap();
        assert!(reason.contains("grad.x"), "{what}: {reason}");
    }
    // It speaks for its runner, and leaves gradients out.
    let silent = "
import __main__
def _call(self, *arguments):
    return {'returned': arguments[0] ** 2, 'gradients': {'inputs': {}, 'parameters': {}}}
__main__.Backward.call = _call
def f(x):
    return x ** 2";
    let left_out = backward(expecting(silent, SQUARE));
    wrong(server, "left out", &left_out, "output_mismatch", "no gradient `grad.x`");
    let changes = "
def f(x):
    x.data.add_(1)
    return (x - 1) ** 2";
    wrong(server, "changes", &backward(expecting(changes, SQUARE)), "input_modified", "`x`");
    let detached = "def f(x):\n    return (x.detach() ** 2)";
    let report = wrong(
        server,
        "detached",
        &backward(expecting(detached, SQUARE)),
        "launch_failed",
        "have no gradient",
    );
    assert_eq!(report["failure"]["code"], "no_gradient");
}

const LAYER: &str = "
class NAME(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)
    def forward(self, x, index):
        return {'out': CALL, 'index': index + 1}
def get_inputs():
    return [torch.randn(16, 8), torch.randint(0, 5, (3,))]
";

fn compared(server: &Server, custom: &str) -> Value {
    let reference = LAYER.replace("NAME", "Model").replace("CALL", "self.layer(x)");
    let body = backward(json!({
        "ref_kernel": bare(&reference)["kernel"], "custom_kernel": bare(custom)["kernel"],
        "num_trials": 3,
    }));
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    answer.json
}

/// Parameters have gradients, too.
fn modules(server: &Server) {
    let new = LAYER.replace("NAME", "ModelNew");
    let report = compared(
        server,
        &new.replace("CALL", "torch.addmm(self.layer.bias, x, self.layer.weight.T)"),
    );
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    let evaluation = &report["candidates"][0]["evaluation"];
    let outputs = evaluation["validation"]["outputs"].as_object().unwrap();
    let gradients =
        ["grad.inputs[0]", "grad.parameters.layer.bias", "grad.parameters.layer.weight"];
    for name in gradients {
        assert_eq!(outputs[name]["passed"], true, "{name}: {report:#}");
    }
    assert_eq!(outputs.len(), 5, "{report:#}");
    assert_eq!(report["reference"]["torch"]["backward"], true);
    assert!(report["ref_runtime"]["mean"].as_f64().unwrap() > 0.0);

    let frozen = "F.linear(x, self.layer.weight.detach(), self.layer.bias)";
    let report = compared(server, &new.replace("CALL", frozen));
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report:#}");
    let reason = report["kernel_exec_result"]["validation_error"].as_str().unwrap();
    assert!(reason.contains("grad.parameters.layer.weight"), "{reason}");

    // Under another name its parameters are its own, and that is said.
    let renamed = new.replace("self.layer", "self.own").replace("CALL", "self.own(x)");
    let report = compared(server, &renamed);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    let unchecked = report["candidates"][0]["evaluation"]["validation"]["unchecked"].to_string();
    for name in ["grad.parameters.own.weight", "grad.parameters.layer.weight"] {
        assert!(unchecked.contains(name), "{name}: {unchecked}");
    }
}

/// There is nothing that could have a gradient, which is a result.
fn nothing_to_differentiate(server: &Server) {
    let whole = "def get_inputs():\n    return [torch.arange(5)]\ndef f(x):\n    return x + 1.5";
    for (what, source, part) in [
        ("whole numbers", whole, "none of its inputs can have a gradient"),
        (
            "comparisons",
            "def get_inputs():\n    return [torch.randn(5)]\ndef f(x):\n    return x > 0",
            "no output is a floating-point tensor",
        ),
        (
            "constants",
            "def get_inputs():\n    return [torch.randn(5)]\ndef f(x):\n    return torch.ones(3)",
            "`grad_fn`",
        ),
    ] {
        let report = wrong(server, what, &backward(bare(source)), "launch_failed", part);
        assert_eq!(report["failure"]["code"], "no_gradient", "{what}");
    }
    // Inputs that are generated have gradients, too; outputs without are left out.
    let relu =
        "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x), x > 0";
    let report = server.evaluate(&backward(bare(relu)));
    assert!(report["kernel_exec_result"]["runtime"].as_f64().unwrap() > 0.0, "{report:#}");
    assert!(report["outputs"]["grad.x"].is_object(), "{report:#}");
}

fn refused(server: &Server) {
    let refused = |path: &str, body: &Value, part: &str| {
        let answer = server.post_json(path, body);
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    };
    let mut request = backward(vector(SQUARE));
    request["kernel"]["io"]["args"][0]["role"] = json!("inout");
    refused("/evaluate", &request, "kernel.io.args[0].role");
    let mut request = backward(vector(SQUARE));
    request["kernel"]["kernel_type"] = json!("cuda");
    refused("/evaluate", &request, "kernel.metadata.backward");
    let launch = json!({"grid": {"x": 1}, "block": {"x": 32}});
    let cuda = json!({"kernel_type": "cuda", "source_code": "x", "io": {"launch": launch}});
    let mixed = backward(json!({"ref_kernel": vector(SQUARE)["kernel"], "custom_kernel": cuda}));
    refused("/compare", &mixed, "have no gradients");
}
