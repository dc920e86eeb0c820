//! Commands that take kernel files in place of contracts, and flags that complete an inferred
//! contract.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::server::{device, emulated, program, share_caches};
use crate::support::{has_torch, outcome};

const ADD: &str = "__global__ void add(const float* a, const float* b, float* c, int n) {\n\
    \x20   int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
    \x20   if (i < n) c[i] = a[i] + b[i];\n}\n";

const PRODUCT: &str = "__global__ void product(const float* A, const float* B, float* C, int M, int N, int K) {\n\
    \x20   int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;\n\
    \x20   if (row >= M || column >= N) return;\n\
    \x20   float sum = 0;\n\
    \x20   for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + column];\n\
    \x20   C[row * N + column] = sum;\n}\n";

/// Runs a command in `directory` and returns its exit code, output and error stream.
pub fn run(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = program();
    command.args(["--device", &device()]).args(arguments).current_dir(directory);
    outcome(command.env("WARPGAUGE_DATA_DIR", directory.join("data")).output().unwrap())
}

/// Returns a folder with these files, beside the data of the program.
pub fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
    share_caches(&data);
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

#[track_caller]
fn report(directory: &Path, arguments: &[&str]) -> Value {
    let (_, out, error) = run(directory, &[arguments, &["--json"]].concat());
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}\n{error}"))
}

#[test]
fn flags_take_the_place_of_what_is_inferred() {
    let files = folder(&[("add.cu", ADD)]);
    let flags = ["--set", "n=3000", "--block", "64", "--trials", "3"];
    let found = report(
        files.path(),
        &[&["eval", "add.cu", "--return-outputs", "out"], &flags[..]].concat(),
    );
    assert_eq!(found["verdict"], "not_checked", "{found:#}");
    assert_eq!(found["outputs"]["c"]["shape"], json!([3000]), "{found:#}");
    // A grid that is too small leaves elements unwritten, which is no error without expectations.
    let (code, out, error) =
        run(files.path(), &["eval", "add.cu", "--set", "n=256", "--grid", "1", "--block", "128"]);
    assert_eq!(code, 0, "{out}{error}");
    for (flags, part) in [
        (&["--set", "m=1"][..], "--set m: no argument has this name; numeric arguments: n"),
        (&["--set", "n=1,2"], "`warpgauge sweep` accepts several"),
        (&["--set", "n"], "write NAME=VALUE"),
        (&["--block", "0"], "an extent is at least 1"),
        (&["--expect", "d=a"], "--expect"),
        (&["--kernel", "other"], "other"),
    ] {
        let (code, out, error) = run(files.path(), &[&["eval", "add.cu"], flags].concat());
        assert!(matches!(code, 2 | 3), "{flags:?}: {out}{error}");
        assert!(error.contains(part), "{flags:?}: {error}");
    }
}

