//! The examples of the OpenAPI documents: answers that the program wrote, and requests for the
//! kernels in `kernels/`.

use super::rewrite;
use super::rewrite::{descend, operation};
use crate::middleware::auth::Sees;
use crate::routes::machine::capabilities::Capabilities;
use crate::routes::machine::views::{CudaInfo, Devices, Health};
use crate::tree::{Mapping, Value, parsed};
use warpgauge_job_views::CleanupReport;
use warpgauge_job_views::Unready;
use warpgauge_model::JobState;
use warpgauge_report::Tooling;
use warpgauge_service::{ServiceStatus, SubmittedJob};

/// 30 days, seconds.
const MONTH_S: u64 = 30 * 24 * 60 * 60;

/// Adds examples of parameters, which documentation pages send when the user clicks a button. Ids
/// of existing objects, such as a job, have no example, so that the user must fill in the field
/// first.
pub(super) fn add_parameter_examples(document: &mut Value) {
    let parameters = operation(document, "/admin/cleanup-jobs", "post")
        .and_then(|it| it.get_mut("parameters").and_then(Value::as_sequence_mut));
    for parameter in parameters.into_iter().flatten().filter_map(Value::as_mapping_mut) {
        if parameter.get("name").and_then(Value::as_str) == Some("older_than_s") {
            parameter.insert("example".into(), MONTH_S.into());
        }
    }
}

