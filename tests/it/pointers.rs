//! Arrays of pointers to tensors in device memory.

use serde_json::{Value, json};

use crate::server::{Server, emulated};

/// A batched product, as libraries take it: one pointer to each matrix.
const BATCHED: &str = r#"
extern "C" __global__ void batched(const float* const* a, const float* const* b, float** c, int n) {
    const float* left = a[blockIdx.x];
    const float* right = b[blockIdx.x];
    float* product = c[blockIdx.x];
    int i = threadIdx.x;
    if (!product || i >= n * n) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += left[i / n * n + k] * right[k * n + i % n];
    product[i] = sum;
}"#;

/// The same products of tensors that are parameters.
const PLAIN: &str = r#"
extern "C" __global__ void plain(const float* a0, const float* a1, const float* b, float* c0, float* c1, int n) {
    int i = threadIdx.x;
    if (i >= n * n) return;
    const float* left = blockIdx.x ? a1 : a0;
    float* product = blockIdx.x ? c1 : c0;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += left[i / n * n + k] * b[blockIdx.x * n * n + k * n + i % n];
    product[i] = sum;
}"#;

fn tensor(name: &str, role: &str, shape: &Value) -> Value {
    let mut spec = json!({"shape": shape, "dtype": "float32"});
    if role == "input" {
        spec["init"] = json!({"kind": "randn", "seed": 7 + name.len()});
    }
    json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
}

fn arrays(a: &Value, b: &Value, c: &Value) -> Vec<Value> {
    let array = |name: &str, pointers: &Value| json!({"name": name, "type": "pointers", "pointers": pointers});
    vec![array("a", a), array("b", b), array("c", c)]
}

fn tensors() -> Vec<Value> {
    let one = json!(["n", "n"]);
    let mut all = ["a0", "a1"].map(|name| tensor(name, "input", &one)).to_vec();
    all.push(tensor("b_all", "input", &json!([2, "n", "n"])));
    all.extend(["c0", "c1"].map(|name| tensor(name, "output", &one)));
    all.push(json!({"name": "n", "type": "int", "value": 12}));
    all
}

/// A contract with the candidate's arrays, checked by the kernel that takes the tensors themselves.
fn contract(source: &str, arrays: &[Value]) -> Value {
    let launch = json!({"grid": {"x": 2}, "block": {"x": 160}});
    let reference =
        json!({"kernel": {"kernel_type": "cuda", "source_code": PLAIN, "io": {"launch": launch}}});
    let args = [arrays, &tensors()].concat();
    json!({
        "kernel": {"kernel_type": "cuda", "source_code": source, "io": {
            "args": args, "launch": launch,
        }},
        "expected": {"c0": reference, "c1": reference},
        "num_trials": 3,
    })
}

fn usual() -> Vec<Value> {
    let every = json!([{"tensor": "b_all", "step": "n * n"}]);
    arrays(&json!(["a0", "a1"]), &every, &json!(["c0", "c1"]))
}

