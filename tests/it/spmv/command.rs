//! `warpgauge spmv`, and `warpgauge eval` with matrices of files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::KERNEL;
use super::files::spasm;
use super::matrices::{GENERAL, SYMMETRIC, upload};
use super::named::contract;
use crate::server::{Server, data_directory, device, emulated, program};
use crate::support::outcome;

/// A folder with a kernel, and two matrices.
fn folder() -> tempfile::TempDir {
    let folder = data_directory();
    fs::write(folder.path().join("spmv.cu"), KERNEL).unwrap();
    fs::create_dir(folder.path().join("all")).unwrap();
    fs::write(folder.path().join("all/s.mtx"), SYMMETRIC).unwrap();
    fs::write(folder.path().join("all/g.mtx"), GENERAL).unwrap();
    fs::write(folder.path().join("all/notes.txt"), "no matrix").unwrap();
    folder
}

/// Runs the program in a folder, on this machine.
fn here(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = program();
    command.current_dir(folder).env("WARPGAUGE_DATA_DIR", folder);
    outcome(command.args(["--device", &device()]).args(args).output().unwrap())
}

#[test]
fn a_folder_a_file_and_a_generated_matrix_are_a_table() {
    let folder = folder();
    let args =
        ["spmv", "all", "all/s.mtx", "poisson2d:nx=9", "--kernel", "spmv.cu", "--trials", "2"];
    let (code, table, error) = here(folder.path(), &[&args[..], &["--svg", "t.svg"]].concat());
    assert_eq!(code, 0, "{table}\n{error}");
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    let first: Vec<&[&str]> = rows[..5].iter().map(|row| &row[..4]).collect();
    assert_eq!(
        first,
        [
            ["matrix", "rows", "nnz", "verdict"],
            ["g.mtx", "2", "3", "correct"],
            ["s.mtx", "3", "5", "correct"],
            ["s.mtx", "3", "5", "correct"],
            ["poisson2d:nx=9", "81", "369", "correct"],
        ],
        "{table}"
    );
    assert!(table.contains("\nbytes: "), "{table}");
    let drawn = fs::read_to_string(folder.path().join("t.svg")).unwrap();
    assert!(drawn.contains("poisson2d:nx=9") && drawn.contains("</svg>"), "{drawn}");
    the_rest_needs!("the emulated device", emulated());
    assert!(table.contains("share of the roofline"), "{table}");
    assert!(drawn.contains("do not predict those on a GPU"), "{drawn}");
    assert!(rows[1].ends_with(&["-", "-", "-"]), "no rates: {table}");
}

#[test]
fn a_kernel_says_what_its_parameters_are() {
    let kernels = crate::server::root().join("kernels");
    let folder = data_directory();
    // The example has its arguments in another order than the format of the flag.
    let order = "num_rows,ell_width,ell_col_indices,ell_values,x,y";
    let file = kernels.join("spmv_ell/kernel.cu");
    let common = ["--kernel-name", "spmv_ell", "--trials", "1", "--json", "banded:n=50,half=2"];
    let args = [&["spmv", "--kernel", file.to_str().unwrap(), "--args", order], &common[..]];
    let (code, text, error) = here(folder.path(), &args.concat());
    assert_eq!(code, 0, "{text}\n{error}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(answer["rows"][0]["verdict"], "correct", "{answer}");
    assert_eq!(answer["rows"][0]["used"]["origin"], "generated");
    // The parameters of another format do not fit the kernel's.
    let args = [&["spmv", "--kernel", file.to_str().unwrap(), "--format", "csr"], &common[..]];
    let (code, text, _) = here(folder.path(), &args.concat());
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("does not fit parameter `int width`"), "{text}");
    // A kernel that adds needs zeros, which `--format coo` gives.
    fs::write(folder.path().join("coo.cu"), COO).unwrap();
    let args =
        ["spmv", "--kernel", "coo.cu", "--kernel-name", "coo", "--format", "coo", "--trials", "3"];
    let (code, text, error) =
        here(folder.path(), &[&args[..], &["random:rows=70,nnz_per_row=3,long_rows=1"]].concat());
    assert_eq!(code, 0, "{text}\n{error}");
}

const COO: &str = r#"
extern "C" __global__ void coo(int nnz, const float* values, const int* rows, const int* cols,
                               const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < nnz) atomicAdd(&y[rows[i]], values[i] * x[cols[i]]);
}
"#;

