//! `torch.compile` with Inductor: its files are in memory, and its compilers run outside the fork.

use serde_json::{Value, json};

use super::backward::backward;
use super::{available, bare, expecting, on_cpu, right, there_is_gxx, wrong};

/// A function that is compiled, beside the same as it is.
fn beside_eager(body: &str, how: &str) -> Value {
    let function = format!("def g(x):\n    {body}\n");
    let compiled = format!("{function}h = torch.compile(g{how})\ndef f(x):\n    return h(x)\n");
    let eager = format!("{function}def f(x):\n    return g(x)\n");
    let mut request = expecting(&compiled, &eager);
    request["kernel"]["metadata"] = json!({"function_name": "f"});
    request["expected"]["y"]["kernel"]["metadata"] = json!({"function_name": "f"});
    request["tolerance"] = json!({"atol": 1e-5, "rtol": 1e-5});
    request["timeout"] = json!(300.0);
    request
}

#[test]
fn compiled_functions_compute_what_others_do() {
    needs!("PyTorch", available());
    needs!("g++", there_is_gxx());
    let server = &on_cpu();
    let softmax = beside_eager("return torch.softmax(torch.relu(x) * 2 + 1, dim=-1)", "");
    let report = right(server, "a reduction", &softmax);
    let built = report["torch"]["extensions"].as_array().unwrap();
    assert!(built.iter().any(|one| one["built"] == true), "{report:#}");
    // Compiling is none of its time.
    assert!(report["kernel_exec_result"]["runtime"].as_f64().unwrap() < 100.0, "{report:#}");
    let report = right(server, "again", &softmax);
    let built = report["torch"]["extensions"].as_array().unwrap();
    assert!(built.iter().all(|one| one["cached"] == true), "{report:#}");
    for (what, body, how) in [
        ("dynamic shapes", "return torch.where(x > 0, x.log1p(), x.expm1())", ", dynamic=True"),
        ("tuned", "return (x.view(10, 100) * 3).cumsum(1).view(1000)", ", mode='max-autotune'"),
        ("in two graphs", "return x + 1 if float(x.sum()) > 1e9 else x.sin() - 1", ""),
        ("by its name", "return x.sign()", ", backend=torch._dynamo.lookup_backend('inductor')"),
        ("not Inductor", "return x.exp()", ", backend='aot_eager'"),
    ] {
        right(server, what, &beside_eager(body, how));
    }
    let mut other = beside_eager("return x.tanh()", "");
    other["expected"]["y"]["kernel"]["source_code"] = json!("def f(x):\n    return x.sigmoid()");
    wrong(server, "another function", &other, "output_mismatch", "elements");
}

/// As a model has it, with its parameters and its gradients.
#[test]
fn compiled_modules_are_trained() {
    needs!("PyTorch", available());
    needs!("g++", there_is_gxx());
    let server = on_cpu();
    let eager = "class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 16)
    def forward(self, x):
        return torch.tanh(self.layer(x)) * 2
def get_inputs():
    return [torch.randn(8, 32)]
";
    let compiled = format!(
        "{eager}class ModelNew(Model):
    def __init__(self):
        super().__init__()
        self.compiled = torch.compile(super().forward)
    def forward(self, x):
        return self.compiled(x)
"
    );
    let body = json!({
        "ref_kernel": bare(eager)["kernel"], "custom_kernel": bare(&compiled)["kernel"],
        "num_trials": 3, "timeout": 300.0,
    });
    let answer = server.post_json("/compare", &backward(body));
    let report = answer.json;
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    let outputs = &report["candidates"][0]["evaluation"]["validation"]["outputs"];
    assert_eq!(outputs["grad.parameters.layer.weight"]["passed"], true, "{report:#}");
}

/// What would be a file is none.
#[test]
fn what_is_compiled_ahead_of_time_has_no_files() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let ahead = "def f(x):
    exported = torch.export.export(torch.nn.ReLU(), (x,))
    return torch._inductor.aoti_compile_and_package(exported)
";
    let report = server.evaluate(&super::vector(ahead));
    assert_eq!(report["failure"]["code"], "call_failed", "{report:#}");
}