#[test]
fn kernels_take_arrays_of_pointers_that_are_written_for_each_launch() {
    let server = Server::start();
    for isolation in ["warm", "fresh", "sealed"] {
        let mut contract = contract(BATCHED, &usual());
        contract["isolation"] = json!(isolation);
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{report:#}");
        assert_eq!(report["measurement"]["inputs"], "fresh", "{report:#}");
    }
}

#[test]
fn kernels_that_confuse_pointers_are_found() {
    let server = Server::start();
    let swapped = BATCHED.replace("c[blockIdx.x]", "c[1 - blockIdx.x]");
    let skipped = BATCHED.replace("!product", "blockIdx.x == 1");
    for source in [swapped, skipped] {
        let report = server.evaluate(&contract(&source, &usual()));
        assert_eq!(report["verdict"], "wrong", "{report:#}");
    }
    // The pointers are right where the kernel is, and the other way round.
    let (a, c) = (json!(["a0", "a1"]), json!(["c1", "c0"]));
    let b = json!([{"tensor": "b_all", "step": "n * n"}]);
    let report = server.evaluate(&contract(BATCHED, &arrays(&a, &b, &c)));
    assert_eq!(report["verdict"], "wrong", "{report:#}");
    let b = json!(["b_all + n * n", "b_all"]);
    let report = server.evaluate(&contract(BATCHED, &arrays(&a, &b, &json!(["c0", "c1"]))));
    assert_eq!(report["verdict"], "wrong", "{report:#}");
}

/// Twice the first tensor, if the array is as it was before the first launch.
const MARKING: &str = r#"
extern "C" __global__ void marking(float** p, int n) {
    const float* x = p[0];
    if (x && p[2]) for (int i = threadIdx.x; i < n; i += blockDim.x) p[1][i] = 2 * x[i];
    __syncthreads();
    if (threadIdx.x == 0) p[0] = nullptr;
}"#;

fn marking() -> Value {
    let reference = "def reference(x, n):\n    return 2 * x\n";
    json!({
        "kernel": {"kernel_type": "cuda", "source_code": MARKING, "io": {
            "args": [
                {"name": "p", "type": "pointers", "pointers": ["x", "y", "x + n - 1"]},
                tensor("x", "input", &json!(["n"])), tensor("y", "output", &json!(["n"])),
                {"name": "n", "type": "int", "value": 100},
            ],
            "launch": {"grid": {"x": 1}, "block": {"x": 64}},
        }},
        "expected": {"y": {"kernel": {"kernel_type": "torch", "source_code": reference}}},
        "num_trials": 3,
    })
}

#[test]
fn what_a_kernel_writes_to_an_array_is_gone_at_the_next_launch() {
    let server = Server::start();
    let mut contract = marking();
    let plain = "extern \"C\" __global__ void plain(const float* x, float* y, int n) {\n\
        for (int i = threadIdx.x; i < n; i += 64) y[i] = 2 * x[i]; }";
    contract["expected"]["y"]["kernel"] = json!({"kernel_type": "cuda", "source_code": plain});
    for isolation in ["warm", "sealed"] {
        contract["isolation"] = json!(isolation);
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{report:#}");
    }
    // A null pointer among them.
    contract["kernel"]["io"]["args"][0]["pointers"][2] = Value::Null;
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "wrong", "{report:#}");
}

#[test]
fn comparisons_sweeps_counts_and_checks_have_arrays_too() {
    let server = Server::start();
    let contract = contract(BATCHED, &usual());
    let plain = json!({"kernel_type": "cuda", "source_code": PLAIN});
    let request =
        json!({"ref_kernel": contract["kernel"], "custom_kernel": plain, "num_trials": 3});
    let report = server.post_json("/compare", &request).json;
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let mut own = contract["kernel"].clone();
    own["source_code"] = json!(BATCHED.replace("float sum = 0;", "float sum = 0.0f;"));
    let reference = json!({"kernel_type": "cuda", "source_code": PLAIN, "io": {
        "args": tensors(), "launch": contract["kernel"]["io"]["launch"]}});
    let request = json!({"ref_kernel": reference, "custom_kernel": own, "num_trials": 3});
    let report = server.post_json("/compare", &request).json;
    assert_eq!(report["verdict"], "correct", "{report:#}");

    let mut swept = contract.clone();
    swept["kernel"]["io"]["args"][8]["value"] = json!("$n");
    swept["axes"] = json!({"n": [4, 12]});
    let swept = server.post_json("/sweep", &swept).json;
    let points = swept["points"].as_array().unwrap();
    assert!(points.iter().all(|point| point["verdict"] == "correct"), "{swept:#}");
    the_rest_needs!("the emulated device", emulated());
    let mut checked = contract.clone();
    checked["sanitize"] = json!(true);
    checked["profile"] = json!({"tools": ["emulator"]});
    let report = server.evaluate(&checked);
    let sanitized = &report["sanitize"];
    assert!(sanitized["available"] == true && sanitized["findings"].is_null(), "{report:#}");
    let beyond = BATCHED.replace("product[i] = sum", "product[i + (i == 3) * n * n] = sum");
    checked["kernel"]["source_code"] = json!(beyond);
    let report = server.evaluate(&checked);
    assert_eq!(report["sanitize"]["findings"][0]["check"], "out_of_bounds", "{report:#}");
    let past = BATCHED.replace("a[blockIdx.x]", "a[blockIdx.x + 1]");
    checked["kernel"]["source_code"] = json!(past);
    let report = server.evaluate(&checked);
    assert_ne!(report["verdict"], "correct", "{report:#}");
}

#[test]
fn structures_and_lists_of_launches_have_arrays_too() {
    let server = Server::start();
    let source = r#"
struct Lists { const float* a[2]; const float* const* b; float** c; int n; };
__global__ void listed(Lists l) {
    int i = threadIdx.x, n = l.n;
    if (i >= n * n) return;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += l.a[blockIdx.x][i / n * n + k] * l.b[blockIdx.x][k * n + i % n];
    l.c[blockIdx.x][i] = sum;
}"#;
    let mut args = usual();
    args.remove(0);
    args.insert(
        0,
        json!({"name": "l", "type": "struct",
                          "fields": {"a": ["a0", "a1"], "b": "b", "c": "c", "n": "n"}}),
    );
    let whole = contract(source, &args);
    let report = server.evaluate(&whole);
    assert_eq!(report["verdict"], "correct", "{report:#}");

    // Names in an array follow `swap`, as they do elsewhere.
    let mut steps = contract(BATCHED, &usual());
    let kernel = &mut steps["kernel"];
    kernel["io"].as_object_mut().unwrap().remove("launch");
    let launch = json!({"kernel": "batched", "args": ["a", "b", "c", "n"], "grid": {"x": 2}, "block": {"x": 160}});
    kernel["launches"] = json!([launch, {"swap": ["c0", "c1"]}, {"swap": ["c0", "c1"]}, launch]);
    let report = server.evaluate(&steps);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    steps["kernel"]["launches"][2] = json!({"memset": "c0"});
    let report = server.evaluate(&steps);
    assert_eq!(report["verdict"], "wrong", "{report:#}");
}

#[test]
fn code_without_types_takes_arrays() {
    let server = Server::start();
    let ptx = r#".version 7.0
.target sm_80
.address_size 64
.visible .entry first(.param .u64 p, .param .u64 y)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<3>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [y];
    ld.global.u64 %rd3, [%rd1+8];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd4, %r1, 4;
    add.s64 %rd3, %rd3, %rd4;
    add.s64 %rd2, %rd2, %rd4;
    ld.f32 %f1, [%rd3];
    add.f32 %f1, %f1, %f1;
    st.global.f32 [%rd2], %f1;
    ret;
}"#;
    let contract = json!({
        "kernel": {"kernel_type": "ptx", "source_code": ptx, "io": {
            "args": [
                {"name": "p", "type": "pointers", "pointers": ["a", "b"]},
                tensor("a", "input", &json!([32])), tensor("b", "input", &json!([32])),
                tensor("y", "output", &json!([32])),
            ],
            "launch": {"grid": {"x": 1}, "block": {"x": 32}},
        }},
        "expected": {"y": {"kernel": {"kernel_type": "cuda", "source_code":
            "extern \"C\" __global__ void k(const float* a, const float* b, float* y) { y[threadIdx.x] = 2 * b[threadIdx.x]; }"}}},
        "num_trials": 2,
    });
    // The array names the tensors that it points to; `y` is a parameter.
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

#[test]
fn arrays_that_do_not_fit_are_reported_by_name() {
    let server = Server::start();
    let many = json!([&vec!["a0"; 9_999][..], &["a1"]].concat());
    let (a, b, c) =
        (json!(["a0", "a1"]), json!([{"tensor": "b_all", "step": "n * n"}]), json!(["c0", "c1"]));
    for (given, at, why) in [
        (json!([]), ".pointers:", "1 to 65536"),
        (json!(["nothing"]), ".pointers:", "entry 0: no argument is named `nothing`"),
        (json!(["a0", "n"]), ".pointers:", "entry 1: `n` is not a tensor"),
        (json!(["a0 + n * n"]), ".pointers:", "element 144"),
        (json!([7]), ".pointers:", "entry 0: must be the name of a tensor"),
        (json!([["a0"]]), ".pointers:", "entry 0: must be"),
        (json!(["a"]), ".pointers:", "`a` is not a tensor"),
        (json!([{"tensor": "a0"}]), ".pointers:", "`step` is missing"),
        (json!([{"tensor": "a0", "stride": 2}]), ".pointers:", "has the fields"),
        (json!([{"tensor": "a0", "step": 0, "count": 3}]), ".pointers:", "do not fit"),
        (json!([{"tensor": "a0", "step": 100, "count": 3}]), ".pointers:", "do not fit"),
        (json!([{"tensor": "a0", "step": 1, "count": u64::MAX}]), ".pointers:", "a 64-bit integer"),
        (json!([{"tensor": "a0", "step": 1, "count": 1u64 << 62}]), ".pointers:", "do not fit"),
        (json!([{"tensor": "a0", "step": "m"}]), ".pointers:", "`step` is wrong"),
        (json!(vec![json!({"tensor": "a0", "step": 1}); 1000]), "", "65536 pointers"),
    ] {
        let answer = server.post_json("/evaluate", &contract(BATCHED, &arrays(&given, &b, &c)));
        assert_eq!(answer.status, 400, "{given}: {}", answer.text);
        let says = |text: &str| answer.text.contains(text);
        assert!(says(&format!("kernel.io.args[0]{at}")) && says(why), "{given}: {}", answer.text);
    }
    // Ten thousand pointers are an array like another one.
    let report = server.evaluate(&contract(BATCHED, &arrays(&many, &b, &c)));
    assert_eq!(report["verdict"], "wrong", "{report:#}");

    for (source, why) in [
        (
            BATCHED
                .replace("const float* const* a", "const double* const* a")
                .replace("const float* left", "const double* left"),
            "const double* a[]",
        ),
        (
            BATCHED.replace("const float* const* a", "float a").replace("a[blockIdx.x]", "b[0]"),
            "float**",
        ),
    ] {
        let answer = server.post_json("/evaluate", &contract(&source, &arrays(&a, &b, &c)));
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(answer.text.contains(why), "{why}: {}", answer.text);
    }
    let mut held = contract(BATCHED, &usual());
    held["kernel"]["io"]["args"][0]["role"] = json!("output");
    let answer = server.post_json("/evaluate", &held);
    assert!(answer.status == 400 && answer.text.contains("has no `role`"), "{}", answer.text);
    let mut torch = contract(BATCHED, &usual());
    torch["kernel"]["kernel_type"] = json!("torch");
    let answer = server.post_json("/evaluate", &torch);
    assert!(
        answer.status == 400 && answer.text.contains("take arrays of pointers"),
        "{}",
        answer.text
    );
}
