//! Element types of complex and packed numbers and of scales: contracts from their content to the verdict.

use serde_json::{Value, json};

use crate::server::Server;

/// A contract with an input `x`, an output `y`, and a reference with another body.
fn request(tensors: [Value; 2], parameters: &str, bodies: [&str; 2]) -> Value {
    let kernel = |body: &str| {
        let source = format!(
            "#include <cuda_fp16.h>\nextern \"C\" __global__ void k({parameters}) {{\n    const int i = blockIdx.x * \
             blockDim.x + threadIdx.x;\n    {body}\n}}"
        );
        json!({"kernel_type": "cuda", "source_code": source})
    };
    let [x, y] = tensors;
    let mut candidate = kernel(bodies[0]);
    candidate["io"] = json!({
        "args": [
            {"name": "x", "type": "tensor", "tensor_spec": x},
            {"name": "y", "type": "tensor", "role": "output", "tensor_spec": y},
        ],
        "launch": {"grid": {"x": 8}, "block": {"x": 128}},
    });
    json!({
        "kernel": candidate, "num_trials": 5, "return_outputs": "all",
        "expected": {"y": {"kernel": kernel(bodies[1])}},
    })
}

fn complex(dtype: &str, body: &str) -> Value {
    let number = if dtype == "complex64" { "float2" } else { "double2" };
    let tensor = |init: Option<Value>| {
        let mut spec = json!({"shape": [8, 128], "dtype": dtype});
        if let Some(init) = init {
            spec["init"] = init;
        }
        spec
    };
    let square = "y[i].x = x[i].x * x[i].x - x[i].y * x[i].y; y[i].y = 2 * x[i].x * x[i].y;";
    request(
        [tensor(Some(json!({"kind": "randn", "seed": 5}))), tensor(None)],
        &format!("const {number}* x, {number}* y"),
        [body, square],
    )
}

const HONEST: &str =
    "auto a = x[i]; y[i].x = (a.x - a.y) * (a.x + a.y); y[i].y = a.x * a.y + a.y * a.x;";

#[test]
fn complex_results_are_compared_part_by_part() {
    let server = Server::start();
    for dtype in ["complex64", "cdouble"] {
        let number = if dtype == "cdouble" { "complex128" } else { dtype };
        let mut honest = complex(number, HONEST);
        for arg in honest["kernel"]["io"]["args"].as_array_mut().unwrap() {
            arg["tensor_spec"]["dtype"] = json!(dtype);
        }
        let report = server.evaluate(&honest);
        assert_eq!(report["verdict"], "correct", "{dtype}: {report:#}");
        let comparison = &report["validation"]["outputs"]["y"];
        assert_eq!(comparison["elements"], 2048, "{comparison:#}");
        let output = &report["outputs"]["y"];
        assert_eq!((&output["dtype"], &output["shape"]), (&json!(number), &json!([8, 128])));
        let conjugate = format!("{HONEST} if (i == 300) y[i].y = -y[i].y;");
        let report = server.evaluate(&complex(number, &conjugate));
        assert_eq!(report["verdict"], "wrong", "{dtype}: {report:#}");
        let mismatch = &report["validation"]["outputs"]["y"]["first_mismatches"];
        assert_eq!(mismatch[0]["index"], json!([2, 44, 1]), "{mismatch:#}");
        assert_eq!(mismatch.as_array().unwrap().len(), 1, "{mismatch:#}");
        // Real parts alone are unwritten elsewhere.
        let report =
            server.evaluate(&complex(number, "y[i].x = (x[i].x - x[i].y) * (x[i].x + x[i].y);"));
        assert_eq!(report["validation"]["reasons"][0]["code"], "output_unwritten", "{report:#}");
    }
}

#[test]
fn constant_complex_content_is_real_and_travels_as_numpy_has_it() {
    let server = Server::start();
    let copy = "y[i] = x[i];";
    let mut contract = complex("complex64", copy);
    contract["kernel"]["io"]["args"][0]["tensor_spec"]["init"] =
        json!({"kind": "full", "fill_value": 2.5});
    contract["expected"] = json!({});
    contract["output_encoding"] = json!({"format": "npy"});
    let report = server.evaluate(&contract);
    let output = &report["outputs"]["y"];
    assert_eq!(output["format"], "npy", "{report:#}");
    let mut again = complex("complex64", copy);
    again["kernel"]["io"]["args"][0]["tensor_spec"]["init"] =
        json!({"kind": "full", "fill_value": 2.5});
    again["expected"] = json!({"y": {"data": {"data_b64": output["data_b64"], "format": "npy"}}});
    again["allow_weak"] = json!(true);
    let report = server.evaluate(&again);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    // The same bytes are no float32 tensor of that shape.
    again["kernel"]["io"]["args"][1]["tensor_spec"]["dtype"] = json!("float32");
    let answer = server.post_json("/evaluate", &again);
    assert!(answer.status == 400 && answer.text.contains("<c8"), "{}", answer.text);
}

