//! Arguments: shapes by expressions, and arguments without a value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::server::{Server, emulated};
use crate::support::{has_nvcc, has_torch, has_triton};

/// A kernel is right in this process and in one of its own, for inputs that are drawn anew for each launch.
#[track_caller]
fn is_correct_with_fresh_inputs(server: &Server, contract: &Value) {
    for isolation in ["warm", "sealed"] {
        let mut contract = contract.clone();
        contract["isolation"] = json!(isolation);
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{report:#}");
        assert_eq!(report["measurement"]["inputs"], "fresh", "{report:#}");
    }
}

const PRODUCT: &str = r#"
extern "C" __global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += a[i / n * k + l] * b[l * n + i % n];
    c[i] = sum;
}"#;

fn tensor(name: &str, role: &str, shape: Value) -> Value {
    let mut spec = json!({"shape": shape, "dtype": "float32"});
    if role == "input" {
        spec["init"] = json!({"kind": "randn", "seed": name.len()});
    }
    json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec})
}

fn product() -> Value {
    json!({
        "kernel": {
            "kernel_type": "cuda", "source_code": PRODUCT,
            "io": {
                "args": [
                    tensor("a", "input", json!(["m", "2*n"])),
                    tensor("b", "input", json!(["a.shape[1]", "n"])),
                    tensor("c", "output", json!(["m", "n"])),
                    {"name": "m", "type": "int", "value": 24},
                    {"name": "n", "type": "int", "value": 16},
                    {"name": "k", "type": "int", "value": 32},
                ],
                "launch": {"grid": {"x": "cdiv(c.size, 128)"}, "block": {"x": 128}}
            }
        },
        "expected": {"c": {"kernel": {"kernel_type": "torch",
            "source_code": "def reference(a, b, *rest):\n    return a @ b\n"}}},
        "num_trials": 3,
        "return_outputs": "all",
    })
}

#[test]
fn shapes_follow_scalars_and_shapes_of_arguments_before_them() {
    let server = Server::start();
    let mut contract = product();
    contract.as_object_mut().unwrap().remove("expected");
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "not_checked", "{report:#}");
    assert_eq!(report["outputs"]["c"]["shape"], json!([24, 16]), "{report:#}");

    // A sweep replaces the scalars, and the shapes follow.
    contract["kernel"]["io"]["args"][3]["value"] = json!("$m");
    contract["axes"] = json!({"m": [8, 40]});
    contract.as_object_mut().unwrap().remove("return_outputs");
    let swept = server.post_json("/sweep", &contract);
    assert_eq!(swept.status, 200, "{}", swept.text);
    let points = swept.json["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{}", swept.text);
    the_rest_needs!("the emulated device", emulated());
    let counts = points.iter().map(|point| point["counted"]["warp_instructions"].as_u64());
    let [Some(few), Some(many)] = counts.collect::<Vec<_>>()[..] else { panic!("{}", swept.json) };
    assert!(many > 4 * few, "{few} {many}: five times as many rows");
}

#[test]
fn a_shape_without_a_value_is_reported_where_it_stands() {
    let server = Server::start();
    for (extents, at, why) in [
        (json!(["m", "width"]), "kernel.io.args[0].tensor_spec.shape[1]", "no argument `width`"),
        (json!(["m - 25", 1]), "kernel.io.args[0].tensor_spec.shape[0]", "is -1"),
        (json!(["m / 0"]), "kernel.io.args[0].tensor_spec.shape[0]", "division by zero"),
        (json!(["b.shape[0]"]), "kernel.io.args[0].tensor_spec.shape[0]", "not known yet"),
        (json!(["a.size"]), "kernel.io.args[0].tensor_spec.shape[0]", "not known yet"),
        (json!(vec!["m"; 40]), "kernel.io.args[0].tensor_spec.shape", "40 dimensions"),
    ] {
        let mut contract = product();
        contract["kernel"]["io"]["args"][0] = tensor("a", "input", extents.clone());
        let answer = server.post_json("/evaluate", &contract);
        assert_eq!(answer.status, 400, "{}", answer.text);
        let says = |text: &str| answer.text.contains(text);
        assert!(says(&format!("{at}:")) && says(why), "{extents}: {}", answer.text);
    }
}