pub(super) fn add_examples(document: &mut Value, submissions: &[&str]) {
    let report = parsed(include_str!("../../../../../openapi/examples/report.json"));
    for (path, example) in [
        ("/evaluate", vector_add()),
        ("/profile/plan", vector_add()),
        ("/sweep", sweep_contract()),
        ("/execute", parsed(include_str!("../../../../../openapi/examples/execute.json"))),
        ("/compile", parsed(include_str!("../../../../../openapi/examples/compile.json"))),
        ("/compare", parsed(include_str!("../../../../../openapi/examples/compare.json"))),
        ("/", parsed(SOURCES)),
        (
            "/execute_spmv",
            parsed(include_str!("../../../../../openapi/examples/execute_spmv.json")),
        ),
        (
            "/execute_spmv_mtx",
            parsed(include_str!("../../../../../openapi/examples/execute_spmv_mtx.json")),
        ),
        ("/upload_mtx", parsed(UPLOAD)),
        ("/tensors/from-array", parsed(ARRAY)),
        ("/jobs", batch_example()),
        ("/gate", gate_request()),
        ("/baselines", new_baseline()),
        ("/baselines/{name}/promote", promotion(&report)),
    ] {
        let content = operation(document, path, "post")
            .and_then(|it| descend(it, &["requestBody", "content"]));
        for (media_type, body) in content.into_iter().flatten() {
            if let (false, Some(body)) = (media_type.ends_with("msgpack"), body.as_mapping_mut()) {
                body.insert("example".into(), example.clone());
            }
        }
    }
    let status: ServiceStatus =
        serde_json::from_str(include_str!("../../../../../openapi/examples/status.json"))
            .expect("examples/status.json is a ServiceStatus");
    let tooling: Tooling =
        serde_json::from_str(include_str!("../../../../../openapi/examples/tooling.json"))
            .expect("examples/tooling.json is a Tooling");
    let job_id = report.get("job_id").cloned().unwrap_or_default();
    let job = job_example(&report, &job_id);
    for (path, method, code, example) in [
        ("/evaluate", "post", "200", report.clone()),
        ("/execute", "post", "200", report.clone()),
        (
            "/sweep",
            "post",
            "200",
            parsed(include_str!("../../../../../openapi/examples/sweep.json")),
        ),
        ("/compile", "post", "200", compile_example(&report)),
        ("/compare", "post", "200", compare_example(&report)),
        ("/", "post", "200", compare_example(&report)),
        (
            "/profile/plan",
            "post",
            "200",
            parsed(include_str!("../../../../../openapi/examples/profile_plan.json")),
        ),
        (
            "/execute_spmv",
            "post",
            "200",
            parsed(include_str!("../../../../../openapi/examples/spmv.json")),
        ),
        (
            "/execute_spmv_mtx",
            "post",
            "200",
            parsed(include_str!("../../../../../openapi/examples/spmv.json")),
        ),
        ("/upload_mtx", "post", "200", parsed(MATRIX)),
        (
            "/functions/places",
            "get",
            "200",
            parsed(include_str!("../../../../../openapi/examples/function_places.json")),
        ),
        ("/check_mtx/{name}", "get", "200", parsed(MATRIX)),
        (
            "/check_mtx/{name}",
            "delete",
            "200",
            parsed("{success: true, exists: false, filename: laplacian.mtx}"),
        ),
        ("/list_mtx", "get", "200", matrix_list()),
        ("/tensors", "post", "200", parsed(TENSOR)),
        ("/tensors/from-array", "post", "200", parsed(TENSOR)),
        ("/tensors", "get", "200", tensor_list()),
        ("/tensors/{id}", "get", "200", parsed(TENSOR)),
        ("/tensors/{id}", "delete", "200", tensor_deleted()),
        ("/tensors/{id}/handle", "get", "200", parsed(HANDLE)),
        ("/tensor-leases/{id}", "put", "200", tensor_lease(60.0)),
        ("/tensor-leases/{id}", "delete", "200", tensor_lease(0.0)),
        ("/gate", "post", "200", parsed(include_str!("../../../../../openapi/examples/gate.json"))),
        ("/baselines", "post", "200", baseline_summary()),
        ("/baselines/{name}/promote", "post", "200", baseline_summary()),
        ("/baselines", "get", "200", mapping([("baselines", list(baseline_summary()))])),
        ("/baselines/{name}", "get", "200", baseline_example()),
        ("/baselines/{name}", "delete", "200", parsed("{name: main}")),
        (
            "/history",
            "get",
            "200",
            parsed(include_str!("../../../../../openapi/examples/history.json")),
        ),
        ("/jobs/{job_id}", "get", "200", job.0),
        ("/job/{job_id}", "get", "200", job.1),
        (
            "/jobs/{job_id}/artifacts",
            "get",
            "200",
            parsed(include_str!("../../../../../openapi/examples/artifacts.json")),
        ),
        (
            "/jobs/{job_id}/code",
            "get",
            "200",
            parsed(include_str!("../../../../../openapi/examples/code.json")),
        ),
        (
            "/import",
            "post",
            "200",
            parsed(include_str!("../../../../../openapi/examples/imported.json")),
        ),
        (
            "/import/changes",
            "post",
            "200",
            parsed(include_str!("../../../../../openapi/examples/report_changes.json")),
        ),
        ("/health", "get", "200", value(&Health::new(&status, Vec::new(), Sees::Everything))),
        ("/live", "get", "200", parsed("{status: alive}")),
        ("/cuda/info", "get", "200", value(&CudaInfo::new(&status))),
        ("/capabilities", "get", "200", value(&Capabilities::new(&status, &tooling))),
        ("/jobs", "get", "200", parsed(include_str!("../../../../../openapi/examples/jobs.json"))),
        ("/jobs", "post", "202", batch_accepted(&job_id)),
        ("/jobs/{job_id}", "delete", "200", cancelled(&job_id)),
        ("/admin/cleanup-jobs", "post", "200", cleaned()),
        (
            "/stats",
            "get",
            "200",
            parsed(include_str!("../../../../../openapi/examples/stats.json")),
        ),
        ("/devices", "get", "200", value(&Devices { devices: status.devices.clone() })),
        (
            "/info",
            "get",
            "200",
            value(&crate::routes::machine::views::Info::new(status.clone(), 500_000_000)),
        ),
    ] {
        let media = ["responses", code, "content", crate::error::JSON];
        if let Some(media) = operation(document, path, method).and_then(|it| descend(it, &media)) {
            media.insert("example".into(), example);
        }
    }
    for path in submissions {
        let media = ["responses", "202", "content", crate::error::JSON];
        if let Some(media) = operation(document, path, "post").and_then(|it| descend(it, &media)) {
            media.insert("example".into(), accepted_example(&job_id));
        }
    }
    rewrite::error_examples(document);
    // Among all answers with status 503, only this one is not an error.
    let media = ["responses", "503", "content", crate::error::JSON];
    if let Some(media) = operation(document, "/health", "get").and_then(|it| descend(it, &media)) {
        media.insert("example".into(), unhealthy(&status));
    }
}

/// An example of a stored matrix.
const MATRIX: &str = include_str!("../../../../../openapi/examples/matrix.json");

/// An example of a stored tensor, and of a handle that opens it.
const TENSOR: &str = include_str!("../../../../../openapi/examples/tensor.json");
const HANDLE: &str = include_str!("../../../../../openapi/examples/tensor_handle.json");

