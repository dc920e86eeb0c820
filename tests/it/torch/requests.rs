//! The requests of the CUDA Evaluation Server's README, unchanged; and imports in Python that the
//! request does not contain.

use serde_json::{Value, json};

use super::{available, bare, on_cpu, right, unloaded};
use crate::compatible::answered as posted;
use crate::server::Server;

/// Its requests for `POST /evaluate`.
const EVALUATIONS: [&str; 3] = [
    r#"{
    "kernel": {
      "source_code": "class Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)",
      "kernel_type": "torch"
    },
    "num_trials": 100
  }"#,
    r#"{
    "kernel": {
        "source_code": "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 2",
        "kernel_type": "torch"
    },
    "num_trials": 100,
    "timeout": 120
}"#,
    r#"{
    "kernel": {
        "source_code": "\nimport torch\nimport torch.nn as nn\n\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.attention = nn.MultiheadAttention(512, 8)\n    \n    def forward(self, x):\n        return self.attention(x, x, x)[0]\n",
        "kernel_type": "torch"
    },
    "num_trials": 100
}"#,
];

/// One of its comparisons. What the candidate calls is nowhere.
const COMPARISON: &str = r#"{
    "ref_kernel": {
        "source_code": "class Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.matmul(x, x.T)",
        "kernel_type": "torch"
    },
    "custom_kernel": {
        "source_code": "class Model(torch.nn.Module):\n    def forward(self, x):\n        return custom_matmul(x, x.T)",
        "kernel_type": "torch_cuda"
    },
    "num_trials": 200
}"#;

/// The other: both sources are a comment.
const OUTLINE: &str = r##"{
    "ref_kernel": {
        "source_code": "# Standard attention implementation",
        "kernel_type": "torch"
    },
    "custom_kernel": {
        "source_code": "# Flash attention implementation",
        "kernel_type": "torch_cuda"
    },
    "num_trials": 200
}"##;

const STATISTICS: [&str; 7] =
    ["mean", "std", "min", "max", "median", "percentile_95", "percentile_99"];

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_reference_systems_requests_are_answered_as_there() {
    needs!("PyTorch", available());
    let server = on_cpu();
    for request in EVALUATIONS {
        let answer = posted(&server, "/evaluate", &parsed(request));
        assert_eq!(answer["status"], "success", "{answer:#}");
        let result = &answer["kernel_exec_result"];
        assert_eq!(
            (&result["compiled"], &result["compilation_error"]),
            (&json!(true), &Value::Null)
        );
        assert!(result["runtime"].as_f64().unwrap() > 0.0, "{answer:#}");
        for field in STATISTICS {
            assert!(result["runtime_stats"][field].is_number(), "{field}: {answer:#}");
        }
    }
    let mut request = parsed(COMPARISON);
    let answer = posted(&server, "/compare", &request);
    let result = &answer["kernel_exec_result"];
    assert_eq!(result["correctness"], false, "{answer:#}");
    let error = result["validation_error"].as_str().unwrap();
    assert!(error.contains("name 'custom_matmul' is not defined"), "{error}");
    assert_eq!(result["metadata"]["kernel_type"], "torch_cuda");
    assert!(answer["ref_runtime"]["mean"].as_f64().unwrap() > 0.0, "{answer:#}");
    let optimized =
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x @ x.T";
    request["custom_kernel"]["source_code"] = json!(optimized);
    let answer = posted(&server, "/compare", &request);
    assert_eq!(answer["kernel_exec_result"]["correctness"], true, "{answer:#}");
    // As its README computes it.
    let times = (&answer["ref_runtime"]["mean"], &answer["kernel_exec_result"]["runtime"]);
    assert!(times.0.as_f64().unwrap() / times.1.as_f64().unwrap() > 0.0, "{answer:#}");
    let answer = posted(&server, "/compare", &parsed(OUTLINE));
    let result = &answer["kernel_exec_result"];
    assert_eq!((&result["compiled"], &answer["status"]), (&json!(false), &json!("success")));
    let error = result["compilation_error"].as_str().unwrap();
    assert!(error.contains("defines nothing to call"), "{error}");
    broken_reference(&server);
    targeted(&server);
    two_sources(&server);
}

/// A reference that raises an exception is a result; what is known of the candidate is said.
fn broken_reference(server: &Server) {
    let mut request = parsed(COMPARISON);
    request["ref_kernel"]["source_code"] = json!(
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        raise ValueError('no')"
    );
    request["custom_kernel"]["source_code"] =
        json!("class Model(torch.nn.Module):\n    def forward(self, x):\n        return x @ x.T");
    let answer = posted(server, "/compare", &request);
    assert_eq!((&answer["status"], &answer["verdict"]), (&json!("success"), &json!("failed")));
    let result = &answer["kernel_exec_result"];
    assert_eq!((&result["compiled"], &result["correctness"]), (&json!(true), &json!(false)));
    let error = result["validation_error"].as_str().unwrap();
    assert!(error.contains("the reference kernel") && error.contains("ValueError: no"), "{error}");
    let trace = answer["reference"]["torch"]["traceback"].as_str().unwrap();
    assert!(trace.contains("line 3, in forward"), "{trace}");
}

