//! Lists of launches: loops, memory beside the tensors, and their errors.

use serde_json::{Value, json};

use crate::server::Server;

const BREADTH_FIRST: &str = r#"
extern "C" __global__ void start(int* cost, unsigned char* now, unsigned char* next, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { cost[i] = i == 0 ? 0 : -1; now[i] = i == 0; next[i] = 0; }
}
extern "C" __global__ void expand(const int* offsets, const int* edges, const unsigned char* now,
                                  unsigned char* next, int* cost, int level, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && now[i])
        for (int e = offsets[i]; e < offsets[i + 1]; ++e) {
            int t = edges[e];
            if (atomicCAS(&cost[t], -1, level + 1) == -1) next[t] = 1;
        }
}
extern "C" __global__ void advance(unsigned char* now, unsigned char* next, int* more, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { now[i] = next[i]; if (next[i]) atomicExch(more, 1); next[i] = 0; }
}
"#;

const BREADTH_FIRST_REFERENCE: &str = r#"
extern "C" __global__ void serial(const int* offsets, const int* edges, int* cost, int n) {
    for (int i = 0; i < n; ++i) cost[i] = i == 0 ? 0 : -1;
    for (int level = 0; level < n; ++level) {
        bool more = false;
        for (int i = 0; i < n; ++i)
            if (cost[i] == level)
                for (int e = offsets[i]; e < offsets[i + 1]; ++e)
                    if (cost[edges[e]] < 0) { cost[edges[e]] = level + 1; more = true; }
        if (!more) break;
    }
}
"#;

fn tensor(name: &str, role: &str, shape: u64, dtype: &str, init: &Value) -> Value {
    let mut spec = json!({"shape": [shape], "dtype": dtype});
    if !init.is_null() {
        spec["init"] = init.clone();
    }
    json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
}

fn scratch(name: &str, shape: u64, dtype: &str) -> Value {
    tensor(name, "scratch", shape, dtype, &Value::Null)
}

/// A step that launches a kernel with a thread for each of `n` elements.
fn step(kernel: &str, args: Value) -> Value {
    json!({"kernel": kernel, "grid": {"x": "cdiv(n, 128)"}, "block": {"x": 128}, "args": args})
}

fn graph() -> Vec<Value> {
    vec![
        tensor("offsets", "input", 257, "int32", &json!({"kind": "arange", "step": 2})),
        tensor(
            "edges",
            "input",
            512,
            "int32",
            &json!({"kind": "randint", "low": 0, "high": 256, "seed": 3}),
        ),
        tensor("cost", "output", 256, "int32", &Value::Null),
        json!({"name": "n", "type": "int", "value": 256}),
    ]
}

fn own_memory() -> Vec<Value> {
    vec![scratch("now", 256, "uint8"), scratch("next", 256, "uint8"), scratch("more", 1, "int32")]
}

fn steps(most: u32) -> Value {
    json!([
        step("start", json!(["cost", "now", "next", "n"])),
        {"while": "more", "most": most, "index": "level", "steps": [
            {"memset": "more"},
            step("expand", json!(["offsets", "edges", "now", "next", "cost", "level", "n"])),
            step("advance", json!(["now", "next", "more", "n"])),
        ]},
    ])
}

fn reference() -> Value {
    json!({"kernel_type": "cuda", "source_code": BREADTH_FIRST_REFERENCE,
           "io": {"launch": {"grid": {"x": 1}, "block": {"x": 1}}}})
}

fn breadth_first(source: &str, most: u32) -> Value {
    let args = [graph(), own_memory()].concat();
    json!({
        "kernel": {"kernel_type": "cuda", "source_code": source, "io": {"args": args},
                   "launches": steps(most)},
        "expected": {"cost": {"kernel": reference()}},
        "num_trials": 5,
    })
}

#[track_caller]
fn verdict<'a>(report: &'a Value, verdict: &str) -> &'a Value {
    assert_eq!(report["verdict"], verdict, "{report:#}");
    report
}

