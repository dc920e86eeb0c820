//! Outputs that are right in more than one way (`compare_as`).

use serde_json::{Value, json};

use crate::server::Server;

const KERNELS: &str = r#"
#define N 1000
// Compacts what is above a bound, in the order of the atomic counter.
extern "C" __global__ void compact(const int* x, int* kept, int* from, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) *count = 0;
    // One block: the counter is 0 before anybody adds to it.
    __syncthreads();
    for (; i < N; i += blockDim.x) {
        if (x[i] > 50 CHANGED) {
            int at = atomicAdd(count, 1);
            kept[at] = x[i];
            from[at] = i OFF;
        }
    }
}
// The same, by one thread, from the end.
extern "C" __global__ void one_by_one(const int* x, int* kept, int* from, int* count) {
    int at = 0;
    for (int i = N - 1; i >= 0; --i) {
        if (x[i] > 50) {
            kept[at] = x[i];
            from[at++] = i;
        }
    }
    *count = at;
}
// A table of values by key, with linear probing from another place for each block size.
extern "C" __global__ void table(const int* x, int* keys, int* values) {
    for (int i = 0; i < 2 * N; ++i) keys[i] = -1;
    for (int i = 0; i < N; ++i) {
        int key = (i * 7) % N, slot = (key * SEED) % (2 * N);
        while (keys[slot] != -1) slot = (slot + 1) % (2 * N);
        keys[slot] = key;
        values[slot] = x[key] OFF;
    }
}
"#;

fn source(changed: &str, off: &str, seed: u32) -> String {
    let defines = format!("#define CHANGED {changed}\n#define OFF {off}\n#define SEED {seed}\n");
    defines + KERNELS
}

fn tensor(name: &str, role: &str, elements: u64) -> Value {
    let mut spec = json!({"shape": [elements], "dtype": "int32"});
    if role == "input" {
        spec["init"] = json!({"kind": "randint", "low": 0, "high": 100});
    }
    json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
}

fn code(source: &str, name: &str, threads: u32) -> Value {
    let launch = json!({"grid": {"x": 1}, "block": {"x": threads}});
    json!({"kernel_type": "cuda", "source_code": source, "metadata": {"kernel_name": name}, "io": {"launch": launch}})
}

fn compaction(changed: &str, off: &str) -> Value {
    let mut kernel = code(&source(changed, off, 3), "compact", 128);
    kernel["io"]["args"] = json!([
        tensor("x", "input", 1000),
        tensor("kept", "output", 1000),
        tensor("from", "output", 1000),
        tensor("count", "output", 1),
    ]);
    let reference = json!({"kernel": code(&source("", "", 3), "one_by_one", 1)});
    json!({
        "kernel": kernel, "num_trials": 4,
        "expected": {"kept": reference, "from": reference, "count": reference},
        "compare_as": {"from": {"any_order": true, "along": ["kept"], "up_to": "count"}},
    })
}

fn hash_table(off: &str, seed: u32) -> Value {
    let mut kernel = code(&source("", off, seed), "table", 1);
    kernel["io"]["args"] = json!([
        tensor("x", "input", 1000),
        tensor("keys", "output", 2000),
        tensor("values", "output", 2000)
    ]);
    let reference = json!({"kernel": code(&source("", "", 3), "table", 1)});
    json!({
        "kernel": kernel, "num_trials": 4,
        "expected": {"keys": reference, "values": reference},
        "compare_as": {"keys": {"any_order": true, "along": ["values"], "empty": -1}},
    })
}

#[test]
fn a_compaction_is_right_in_any_order_and_only_as_far_as_it_counts() {
    let server = Server::start();
    for isolation in ["warm", "sealed"] {
        let mut contract = compaction("", "");
        contract["isolation"] = json!(isolation);
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{report:#}");
        assert_eq!(report["measurement"]["inputs"], "fresh", "{report:#}");
    }
    // As it is, it is compared element by element.
    let mut contract = compaction("", "");
    contract.as_object_mut().unwrap().remove("compare_as");
    assert_ne!(server.evaluate(&contract)["verdict"], "correct");
    // One element too few, and elements from another place.
    for (changed, off) in [("&& i != 77", ""), ("&& (i < 900 || x[i] != 60)", ""), ("", "/ 2 * 2")]
    {
        let report = server.evaluate(&compaction(changed, off));
        assert_eq!(report["verdict"], "wrong", "{changed} {off}: {report:#}");
    }
}

/// Elements that neither kernel writes do not widen the tolerance of those that count.
#[test]
fn what_does_not_count_does_not_widen_the_tolerance() {
    const SOURCE: &str = r#"
extern "C" __global__ void some(const float* x, float* y, int* count) {
    int n = 0;
    for (int i = 0; i < 1000; ++i) if (x[i] > 1.5f) y[n++] = x[i] FACTOR;
    *count = n;
}"#;
    let server = Server::start();
    for (factor, verdict) in [("", "correct"), ("* 1.001f", "wrong")] {
        let kernel_of = |factor: &str| code(&SOURCE.replace("FACTOR", factor), "some", 1);
        let mut kernel = kernel_of(factor);
        let mut args = json!([
            tensor("x", "input", 1000),
            tensor("y", "output", 1000),
            tensor("count", "output", 1),
        ]);
        for index in [0, 1] {
            args[index]["tensor_spec"]["dtype"] = json!("float32");
        }
        args[0]["tensor_spec"]["init"] = json!({"kind": "randn"});
        kernel["io"]["args"] = args;
        let reference = json!({"kernel": kernel_of("")});
        let contract = json!({
            "kernel": kernel, "num_trials": 3, "expected": {"y": reference, "count": reference},
            "compare_as": {"y": {"up_to": "count"}},
        });
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], verdict, "{factor}: {report:#}");
        let tolerance = &report["validation"]["outputs"]["y"]["tolerance"];
        assert_eq!(tolerance["basis"], "expected_size", "{report:#}");
    }
}