/// "Test specific functions within your code."
fn targeted(server: &Server) {
    let source = "
def optimized_softmax(x):
    return torch.softmax(x, -1)
def other(x):
    return x
";
    let mut request = bare(source);
    request["kernel"]["metadata"] = json!({"function_name": "optimized_softmax"});
    assert_eq!(posted(server, "/evaluate", &request)["torch"]["entry"], "optimized_softmax");
    request["kernel"]["metadata"] = json!({"entry_point": "optimized_softmax", "description": "d"});
    request["kernel"]["kernel_type"] = json!("multi_kernel");
    let report = posted(server, "/evaluate", &request);
    assert_eq!(report["torch"]["entry"], "optimized_softmax", "{report:#}");
    assert_eq!(report["kernel_exec_result"]["metadata"]["kernel_type"], "multi_kernel");
    assert!(report["kernel_exec_result"]["runtime"].as_f64().unwrap() > 0.0, "{report:#}");
}

/// The oldest form, which is posted to the front page.
fn two_sources(server: &Server) {
    let relu =
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)";
    let clamp =
        "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x.clamp(min=0)";
    let body = json!({"ref_code": relu, "custom_code": clamp});
    let answer = posted(server, "/", &body);
    assert_eq!((&answer["status"], &answer["verdict_by"]), (&json!("success"), &json!("nothing")));
    assert_eq!(answer["kernel_exec_result"]["correctness"], true, "{answer:#}");
    for field in STATISTICS {
        assert!(answer["ref_runtime"][field].is_number(), "{field}: {answer:#}");
    }
    let wrong =
        json!({"ref_code": relu, "custom_code": clamp.replace("min=0", "min=1"), "num_trials": 3});
    let answer = posted(server, "/", &wrong);
    assert_eq!(answer["kernel_exec_result"]["correctness"], false, "{answer:#}");
    let answer = server.post_json("/?wait=false", &body);
    assert_eq!(answer.status, 202, "{}", answer.text);
    for (body, part) in [
        (json!({"ref_code": relu}), "custom_code"),
        (json!({"ref_code": relu, "custom_code": clamp, "timeout": 0}), "timeout"),
        (json!({"ref_code": relu, "custom_code": clamp, "num_trial": 3}), "num_trial"),
        (json!({"ref_code": "", "custom_code": clamp}), "ref_kernel.source_code"),
    ] {
        let answer = server.post_json("/", &body);
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(answer.text.contains(part), "{part}: {}", answer.text);
    }
    assert!(server.get("/").status < 400, "the front page is still there");
}

/// Without a GPU the CPU stands in for it, as the report says.
fn stood_in(server: &Server) {
    let source = "
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8).cuda()
        self.factor = torch.full((1,), 2.0, device='cuda:0')
    def forward(self, x):
        torch.cuda.synchronize()
        y = self.layer(x.cuda()).to('cuda', non_blocking=True)
        with torch.device('cuda'):
            y = y + torch.zeros(8)
        return y * self.factor.to(device=0)
def get_inputs():
    return [torch.randn(4, 8, device='cuda', pin_memory=False), ]
";
    let mut request = bare(source);
    request["kernel"]["kernel_type"] = json!("torch_cuda");
    let report = posted(server, "/evaluate", &request);
    assert!(report["failure"].is_null(), "{report:#}");
    assert_eq!(report["torch"]["stand_in"], true, "{report:#}");
    assert_eq!((&report["torch"]["clock"], &report["gpu_type"]), (&json!("cpu"), &json!("CPU")));
    let body = json!({"ref_code": source.replace("ModelNew", "Model"), "custom_code": source});
    let answer = posted(server, "/compare", &body);
    assert_eq!(answer["kernel_exec_result"]["correctness"], true, "{answer:#}");
    let mut mixed = super::vector("def run(x):\n    return torch.relu(x.to('cuda')).cpu()");
    mixed["kernel"]["kernel_type"] = json!("multi_kernel");
    mixed["kernel"]["metadata"] = json!({"entry_point": "run"});
    let report = server.evaluate(&mixed);
    assert_eq!(report["torch"]["stand_in"], true, "{report:#}");
    assert_eq!(report["verdict"], "not_checked", "{report:#}");
    // What only a GPU has is said.
    let stream = bare("def run(x):\n    torch.cuda.Stream()\n    return x");
    let report = server.evaluate(&stream);
    assert!(report["failure"].is_object(), "{report:#}");
    assert!(report.to_string().contains("there is no GPU here"), "{report:#}");
    let report = server.evaluate(&bare("def run(x):\n    return x * 2"));
    assert!(report["torch"].get("stand_in").is_none(), "{report:#}");
}

/// What needs a compiler or a GPU says so, and what would help.
#[test]
fn what_is_not_beside_python_is_told_when_it_is_asked_for() {
    needs!("PyTorch", available());
    let server = on_cpu();
    let extension = "
from torch.utils.cpp_extension import load_inline
built = load_inline(name='scale', cpp_sources='torch::Tensor scale(torch::Tensor x);',
    cuda_sources='__global__ void k() {}', functions=['scale'])
class ModelNew(nn.Module):
    def forward(self, x):
        return built.scale(x)
";
    let files = "import torch\ntorch.utils.cpp_extension.load('x', ['x.cu'])";
    for (source, part, instead) in [
        (extension, "C++ and CUDA code", "kernel_type: cuda"),
        (files, "`load` compiles files", "`load_inline`"),
    ] {
        let mut request = bare(source);
        request["kernel"]["kernel_type"] = json!("torch_cuda");
        let report = unloaded(&server, part, &request, "not_supported", part);
        let message = report["kernel_exec_result"]["compilation_error"].as_str().unwrap();
        assert!(message.contains(instead), "{message}");
        assert!(report["torch"]["traceback"].as_str().unwrap().contains("kernel.py"), "{report:#}");
    }
    stood_in(&server);
    // The server goes on.
    right(
        &server,
        "after",
        &super::expecting("def f(x):\n    return x + x", "def f(x):\n    return 2 * x"),
    );
}
