//! Torch kernels with a contract.

use serde_json::json;

use super::{available, expecting, on_cpu, right, unloaded, vector, wrong};
use crate::server::Server;

const DOUBLE: &str = "def double(x):\n    return x * 2";

#[test]
fn kernels_with_a_contract_get_a_verdict() {
    needs!("PyTorch", available());
    let server = on_cpu();
    verdicts(&server);
    entries(&server);
    outputs(&server);
    faults(&server);
    let capabilities = server.get("/capabilities").json;
    assert!(capabilities["kernel_types"].as_array().unwrap().contains(&json!("torch")));
}

fn verdicts(server: &Server) {
    let report = right(server, "a function", &expecting("def f(x):\n    return x + x", DOUBLE));
    assert_eq!(report["validation"]["outputs"]["y"]["elements"], 1000);
    let torch = &report["torch"];
    assert_eq!((&torch["clock"], &torch["entry"]), (&json!("cpu"), &json!("f")));
    assert_eq!(torch["inputs"]["source"], "contract");
    let measurement = &report["measurement"];
    assert_eq!(measurement["method"], "cpu_wall_clock");
    assert_eq!((&measurement["inputs"], &measurement["audited"]), (&json!("fresh"), &json!(3)));
    assert!(measurement["notes"][0].as_str().unwrap().contains("not ranked"));
    assert!(report["device"].is_null() && report["gpu_type"].is_null());

    let long = format!("# {}\n{DOUBLE}", "x".repeat(2 << 20));
    right(server, "a long source", &expecting(&long, DOUBLE));

    let answer = server.post_json("/execute", &vector("def f(x):\n    return torch.zeros(1000)"));
    assert_eq!(answer.json["outputs"]["y"]["data_b64"], base64(&[0; 4000]));
    assert!(answer.json["measurement"].is_null(), "{}", answer.text);

    let mut sweep = expecting("def f(x):\n    return x + x", DOUBLE);
    for arg in [0, 1] {
        sweep["kernel"]["io"]["args"][arg]["tensor_spec"]["shape"] = json!(["$n"]);
    }
    sweep["axes"] = json!({"n": [10, 20]});
    let swept = server.post_json("/sweep", &sweep).json;
    for point in swept["points"].as_array().unwrap() {
        assert_eq!(point["status"], "correct", "{swept:#}");
    }

    let report = server.evaluate(&vector(DOUBLE));
    assert!(report["kernel_exec_result"]["correctness"].is_null(), "{report:#}");
    assert_eq!(report["validation"]["unchecked"], json!(["y"]));

    wrong(
        server,
        "values",
        &expecting("def f(x):\n    return x * 2.1", DOUBLE),
        "output_mismatch",
        "`y`",
    );
    let nan = expecting("def f(x):\n    return x * float('nan')", DOUBLE);
    wrong(server, "NaN", &nan, "non_finite_output", "NaN or infinite");
    let half = expecting("def f(x):\n    return (x * 2).half()", DOUBLE);
    wrong(server, "type", &half, "output_mismatch", "is float16 [1000], expected float32 [1000]");
    let shape = expecting("def f(x):\n    return (x * 2)[None]", DOUBLE);
    wrong(server, "shape", &shape, "output_mismatch", "of shape [1, 1000], expected shape [1000]");
    let none = expecting("def f(x):\n    x * 2", DOUBLE);
    wrong(server, "nothing", &none, "output_mismatch", "None");
    let in_place = expecting("def f(x):\n    return x.mul_(2)", DOUBLE);
    wrong(server, "in place", &in_place, "input_modified", "`x`");
    let once =
        "calls = []\ndef f(x):\n    calls.append(1)\n    return x * 2 if len(calls) < 3 else x";
    wrong(server, "later", &expecting(once, DOUBLE), "wrong_for_other_seeds", "right at first");

    let data: Vec<u8> = (0..4).flat_map(|n| (n as f32).to_le_bytes()).collect();
    let mut fixed = vector("def f(x):\n    return x");
    for arg in [0, 1] {
        fixed["kernel"]["io"]["args"][arg]["tensor_spec"]["shape"] = json!([2, 2]);
    }
    fixed["kernel"]["io"]["args"][0]["tensor_spec"]["init"] = json!({"kind": "arange"});
    fixed["expected"] = json!({"y": {"data": {"data_b64": base64(&data)}}});
    // A copy of the input is what is wanted.
    fixed["allow_weak"] = json!(true);
    fixed["return_outputs"] = json!("all");
    let report = right(server, "data", &fixed);
    assert_eq!(report["measurement"]["inputs"], "same");
    assert_eq!(report["outputs"]["y"]["data_b64"], base64(&data));
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn entries(server: &Server) {
    let source = "
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((1000,), 2.0))
        self.layer = nn.Dropout(0.0)
    def forward(self, x):
        return F.relu(self.layer(x)) * self.scale - F.relu(-x) * self.scale
    def other(self, x):
        return torch.from_numpy(np.asarray(x) * 2)
class Plain:
    def run(self, x):
        return x * 2
def helper(x):
    return x * math.sqrt(4.0)
";
    for (metadata, entry) in [
        (json!({}), "Model.forward"),
        (json!({"class_name": "Model", "method_name": "other"}), "Model.other"),
        (json!({"class_name": "Plain", "method_name": "run"}), "Plain.run"),
        (json!({"function_name": "helper"}), "helper"),
        (json!({"entry_point": "helper"}), "helper"),
    ] {
        let mut request = expecting(source, DOUBLE);
        request["kernel"]["metadata"] = metadata;
        let report = right(server, entry, &request);
        assert_eq!(report["torch"]["entry"], entry);
        assert_eq!(report["kernel_exec_result"]["metadata"]["kernel_name"], entry);
    }
    let mut request = vector(source);
    request["kernel"]["metadata"] = json!({"class_name": "Absent"});
    unloaded(
        server,
        "a missing class",
        &request,
        "unknown_kernel",
        "defines: Model, Plain, helper",
    );
    request["kernel"]["metadata"] = json!({"class_name": "Model", "method_name": "absent"});
    unloaded(server, "a missing method", &request, "unknown_kernel", "no method `absent`");
    let several = vector("def f(x):\n    return x\ndef g(x):\n    return x");
    unloaded(server, "two functions", &several, "ambiguous_kernel", "f, g");
    unloaded(server, "nothing", &vector("x = 1"), "no_kernel", "defines nothing to call");
}

