//! One folder, one watcher.

use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::{Watching, folder, increment, names, result};
use crate::server::{Server, data_directory, device, emulated, program, until};
use crate::support::has_nvcc;

const CODE: &str = "extern \"C\" __global__ void twice(float* x, int n) {\n\
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2.0f; }\n";

#[test]
fn results_have_the_fields_of_the_reference_measured_or_explained() {
    let (directory, kernels) = folder();
    let data = data_directory();
    let contract = "kernel:\n  io:\n    args:\n      \
        - {name: x, type: tensor, role: inout, tensor_spec: {shape: [512], init: {kind: arange}}}\n      \
        - {name: n, type: int, value: 512}\n    \
        launch: {grid: {x: 2}, block: {x: 256}}\nnum_trials: 5\n";
    fs::write(kernels.join("beside.yaml"), contract).unwrap();
    fs::write(kernels.join("beside.cu"), CODE).unwrap();
    fs::write(kernels.join("comment.cu"), increment(0)).unwrap();
    fs::write(kernels.join("inferred.cu"), CODE).unwrap();
    fs::write(kernels.join("notes.txt"), "not a kernel").unwrap();
    let watching = Watching::start(directory.path(), data.path(), &["--settle", "0"]);

    let beside = result(directory.path(), "beside");
    assert_eq!(beside["status"], "completed", "{beside}");
    assert_eq!((&beside["contract"], &beside["kernel_name"]), (&"file".into(), &"twice".into()));
    assert!(beside["execution_time"].as_f64().is_some_and(|time| time > 0.0), "{beside}");
    assert_eq!(beside["memory_usage"], 512.0 * 4.0 / 1e6);
    assert_eq!(beside["execution_time"], beside["report"]["kernel_exec_result"]["runtime"]);
    let parameters = &beside["kernel_parameters"];
    assert_eq!((&parameters["n"]["position"], &parameters["n"]["value"]), (&1.into(), &512.into()));
    assert_eq!(parameters["x"]["tensor_spec"]["shape"][0], 512);
    assert_eq!(beside["success"], true, "{beside}");
    assert!(beside["message"].as_str().unwrap().starts_with("the kernel ran in "), "{beside}");
    for field in ["gpu_utilization", "throughput", "arithmetic_intensity", "bound_type", "hardware"]
    {
        let told = !beside[field].is_null() || beside["unavailable"][field].is_string();
        assert!(told, "{field}: {beside}");
    }
    if emulated() {
        assert_eq!(beside["total_flops"], 512.0, "it is counted: {beside}");
        assert!(beside["gpu_utilization"].is_null() && beside["throughput"].is_null(), "{beside}");
        assert_eq!(beside["device_kind"], "emulator");
    }
    assert_eq!(result(directory.path(), "comment")["contract"], "comment");
    let inferred = result(directory.path(), "inferred");
    assert_eq!(
        (&inferred["status"], &inferred["contract"]),
        (&"completed".into(), &"inferred".into())
    );
    assert!(inferred["assumed"].as_array().unwrap().len() >= 3, "{inferred}");
    until("the kernels to go", || (names(&kernels) == ["notes.txt"]).then_some(()));
    assert!(watching.end().success());
}

#[test]
fn what_cannot_be_evaluated_has_a_result_that_says_why() {
    let (directory, kernels) = folder();
    let data = data_directory();
    let secret = directory.path().join("secret.cu");
    fs::write(&secret, CODE).unwrap();
    std::os::unix::fs::symlink(&secret, kernels.join("link.cu")).unwrap();
    File::create(kernels.join("huge.cu")).unwrap().set_len(1 << 30).unwrap();
    fs::write(kernels.join("rubbish.cu"), [0xff_u8, 0, 0x80, 7]).unwrap();
    fs::write(kernels.join("program.cu"), "#include <stdio.h>\nint main() { return 3; }").unwrap();
    fs::write(kernels.join("broken.cu"), "__global__ void k(float* x) { x[0] = }").unwrap();
    fs::write(kernels.join("torch.py"), "import torch\n").unwrap();
    fs::write(kernels.join("misled.yml"), "kernel: {source_file: ../secret.cu}").unwrap();
    fs::write(kernels.join("misled.cu"), CODE).unwrap();
    fs::write(kernels.join("python.cu"), "import torch\n\ndef forward(x):\n    return x\n")
        .unwrap();
    let open_cl = "// Hardware: GPU\n// Backend: OpenCL\n__kernel void k(__global float* x) {}\n";
    fs::write(kernels.join("opencl.cu"), open_cl).unwrap();
    let triton = "// Hardware: GPU\n// Backend: Triton\nimport triton\n\nwrap = triton.jit\n";
    fs::write(kernels.join("triton.cu"), triton).unwrap();
    fs::create_dir(kernels.join("directory.cu")).unwrap();
    let watching = Watching::begin(directory.path(), data.path(), &["--once", "--settle", "0"]).0;
    assert!(watching.wait().success());
    for (name, code) in [
        ("link", "symbolic_link"),
        ("huge", "file_too_large"),
        ("rubbish", "not_text"),
        ("program", if has_nvcc() { "wrong_result" } else { "whole_program" }),
        ("broken", "compile_error"),
        ("torch", "contract_needed"),
        ("misled", "invalid_contract"),
        ("python", "other_language"),
        ("opencl", "other_language"),
        ("triton", "contract_needed"),
    ] {
        let result = result(directory.path(), name);
        assert_eq!(result["success"], false, "{result}");
        assert_eq!(result["message"], result["error"]["message"], "{result}");
        assert_eq!(
            (&result["status"], &result["error"]["code"]),
            (&"failed".into(), &code.into()),
            "{result}"
        );
        assert!(result["unavailable"]["execution_time"].is_string(), "{result}");
    }
    assert_eq!(names(&kernels), ["directory.cu"], "nobody's folder is removed");
    assert_eq!(fs::read_to_string(secret).unwrap(), CODE);
}