#[test]
fn scratch_memory_of_a_reference_has_the_size_of_the_candidate_s_arguments() {
    let server = Server::start();
    let args = json!([tensor("x", "input", json!(["n"])), tensor("y", "output", json!(["n"])),
                      {"name": "n", "type": "int", "value": 300}]);
    let launch = json!({"grid": {"x": "cdiv(n, 64)"}, "block": {"x": 64}});
    let one = "extern \"C\" __global__ void one(const float* x, float* y, int n) {\n\
        int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = 4 * x[i]; }";
    let two = "extern \"C\" __global__ void twice(const float* x, float* y, int n) {\n\
        int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }";
    let step = |args: Value| {
        json!({"kernel": "twice", "args": args, "grid": {"x": "cdiv(n, 64)"},
                                    "block": {"x": 64}})
    };
    let contract = json!({
        "kernel": {"kernel_type": "cuda", "source_code": one, "io": {"args": args, "launch": launch}},
        "expected": {"y": {"kernel": {"kernel_type": "cuda", "source_code": two,
            "io": {"args": [{"name": "half", "type": "tensor", "role": "scratch",
                             "tensor_spec": {"shape": ["n"], "dtype": "float32"}}]},
            "launches": [step(json!(["x", "half", "n"])), step(json!(["half", "y", "n"]))]}}},
        "num_trials": 3,
    });
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

const BIASED: &str = r#"
extern "C" __global__ void biased(const float* x, const float* bias, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 3 * x[i] + (bias ? bias[i] : 0.0f);
}"#;

fn biased(kernel: Value) -> Value {
    let mut kernel = kernel;
    let own = kernel["io"].take();
    kernel["io"] = json!({"args": [
        tensor("x", "input", json!([256])), {"name": "bias", "type": "none"},
        tensor("y", "output", json!([256])), {"name": "n", "type": "int", "value": 256},
    ]});
    if let Value::Array(more) = &own["args"] {
        kernel["io"]["args"].as_array_mut().unwrap().extend(more.clone());
    }
    kernel["io"]["launch"] = own["launch"].clone();
    let reference = "extern \"C\" __global__ void triple(const float* x, const float* bias, float* y, int n) {\n\
        int i = blockIdx.x * 256 + threadIdx.x; if (!bias && i < n) y[i] = 3 * x[i]; }";
    json!({
        "kernel": kernel,
        "expected": {"y": {"kernel": {"kernel_type": "cuda", "source_code": reference,
            "io": {"launch": {"grid": {"x": 1}, "block": {"x": 256}}}}}},
        "num_trials": 3,
    })
}

#[test]
fn an_argument_without_a_value_is_a_null_pointer() {
    let server = Server::start();
    let launch = json!({"launch": {"grid": {"x": 2}, "block": {"x": 128}}});
    let contract =
        biased(json!({"kernel_type": "cuda", "source_code": BIASED, "io": launch.clone()}));
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "correct", "{report:#}");

    let mut given = contract.clone();
    given["kernel"]["io"]["args"][1]["value"] = json!(0);
    let answer = server.post_json("/evaluate", &given);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("kernel.io.args[1].value"), "{}", answer.text);

    let source = BIASED.replace("const float* bias", "long long bias").replace("bias[i]", "1");
    let wrong = biased(json!({"kernel_type": "cuda", "source_code": source, "io": launch}));
    let answer = server.post_json("/evaluate", &wrong);
    assert!(answer.text.contains("only a pointer can be null"), "{}", answer.text);
}