fn outputs(server: &Server) {
    // By name, in order, in place, and next to scalars and texts.
    let mut request = vector("def f(x, n, mode):\n    return {'z': x * n, 'y': x + (mode == 'a')}");
    let args = request["kernel"]["io"]["args"].as_array_mut().unwrap();
    let mut other = args[1].clone();
    other["name"] = json!("z");
    args.push(other);
    args.push(json!({"name": "n", "type": "int", "value": 3}));
    args.push(json!({"name": "mode", "type": "str", "value": "a"}));
    let reference =
        |source: &str| json!({"kernel": {"kernel_type": "torch", "source_code": source}});
    request["expected"] = json!({
        "y": reference("def f(x, n, mode):\n    return x + 1"),
        "z": reference("def f(x, n, mode):\n    return x + 1, x * 3"),
    });
    right(server, "two outputs by name", &request);
    let source = "def f(x, n, mode):\n    return x + 1, x.expand(1, 1000).T.mul(n).T[0]";
    request["kernel"]["source_code"] = json!(source);
    right(server, "two outputs in order, one of them strided", &request);
    request["kernel"]["source_code"] = json!("def f(x, n, mode):\n    return x + 1");
    wrong(server, "one of two", &request, "output_mismatch", "returned 1 values");

    let mut changed = vector("def f(x):\n    x.mul_(2)");
    let args = changed["kernel"]["io"]["args"].as_array_mut().unwrap();
    args.truncate(1);
    args[0]["role"] = json!("inout");
    changed["expected"] = json!({"x": reference(DOUBLE)});
    right(server, "in place, as the contract says", &changed);
}

fn faults(server: &Server) {
    let syntax = vector("def f(x:\n    return x");
    let report = unloaded(server, "syntax", &syntax, "compilation_failed", "SyntaxError");
    assert_eq!(report["compile"]["diagnostics"][0]["line"], 1);
    let missing = vector("import no_such_module\ndef f(x):\n    return x");
    unloaded(server, "import", &missing, "compilation_failed", "no_such_module, which is not");
    let constructor = "
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fail()
    def fail(self):
        raise ValueError('too bad')
    def forward(self, x):
        return x
";
    let many = "
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(4097)])
    def forward(self, x):
        return x
";
    unloaded(server, "parameters", &vector(many), "constructor_failed", "4097 parameters");
    let report =
        unloaded(server, "constructor", &vector(constructor), "constructor_failed", "too bad");
    let traceback = report["torch"]["traceback"].as_str().unwrap();
    assert!(
        traceback.contains("line 5, in __init__") && traceback.contains("self.fail()"),
        "{traceback}"
    );
    assert!(!traceback.contains("zygote") && !traceback.contains("<string>"), "{traceback}");

    let arguments = expecting("def f(x, w):\n    return x", DOUBLE);
    let report = wrong(server, "arguments", &arguments, "launch_failed", "missing 1 required");
    assert_eq!(report["failure"]["code"], "call_failed");
    let later = "calls = []\ndef f(x):\n    calls.append(1)\n    if len(calls) == 4:\n        raise KeyError('late')\n    return x * 2";
    let report = wrong(
        server,
        "later",
        &expecting(later, DOUBLE),
        "launch_failed",
        "KeyError: 'late' (line 5)",
    );
    assert!(
        report["torch"]["traceback"].as_str().unwrap().contains("raise KeyError"),
        "{report:#}"
    );

    let mut reference = expecting(DOUBLE, "def f(x):\n    return nothing");
    let report = wrong(server, "the reference's call", &reference, "reference_failed", "nothing");
    assert_eq!(report["failure"]["stage"], "validate");
    reference["expected"]["y"]["kernel"]["source_code"] = json!("def f(x");
    let answer = server.post_json("/evaluate", &reference);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(
        answer.text.contains("expected.y.kernel") && answer.text.contains("SyntaxError"),
        "{}",
        answer.text
    );
}