/// A kernel that hangs costs the folder its own time limit, once.
#[test]
fn a_kernel_that_hangs_is_ended_after_its_own_time_and_is_not_run_again() {
    let (directory, kernels) = folder();
    let data = data_directory();
    let hang = increment(1)
        .replace("// num_trials: 1\n", "// num_trials: 1\n// timeout: 1\n")
        .replace("x[threadIdx.x] += 1.0f;", "while (x[0] == x[0]) x[threadIdx.x] += 1.0f;");
    fs::write(kernels.join("hang.cu"), hang).unwrap();
    let arguments = ["--once", "--settle", "0", "--jobs", "1"];
    let start = || Watching::begin(directory.path(), data.path(), &arguments).0;
    let began = Instant::now();
    assert!(start().wait().success());
    // The time limit of a request without one is 120 s.
    assert!(began.elapsed() < Duration::from_secs(100));
    let hung = result(directory.path(), "hang");
    assert_eq!((&hung["success"], &hung["error"]["code"]), (&false.into(), &"timeout".into()));
    assert!(hung["message"].as_str().unwrap().contains("1 s"), "{hung}");
    assert!(names(&kernels).is_empty());

    fs::write(kernels.join("sound.cu"), increment(2)).unwrap();
    assert!(start().wait().success());
    assert_eq!(result(directory.path(), "sound")["success"], true);
    assert_eq!(result(directory.path(), "hang")["timestamp"], hung["timestamp"], "not run again");
}

#[test]
fn results_may_be_written_for_kraits_backend() {
    let (directory, kernels) = folder();
    let data = data_directory();
    let headed = |kind: &str, code: &str| {
        format!(
            "// REQUEST\n    // Hardware: NVIDIA T4\n    // Backend: CUDA\n    // Type: {kind}\n\n    {code}"
        )
    };
    // This one is wrong where it runs, and compiles.
    let wild = CODE.replace("x[i] *= 2.0f", "*(float*)(8ull + i) = 2.0f");
    fs::write(kernels.join("kernel_17.cu"), headed("execute", CODE)).unwrap();
    fs::write(kernels.join("kernel_18.cu"), headed("execute", &wild)).unwrap();
    fs::write(kernels.join("compile_19.cu"), headed("compile_only", &wild)).unwrap();
    fs::write(kernels.join("compile_20.cu"), headed("compile_only", "__global__ void k( {"))
        .unwrap();
    let arguments = ["--once", "--settle", "0", "--suffixed-results"];
    assert!(Watching::begin(directory.path(), data.path(), &arguments).0.wait().success());
    let of = |name: &str| result(directory.path(), &format!("{name}_result"));
    let found = names(&directory.path().join("results"));
    assert_eq!(found.len(), 4, "{found:?}");
    for (name, success) in
        [("kernel_17", true), ("compile_19", true), ("kernel_18", false), ("compile_20", false)]
    {
        let result = of(name);
        assert_eq!(result["success"], success, "{result}");
        // That backend takes a result with this field for a failure, and its value for a text.
        assert_eq!(result.get("error").is_none(), success, "{result}");
        assert_eq!(result["error"].is_string(), !success, "{result}");
    }
    assert_eq!(of("compile_20")["error_code"], "compile_error");
    let compiled = of("compile_19");
    assert_eq!(compiled["kernel_name"], "twice", "{compiled}");
    assert!(compiled["report"].is_null() && compiled["execution_time"].is_null(), "{compiled}");
    assert!(compiled["unavailable"]["execution_time"].as_str().unwrap().contains("compile_only"));
}

