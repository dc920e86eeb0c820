//! Inferred contracts: kernels in the style of public repositories, and how many of them run at the
//! first attempt.

use std::fs;
use std::process::Stdio;

use super::{Watching, folder, names, result};
use crate::server::{data_directory, device, program, root};

/// Of thirty.
const AT_LEAST: usize = 27;

#[test]
fn most_kernels_as_one_finds_them_run_at_the_first_try() {
    let (directory, kernels) = folder();
    let data = data_directory();
    let found = root().join("tests/fixtures/found_kernels");
    let files = names(&found);
    assert_eq!(files.len(), 30);
    for file in &files {
        fs::copy(found.join(file), kernels.join(file)).unwrap();
    }
    let arguments = ["--once", "--settle", "0", "--no-profile"];
    assert!(Watching::begin(directory.path(), data.path(), &arguments).0.wait().success());
    let mut failed = Vec::new();
    for file in &files {
        let result = result(directory.path(), file.trim_end_matches(".cu"));
        assert!(!result["assumed"].as_array().unwrap().is_empty() || result["status"] == "failed");
        if result["status"] != "completed" {
            failed.push(format!("{file}: {}", result["error"]["message"]));
        }
    }
    println!("{} of 30 run at the first try", 30 - failed.len());
    assert!(30 - failed.len() >= AT_LEAST, "{failed:#?}");
}

#[test]
fn a_contract_is_written_for_people_and_evaluates() {
    let directory = tempfile::tempdir().unwrap();
    let data = data_directory();
    let kernel = directory.path().join("two.cu");
    fs::write(
        &kernel,
        "__global__ void add(const float* a, const float* b, float* c, int n) {\n\
         int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] + b[i]; }\n\
         __global__ void other(int* x) { x[threadIdx.x] = 1; }\n",
    )
    .unwrap();
    let contract = directory.path().join("contract.yaml");
    let run = |arguments: &[&str]| {
        let output = program()
            .args(arguments)
            .args(["--device", &device()])
            .env("WARPGAUGE_DATA_DIR", data.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let path = contract.to_str().unwrap();
    let init = ["init", kernel.to_str().unwrap(), "--reference", "-o", path];
    let (code, _, said) = run(&init);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("2 kernels: add, other"), "{said}");
    let text = fs::read_to_string(&contract).unwrap();
    for part in
        ["source_file: \"two.cu\"", "# input, 65536 elements", "ceil_div(n, 256)", "# expected:"]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let (code, out, said) = run(&["eval", path]);
    assert_eq!(code, Some(0), "{out}{said}");
    // What is there is not overwritten.
    let (code, _, said) = run(&init);
    assert_eq!(code, Some(2), "{said}");
    let (code, out, _) = run(&["init", kernel.to_str().unwrap(), "--kernel-name", "other"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("dtype: \"int32\""), "{out}");
    fs::write(&kernel, "__global__ void k( {").unwrap();
    assert_eq!(run(&["init", kernel.to_str().unwrap()]).0, Some(3));
    let program = "#include <vector>\n__global__ void k(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }
        int main() { std::vector<float> v(8); k<<<1, 8>>>(nullptr, 8); cudaDeviceSynchronize(); }";
    fs::write(&kernel, program).unwrap();
    let (code, out, said) = run(&["init", kernel.to_str().unwrap()]);
    assert!(code == Some(0) && said.contains("its main() does not run"), "{said}");
    assert!(out.contains("kernel_name: \"k\""), "{out}");
    fs::write(&kernel, "int main() {}").unwrap();
    let (code, _, said) = run(&["init", kernel.to_str().unwrap()]);
    assert!(code == Some(2) && said.contains("whole program"), "{said}");
}

#[test]
fn local_files_of_a_source_go_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let data = data_directory();
    let at = |name: &str| directory.path().join(name);
    let header = "enum Mode { PLAIN, TWICE };\n\
        __device__ float scaled(float x, Mode mode) { return mode == TWICE ? 2 * x : x; }\n";
    fs::write(at("scale.h"), header).unwrap();
    let source = "#include \"scale.h\"\n\
        __global__ void scale(const float* x, float* y, Mode mode, int n) {\n\
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = scaled(x[i], mode); }\n";
    fs::write(at("scale.cu"), source).unwrap();
    for (command, file) in [("init", "scale.cu"), ("eval", "contract.yaml")] {
        let mut asked = program();
        asked.arg(command).arg(at(file)).args(["--device", &device()]);
        if command == "init" {
            asked.arg("-o").arg(at("contract.yaml"));
        }
        let output =
            asked.env("WARPGAUGE_DATA_DIR", data.path()).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
    }
}