#[test]
fn content_that_complex_numbers_cannot_have_is_refused_at_its_path() {
    let server = Server::start();
    for (init, field, words) in [
        (json!({"kind": "permutation"}), "kind", "complex64"),
        (json!({"kind": "sorted"}), "kind", "`sorted`"),
        (json!({"kind": "uniform", "columns": [{"low": 0, "high": 1}]}), "columns", "complex64"),
        (json!({"kind": "arange", "step": 0}), "step", "zero"),
    ] {
        let mut contract = complex("complex64", HONEST);
        contract["kernel"]["io"]["args"][0]["tensor_spec"]["init"] = init.clone();
        let answer = server.post_json("/evaluate", &contract);
        assert_eq!(answer.status, 400, "{init}: {}", answer.text);
        let path = format!("kernel.io.args[0].tensor_spec.init.{field}");
        let text = &answer.text;
        assert!(text.contains(&path) && text.contains(words), "{init}: {text}");
    }
}

/// Blocks of 32 numbers as E2M1 with a scale of E8M0, as in MXFP4; `first` and `second` encode a pair.
fn quantising(first: &str, second: &str, scale: &str) -> Value {
    let body = format!(
        "float most = 0; for (int k = 0; k < 32; k++) most = fmaxf(most, fabsf(x[32 * i + k]));\n    int e = \
         (int)((__float_as_uint(most) >> 23) & 255) - 127 - 2;\n    s[i] = (unsigned char)({scale});\n    float r = \
         __uint_as_float((unsigned)(127 - e) << 23);\n    for (int k = 0; k < 16; k++) {{ float a = x[32 * i + 2 * k] \
         * r, b = x[32 * i + 2 * k + 1] * r; q[16 * i + k] = (unsigned char)(code({first}) | code({second}) << 4); }}"
    );
    let source = format!(
        "static __device__ int code(float v) {{ float a = fabsf(v); int c = (a > 0.25f) + (a >= 0.75f) + (a > 1.25f) + \
         (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.0f); return c | (v < 0 ? 8 : 0); }}\nextern \"C\" \
         __global__ void k(const float* x, unsigned char* q, unsigned char* s) {{\n    const int i = blockIdx.x * \
         blockDim.x + threadIdx.x;\n    {body}\n}}"
    );
    json!({"kernel_type": "cuda", "source_code": source})
}

fn quantised(candidate: Value) -> Value {
    let mut kernel = candidate;
    let tensor = |name: &str, role: &str, spec: Value| json!({"name": name, "type": "tensor", "role": role, "tensor_spec": spec});
    kernel["io"] = json!({
        "args": [
            tensor("x", "input", json!({"shape": [64, 64], "init": {"kind": "randn", "seed": 1}})),
            tensor("q", "output", json!({"shape": [64, 32], "dtype": "float4_e2m1fn_x2"})),
            tensor("s", "output", json!({"shape": [64, 2], "dtype": "float8_e8m0fnu"})),
        ],
        "launch": {"grid": {"x": 1}, "block": {"x": 128}},
    });
    let reference = json!({"kernel": quantising("a", "b", "e + 127")});
    json!({"kernel": kernel, "num_trials": 5, "expected": {"q": reference, "s": reference}})
}

