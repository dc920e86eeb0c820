//! Torch kernels beside each other, in the forms of KernelBench.

use serde_json::{Value, json};

use super::{available, bare, on_cpu, vector};
use crate::server::{Answer, Server};

const REFERENCE: &str = "
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
    def forward(self, x, y):
        return self.layer(x) + torch.rand(4, 8) * 0 + y

def get_inputs():
    return [torch.randn(4, 8), torch.rand(4, 8)]

def get_init_inputs():
    return [8]
";

fn compare(server: &Server, reference: &str, custom: &str) -> Value {
    let body = json!({
        "ref_kernel": bare(reference)["kernel"], "custom_kernel": bare(custom)["kernel"],
        "num_trials": 4,
    });
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}\n{}", answer.text, server.output());
    answer.json
}

/// What speaks against a candidate.
fn against(report: &Value) -> (Value, String) {
    let reason = &report["candidates"][0]["evaluation"]["validation"]["reasons"][0];
    (reason["code"].clone(), reason["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn candidates_are_compared_with_a_reference() {
    needs!("PyTorch", available());
    let server = on_cpu();
    right(&server);
    wrong(&server);
    many_parameters(&server);
    late(&server);
}

/// All parameters are the reference's, and all are looked at: models have some thousands.
fn many_parameters(server: &Server) {
    // The candidate draws before it makes them, so that they are equal only if they are carried over.
    let model = |name: &str, before: &str, call: &str| {
        format!(
            "
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        {before}
        self.p = nn.ParameterList([nn.Parameter(torch.randn(2)) for _ in range(2000)])
    def forward(self, x):
        {call}
        return x + self.p[1999]
def get_inputs():
    return [torch.randn(2)]
"
        )
    };
    let reference = model("Model", "pass", "pass");
    let report = compare(server, &reference, &model("ModelNew", "torch.randn(1)", "pass"));
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    let changing = model("ModelNew", "pass", "self.p[1998].data.add_(1)");
    let (code, message) = against(&compare(server, &reference, &changing));
    assert_eq!((code, message.contains("p.1998")), ("input_modified".into(), true), "{message}");
}

/// A candidate that does not come back has the time of the request, and no more: time for turns is none of its.
fn late(server: &Server) {
    let candidate = "
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
    def forward(self, x, y):
        while True:
            pass
";
    let body = json!({
        "ref_kernel": bare(REFERENCE)["kernel"], "custom_kernel": bare(candidate)["kernel"],
        "timeout": 2.0, "measure": {"max_time": 30.0},
    });
    let answer = server.post_json("/compare", &body);
    let own = &answer.json["candidates"][0]["evaluation"];
    assert_eq!(own["failure"]["code"], "timeout", "{}", answer.text);
    assert!(own["failure"]["message"].as_str().unwrap().contains("2 s"), "{own:#}");
    let total = own["timings"]["total"].as_f64().unwrap();
    assert!((2_000.0..20_000.0).contains(&total), "{own:#}");
}

/// All but a fiftieth of the time, and what a busy machine takes between two stages, is in an entry with a name; none is
/// counted twice.
fn time_is_accounted_for(timings: &Value) {
    let of = |name: &str| timings[name].as_f64().unwrap();
    let names = [
        "queue", "start", "compile", "load", "h2d", "execute", "d2h", "verify", "profile", "report",
    ];
    let named: f64 = names.into_iter().map(of).sum();
    let (total, other) = (of("total"), of("other"));
    assert!((named + other - total).abs() < 0.1, "{timings:#}");
    assert!(other < 50.0 + total / 50.0, "{timings:#}");
    assert!(of("load") > 0.0 && of("verify") > 0.0 && of("execute") > 0.0, "{timings:#}");
}

fn right(server: &Server) {
    // The same layer under another name takes its values from the seed; under the same name, from the
    // reference, though it is made after others.
    let new = "
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.NAME = nn.Linear(width, width)
    def forward(self, x, y):
        return torch.addmm(y + self.NAME.bias, x, self.NAME.weight.T)
";
    let report = compare(server, REFERENCE, &new.replace("NAME", "other"));
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    assert_eq!((&report["verdict_by"], &report["device"]), (&json!("nothing"), &Value::Null));
    assert!(report["ref_runtime"]["mean"].as_f64().unwrap() > 0.0, "{report:#}");
    assert!(report["kernel_exec_result"]["runtime"].as_f64().unwrap() > 0.0, "{report:#}");
    assert!(report["not_compared"].as_str().unwrap().contains("not ranked"), "{report:#}");
    time_is_accounted_for(&report["timings"]);
    let torch = &report["candidates"][0]["evaluation"]["torch"];
    assert_eq!(torch["entry"], "ModelNew.forward");
    assert_eq!(torch["inputs"]["source"], "get_inputs");
    assert_eq!(torch["parameters"]["carried_over"], 0);
    assert_eq!(torch["parameters"]["without_counterpart"], json!(["layer.weight", "layer.bias"]));
    assert_eq!(torch["seed"], report["reference"]["torch"]["seed"]);

    let late = new.replace("self.NAME = ", "self.first = nn.Linear(3, 3)\n        self.NAME = ");
    let report = compare(server, REFERENCE, &late.replace("NAME", "layer"));
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    let torch = &report["candidates"][0]["evaluation"]["torch"];
    assert_eq!(torch["parameters"]["carried_over"], 2, "{report:#}");

    // Generated inputs are the same on both sides, and a contract's have names.
    let relu =
        "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x), 'a'";
    let clamp = "def f(x):\n    return x.clamp(min=0), 'a'";
    let report = compare(server, relu, clamp);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report:#}");
    let mut body = json!({
        "ref_kernel": vector("def f(x):\n    return x * 2")["kernel"],
        "candidates": [
            {"name": "sum", "kernel": bare("def f(x):\n    return x + x")["kernel"]},
            {"name": "wrong", "kernel": bare("def f(x):\n    return x * 3")["kernel"]},
        ],
        "num_trials": 3,
    });
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let verdicts: Vec<_> = answer.json["candidates"].as_array().unwrap().iter().collect();
    let verdict =
        |index: usize| &verdicts[index]["evaluation"]["kernel_exec_result"]["correctness"];
    assert_eq!((verdict(0), verdict(1)), (&json!(true), &json!(false)), "{:#}", answer.json);
    body["ref_kernel"]["source_code"] = json!("def f(x):\n    raise ValueError('bad')");
    let answer = server.post_json("/compare", &body);
    is_of_the_reference(&answer, "ValueError: bad");
}

fn wrong(server: &Server) {
    let relu =
        "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x), 'a'";
    for (custom, code, part) in [
        (
            "def f(x):\n    return x.clamp(min=0).double(), 'a'",
            "output_mismatch",
            "is float64 [256, 256]",
        ),
        ("def f(x):\n    return x.clamp(min=0)", "output_mismatch", "does not return `output[0]`"),
        ("def f(x):\n    return x.clamp(min=0), 'b'", "output_mismatch", "a different text"),
        ("def f(x):\n    return x.clamp(min=0), 'a', 1", "output_mismatch", "returns `output[2]`"),
        ("def f(x):\n    return x.clamp_(min=0), 'a'", "input_modified", "`x`"),
        ("def f(x):\n    return x, 'a'", "output_mismatch", "`output[0]`"),
    ] {
        let report = compare(server, relu, custom);
        let (found, message) = against(&report);
        assert_eq!(found, code, "{custom}: {report:#}");
        assert!(message.contains(part), "{custom}: {message}");
    }
    let careless = "
class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)
    def forward(self, x, y):
        out = self.layer(x) + y
        self.layer.bias += 1
        return out
";
    let report = compare(server, REFERENCE, careless);
    let (code, message) = against(&report);
    assert_eq!(code, "wrong_for_other_seeds", "{message}");
    let once = careless
        .replace("self.layer.bias += 1", "self.last = out")
        .replace("out = ", "self.n = getattr(self, 'n', 0) + 1\n        out = ")
        .replace("self.last = out", "self.layer.bias.add_(float(self.n == 6))");
    let (code, message) = against(&compare(server, REFERENCE, &once));
    assert_eq!(code, "input_modified", "{message}");
    assert!(message.contains("parameter `layer.bias`"), "{message}");
}

#[test]
fn a_reference_is_evaluated_once_for_many_candidates() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let new = REFERENCE.replace("Model", "ModelNew");
    let reused = |report: &Value| report["reference"]["torch"]["reused_from"].clone();
    let first = compare(&server, REFERENCE, &new);
    assert_eq!((&first["verdict"], reused(&first)), (&json!("correct"), Value::Null));
    let second = compare(&server, REFERENCE, &new);
    assert_eq!((&second["verdict"], reused(&second)), (&json!("correct"), first["job_id"].clone()));
    assert_eq!(second["reference"]["job_id"], second["job_id"]);
    assert_eq!(second["ref_runtime"], first["ref_runtime"]);
    time_is_accounted_for(&second["timings"]);
    let wrong = compare(&server, REFERENCE, &new.replace("+ y", "- y"));
    assert_eq!((&wrong["verdict"], reused(&wrong)), (&json!("wrong"), first["job_id"].clone()));

    // Another source, or another number of trials, is another evaluation.
    let other = REFERENCE.replace("* 0 + y", "* 0 + y * 1");
    assert_eq!(reused(&compare(&server, &other, &new)), Value::Null);
    let body = json!({
        "ref_kernel": bare(REFERENCE)["kernel"], "custom_kernel": bare(&new)["kernel"],
        "num_trials": 5,
    });
    assert_eq!(reused(&server.post_json("/compare", &body).json), Value::Null);

    // One that fails is evaluated again.
    let fails = "class Model(nn.Module):\n    def forward(self, x):\n        raise ValueError('no')\n\
                 def get_inputs():\n    return [torch.randn(4)]";
    let body = json!({"ref_kernel": bare(fails)["kernel"], "custom_kernel": bare(&new)["kernel"]});
    for _ in 0..2 {
        let answer = server.post_json("/compare", &body);
        is_of_the_reference(&answer, "ValueError: no");
        assert_eq!(reused(&answer.json), Value::Null);
    }
}