fn tensor_id() -> Value {
    parsed(TENSOR).get("tensor_id").cloned().unwrap_or_default()
}

fn tensor_list() -> Value {
    mapping([
        ("tensors", list(parsed(TENSOR))),
        ("count", 1_u64.into()),
        ("held_bytes", 2_097_152_u64.into()),
    ])
}

fn tensor_deleted() -> Value {
    mapping([
        ("tensor_id", tensor_id()),
        ("message", "Tensor 0197f000-0000-7000-8000-000000000001 deleted successfully".into()),
        ("leases", 0_u64.into()),
    ])
}

fn tensor_lease(lease_s: f64) -> Value {
    let lease = parsed(HANDLE).get("lease_id").cloned().unwrap_or_default();
    mapping([("lease_id", lease), ("tensor_id", tensor_id()), ("lease_s", lease_s.into())])
}

/// An array with four audio samples.
const ARRAY: &str = "{cuda_device: 0, sample_rate: 16000, data_b64: AAAAAAAAAD8AAIA/AAAAPw==, \
    dtype: float32, shape: [4]}";

const UPLOAD: &str = "{filename: laplacian.mtx, content: \
    JSVNYXRyaXhNYXJrZXQgbWF0cml4IGNvb3JkaW5hdGUgcmVhbCBnZW5lcmFsCjEgMSAxCjEgMSAyCg==}";

fn matrix_list() -> Value {
    let matrix = parsed(MATRIX).get("matrix").cloned().unwrap_or_default();
    let name = matrix.get("filename").cloned().unwrap_or_default();
    mapping([("success", true.into()), ("files", list(name)), ("matrices", list(matrix))])
}

/// Returns the answer of `/health` on a machine without a compiler.
fn unhealthy(status: &ServiceStatus) -> Value {
    let reason = Unready {
        code: "no_compiler".to_owned(),
        message:
            "no CUDA compiler was found; `warpgauge toolchain install` installs NVRTC, or name a CUDA \
                  toolkit in compile.toolchain (WARPGAUGE_TOOLCHAIN); then restart the server"
                .to_owned(),
    };
    value(&Health::new(status, vec![reason], Sees::Everything))
}

/// Returns the contract of `kernels/vector_add`, with the sources in place of the names of their
/// files.
fn vector_add() -> Value {
    with_sources(include_str!("../../../../../kernels/vector_add/contract.yaml"))
}

/// Returns the reference kernel of the example comparison: a small contract, for examples that run
/// many jobs.
fn square() -> Value {
    let compare = parsed(include_str!("../../../../../openapi/examples/compare.json"));
    mapping([("kernel", compare.get("ref_kernel").cloned().unwrap_or_default())])
}

/// Returns the sweep of `kernels/vector_add` over several sizes.
fn sweep_contract() -> Value {
    with_sources(include_str!("../../../../../kernels/vector_add/sweep.yaml"))
}

fn with_sources(contract: &str) -> Value {
    let mut contract = parsed(contract);
    rewrite::walk(&mut contract, &mut |kernel| {
        let source = match kernel.get("source_file").and_then(Value::as_str) {
            Some("kernel.cu") => include_str!("../../../../../kernels/vector_add/kernel.cu"),
            Some("reference.cu") => include_str!("../../../../../kernels/vector_add/reference.cu"),
            _ => return,
        };
        kernel.shift_remove("source_file");
        kernel.insert("source_code".into(), source.into());
    });
    contract
}

fn accepted_example(job_id: &Value) -> Value {
    value(&crate::response::accepted::Accepted::new(SubmittedJob {
        job_id: job_id.as_str().unwrap_or_default().to_owned(),
        state: JobState::Submitted,
        existing: false,
    }))
}

/// Returns a batch that contains one job.
fn batch_example() -> Value {
    let mut item = parsed("{kind: evaluate, label: nightly, priority: 1}");
    if let Some(item) = item.as_mapping_mut() {
        item.insert("request".into(), square());
    }
    Value::Mapping(Mapping::from_iter([("jobs".into(), Value::Sequence(vec![item]))]))
}