#[test]
fn an_argument_without_a_value_is_none_in_triton() {
    needs!("Triton", has_triton());
    let server = Server::start();
    let source = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n\
        def biased(x, bias, y, n, BLOCK: tl.constexpr):\n    \
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
        value = 3 * tl.load(x + at, mask=at < n)\n    \
        if bias is not None:\n        value += tl.load(bias + at, mask=at < n)\n    \
        tl.store(y + at, value, mask=at < n)\n";
    let io = json!({"args": [{"name": "BLOCK", "type": "int", "value": 64, "is_meta": true}],
                    "launch": {"grid": {"x": "cdiv(n, BLOCK)"}}});
    let contract = biased(json!({"kernel_type": "triton", "source_code": source, "io": io}));
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

#[test]
fn an_argument_without_a_value_is_none_in_torch() {
    needs!("PyTorch", has_torch());
    let server = Server::start();
    let args = json!([tensor("x", "input", json!(["n"])), {"name": "bias", "type": "none"},
                      {"name": "n", "type": "int", "value": 64}]);
    let of = |body: &str| {
        json!({"kernel_type": "torch", "io": {"args": args},
               "source_code": format!("def kernel(x, bias, n):\n    return {body}\n")})
    };
    let request = json!({"ref_kernel": of("x * 3 if bias is None else x"),
                         "custom_kernel": of("x + x + x"), "num_trials": 3});
    let report = server.post_json("/compare", &request).json;
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

const STRUCTURED: &str = r#"
namespace shapes {
template <typename T, int N> struct Weights { T w[N]; bool on; };
template <typename T, int N>
struct AnItemWithAVeryLongNameOfWhichSeveralStandInTheSameStructureAsIsUsualInTemplateLibraries { T w[N]; };
}
enum class Mode : short { plain, doubled };
struct Base { int n; };
struct Params : Base {
    const float* x;
    float* y;
    shapes::Weights<float, 3> weights;
    Mode mode;
    float4 shift;
    float* spare[2];
    unsigned long long big;
    const shapes::AnItemWithAVeryLongNameOfWhichSeveralStandInTheSameStructureAsIsUsualInTemplateLibraries<float, 3>* first;
    shapes::AnItemWithAVeryLongNameOfWhichSeveralStandInTheSameStructureAsIsUsualInTemplateLibraries<double, 3>* second;
};
namespace { struct Hidden { double factor; }; }
__global__ void structured(Params p, Hidden hidden, dim3 tile) {
    int i = blockIdx.x * tile.x + threadIdx.x;
    if (i >= p.n || threadIdx.x >= tile.x) return;
    float weight = p.weights.on ? p.weights.w[i % 3] : 0.0f;
    float value = p.x[i] * weight * float(hidden.factor) + p.shift.z;
    if (p.mode == Mode::doubled) value *= 2;
    if (p.spare[0] || p.spare[1] != p.y || p.big != 1ull << 40 || p.first) value = -1;
    p.y[i] = value;
}"#;

fn structured() -> Value {
    let fields = json!({
        "n": "n", "x": "x", "y": "y",
        "weights": {"w": [1, 2.5, -3], "on": true},
        "mode": 1,
        "shift": {"x": 0, "y": 0, "z": 0.5, "w": 0},
        "spare": [null, "y"],
        "big": "1024 * 1024 * 1024 * 1024",
        "first": null, "second": "y",
    });
    let reference = "extern \"C\" __global__ void k(const float* x, float* y, int n) {\n\
        int i = blockIdx.x * 64 + threadIdx.x; const float w[3] = {1, 2.5f, -3};\n\
        if (i < n) y[i] = 2 * (x[i] * w[i % 3] * 1.5f + 0.5f); }";
    json!({
        "kernel": {"kernel_type": "cuda", "source_code": STRUCTURED, "io": {
            "args": [
                {"name": "p", "type": "struct", "fields": fields},
                {"name": "hidden", "type": "struct", "fields": {"factor": 1.5}},
                {"name": "tile", "type": "struct", "fields": {"x": 64, "y": 1, "z": 1}},
                tensor("x", "input", json!(["n"])),
                tensor("y", "output", json!(["n"])),
                {"name": "n", "type": "int", "value": 300},
            ],
            "launch": {"grid": {"x": "cdiv(n, 64)"}, "block": {"x": 64}},
        }},
        "expected": {"y": {"kernel": {"kernel_type": "cuda", "source_code": reference,
            "launches": [{"kernel": "k", "args": ["x", "y", "n"], "grid": {"x": "cdiv(n, 64)"},
                          "block": {"x": 64}}]}}},
        "num_trials": 3,
    })
}

#[test]
fn structures_are_passed_by_value_with_pointers_and_structures_in_them() {
    let server = Server::start();
    let contract = structured();
    is_correct_with_fresh_inputs(&server, &contract);
    let mut wrong = contract.clone();
    wrong["kernel"]["io"]["args"][0]["fields"]["weights"]["w"][1] = json!(2.25);
    assert_eq!(server.evaluate(&wrong)["verdict"], "wrong");

    // A step of a list takes them, too, by name or as they are.
    let mut steps = contract.clone();
    let kernel = &mut steps["kernel"];
    kernel["io"].as_object_mut().unwrap().remove("launch");
    kernel["launches"] = json!([{"kernel": "structured", "args": ["p", {"factor": 1.5}, "tile"],
                                 "grid": {"x": "cdiv(n, 64)"}, "block": {"x": 64}}]);
    let report = server.evaluate(&steps);
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

#[test]
fn kernels_with_structures_and_kernels_without_stand_beside_each_other() {
    let server = Server::start();
    let source = "struct P { const float* x; float* y; int n; };\n\
        extern \"C\" __global__ void whole(P p) {\n\
        int i = blockIdx.x * 64 + threadIdx.x; if (i < p.n) p.y[i] = 2 * p.x[i]; }";
    let plain = "extern \"C\" __global__ void plain(const float* x, float* y, int n) {\n\
        int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = 2 * x[i]; }";
    let structure =
        json!({"name": "p", "type": "struct", "fields": {"x": "x", "y": "y", "n": "n"}});
    let others = [
        tensor("x", "input", json!(["n"])),
        tensor("y", "output", json!(["n"])),
        json!({"name": "n", "type": "int", "value": 300}),
    ];
    let kernel = |source: &str, args: Vec<Value>| {
        json!({"kernel_type": "cuda", "source_code": source, "io": {"args": args,
               "launch": {"grid": {"x": "cdiv(n, 64)"}, "block": {"x": 64}}}})
    };
    let whole = kernel(source, [vec![structure.clone()], others.to_vec()].concat());
    let with_args = kernel(plain, others.to_vec());
    let (bare_whole, bare) = (kernel(source, vec![structure]), kernel(plain, Vec::new()));
    for (candidate, reference) in [(&whole, &bare), (&with_args, &bare_whole)] {
        let contract =
            json!({"kernel": candidate, "expected": {"y": {"kernel": reference}}, "num_trials": 2});
        let report = server.evaluate(&contract);
        assert_eq!(report["verdict"], "correct", "{report:#}");
        let wrong = contract.to_string().replace("= 2 *", "= 3 *").replacen("= 3 *", "= 2 *", 1);
        let report = server.evaluate(&serde_json::from_str(&wrong).unwrap());
        assert_eq!(report["verdict"], "wrong", "{report:#}");
    }
    for (reference, candidate) in [(&whole, &with_args), (&whole, &bare), (&with_args, &whole)] {
        let request = json!({"ref_kernel": reference, "custom_kernel": candidate, "num_trials": 2});
        let report = server.post_json("/compare", &request).json;
        assert_eq!(report["verdict"], "correct", "{report:#}");
    }
}

#[test]
fn structures_have_up_to_256_fields() {
    let server = Server::start();
    let of = |count: usize| {
        let members = (0..count).map(|at| format!("int f{at};")).collect::<String>();
        let source = format!(
            "struct P {{ {members} }};\n__global__ void k(P p, int* y) {{ y[0] = p.f{}; }}",
            count - 1
        );
        let fields: Value = (0..count)
            .map(|at| (format!("f{at}"), json!(at)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let y = json!({"name": "y", "type": "tensor", "role": "output", "tensor_spec": {"shape": [1], "dtype": "int32"}});
        json!({"kernel": {"kernel_type": "cuda", "source_code": source, "io": {
            "args": [{"name": "p", "type": "struct", "fields": fields}, y],
            "launch": {"grid": {"x": 1}, "block": {"x": 1}}}}, "num_trials": 1, "return_outputs": "all"})
    };
    let report = server.evaluate(&of(256));
    let data = report["outputs"]["y"]["data"]["data_b64"].as_str();
    assert_eq!(
        data.or(report["outputs"]["y"]["data_b64"].as_str()),
        Some("/wAAAA=="),
        "{report:#}"
    );

    // The elements of an array are one field.
    let mut array = of(2);
    let kernel = &mut array["kernel"];
    kernel["source_code"] = json!(
        "struct Layer { short a[2][600]; float f; };\nstruct P { int n; Layer in[3]; };\n\
         __global__ void k(P p, int* y) { int s = p.n; for (int i = 0; i < 3; i++) { s += (int)p.in[i].f; for (int j = 0; \
         j < 1200; j++) s += p.in[i].a[j / 600][j % 600] * (j + i); } y[0] = s; }"
    );
    let rows: Value =
        (0..2).map(|row| (0..600).map(|at| row + at % 7).collect()).collect::<Vec<Vec<_>>>().into();
    let inner = |at: usize| json!({"a": rows, "f": at});
    kernel["io"]["args"][0]["fields"] = json!({"n": 5, "in": [inner(1), inner(2), inner(3)]});
    let sum = |at: i32| (0..1200).map(|j| (j / 600 + j % 600 % 7) * (j + at)).sum::<i32>();
    let expected = 5 + 1 + 2 + 3 + sum(0) + sum(1) + sum(2);
    let report = server.evaluate(&array);
    let data = report["outputs"]["y"]["data"]["data_b64"].as_str();
    let data = data.or(report["outputs"]["y"]["data_b64"].as_str()).unwrap_or_default();
    let bytes = STANDARD.decode(data).unwrap();
    assert_eq!(bytes, expected.to_le_bytes(), "{report:#}");

    let mut two = of(200);
    let second = json!({"name": "q", "type": "struct",
        "fields": (0..100).map(|at| (format!("g{at}"), json!(at))).collect::<serde_json::Map<_, _>>()});
    two["kernel"]["io"]["args"].as_array_mut().unwrap().push(second);
    let answer = server.post_json("/evaluate", &two);
    assert!(answer.text.contains("300 different fields"), "{}", answer.text);
}

#[test]
fn nvcc_tells_the_layout_of_structures_too() {
    needs!("nvcc", has_nvcc());
    let server = Server::start();
    let mut contract = structured();
    contract["kernel"]["metadata"] = json!({"backend": "nvcc"});
    let report = server.evaluate(&contract);
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

#[test]
fn a_structure_that_does_not_fit_is_reported_by_its_field() {
    let server = Server::start();
    let says = |change: &dyn Fn(&mut Value), why: &str| {
        let mut contract = structured();
        change(&mut contract["kernel"]["io"]["args"][0]["fields"]);
        let answer = server.post_json("/evaluate", &contract);
        assert!(answer.text.contains(why), "{why}: {}", answer.text);
        assert_eq!(answer.status, 400, "{}", answer.text);
    };
    says(&|fields| fields["lacks"] = json!(1), "no field `lacks`");
    says(&|fields| fields["mode"] = json!(1.5), "whole numbers");
    says(&|fields| fields["spare"][0] = json!(7), "a pointer takes a tensor");
    says(&|fields| fields["x"] = json!("y"), "(p, hidden, tile, x)");
    says(&|fields| fields["mode"] = json!("x"), "is passed as a pointer");
    says(&|fields| fields["weights"]["w"] = json!(1), "is an array");
    says(&|fields| fields["weights"] = json!(1), "give its fields");
    says(&|fields| fields["x"] = json!("nothing"), "no argument `nothing`");
    says(&|fields| fields["n"] = json!("p"), "names a structure");
    says(&|fields| fields["n"] = json!("hidden"), "names a structure");
    says(&|fields| fields["bad name"] = json!(1), "not the name of a field");
    says(
        &|fields| drop(fields.as_object_mut().unwrap().remove("weights")),
        "that is not in `fields`",
    );
    says(&|fields| drop(fields.as_object_mut().unwrap().remove("big")), "that is not in `fields`");
    says(&|fields| fields["weights"]["w"] = json!(vec![1; 300]), "`weights.w` has 3 elements");
    says(&|fields| fields["weights"]["w"] = json!(vec![1; 40_000]), "at most 32764 values");
}

const FILTERED: &str = r#"
namespace filters { __constant__ float taps[5]; }
namespace { __device__ int positive; }
extern "C" __global__ void filtered(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int t = 0; t < 5; ++t) sum += filters::taps[t] * x[(i + t) % n];
    y[i] = sum;
    if (x[i] > 0) atomicAdd(&positive, 1);
}"#;

/// Takes what `FILTERED` has in variables as parameters.
const PLAIN_FILTER: &str = r#"
extern "C" __global__ void plain(const float* x, const float* taps, float* y, int* positive, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int t = 0; t < 5; ++t) sum += taps[t] * x[(i + t) % n];
    y[i] = sum;
    if (x[i] > 0) atomicAdd(positive, 1);
}"#;

fn filtered() -> Value {
    let mut taps = tensor("taps", "input", json!([5]));
    taps["symbol"] = json!("filters::taps");
    let positive = json!({"name": "positive", "type": "tensor", "role": "inout", "symbol": "positive",
        "tensor_spec": {"shape": [1], "dtype": "int32", "init": {"kind": "zeros"}}});
    let reference = json!({"kernel_type": "cuda", "source_code": PLAIN_FILTER});
    json!({
        "kernel": {"kernel_type": "cuda", "source_code": FILTERED, "io": {
            "args": [tensor("x", "input", json!(["n"])), taps, tensor("y", "output", json!(["n"])),
                     positive, {"name": "n", "type": "int", "value": 300}],
            "launch": {"grid": {"x": "cdiv(n, 64)"}, "block": {"x": 64}},
        }},
        "expected": {"y": {"kernel": reference}, "positive": {"kernel": reference}},
        "num_trials": 5,
    })
}

#[test]
fn variables_of_the_image_are_filled_before_each_launch_and_read_after_it() {
    let server = Server::start();
    let mut contract = filtered();
    contract["return_outputs"] = json!(["positive"]);
    is_correct_with_fresh_inputs(&server, &contract);
    // The reference has the variables, and the candidate takes parameters.
    let kernel = filtered()["kernel"].clone();
    let request = json!({"ref_kernel": kernel, "custom_kernel":
        {"kernel_type": "cuda", "source_code": PLAIN_FILTER}, "num_trials": 3});
    let report = server.post_json("/compare", &request).json;
    assert_eq!(report["verdict"], "correct", "{report:#}");

    // The candidate lists its arguments, and has no variables.
    let mut candidate =
        json!({"kernel_type": "cuda", "source_code": PLAIN_FILTER, "io": kernel["io"]});
    for arg in candidate["io"]["args"].as_array_mut().unwrap() {
        arg.as_object_mut().unwrap().remove("symbol");
    }
    let request = json!({"ref_kernel": kernel, "custom_kernel": candidate, "num_trials": 3});
    let report = server.post_json("/compare", &request).json;
    assert_eq!(report["verdict"], "correct", "{report:#}");

    for (from, to) in [("taps[t] *", "taps[4 - t] *"), ("x[i] > 0", "x[i] > 0.01f")] {
        let mut wrong = filtered();
        wrong["kernel"]["source_code"] = json!(FILTERED.replace(from, to));
        assert_eq!(server.evaluate(&wrong)["verdict"], "wrong", "{to}");
    }
    // A step of a list, and a memory check.
    let mut steps = filtered();
    let launch = steps["kernel"]["io"].as_object_mut().unwrap().remove("launch").unwrap();
    let mut step = json!({"kernel": "filtered", "args": ["x", "y", "n"]});
    step.as_object_mut().unwrap().extend(launch.as_object().unwrap().clone());
    steps["kernel"]["launches"] = json!([step]);
    for expected in steps["expected"].as_object_mut().unwrap().values_mut() {
        expected["kernel"]["io"] = json!({"launch": launch});
    }
    steps["sanitize"] = json!(true);
    let report = server.evaluate(&steps);
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

#[test]
fn constant_memory_that_nothing_fills_is_reported() {
    let server = Server::start();
    let mut contract = filtered();
    let warns = |report: &Value| {
        let diagnostics = report["compile"]["diagnostics"].as_array().cloned().unwrap_or_default();
        diagnostics.iter().any(|one| one["message"].as_str().unwrap().contains("`filters::taps`"))
    };
    assert!(!warns(&server.evaluate(&contract)));
    let args = contract["kernel"]["io"]["args"].as_array_mut().unwrap();
    args.remove(1);
    contract.as_object_mut().unwrap().remove("expected");
    assert!(warns(&server.evaluate(&contract)));
}

#[test]
fn a_variable_that_is_not_there_is_reported_with_those_that_are() {
    let server = Server::start();
    let says = |change: &dyn Fn(&mut Value), why: &str| {
        let mut contract = filtered();
        change(&mut contract["kernel"]["io"]["args"][1]);
        let answer = server.post_json("/evaluate", &contract);
        assert!(answer.text.contains(why), "{why}: {}", answer.text);
        assert_eq!(answer.status, 400, "{}", answer.text);
    };
    says(&|taps| taps["symbol"] = json!("filters::tap"), "`filters::taps`");
    says(
        &|taps| taps["tensor_spec"]["shape"] = json!([6]),
        "has 20 bytes, but tensor `taps` has 24",
    );
    says(&|taps| taps["symbol"] = json!(" "), "name of a variable");
    let mut twice = filtered();
    let mut other = twice["kernel"]["io"]["args"][1].clone();
    other["name"] = json!("other");
    twice["kernel"]["io"]["args"].as_array_mut().unwrap().push(other);
    twice.as_object_mut().unwrap().remove("expected");
    let answer = server.post_json("/evaluate", &twice);
    assert!(answer.status == 400 && answer.text.contains("another tensor"), "{}", answer.text);
    says(
        &|taps| *taps = json!({"name": "taps", "type": "int", "value": 1, "symbol": "taps"}),
        "can be a variable of the image",
    );
}