#[test]
fn packed_floats_and_their_scales_are_judged_by_number() {
    let server = Server::start();
    let report = server.evaluate(&quantised(quantising("a + 0", "b + 0", "127 + e")));
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let outputs = &report["validation"]["outputs"];
    assert_eq!((&outputs["q"]["elements"], &outputs["s"]["elements"]), (&json!(4096), &json!(128)));
    assert_eq!(outputs["q"]["tolerance"]["basis"], "element_type");
    assert_eq!(outputs["s"]["tolerance"]["basis"], "exact");
    // Both numbers of each byte change places.
    let report = server.evaluate(&quantised(quantising("b", "a", "127 + e")));
    assert_eq!(report["verdict"], "wrong", "{report:#}");
    let found = &report["validation"]["outputs"]["q"]["first_mismatches"];
    let columns = found.as_array().unwrap().iter().map(|one| one["index"][1].as_u64().unwrap());
    assert!(columns.clone().any(|at| at >= 1) && columns.clone().all(|at| at < 64), "{found:#}");
    // A scale that is one step off.
    let report = server.evaluate(&quantised(quantising("a", "b", "e + 128")));
    let outputs = &report["validation"]["outputs"];
    assert_eq!((&outputs["q"]["passed"], &outputs["s"]["passed"]), (&json!(true), &json!(false)));
    assert_eq!(outputs["s"]["first_mismatches"].as_array().unwrap().len(), 10);
    // Bytes that are never written.
    let report =
        server.evaluate(&quantised(quantising("a", "b", "e + 127); if (i % 2) return; (void)(0")));
    let code = &report["validation"]["reasons"][0]["code"];
    assert!(code == "output_unwritten" || code == "output_mismatch", "{report:#}");
}

fn nibbles(dtype: &str, init: Value, body: &str) -> Value {
    let tensor = |init: Option<Value>| {
        let mut spec = json!({"shape": [8, 128], "dtype": dtype});
        if let Some(init) = init {
            spec["init"] = init;
        }
        spec
    };
    let swap = "y[i] = (unsigned char)(x[i] >> 4 | x[i] << 4);";
    let parameters = "const unsigned char* x, unsigned char* y";
    request([tensor(Some(init)), tensor(None)], parameters, [body, swap])
}

#[test]
fn packed_integers_are_exact_and_counted_one_by_one() {
    let server = Server::start();
    for (dtype, init) in [
        ("int4x2", json!({"kind": "randint", "low": -8, "high": 8, "seed": 4})),
        ("uint4x2", json!({"kind": "randn", "seed": 4})),
    ] {
        let honest = "unsigned v = x[i]; y[i] = (unsigned char)((v & 15) * 16 + v / 16);";
        let report = server.evaluate(&nibbles(dtype, init.clone(), honest));
        assert_eq!(report["verdict"], "correct", "{dtype}: {report:#}");
        assert_eq!(report["validation"]["outputs"]["y"]["elements"], 2048);
        let off = format!("{honest} if (i == 300) y[i] ^= 0x10;");
        let report = server.evaluate(&nibbles(dtype, init, &off));
        assert_eq!(report["verdict"], "wrong", "{dtype}: {report:#}");
        let found = &report["validation"]["outputs"]["y"]["first_mismatches"];
        assert_eq!(
            (found.as_array().unwrap().len(), &found[0]["index"]),
            (1, &json!([2, 89])),
            "{found}"
        );
    }
}

#[test]
fn what_packed_numbers_and_scales_cannot_be_is_refused_at_its_path() {
    let server = Server::start();
    let e2m1 = "float4_e2m1fn_x2";
    for (dtype, init, field, words) in [
        (e2m1, json!({"kind": "permutation"}), "init.kind", e2m1),
        (e2m1, json!({"kind": "uniform", "low": -8, "high": 1}), "init.low", "-6 to 6"),
        ("int4x2", json!({"kind": "randint", "low": 0, "high": 16}), "init.high", "int4x2 is 7"),
        ("uint4x2", json!({"kind": "full", "fill_value": -1}), "init.fill_value", "0 to 15"),
        ("float8_e8m0fnu", json!({"kind": "zeros"}), "init.kind", "no zero"),
        (
            "float8_e8m0fnu",
            json!({"kind": "full", "fill_value": 3}),
            "init.fill_value",
            "powers of two",
        ),
        ("int4", json!({"kind": "zeros"}), "dtype", "int4x2"),
        ("float4_e2m1fn", json!({"kind": "zeros"}), "dtype", e2m1),
    ] {
        let answer = server.post_json("/evaluate", &nibbles(dtype, init.clone(), ";"));
        assert!(matches!(answer.status, 400 | 422), "{dtype} {init}: {}", answer.text);
        let path = format!("kernel.io.args[0].tensor_spec.{field}");
        assert!(
            answer.text.contains(&path) && answer.text.contains(words),
            "{init}: {}",
            answer.text
        );
    }
    let mut arranged = nibbles("int4x2", json!({"kind": "randn"}), ";");
    arranged["compare_as"] = json!({"y": {"any_order": true}});
    let answer = server.post_json("/evaluate", &arranged);
    assert!(answer.status == 400 && answer.text.contains("compare_as"), "{}", answer.text);
}