#[test]
fn a_file_with_a_main_is_run_as_a_program() {
    needs!("nvcc", has_nvcc());
    let (directory, kernels) = folder();
    let data = data_directory();
    let source = "#include <cstdio>\n__global__ void k(int* x) { *x = 7; }\nint main() { int* x; int y = 0; \
        cudaMalloc(&x, 4); k<<<1, 1>>>(x); cudaMemcpy(&y, x, 4, cudaMemcpyDeviceToHost); \
        printf(\"seven %d\\n\", y); return y == 7 ? 0 : 1; }";
    fs::write(kernels.join("alone.cu"), source).unwrap();
    let contract = "// warpgauge contract:\n// expected: {stdout: {contains: eight}}\n";
    fs::write(kernels.join("expected.cu"), format!("{contract}{source}")).unwrap();
    let kernel = "// warpgauge contract:\n// kernel: {io: {args: [{name: x, type: tensor, role: output, \
        tensor_spec: {shape: [1], dtype: int32}}], launch: {grid: {x: 1}, block: {x: 1}}}}\n";
    fs::write(kernels.join("kernel.cu"), format!("{kernel}{source}")).unwrap();
    let watching = Watching::begin(directory.path(), data.path(), &["--once", "--settle", "0"]).0;
    assert!(watching.wait().success());
    let alone = result(directory.path(), "alone");
    assert_eq!(
        (&alone["status"], &alone["kernel_name"]),
        (&"completed".into(), &"k".into()),
        "{alone}"
    );
    assert_eq!(alone["report"]["program"]["stdout"]["text"], "seven 7\n", "{alone}");
    assert!(alone["assumed"][0].as_str().unwrap().contains("whole program"), "{alone}");
    let expected = result(directory.path(), "expected");
    assert_eq!(expected["error"]["code"], "wrong_result", "{expected}");
    let kernel = result(directory.path(), "kernel");
    assert_eq!(kernel["status"], "completed", "{kernel}");
    assert!(kernel["report"]["program"].is_null(), "{kernel}");
}

#[test]
fn a_file_that_is_being_written_is_waited_for() {
    let (directory, kernels) = folder();
    let data = data_directory();
    let _watching = Watching::start(directory.path(), data.path(), &["--settle", "3600"]);
    let (first, second) = CODE.split_at(40);
    let mut half = File::create(kernels.join("half.cu")).unwrap();
    half.write_all(first.as_bytes()).unwrap();
    fs::write(kernels.join(".hidden"), increment(1)).unwrap();
    fs::rename(kernels.join(".hidden"), kernels.join("renamed.cu")).unwrap();
    assert_eq!(result(directory.path(), "renamed")["status"], "completed");
    assert!(names(&kernels).contains(&"half.cu".to_owned()));
    half.write_all(second.as_bytes()).unwrap();
    drop(half);
    assert_eq!(result(directory.path(), "half")["status"], "completed");
    // The same name again is a file of its own.
    let path = directory.path().join("results/half.json");
    fs::remove_file(&path).unwrap();
    fs::write(kernels.join("half.cu"), "__global__ void k( {").unwrap();
    assert_eq!(result(directory.path(), "half")["status"], "failed");
}

#[test]
fn one_folder_has_one_watcher() {
    let (directory, _) = folder();
    let data = data_directory();
    let _watching = Watching::start(directory.path(), data.path(), &[]);
    let second = program()
        .arg("watch")
        .arg(directory.path())
        .args(["--once", "--device", &device()])
        .env("WARPGAUGE_DATA_DIR", data.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(2));
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("is already watched"), "{said}");
}

#[test]
fn a_server_may_do_the_work_and_be_away() {
    let (directory, kernels) = folder();
    let data = data_directory();
    let server = Server::start();
    let watching = Watching::start(
        directory.path(),
        data.path(),
        &["--server", &server.url, "--poll", "0.05", "--settle", "0.1"],
    );
    fs::write(kernels.join("a.cu"), increment(1)).unwrap();
    let there = result(directory.path(), "a");
    assert_eq!(there["status"], "completed", "{there}");
    let job = server.get(&format!("/jobs/{}", there["report"]["job_id"].as_str().unwrap()));
    assert_eq!(job.json["state"], "completed", "{}", job.text);
    drop(watching);
    let gone = server.url.clone();
    drop(server);
    let (waiting, said) =
        Watching::begin(directory.path(), data.path(), &["--server", &gone, "--settle", "0"]);
    fs::write(kernels.join("b.cu"), increment(2)).unwrap();
    until("it waits", || said.recv().ok().filter(|line| line.contains("b.cu waits")));
    assert_eq!(names(&kernels), ["b.cu"]);
    assert!(waiting.end().success());
}
