//! Element types whose elements hold several numbers: contracts with complex tensors, from their content to the verdict.

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
