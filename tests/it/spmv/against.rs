//! Functions of NVIDIA's libraries in place of kernels, and kernels beside them. Their results are
//! tested on a GPU; their rejection elsewhere is tested on any machine.

use std::fs;

use serde_json::{Value, json};

use super::named::contract;
use super::{KERNEL, y};
use crate::server::{Server, data_directory, device, emulated, program};
use crate::support::outcome;

/// The request of a stored product.
fn product(method: &str, matrix: &str) -> Value {
    let mut request = json!({"mtx_filename": matrix, "method": method, "num_runs": 5});
    if method != "cusparse" {
        request["kernel"] = KERNEL.into();
        request["options"] = json!({"kernel_type": "cuda"});
    }
    request
}

/// A contract of cuSPARSE in place of the kernel.
fn library(matrix: &str) -> Value {
    let mut contract = contract(matrix);
    let kernel = &mut contract["kernel"];
    kernel["kernel_type"] = "library".into();
    kernel["metadata"] = json!({"library": "cusparse", "function": "spmv"});
    kernel.as_object_mut().unwrap().remove("source_code");
    kernel["io"].as_object_mut().unwrap().remove("launch");
    contract
}

/// The kernel beside cuSPARSE.
fn comparison(matrix: &str) -> Value {
    let (reference, kernel) = (library(matrix), contract(matrix));
    json!({"ref_kernel": reference["kernel"], "custom_kernel": kernel["kernel"], "rtol": 1e-4, "atol": 1e-4})
}

/// A product of dense matrices by cuBLAS, and the kernel that it is checked against.
fn gemm(dtype: &str, c_type: &str) -> Value {
    let tensor = |name: &str, shape: [u32; 2]| {
        json!({"name": name, "type": "tensor", "tensor_spec": {
            "shape": shape, "dtype": dtype, "init": {"kind": "uniform", "low": -1, "high": 1, "seed": 3}}})
    };
    let source = format!(
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n\
         extern \"C\" __global__ void product(const {c_type}* a, const {c_type}* b, {c_type}* c) {{\n\
             int i = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;\n\
             if (j >= 70) return;\n\
             double sum = 0;\n\
             for (int k = 0; k < 50; ++k) sum += (double)(float)a[i * 50 + k] * (double)(float)b[k * 70 + j];\n\
             c[i * 70 + j] = ({c_type})(float)sum;\n\
         }}\n"
    );
    json!({
        "kernel": {
            "kernel_type": "library", "metadata": {"library": "cublas"},
            "io": {"args": [
                tensor("a", [30, 50]), tensor("b", [50, 70]),
                {"name": "c", "type": "tensor", "role": "output",
                 "tensor_spec": {"shape": [30, 70], "dtype": dtype}},
            ]},
        },
        "expected": {"c": {"kernel": {
            "kernel_type": "cuda", "source_code": source, "metadata": {"kernel_name": "product"},
            "io": {"launch": {"grid": {"x": 1, "y": 30}, "block": {"x": 96}}},
        }}},
        "tolerance": {"atol": 0.05, "rtol": 0.02},
        "num_trials": 5,
    })
}

#[test]
fn where_there_is_no_gpu_libraries_are_refused_with_the_reason() {
    needs!("the emulated device", emulated());
    let server = Server::start();
    let matrix = "poisson2d:nx=9";
    for (path, body) in [
        ("/execute_spmv_mtx", product("cusparse", matrix)),
        ("/execute_spmv_mtx", product("all", matrix)),
        ("/evaluate", library(matrix)),
        ("/evaluate?wait=false", library(matrix)),
        ("/compare", comparison(matrix)),
        ("/evaluate", gemm("float32", "float")),
    ] {
        let answer = server.post_json(path, &body);
        assert_eq!(answer.status, 400, "{path}: {}", answer.text);
        let library =
            if body["kernel"]["metadata"]["library"] == "cublas" { "cuBLAS" } else { "cuSPARSE" };
        let reason = format!("the emulated device has no {library}");
        assert!(answer.text.contains(&reason), "{path}: {}", answer.text);
        assert!(answer.text.contains("unmet_requirements"), "{path}: {}", answer.text);
    }
    // Of two methods none has begun.
    let jobs = server.get("/jobs").json;
    assert_eq!(jobs["jobs"], json!([]), "{jobs}");
    let capabilities = server.get("/capabilities").json;
    let tools = capabilities["tools"].as_array().unwrap();
    for name in ["cusparse", "cublas"] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(tool["available"], false, "{tool}");
        assert!(tool["reason"].is_string() && tool["remedy"].is_string(), "{tool}");
    }
    assert!(!capabilities["kernel_types"].to_string().contains("library"), "{capabilities}");
}