/// An expression of PyTorch or NumPy says what outputs must be.
#[test]
fn expectations_are_expressions() {
    needs!("PyTorch beside Python", has_torch());
    let files = folder(&[("add.cu", ADD), ("product.cu", PRODUCT)]);
    let verdict = |arguments: &[&str]| {
        let found = report(files.path(), &[&["eval", "--trials", "3"], arguments].concat());
        found["verdict"].as_str().unwrap_or_default().to_owned()
    };
    let sized = ["--set", "n=2048"];
    for (expression, expected) in
        [("a + b", "correct"), ("c = a - b", "wrong"), ("np.add(a, b)", "correct")]
    {
        let found = verdict(&[&["add.cu", "--expect", expression], &sized[..]].concat());
        assert_eq!(found, expected, "{expression}");
    }
    let (code, _, error) = run(files.path(), &["eval", "add.cu", "--expect", "a + nothing"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("name 'nothing' is not defined"), "{error}");
    let sizes = ["--set", "M=64", "--set", "N=48", "--set", "K=32"];
    let found = verdict(&[&["product.cu", "--expect", "A @ B"], &sizes[..]].concat());
    assert_eq!(found, "correct");
}

#[test]
fn two_kernel_files_are_compared() {
    // The only kernel of a file is taken, whatever its name.
    let twice = ADD.replace("add", "ad").replace("a[i] + b[i]", "b[i] + a[i]");
    let wrong = ADD.replace("+ b[i]", "- b[i]");
    let files = folder(&[("add.cu", ADD), ("twice.cu", &twice), ("wrong.cu", &wrong)]);
    let set = ["--set", "n=2048", "--trials", "3"];
    let (code, out, error) =
        run(files.path(), &[&["compare", "add.cu", "twice.cu", "--json"], &set[..]].concat());
    assert_eq!(code, 0, "{out}{error}");
    assert!(error.contains("assumed a: float32[2048]"), "{error}");
    let found = report(files.path(), &[&["compare", "add.cu", "wrong.cu"], &set[..]].concat());
    assert_eq!(found["verdict"], "wrong", "{found:#}");
}

#[test]
fn a_kernel_file_is_swept_over_values() {
    let files = folder(&[("product.cu", PRODUCT)]);
    let (code, out, error) = run(
        files.path(),
        &["sweep", "product.cu", "--set", "N=32,64", "--set", "K=16,24", "--csv"],
    );
    assert_eq!(code, 0, "{out}{error}");
    let rows = out.lines().skip(1).collect::<Vec<_>>();
    assert_eq!(rows.len(), 4, "{out}");
    assert!(rows.iter().all(|row| !row.contains("failed")), "{out}");
    // A contract has its axes, too.
    let (code, out, error) =
        run(files.path(), &["init", "product.cu", "-o", "c.yaml", "--set", "M=48"]);
    assert_eq!(code, 0, "{out}{error}");
    let text = std::fs::read_to_string(files.path().join("c.yaml")).unwrap();
    assert!(text.contains("48, as asked") && text.contains("shape: [48, 128]"), "{text}");
}

#[test]
fn compiler_errors_have_the_files_own_name_and_line() {
    let files = folder(&[("broken.cu", &ADD.replace("a[i] +", "aa[i] +"))]);
    let (code, out, error) = run(files.path(), &["compile", "broken.cu"]);
    assert_eq!(code, 3, "{out}{error}");
    let expected = "broken.cu:3:23: error: identifier \"aa\" is undefined";
    assert!(out.contains(expected), "{out}");
    let line = out.lines().skip_while(|line| !line.contains(expected)).nth(1).unwrap();
    assert_eq!(line.trim(), "if (i < n) c[i] = aa[i] + b[i];");
    let (code, _, error) = run(files.path(), &["eval", "broken.cu"]);
    assert_eq!(code, 3);
    assert!(error.contains("broken.cu:3:23"), "{error}");
}

/// Where there is no GPU, one line says what stands in for it.
#[test]
fn one_line_says_that_the_emulator_stands_in() {
    let files = folder(&[("add.cu", ADD)]);
    let mut command = program();
    command.args(["eval", "add.cu", "--set", "n=256"]).current_dir(files.path());
    let (code, out, error) =
        outcome(command.env("WARPGAUGE_DATA_DIR", files.path().join("data")).output().unwrap());
    assert_eq!(code, 0, "{out}{error}");
    let note = "note: no GPU found: using the emulator, whose times are not a GPU's";
    let is_emulated = out.contains("emulator");
    assert_eq!(error.matches(note).count(), usize::from(is_emulated), "{error}");
    assert!(!error.contains("WARN"), "{error}");
}

/// Saves of the kernel and of a contract beside it lead to further evaluations, and a signal ends them.
#[test]
fn a_kernel_is_evaluated_again_on_each_save() {
    let files = folder(&[("add.cu", ADD)]);
    let arguments = ["eval", "add.cu", "--watch", "--json", "--set", "n=2048", "--trials", "3"];
    let mut command = program();
    command.args(["--device", &device()]).args(arguments).current_dir(files.path());
    command.env("WARPGAUGE_DATA_DIR", files.path().join("data")).stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let line = lines.next().expect("another line").unwrap();
        serde_json::from_str::<Value>(&line).unwrap_or_else(|_| panic!("{line}"))
    };
    let save = |name: &str, text: &str| std::fs::write(files.path().join(name), text).unwrap();
    assert_eq!(next()["verdict"], "not_checked");
    save("add.cu", &ADD.replace("a[i] +", "aa[i] +"));
    let broken = next();
    let codes = [&broken["verdict"], &broken["error"]["code"]];
    assert!(codes.iter().any(|code| *code == "not_compiled"), "{broken}");
    // A contract that was not there, and is none.
    save("add.yaml", "kernel: [");
    assert_eq!(next()["error"]["code"], "usage");
    save("add.yaml", "kernel: {kernel_type: cuda, source_file: add.cu, io: {args: []}}");
    assert_eq!(next()["error"]["code"], "usage", "the kernel takes four parameters");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(lines.next().is_none());
}