#[test]
fn a_loop_runs_while_a_flag_is_set_and_each_launch_is_timed() {
    let server = Server::start();
    for isolation in ["warm", "sealed"] {
        let mut contract = breadth_first(BREADTH_FIRST, 64);
        contract["isolation"] = json!(isolation);
        contract["profile"] = json!({});
        let report = server.evaluate(&contract);
        verdict(&report, "correct");
        assert_eq!(report["measurement"]["inputs"], "fresh", "{report:#}");
        let name = &report["kernel_exec_result"]["metadata"]["kernel_name"];
        assert_eq!(name, "start, expand, advance");
        let launches = report["launches"].as_array().unwrap();
        let actions: Vec<&str> =
            launches.iter().map(|step| step["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["start", "memset more", "expand", "advance"]);
        assert_eq!(launches[1]["step"], "launches[1].steps[0]");
        assert_eq!(launches[0]["count"], 1);
        // The number of passes depends on the graph, which each run has another one of.
        let passes = launches[1]["count"].as_u64().unwrap();
        assert!((3..=64).contains(&passes), "{launches:?}");
        for step in &launches[2..] {
            assert_eq!(step["count"], passes, "{step}");
            assert!(step["total_ms"].as_f64().unwrap() > 0.0, "{step}");
        }
        // Counts are those of the emulated device.
        let counted = &launches[2]["counted"]["warp_instructions"];
        assert!(counted.is_null() || counted.as_u64().unwrap() > 0, "{counted}");
    }
}

#[test]
fn what_is_wrong_about_one_launch_is_found() {
    let server = Server::start();
    let wrong = BREADTH_FIRST.replace("level + 1)", "level + 1 + (t == 77))");
    let report = server.evaluate(&breadth_first(&wrong, 64));
    verdict(&report, "wrong");
    assert!(report["kernel_exec_result"]["runtime"].is_null(), "{report:#}");

    let report = server.evaluate(&breadth_first(BREADTH_FIRST, 2));
    verdict(&report, "failed");
    assert_eq!(report["failure"]["code"], "loop_did_not_end", "{report:#}");

    // Scratch memory holds nothing that a run could rely on.
    let lazy = BREADTH_FIRST.replace(" next[i] = 0; }\n}\nextern", " }\n}\nextern");
    assert_ne!(lazy, BREADTH_FIRST);
    verdict(&server.evaluate(&breadth_first(&lazy, 64)), "wrong");

    let outside =
        BREADTH_FIRST.replace("now[i] = next[i];", "now[i] = next[i]; now[i + 4096] = 1;");
    let mut contract = breadth_first(&outside, 64);
    contract["sanitize"] = json!("memcheck");
    let report = server.evaluate(&contract);
    verdict(&report, if report["failure"].is_null() { "wrong" } else { "failed" });
}

#[test]
fn a_list_of_launches_is_compared_with_one_launch() {
    let server = Server::start();
    let mut one = reference();
    one["io"]["args"] = json!(graph());
    let list = json!({"kernel_type": "cuda", "source_code": BREADTH_FIRST,
                      "io": {"args": own_memory()}, "launches": steps(64)});
    let request = json!({"ref_kernel": one, "custom_kernel": list, "num_trials": 3});
    let report = server.post_json("/compare", &request).json;
    verdict(&report, "correct");
    // A list is the reference, too.
    let mut list = list;
    list["io"]["args"] = json!([graph(), own_memory()].concat());
    let mut request = json!({"ref_kernel": list, "custom_kernel": reference(), "num_trials": 3});
    verdict(&server.post_json("/compare", &request).json, "correct");
    request["custom_kernel"]["source_code"] =
        json!(BREADTH_FIRST_REFERENCE.replace("= level + 1;", "= level + 2;"));
    verdict(&server.post_json("/compare", &request).json, "wrong");
}

const SCAN: &str = r#"
template <typename T> __global__ void shifted(const T* from, T* to, int by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i] + (i >= by ? from[i - by] : T(0));
}
"#;

/// A prefix sum of 256 elements: eight passes between two buffers.
fn scan(rows: u64) -> Value {
    let n = 256;
    json!({
        "kernel": {
            "kernel_type": "cuda", "source_code": SCAN,
            "io": {"args": [
                tensor("x", "input", rows * n, "int32",
                       &json!({"kind": "randint", "low": 0, "high": 9, "seed": 1})),
                tensor("y", "output", rows * n, "int32", &Value::Null),
                scratch("even", n, "int32"),
                scratch("odd", n, "int32"),
                {"name": "n", "type": "int", "value": n},
                {"name": "rows", "type": "int", "value": rows},
            ]},
            "launches": [{"repeat": "rows", "index": "row", "steps": [
                step("shifted<int>", json!(["x + row * n", "even", 1, "n"])),
                {"repeat": 3, "index": "k", "steps": [
                    step("shifted<int>", json!(["even", "odd", "2 * (k * k + 1) - (k / 2) * 2", "n"])),
                    {"swap": ["even", "odd"]},
                ]},
                {"memcpy": {"from": "even", "to": "odd"}},
                step("shifted<int>", json!(["odd", "y + row * n", "n", "n"])),
            ]}],
        },
        "expected": {"y": {"kernel": {
            "kernel_type": "cuda",
            "source_code": "extern \"C\" __global__ void k(const int* x, int* y, int n, int rows) {\n\
                int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i >= n * rows) return;\n\
                int row = i / n * n, sum = 0;\nfor (int by = 0; by < 16; ++by)\n\
                if (i - by >= row) sum += x[i - by];\ny[i] = sum;\n}\n",
            "io": {"launch": {"grid": {"x": "cdiv(x.size, 128)"}, "block": {"x": 128}}},
        }}},
        "num_trials": 3,
    })
}

#[test]
fn loops_count_exchange_tensors_and_pass_parts_of_them() {
    let server = Server::start();
    // Passes by 1, 2, 4 and 8 add sixteen elements.
    let mut contract = scan(3);
    let by = &mut contract["kernel"]["launches"][0]["steps"][1]["steps"][0]["args"][2];
    *by = json!("2 + 2 * k + (k / 2) * 2");
    let report = server.evaluate(&contract);
    verdict(&report, "correct");
    let counts: Vec<u64> = report["launches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["count"].as_u64().unwrap())
        .collect();
    // Exchanges take no time.
    assert_eq!(counts, [3, 9, 0, 3, 3], "{report:#}");

    contract["kernel"]["launches"][0]["steps"][1]["steps"][0]["args"][2] = json!("2 + k");
    verdict(&server.evaluate(&contract), "wrong");
}

const TABLE: &str = r#"
extern "C" __global__ void fill(float* table, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table[i] = 0.5f * i;
}
extern "C" __global__ void use(const float* x, float* table, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { y[i] = x[i] + table[i]; table[i] = -1.0f; }
}
"#;

fn with_table(init: &Value) -> Value {
    json!({
        "kernel": {
            "kernel_type": "cuda", "source_code": TABLE,
            "io": {"args": [
                tensor("x", "input", 512, "float32", init),
                scratch("table", 512, "float32"),
                tensor("y", "output", 512, "float32", &Value::Null),
                {"name": "n", "type": "int", "value": 512},
            ]},
            "setup": [step("fill", json!(["table", "n"]))],
            "launches": [step("use", json!(["x", "table", "y", "n"]))],
        },
        "expected": {"y": {"kernel": {
            "kernel_type": "cuda",
            "source_code": "extern \"C\" __global__ void k(const float* x, float* y, int n) {\n\
                int i = blockIdx.x * blockDim.x + threadIdx.x;\nif (i < n) y[i] = x[i] + 0.5f * i;\n}\n",
            "io": {"launch": {"grid": {"x": 4}, "block": {"x": 128}}},
        }}},
        "num_trials": 5,
    })
}

#[test]
fn a_setup_is_not_timed_and_what_it_leaves_is_there_in_each_run() {
    let server = Server::start();
    let report = server.evaluate(&with_table(&json!({"kind": "randn", "seed": 2})));
    verdict(&report, "correct");
    assert!(report["kernel_exec_result"]["runtime"].as_f64().unwrap() > 0.0, "{report:#}");
    assert_eq!(report["launches"].as_array().unwrap().len(), 1, "{report:#}");
    // Inputs that exist during the setup, and stay, could be in what it leaves.
    let mut same = with_table(&json!({"kind": "arange"}));
    same["allow_weak"] = json!(true);
    let report = server.evaluate(&same);
    verdict(&report, "correct");
    let why = report["measurement"]["unranked"].as_str().unwrap_or_else(|| panic!("{report:#}"));
    assert!(why.contains("`setup`"), "{why}");
    assert!(report["kernel_exec_result"]["runtime"].is_null(), "{report:#}");
}

#[test]
fn a_single_launch_has_scratch_memory_too() {
    let server = Server::start();
    let mut contract = with_table(&json!({"kind": "randn", "seed": 2}));
    let kernel = contract["kernel"].as_object_mut().unwrap();
    kernel.remove("setup");
    kernel.remove("launches");
    kernel["io"]["launch"] = json!({"grid": {"x": 4}, "block": {"x": 128}});
    kernel.insert("metadata".to_owned(), json!({"kernel_name": "use"}));
    let good = TABLE.replace("if (i < n) { y", "if (i < n) { table[i] = 0.5f * i; y");
    kernel.insert("source_code".to_owned(), json!(good));
    let serial = &mut contract["expected"]["y"]["kernel"]["io"];
    serial["args"] = json!([{"name": "x", "type": "tensor"}, {"name": "y", "type": "tensor"},
                            {"name": "n", "type": "int"}]);
    serial.as_object_mut().unwrap().remove("args");
    let refused = server.post_json("/evaluate", &contract);
    // The reference has the same parameters unless it lists its own.
    assert_eq!(refused.status, 400, "{:#}", refused.json);
    let list = contract["kernel"]["io"]["args"].as_array().unwrap().clone();
    let own: Vec<Value> = list.into_iter().filter(|arg| arg["role"] != "scratch").collect();
    contract["expected"]["y"]["kernel"]["io"]["args"] = json!(own);
    verdict(&server.evaluate(&contract), "correct");
    contract["kernel"]["source_code"] = json!(TABLE);
    verdict(&server.evaluate(&contract), "wrong");
}

#[test]
fn mistakes_name_the_step_and_the_field() {
    let server = Server::start();
    let mut contract = breadth_first(BREADTH_FIRST, 64);
    contract["kernel"]["launches"][0]["kernel"] = json!("nothing");
    let report = server.evaluate(&contract);
    verdict(&report, "not_compiled");
    let why = report["failure"]["message"].as_str().unwrap();
    assert!(why.contains("nothing") && why.contains("expand"), "{why}");
    for (pointer, wrong, path, says) in [
        ("/0/args", json!(["cost", "now", "next"]), "kernel.launches[0].args", "4 parameters"),
        ("/0/args/0", json!("n"), "kernel.launches[0].args[0]", "int* cost"),
        ("/0/args/0", json!("costs"), "kernel.launches[0].args[0]", "costs"),
        ("/0/args/0", json!("cost + 256"), "kernel.launches[0].args[0]", "element 256"),
        ("/0/grid/x", json!("level"), "kernel.launches[0].grid.x", "level"),
        ("/1/most", json!(0), "kernel.launches[1].most", "1 to"),
        ("/1/most", Value::Null, "kernel.launches[1].most", "go together"),
        ("/1/while", json!("next"), "kernel.launches[1].while", "one element"),
        ("/1/while", json!("edges"), "kernel.launches[1].while", "role: scratch"),
        ("/1/steps/0/memset", json!("offsets"), "kernel.launches[1].steps[0].memset", "an input"),
        ("/1/steps/0/value", json!(256), "kernel.launches[1].steps[0].value", "256"),
        ("/1/steps/0/kernel", json!("start"), "kernel.launches[1].steps[0]", "exactly one"),
        ("/1/index", json!("n"), "kernel.launches[1].index", "named `n`"),
    ] {
        let mut contract = breadth_first(BREADTH_FIRST, 64);
        let mut at = format!("/kernel/launches{pointer}");
        if contract.pointer(&at).is_none() {
            let (parent, key) = at.rsplit_once('/').unwrap();
            contract.pointer_mut(parent).unwrap()[key] = Value::Null;
            at = format!("{parent}/{key}");
        }
        *contract.pointer_mut(&at).unwrap() = wrong;
        let refused = server.post_json("/evaluate", &contract);
        assert_eq!(refused.status, 400, "{pointer}: {:#}", refused.json);
        let error = refused.json["error"].as_str().unwrap();
        let found = refused.json["path"] == path && error.contains(says);
        assert!(found, "{path} {says}: {:#}", refused.json);
    }
}

#[test]
fn scratch_memory_of_a_reference_is_checked_like_any_other() {
    let server = Server::start();
    let list = |own: Vec<Value>| {
        let mut contract = breadth_first(BREADTH_FIRST, 64);
        contract["expected"]["cost"]["kernel"] = json!({
            "kernel_type": "cuda", "source_code": BREADTH_FIRST, "io": {"args": own},
            "launches": steps(64),
        });
        contract
    };
    verdict(&server.evaluate(&list(own_memory())), "correct");
    let path = "expected.cost.kernel.io.args[0]";
    for (wrong, place, says) in [
        (json!({"shape": [1_u64 << 62, 16], "dtype": "uint8"}), "tensor_spec.shape", ""),
        (json!({"shape": [1_u64 << 40], "dtype": "uint8"}), "tensor_spec.shape", "at most"),
        (Value::Null, "tensor_spec", "shape"),
        (json!({"shape": [256], "init": {"kind": "ones"}}), "tensor_spec", "not defined"),
    ] {
        let mut own = own_memory();
        own[0]["tensor_spec"] = wrong;
        let refused = server.post_json("/evaluate", &list(own));
        assert_eq!(refused.status, 400, "{:#}", refused.json);
        let error = refused.json["error"].as_str().unwrap();
        let found = refused.json["path"] == format!("{path}.{place}") && error.contains(says);
        assert!(found, "{place} {says}: {:#}", refused.json);
    }
    let mut own = own_memory();
    own[0]["name"] = json!("n");
    let refused = server.post_json("/evaluate", &list(own));
    assert!(refused.json["error"].as_str().unwrap().contains("named `n`"), "{:#}", refused.json);
}