#[test]
fn methods_are_named_and_take_a_kernel_or_none() {
    let server = Server::start();
    let mut without = product("all", "poisson2d:nx=9");
    without.as_object_mut().unwrap().remove("kernel");
    let mut with = product("cusparse", "poisson2d:nx=9");
    with["kernel"] = KERNEL.into();
    for (request, path, said) in [
        (product("magma", "poisson2d:nx=9"), "method", "custom, cusparse or all"),
        (without, "kernel", "needs a kernel"),
        (with, "kernel", "takes no kernel"),
    ] {
        let answer = server.post_json("/execute_spmv_mtx", &request);
        assert_eq!((answer.status, answer.json["path"].as_str()), (400, Some(path)));
        assert!(answer.json["error"].as_str().unwrap().contains(said), "{}", answer.text);
    }
    let compiled = json!({"kernel": library("poisson2d:nx=9")["kernel"]});
    let answer = server.post_json("/compile", &compiled);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("called and not compiled"), "{}", answer.text);
}

#[test]
fn the_table_says_why_there_is_nothing_to_compare_with() {
    needs!("the emulated device", emulated());
    let folder = data_directory();
    fs::write(folder.path().join("spmv.cu"), KERNEL).unwrap();
    let run = |more: &[&str]| {
        let mut command = program();
        command.current_dir(folder.path()).env("WARPGAUGE_DATA_DIR", folder.path());
        let args = ["spmv", "poisson2d:nx=9", "banded:n=20,half=1", "--kernel", "spmv.cu"];
        command.args(["--device", &device()]).args(args).args(["--trials", "2"]);
        outcome(command.args(["--against", "cusparse"]).args(more).output().unwrap())
    };
    let (code, table, error) = run(&[]);
    assert_eq!(code, 0, "{table}\n{error}");
    assert!(table.lines().next().unwrap().ends_with("x cuSPARSE"), "{table}");
    assert!(table.lines().nth(1).unwrap().ends_with('-'), "{table}");
    assert!(table.contains("no times of cuSPARSE: "), "{table}");
    assert_eq!(table.matches("the emulated device has no cuSPARSE").count(), 1, "{table}");
    let (code, text, error) = run(&["--json"]);
    assert_eq!(code, 0, "{text}\n{error}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert!(answer["not_compared"].as_str().unwrap().contains("no cuSPARSE"), "{answer}");
    assert_eq!(answer["rows"][1]["verdict"], "correct");
    assert!(answer["rows"][1].get("x_of_cusparse").is_none(), "{answer}");
}

#[test]
fn cusparse_multiplies_and_is_timed_and_checked_as_kernels_are() {
    needs!("a GPU", !emulated());
    let server = Server::start();
    for matrix in ["poisson2d:nx=100", "random:rows=3000,nnz_per_row=7,long_rows=2"] {
        let own = server.post_json("/execute_spmv_mtx", &product("custom", matrix)).json;
        let theirs = server.post_json("/execute_spmv_mtx", &product("cusparse", matrix));
        assert_eq!(theirs.status, 200, "{}", theirs.text);
        let theirs = theirs.json;
        assert_eq!(theirs["success"], true, "{theirs}");
        assert_eq!(theirs["result"]["method"], "cusparse");
        assert_eq!(theirs["result"]["num_runs"], 5);
        assert!(theirs["result"]["execution_time_ms"].as_f64().unwrap() > 1e-3, "{theirs}");
        for (own, theirs) in y(&own).into_iter().zip(y(&theirs)) {
            assert!((own - theirs).abs() <= 1e-4 * own.abs().max(1.0), "{own} {theirs}");
        }
        let both = server.post_json("/execute_spmv_mtx", &product("all", matrix)).json;
        assert_eq!(both["success"], true, "{both}");
        assert_eq!(both["result"], both["results"]["custom"]["result"]);
        assert_eq!(both["results"]["cusparse"]["result"]["method"], "cusparse");
        assert!(both["x_of_cusparse"].as_f64().unwrap() > 0.0, "{both}");
        let job = both["results"]["cusparse"]["job_id"].as_str().unwrap();
        let job = server.get(&format!("/jobs/{job}")).json;
        assert_eq!(job["result"]["compile"]["compiler"], "cuSPARSE", "{job}");
    }
    let mut double = product("cusparse", "poisson3d:nx=20");
    double["options"] = json!({"dtype": "float64", "isolation": "sealed"});
    let answer = server.post_json("/execute_spmv_mtx", &double).json;
    assert_eq!(answer["success"], true, "{answer}");
    let mut fresh = library("banded:n=5000,half=3");
    fresh["num_trials"] = 50.into();
    let report = server.evaluate(&fresh);
    assert_eq!(report["validation"]["status"], "passed", "{report}");
    assert_eq!(report["failure"], Value::Null, "{report}");
}

#[test]
fn a_kernel_is_compared_with_cusparse_on_the_same_matrix() {
    needs!("a GPU", !emulated());
    let server = Server::start();
    let matrix = "poisson2d:nx=300";
    let answer = server.post_json("/compare", &comparison(matrix));
    assert_eq!(answer.status, 200, "{}", answer.text);
    let candidate = &answer.json["candidates"][0];
    assert!(candidate["comparison"]["verdict"].is_string(), "{}", answer.text);
    let why = candidate["no_code_diff"].as_str().unwrap();
    assert!(why.contains("not listed"), "{why}");
    // What the library computes is expected of the kernel.
    let mut expecting = contract(matrix);
    let library = library(matrix)["kernel"]["metadata"].clone();
    expecting["expected"] =
        json!({"y": {"kernel": {"kernel_type": "library", "metadata": library}}});
    expecting["tolerance"] = json!({"atol": 1e-4, "rtol": 1e-4});
    assert_eq!(server.evaluate(&expecting)["validation"]["status"], "passed");
    expecting["kernel"]["source_code"] = KERNEL.replace("sum += ", "sum -= ").into();
    assert_eq!(server.evaluate(&expecting)["validation"]["status"], "failed");
}

#[test]
fn cublas_multiplies_matrices_that_lie_by_rows() {
    needs!("a GPU", !emulated());
    let server = Server::start();
    for (dtype, c_type) in [
        ("float32", "float"),
        ("float64", "double"),
        ("float16", "__half"),
        ("bfloat16", "__nv_bfloat16"),
    ] {
        let report = server.evaluate(&gemm(dtype, c_type));
        assert_eq!(report["validation"]["status"], "passed", "{dtype}: {report}");
        assert!(report["kernel_exec_result"]["runtime"].is_f64(), "{dtype}: {report}");
    }
}

#[test]
fn the_table_has_times_of_cusparse_beside_those_of_the_kernel() {
    needs!("a GPU", !emulated());
    let folder = data_directory();
    fs::write(folder.path().join("spmv.cu"), KERNEL).unwrap();
    let mut command = program();
    command.current_dir(folder.path()).env("WARPGAUGE_DATA_DIR", folder.path());
    let args = ["spmv", "poisson2d:nx=200", "--kernel", "spmv.cu", "--against", "cusparse"];
    command.args(["--device", &device()]).args(args).args(["--json", "--svg", "t.svg"]);
    let (code, text, error) = outcome(command.output().unwrap());
    assert_eq!(code, 0, "{text}\n{error}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let row = &answer["rows"][0];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{answer}"));
    let times = number(&row["cusparse"]["median_ms"]) / number(&row["median_ms"]);
    assert!((number(&row["x_of_cusparse"]) - times).abs() < 1e-9, "{row}");
    let drawn = fs::read_to_string(folder.path().join("t.svg")).unwrap();
    assert!(drawn.contains("cuSPARSE: "), "{drawn}");
}
