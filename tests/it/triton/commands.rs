//! The command line with kernels in Python.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{ADD, CUDA, available, bare, cuda, run, triton};
use crate::server::{Server, data_directory};

/// A contract file whose code stands in another file.
fn contract(kernel: &Value, source: &str) -> Value {
    let mut kernel = kernel.clone();
    kernel.as_object_mut().unwrap().remove("source_code");
    kernel["source_file"] = json!(source);
    json!({"kernel": kernel, "num_trials": 2})
}

/// A folder with the kernels and their contracts.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("kernel.py", ADD);
    write("mine.py", &ADD.replace("x + y", "y + x"));
    write("add.cu", CUDA);
    let mut checked = contract(&triton(ADD), "kernel.py");
    let mut reference = bare(cuda());
    reference.as_object_mut().unwrap().remove("source_code");
    reference["source_file"] = json!("add.cu");
    checked["expected"] = json!({"out": {"kernel": reference}});
    write("triton.json", &checked.to_string());
    let mut with_options = cuda();
    with_options["metadata"] =
        json!({"kernel_name": "add", "compiler_options": ["-use_fast_math"]});
    write("cuda.json", &contract(&with_options, "add.cu").to_string());
    write("candidate.json", &contract(&bare(triton(ADD)), "kernel.py").to_string());
    let mut sweep = checked;
    sweep["axes"] = json!({"block": [128, 256, 512], "warps": [1, 4]});
    sweep["kernel"]["io"]["args"][4]["value"] = json!("$block");
    sweep["kernel"]["io"]["launch"]["num_warps"] = json!("$warps");
    write("sweep.json", &sweep.to_string());
    write(
        "suite.yaml",
        "version: 1\ncases:\n  - {name: own, contract: triton.json}\n  \
        - {name: source, contract: triton.json, source: mine.py}\n",
    );
    folder
}

#[track_caller]
fn succeeds(folder: &Path, words: &[&str]) -> String {
    let data = data_directory();
    let (code, out, error) = run(data.path(), folder, words);
    assert_eq!(code, 0, "{words:?}: {out}\n{error}");
    out
}

#[test]
fn contracts_name_files_in_python() {
    needs!("Triton", available());
    let folder = folder();
    let out = succeeds(folder.path(), &["eval", "triton.json"]);
    assert!(out.contains("CORRECT  add"), "{out}");
    let out =
        succeeds(folder.path(), &["compile", "triton.json", "--arch", "compute_80", "-o", "k.ptx"]);
    assert!(out.contains("COMPILED"), "{out}");
    let ptx = std::fs::read_to_string(folder.path().join("k.ptx")).unwrap();
    assert!(ptx.contains(".target sm_80") && ptx.contains(".entry add("), "{ptx}");
}

/// It has no arguments, for whose types it would be compiled.
#[test]
fn a_file_in_python_alone_is_not_compiled_and_it_is_said_what_is_missing() {
    let (folder, data) = (folder(), data_directory());
    let (code, _, error) = run(data.path(), folder.path(), &["compile", "kernel.py"]);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("source_file: kernel.py") && error.contains("`io.args`"), "{error}");
}

#[test]
fn files_in_python_are_compared() {
    needs!("Triton", available());
    let folder = folder();
    for words in [
        ["compare", "triton.json", "mine.py", "--json"],
        ["compare", "cuda.json", "candidate.json", "--json"],
    ] {
        let report: Value = serde_json::from_str(&succeeds(folder.path(), &words)).unwrap();
        let evaluation = &report["candidates"][0]["evaluation"];
        assert_eq!(evaluation["kernel_exec_result"]["correctness"], true, "{report}");
    }
    let data = data_directory();
    let (code, out, error) =
        run(data.path(), folder.path(), &["compare", "cuda.json", "kernel.py"]);
    assert!(
        code == 2 && error.contains("the number of programs that run the kernel"),
        "{out}{error}"
    );
}

#[test]
fn constants_and_warps_are_swept() {
    needs!("Triton", available());
    let folder = folder();
    let sweep = succeeds(folder.path(), &["sweep", "sweep.json", "--json"]);
    let sweep: Value = serde_json::from_str(&sweep).unwrap();
    let points = sweep["points"].as_array().unwrap();
    assert_eq!(points.len(), 6, "{sweep}");
    assert!(points.iter().all(|point| point["status"] == "correct"), "{sweep}");
}

#[test]
fn suites_have_cases_in_python() {
    needs!("Triton", available());
    let folder = folder();
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder.path()).args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b.example",
        ]);
        assert!(git.args(words).output().unwrap().status.success(), "{words:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message", "first"]);
    let (data, words) = (data_directory(), ["gate", "run", "suite.yaml", "--baseline", "HEAD"]);
    let words = [&words[..], &["--json", "--device", "emulator"]].concat();
    let (code, out, error) = run(data.path(), folder.path(), &words);
    assert_eq!(code, 0, "{out}\n{error}");
    // Loads twice what it needs.
    let slower =
        ADD.replace("x + y", "x + y + 0 * tl.load(y_ptr + offsets + 1, mask=offsets + 1 < n)");
    std::fs::write(folder.path().join("mine.py"), slower).unwrap();
    let (code, out, error) = run(data.path(), folder.path(), &words);
    assert_eq!(code, 2, "{out}\n{error}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["cases"][0]["outcome"], "PASS", "{out}");
}

#[test]
fn a_server_evaluates_what_a_contract_file_names() {
    needs!("Triton", available());
    let (folder, server) = (folder(), Server::start());
    let out = succeeds(folder.path(), &["eval", "triton.json", "--server", &server.url]);
    assert!(out.contains("CORRECT  add"), "{out}");
    let out = succeeds(folder.path(), &["compile", "triton.json", "--server", &server.url]);
    assert!(out.contains("kernel add"), "{out}");
}

/// A file as it is published: host code launches the kernel, and a test runs it.
const PUBLISHED: &str = "
import torch, triton
import triton.language as tl

@triton.jit
def row_max(x_ptr, out_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < n_cols, other=-float('inf'))
    tl.store(out_ptr + row, tl.max(x, axis=0))

def run(x):
    rows, n_cols = x.shape
    out = torch.empty((rows,), device=x.device)
    row_max[(rows,)](x, out, x.stride(0), n_cols, BLOCK=triton.next_power_of_2(n_cols), num_warps=2)
    return out

assert torch.equal(run(torch.rand(3, 5, device='cuda')), torch.rand(3))
";

#[test]
fn contracts_of_published_files_are_guessed() {
    needs!("Triton", available());
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("published.py", PUBLISHED);
    succeeds(folder.path(), &["init", "published.py", "-o", "published.yaml"]);
    let text = std::fs::read_to_string(folder.path().join("published.yaml")).unwrap();
    assert!(text.contains("num_warps: 2") && text.contains("# the stride of"), "{text}");
    let report = succeeds(folder.path(), &["eval", "published.yaml"]);
    assert!(report.contains("NOT CHECKED  row_max ran"), "{report}");
    // Of a PyTorch file with inputs the name suffices.
    write("model.py", "class Model: pass\ndef get_inputs():\n    return []\n");
    let text = succeeds(folder.path(), &["init", "model.py"]);
    assert!(text.contains("kernel_type: torch") && !text.contains("io:"), "{text}");
    let (code, _, error) = {
        write("other.py", "import torch\n");
        let data = data_directory();
        run(data.path(), folder.path(), &["init", "other.py"])
    };
    assert!(code == 2 && error.contains("`get_inputs()`"), "{code}: {error}");
}