/// An address says nothing to the author of a kernel.
#[test]
fn findings_name_arguments_in_place_of_addresses() {
    needs!("the emulated device", emulated());
    let beyond = ADD.replace("if (i < n) c[i]", "if (i < n) c[i + 16]");
    let files = folder(&[("add.cu", &beyond)]);
    let contract = "kernel: {kernel_type: cuda, source_file: add.cu, io: {args: [\
        {name: a, type: tensor, role: input, tensor_spec: {shape: [512], dtype: float32, init: {kind: ones}}},\
        {name: b, type: tensor, role: input, tensor_spec: {shape: [512], dtype: float32, init: {kind: ones}}},\
        {name: c, type: tensor, role: output, tensor_spec: {shape: [512], dtype: float32}},\
        {name: n, type: int, value: 512}], launch: {grid: {x: 4}, block: {x: 128}}}}\n\
        sanitize: true\nnum_trials: 2\n";
    std::fs::write(files.path().join("add.yaml"), contract).unwrap();
    let found = report(files.path(), &["eval", "add.cu"]);
    let findings = found["sanitize"]["findings"].as_array().unwrap();
    let message = findings[0]["message"].as_str().unwrap();
    assert!(message.contains("(element 512 of `c`, which has 512)"), "{message}");
}

/// Evaluations of this machine are jobs, too, which no server lists.
#[test]
fn jobs_of_this_machine_are_listed() {
    let files = folder(&[("add.cu", ADD)]);
    let listed = |flags: &[&str]| {
        report(files.path(), &[&["jobs", "list"], flags].concat())["jobs"]
            .as_array()
            .unwrap()
            .clone()
    };
    assert_eq!(listed(&[]), [] as [Value; 0], "no store yet");
    let found = report(files.path(), &["eval", "add.cu", "--set", "n=2048", "--trials", "3"]);
    let broken = ADD.replace("a[i] +", "aa[i] +");
    std::fs::write(files.path().join("broken.cu"), broken).unwrap();
    run(files.path(), &["eval", "broken.cu", "--set", "n=2048"]);
    let jobs = listed(&[]);
    let own = jobs.iter().find(|job| job["job_id"] == found["job_id"]).expect("the evaluation");
    assert_eq!((&own["kernel"], &own["verdict"]), (&json!("add"), &json!("not_checked")), "{own}");
    let median = found["kernel_exec_result"]["runtime_stats"]["median"].as_f64().unwrap();
    let shown = own["median_ms"].as_f64().unwrap();
    assert!((shown - median).abs() <= 1e-6, "{shown} {median}");
    assert_eq!(listed(&["--limit", "1"]).len(), 1);
    assert_eq!(listed(&["--state", "cancelled"]).len(), 0);
    assert!(listed(&["--kind", "evaluate", "--state", "completed"]).contains(own));
    let (code, out, _) = run(files.path(), &["jobs", "list"]);
    assert_eq!(code, 0);
    assert!(
        out.lines().any(|line| line.contains(" add ") && line.contains(" not_checked ")),
        "{out}"
    );
    let (code, _, error) = run(files.path(), &["jobs", "show", "x"]);
    assert_eq!(code, 2);
    assert!(error.contains("--server URL, or WARPGAUGE_SERVER"), "{error}");
}

/// The doctor is right of a machine that can evaluate, and of one that has no compiler.
#[test]
fn the_doctor_says_what_is_missing() {
    let files = folder(&[]);
    let found = report(files.path(), &["doctor"]);
    assert_eq!(found["ready"], true, "{found:#}");
    let state = |found: &Value, name: &str| {
        let all = found["checks"].as_array().unwrap();
        let one = all.iter().find(|one| one["name"] == name);
        one.unwrap_or_else(|| panic!("{name} in {found:#}"))["state"].clone()
    };
    assert_eq!(state(&found, "evaluation"), "ok");
    assert_eq!(state(&found, "data directory"), "ok");
    let empty = tempfile::tempdir().unwrap();
    let mut command = program();
    command.args(["--device", &device(), "doctor", "--json"]);
    for name in ["WARPGAUGE_TOOLCHAIN", "VIRTUAL_ENV", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"]
    {
        command.env_remove(name);
    }
    command.env("WARPGAUGE_DATA_DIR", empty.path().join("none")).env("PATH", empty.path());
    let (code, out, _) = outcome(command.output().unwrap());
    let found: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}"));
    the_rest_needs!("a machine without a CUDA toolkit", state(&found, "nvrtc") != "ok");
    assert_eq!((code, &found["ready"]), (1, &json!(false)), "{found:#}");
    assert_eq!(found["next"], "warpgauge toolchain install", "{found:#}");
    assert_eq!(
        (state(&found, "nvrtc"), state(&found, "python")),
        (json!("fault"), json!("absent"))
    );
}