#[test]
fn what_cannot_be_multiplied_is_a_row_and_a_code() {
    let folder = folder();
    fs::write(folder.path().join("all/broken.mtx"), "%%MatrixMarket matrix nonsense\n").unwrap();
    let args =
        ["spmv", "all", "poisson2d:nx=999999999", "--kernel", "spmv.cu", "--trials", "1", "--json"];
    let (code, text, error) = here(folder.path(), &args);
    assert_eq!(code, 2, "{text}\n{error}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let verdicts: Vec<&str> = answer["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(verdicts, ["invalid", "correct", "correct", "invalid"], "{answer}");
    let reason = answer["rows"][3]["reason"].as_str().unwrap();
    assert!(reason.contains("at most"), "{reason}");
    for (args, said) in [
        (vec!["spmv", "no.mtx", "--kernel", "spmv.cu"], "no such file"),
        (vec!["spmv", "all", "--kernel", "all/notes.txt"], "expected a kernel"),
        (vec!["spmv", "all", "--kernel", "spmv.cu", "--args", "values,x"], "`y`"),
        (vec!["spmv", ".", "--kernel", "spmv.cu"], "no .mtx or .spasm file"),
    ] {
        let (code, _, error) = here(folder.path(), &args);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(said), "{error}");
    }
    fs::write(folder.path().join("wrong.cu"), KERNEL.replace("sum += ", "sum -= ")).unwrap();
    let wrong = ["spmv", "all/s.mtx", "--kernel", "wrong.cu", "--trials", "1"];
    assert_eq!(here(folder.path(), &wrong).0, 4);
    fs::write(folder.path().join("not.cu"), "int").unwrap();
    assert_eq!(here(folder.path(), &["spmv", "all/s.mtx", "--kernel", "not.cu"]).0, 3);
}

#[test]
fn at_a_server_files_travel_and_uploaded_matrices_have_names() {
    let server = Server::start();
    let folder = folder();
    assert_eq!(upload(&server, "kept.mtx", SYMMETRIC, None).status, 200);
    let args = ["spmv", "all/g.mtx", "kept.mtx", "--kernel", "spmv.cu", "--trials", "1", "--json"];
    let args = [&args[..], &["--server", &server.url]].concat();
    let (code, text, error) = here(folder.path(), &args);
    assert_eq!(code, 0, "{text}\n{error}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    let origins: Vec<&Value> =
        answer["rows"].as_array().unwrap().iter().map(|row| &row["used"]["origin"]).collect();
    assert_eq!(origins, ["file", "stored"], "{answer}");
}

#[test]
fn a_spasm_file_is_multiplied_by_itself_in_a_folder_and_beside_a_contract() {
    let folder = folder();
    fs::create_dir(folder.path().join("binary")).unwrap();
    fs::write(folder.path().join("binary/a.spasm"), spasm()).unwrap();
    let common = ["--kernel", "spmv.cu", "--trials", "1", "--json"];
    let args = [&["spmv", "binary", "binary/a.spasm"], &common[..]].concat();
    let (code, text, error) = here(folder.path(), &args);
    assert_eq!(code, 0, "{text}\n{error}");
    let answer: Value = serde_json::from_str(&text).unwrap();
    for row in answer["rows"].as_array().unwrap() {
        assert_eq!((&row["verdict"], &row["used"]["nnz"]), (&json!("correct"), &json!(3)), "{row}");
    }
    let named = contract("./binary/a.spasm").to_string();
    fs::write(folder.path().join("c.json"), named).unwrap();
    let (code, out, error) = here(folder.path(), &["eval", "c.json"]);
    assert_eq!(code, 0, "{out}\n{error}");
}

#[test]
fn a_contract_names_a_file_beside_it() {
    let folder = folder();
    let text = contract("./all/s.mtx").to_string();
    fs::write(folder.path().join("c.json"), &text).unwrap();
    // Relative to the contract, not to where the command is given.
    let file = folder.path().join("c.json");
    let elsewhere = data_directory();
    let mut command = program();
    command.current_dir(elsewhere.path()).env("WARPGAUGE_DATA_DIR", folder.path());
    let args = ["--device", &device(), "eval", file.to_str().unwrap(), "--json"];
    let (code, out, error) = outcome(command.args(args).output().unwrap());
    assert_eq!(code, 0, "{out}\n{error}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let used = &report["matrices"][0];
    assert_eq!((&used["origin"], &used["nnz"]), (&json!("file"), &json!(5)));
    assert_eq!(used["blake3"], blake3::hash(SYMMETRIC.as_bytes()).to_hex().as_str());
    // A server is never told to read one.
    let server = Server::start();
    let answer = server.post_json("/evaluate", &contract("./all/s.mtx"));
    assert_eq!(answer.status, 400, "{}", answer.json);
    fs::write(folder.path().join("d.json"), contract("./all/none.mtx").to_string()).unwrap();
    let (code, _, error) = here(folder.path(), &["eval", "d.json"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("kernel.io.args[0].value_of.matrix"), "{error}");
}