#[test]
fn tolerances_of_a_reference_are_measured_once() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let of = |outputs: u32| {
        format!(
            "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
             self.layer = nn.Linear(64, {outputs})\n    def forward(self, x):\n        \
             return torch.tanh(self.layer(x)) * 3\n\
             def get_inputs():\n    return [torch.randn(32, 64)]\n"
        )
    };
    let tolerance = |report: &Value| {
        let output = &report["candidates"][0]["evaluation"]["validation"]["outputs"]["output"];
        assert_eq!(output["tolerance"]["basis"], "reference_noise", "{report:#}");
        output["tolerance"]["atol"].as_f64().unwrap()
    };
    let many = of(32);
    let new = many.replace("Model", "ModelNew");
    let first = compare(&server, &many, &new);
    let second = compare(&server, &many, &new.replace("* 3", "* (1 + 2)"));
    assert_eq!(second["verdict"], "correct", "{second:#}");
    assert_eq!(tolerance(&second), tolerance(&first), "the parameters differ, the tolerance not");
    let wrong = compare(&server, &many, &new.replace("* 3", "* 3.001"));
    assert_eq!(wrong["verdict"], "wrong", "{wrong:#}");
    // The noise of few elements depends on their values.
    let few = of(1);
    let new = few.replace("Model", "ModelNew");
    let both = [(); 2].map(|()| tolerance(&compare(&server, &few, &new)));
    assert_ne!(both[0], both[1]);
}

/// The comparison fails since its reference does.
#[track_caller]
pub(super) fn is_of_the_reference(answer: &Answer, error: &str) {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let answer = &answer.json;
    assert_eq!(answer["kernel_exec_result"]["correctness"], false, "{answer:#}");
    let of = |report: &Value| report["kernel_exec_result"]["validation_error"].to_string();
    assert!(of(answer).contains("the reference") && of(answer).contains(error), "{answer:#}");
    assert!(of(&answer["reference"]).contains(error), "{answer:#}");
}