#[test]
fn a_hash_table_is_compared_by_its_content() {
    let server = Server::start();
    let report = server.evaluate(&hash_table("", 11));
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let report = server.evaluate(&hash_table("+ 1", 11));
    assert_eq!(report["verdict"], "wrong", "{report:#}");
}

#[test]
fn kernels_side_by_side_may_leave_other_orders() {
    let server = Server::start();
    let contract = compaction("", "");
    let mut reference = code(&source("", "", 3), "one_by_one", 1);
    reference["io"]["args"] = contract["kernel"]["io"]["args"].clone();
    let mut candidate = contract["kernel"].clone();
    candidate["io"].as_object_mut().unwrap().remove("args");
    let request = json!({
        "ref_kernel": reference, "custom_kernel": candidate, "num_trials": 3,
        "compare_as": contract["compare_as"],
    });
    let answer = server.post_json("/compare", &request);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json["verdict"], "correct", "{:#}", answer.json);
}

#[test]
fn a_copy_of_an_input_is_useless_in_any_order_too() {
    let server = Server::start();
    let source = "extern \"C\" __global__ void turn(const int* x, int* y) { int i = threadIdx.x; y[255 - i] = x[i]; }";
    let mut kernel = code(source, "turn", 256);
    kernel["io"]["args"] = json!([tensor("x", "input", 256), tensor("y", "output", 256)]);
    let contract = json!({
        "kernel": kernel, "num_trials": 3,
        "expected": {"y": {"kernel": code(source, "turn", 256)}},
        "compare_as": {"y": {"any_order": true}},
    });
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "weak", "{report:#}");
}

#[test]
fn what_cannot_be_compared_so_is_refused_by_name() {
    let server = Server::start();
    let cases = [
        (
            json!({"nobody": {"any_order": true}}),
            "compare_as.nobody",
            "no output with an expectation",
        ),
        (json!({"x": {"any_order": true}}), "compare_as.x", "no output with an expectation"),
        (json!({"kept": {}}), "compare_as.kept", "has no effect"),
        (json!({"kept": {"any_order": true, "equal": "x"}}), "compare_as.kept", "give one of"),
        (
            json!({"kept": {"any_order": true, "along": ["count"]}}),
            "compare_as.kept.along[0]",
            "has 1 rows",
        ),
        (
            json!({"kept": {"any_order": true, "along": vec!["from"; 9]}}),
            "compare_as.kept.along",
            "lists 9 outputs",
        ),
        (
            json!({"kept": {"up_to": "nothing"}}),
            "compare_as.kept.up_to",
            "neither an input tensor nor an output",
        ),
        (
            json!({"kept": {"any_order": true}, "from": {"any_order": true, "along": ["kept"]}}),
            "compare_as",
            "more than once",
        ),
        (json!({"count": {"mask": "x"}}), "compare_as.count.mask", "neither the output's shape"),
    ];
    for (how, path, says) in cases {
        let mut contract = compaction("", "");
        contract["compare_as"] = how.clone();
        let answer = server.post_json("/evaluate", &contract);
        assert_eq!(answer.status, 400, "{how}: {}", answer.text);
        assert!(answer.text.contains(path) && answer.text.contains(says), "{how}: {}", answer.text);
    }
}

#[test]
fn torch_kernels_alone_are_not_compared_so() {
    let server = Server::start();
    let torch = json!({"kernel_type": "torch", "source_code": "def forward(x):\n    return x\n"});
    let request = json!({
        "ref_kernel": torch, "custom_kernel": torch, "compare_as": {"output": {"any_order": true}},
    });
    let answer = server.post_json("/compare", &request);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("a torch kernel can order its result"), "{}", answer.text);
}
