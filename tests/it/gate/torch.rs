//! Torch kernels in a suite: the gate checks only their correctness, and the report says so.

use super::*;

const MODEL: &str =
    "class Model(nn.Module):\n    def forward(self, x):\n        return x * 2 + 1\n";
const SAME: &str = "def f(x):\n    return torch.add(x + x, 1)\n";
const OTHER: &str = "def f(x):\n    return x * 2\n";

const TORCH: &str = r#"
num_trials: 2
kernel:
  kernel_type: torch
  source_file: model.py
  io:
    args:
      - {name: x, type: tensor, tensor_spec: {shape: [64], init: {kind: randn, seed: 1}}}
      - {name: y, type: tensor, role: output, tensor_spec: {shape: [64]}}
"#;

fn with_model() -> Repository {
    let repository = Repository::new();
    repository.write("perf/k/model.py", MODEL);
    repository.write("perf/k/torch.yaml", TORCH);
    let suite = "version: 1\ncases:\n  - {name: model, contract: k/torch.yaml}\n";
    repository.write("perf/suite.yaml", suite);
    repository.commit("a torch kernel");
    repository
}

#[test]
fn torch_kernels_are_gated_on_being_right() {
    needs!("the emulated device", emulated());
    needs!("PyTorch", crate::support::has_torch());
    let repository = with_model();
    repository.write("perf/k/model.py", SAME);
    let report = repository.report(0);
    let case = &report["cases"][0];
    assert_eq!((&case["outcome"], &case["reason"]), (&"PASS".into(), &"only_right".into()));
    assert!(case["detail"].as_str().unwrap().contains("not ranked"), "{case:#}");
    assert!(
        report["statement"].as_str().unwrap().contains("only checked for correctness"),
        "{report:#}"
    );
    assert!(report["verdict_by"].is_null() && report["device"].is_null(), "{report:#}");
    assert!(case["comparison"].is_null(), "{case:#}");

    repository.write("perf/k/model.py", OTHER);
    let case = &repository.report(4)["cases"][0];
    assert_eq!(case["outcome"], "INVALID", "{case:#}");
    repository.write("perf/k/model.py", "def f(x):\n    return x +\n");
    let case = &repository.report(4)["cases"][0];
    assert_eq!(case["outcome"], "INVALID", "{case:#}");

    // A count is none of theirs; and beside others each is judged in its own way.
    repository.write("perf/k/model.py", SAME);
    repository.write(
        "perf/suite.yaml",
        "version: 1\ncases:\n  - {name: model, contract: k/torch.yaml}\n  - {name: counted, contract: \
         k/torch.yaml, metric: barriers, policy: {advisory: true}}\n  - {name: repeat, contract: k/contract.yaml}\n",
    );
    let report = repository.report(0);
    let outcomes = report["cases"].as_array().unwrap().iter().map(|case| case["outcome"].clone());
    let outcomes: Vec<_> = outcomes.collect();
    assert_eq!(outcomes[0], "PASS", "{report:#}");
    assert_eq!(report["cases"][1]["reason"], "not_measured", "{report:#}");
    assert!(report["cases"][1]["detail"].as_str().unwrap().contains("`time`"), "{report:#}");
    assert_eq!(report["verdict_by"], "counts", "{report:#}");
}