fn mapping<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Mapping(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

fn list(item: Value) -> Value {
    Value::Sequence(vec![item])
}

/// Returns a suite with one case, and its baseline. Any server can run it.
fn gate_request() -> Value {
    let case = mapping([("name", "square".into()), ("contract", square()), ("baseline", square())]);
    mapping([("suite", "suite.yaml".into()), ("cases", list(case))])
}

fn new_baseline() -> Value {
    let case = mapping([("name", "square".into()), ("contract", square())]);
    // One click stores this baseline, so users must be unlikely to choose its name.
    mapping([("name", "example".into()), ("suite", "suite.yaml".into()), ("cases", list(case))])
}

fn promotion(report: &Value) -> Value {
    mapping([("job_id", report.get("job_id").cloned().unwrap_or_default())])
}

/// Returns the fields of a baseline. `cases` contains names, or contracts with code.
fn baseline_fields(cases: Value) -> Value {
    let mut fields = parsed(
        "{name: main, pin: {device: NVIDIA H200, driver: 580.159.04, cuda: '13.0', method: \
         cuda_events_gated, method_version: 2}, suite: suite.yaml, commit: \
         3f1c0a9d6a4be1b3f8a2c9c51a2e4a8d7b6f5e40, stored_unix_s: 1767225600.0}",
    );
    if let Some(fields) = fields.as_mapping_mut() {
        fields.insert("cases".into(), cases);
    }
    fields
}

fn baseline_summary() -> Value {
    baseline_fields(list("vector_add".into()))
}

fn baseline_example() -> Value {
    baseline_fields(mapping([("vector_add", vector_add())]))
}

fn batch_accepted(job_id: &Value) -> Value {
    let jobs = Value::Sequence(vec![accepted_example(job_id)]);
    Value::Mapping(Mapping::from_iter([("jobs".into(), jobs)]))
}

fn cancelled(job_id: &Value) -> Value {
    let mut answer = parsed("{outcome: stopping, state: profiling}");
    if let Some(answer) = answer.as_mapping_mut() {
        answer.insert("job_id".into(), job_id.clone());
    }
    answer
}

fn cleaned() -> Value {
    value(&crate::routes::machine::cleanup::Cleaned::new(CleanupReport { jobs: 12, bytes: 49_152 }))
}

fn job_example(report: &Value, job_id: &Value) -> (Value, Value) {
    let mut job = parsed(
        "{state: completed, status: success, created_at: 1767225600.0, finished_at: 1767225600.5, trials_done: 20}",
    );
    if let Some(job) = job.as_mapping_mut() {
        job.insert("job_id".into(), job_id.clone());
        job.insert("result".into(), report.clone());
    }
    let view: warpgauge_job_views::JobView =
        serde_json::from_str(&serde_json::to_string(&job).expect("a tree is JSON"))
            .expect("the example is a JobView");
    (job, value(&crate::routes::jobs::legacy::LegacyJob::new(view)))
}

/// Two example sources for a comparison.
const SOURCES: &str = r#"{ref_code: "class Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)",
custom_code: "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x.clamp(min=0)"}"#;

fn compile_example(report: &Value) -> Value {
    let mut answer = parsed("{status: success, compiled: true, total_ms: 41.5}");
    if let Some(answer) = answer.as_mapping_mut() {
        answer.insert("job_id".into(), report.get("job_id").cloned().unwrap_or_default());
        answer.insert("compile".into(), report.get("compile").cloned().unwrap_or_default());
    }
    answer
}

fn compare_example(report: &Value) -> Value {
    let comparison = parsed(include_str!("../../../../../openapi/examples/comparison.json"));
    let part = |name: &str| report.get(name).cloned().unwrap_or_default();
    let result = part("kernel_exec_result");
    let mut answer = Mapping::new();
    for name in ["job_id", "status", "verdict", "gpu_type", "device", "timings"] {
        answer.insert(name.into(), part(name));
    }
    let mut candidate = parsed("{name: custom, identical_code: false}");
    if let Some(candidate) = candidate.as_mapping_mut() {
        candidate.insert("evaluation".into(), report.clone());
        candidate.insert("comparison".into(), comparison.clone());
    }
    answer.insert("ref_runtime".into(), result.get("runtime_stats").cloned().unwrap_or_default());
    answer.insert("kernel_exec_result".into(), result);
    answer.insert("comparison".into(), comparison);
    answer.insert("reference".into(), report.clone());
    answer.insert("candidates".into(), Value::Sequence(vec![candidate]));
    Value::Mapping(answer)
}

fn value(example: &impl serde::Serialize) -> Value {
    let text = serde_json::to_string(example).expect("the examples can be written");
    serde_json::from_str(&text).expect("what was written can be read")
}
