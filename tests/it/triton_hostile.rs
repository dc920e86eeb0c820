//! Triton sources that are no kernel, or that attack the compiler. Each costs its request a result
//! with the reason, leaves nothing behind, and does not affect the next request.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::children::descendants;
use crate::server::{Server, until};
use crate::support::has_triton;

/// A kernel that adds one, as a module's body.
const INCREMENT: &str = "
import triton
import triton.language as tl

@triton.jit
def increment(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)
";

/// Longest that a refusal may take on a busy machine; compilations that are stopped have a limit of
/// their own.
const GRACE: Duration = Duration::from_secs(30);

/// The increment as a request, with something before it.
fn request(before: &str) -> Value {
    json!({
        "kernel": {
            "kernel_type": "triton",
            "source_code": format!("{before}\n{INCREMENT}"),
            "io": {
                "args": [
                    {"name": "x", "type": "tensor", "role": "inout",
                     "tensor_spec": {"shape": [1000], "dtype": "int32", "init": {"kind": "arange"}}},
                    {"name": "n", "type": "int", "value": 1000},
                    {"name": "BLOCK", "type": "int", "value": 256, "is_meta": true}
                ],
                "launch": {"grid": {"x": "cdiv(n, BLOCK)"}, "num_warps": 4}
            }
        },
        "expected": {"x": {"kernel": {
            "kernel_type": "cuda",
            "source_code": "extern \"C\" __global__ void r(int* x, int n) {\
                             for (int i = 0; i < n; ++i) x[i] += 1; }",
            "io": {"launch": {"grid": {"x": 1}, "block": {"x": 1}}}
        }}},
        "num_trials": 3,
        "timeout": 10.0
    })
}

/// The request with its kernel changed.
fn changed(from: &str, to: &str) -> Value {
    let mut request = request("");
    let source = request["kernel"]["source_code"].as_str().unwrap();
    assert!(source.contains(from), "{from}");
    request["kernel"]["source_code"] = source.replace(from, to).into();
    request
}

/// Answered as a kernel that does not compile, with one of these codes and this in its message.
#[track_caller]
fn refused(server: &Server, name: &str, request: &Value, codes: &[&str], part: &str) {
    let start = Instant::now();
    let answer = server.post_json("/evaluate", request);
    let took = start.elapsed();
    assert_eq!(answer.status, 200, "{name}: {}\n{}", answer.text, server.output());
    let (result, failure) = (&answer.json["kernel_exec_result"], &answer.json["failure"]);
    assert_eq!(result["compiled"], false, "{name}: {}", answer.text);
    assert!(codes.contains(&failure["code"].as_str().unwrap()), "{name}: {failure}");
    let message = result["compilation_error"].as_str().unwrap();
    assert!(message.contains(part), "{name}: {message}");
    assert!(took < Duration::from_secs(10) + GRACE, "{name}: {took:?}");
}

/// Answered as a right kernel, with a warning that names the statement in front of it, and this in its message.
#[track_caller]
fn left_out(server: &Server, name: &str, request: &Value, part: &str) {
    let report = server.evaluate(request);
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{name}: {report}");
    let warnings = report["compile"]["diagnostics"].as_array().unwrap();
    let [warning] = &warnings[..] else { panic!("{name}: {warnings:?}") };
    assert_eq!(warning["severity"], "warning", "{name}: {warning}");
    assert!(warning["line"].as_u64().is_some_and(|line| line <= 3), "{name}: {warning}");
    let message = warning["message"].as_str().unwrap();
    assert!(message.contains(part), "{name}: {message}");
}

#[track_caller]
fn is_well(server: &Server) {
    let report = server.evaluate(&request(""));
    let result = &report["kernel_exec_result"];
    assert_eq!(result["correctness"], true, "{report}\n{}", server.output());
}

#[test]
fn what_is_no_kernel_is_told_with_its_place_in_the_source() {
    needs!("Triton", has_triton());
    let server = Server::start();
    is_well(&server);
    let failed = &["compilation_failed"][..];
    for (name, request, codes, part) in [
        ("syntax", request("def f(:"), failed, "kernel.py:1:"),
        ("a name", changed("+ 1, mask", "+ one, mask"), failed, "kernel.py:9:"),
        ("an end", request("import sys; sys.exit(3)"), failed, "ends the process"),
        (
            "an assertion",
            changed("    at =", "    tl.static_assert(BLOCK == 1, 'one')\n    at ="),
            failed,
            "one",
        ),
        ("no kernel", changed("@triton.jit", ""), &["no_kernel"], "@triton.jit"),
    ] {
        refused(&server, name, &request, codes, part);
    }
    for (name, before, part) in [
        (
            "an exception",
            "\n\nraise ValueError('nothing')",
            "left out, since it failed without a device: ValueError: nothing",
        ),
        ("an import", "import nonsense", "`nonsense` is not installed here"),
    ] {
        left_out(&server, name, &request(before), part);
    }
    let mut named = request("");
    named["kernel"]["metadata"] = json!({"kernel_name": "decrement"});
    refused(&server, "a name", &named, &["unknown_kernel"], "found: increment");
    let two =
        changed("def increment", "def other(x):\n    tl.store(x, 1)\n\n@triton.jit\ndef increment");
    refused(&server, "two kernels", &two, &["ambiguous_kernel"], "other, increment");
    is_well(&server);
}

#[test]
fn arguments_that_do_not_fit_the_kernel_are_told() {
    needs!("Triton", has_triton());
    let server = Server::start();
    let args = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut request = request("");
        change(request["kernel"]["io"]["args"].as_array_mut().unwrap());
        request["kernel"]["io"]["launch"]["grid"] = json!({"x": 4});
        request["expected"] = json!({});
        request
    };
    let extra = json!({"name": "m", "type": "int", "value": 3});
    for (name, request, codes, part) in [
        (
            "too few",
            args(&|args| drop(args.remove(1))),
            "argument_count",
            "takes 2 arguments (x, n)",
        ),
        ("too many", args(&|args| args.push(extra.clone())), "argument_count", "has 3 (x, n, m)"),
        ("no constant", args(&|args| drop(args.pop())), "missing_constant", "BLOCK"),
        (
            "another constant",
            args(&|args| args[2]["name"] = "SIZE".into()),
            "unknown_constant",
            "it has: BLOCK",
        ),
        (
            "not marked",
            args(&|args| args[2]["is_meta"] = false.into()),
            "argument_count",
            "mark it `is_meta: true`",
        ),
        ("not a pointer", args(&|args| args.swap(0, 1)), "compilation_failed", "kernel.py:"),
    ] {
        refused(&server, name, &request, &[codes], part);
    }
}

#[test]
fn a_source_reaches_nothing_of_the_machine() {
    needs!("Triton", has_triton());
    let server = Server::start();
    let denied = "PermissionError";
    let visible = crate::children::paths_are_visible(&server);
    let not_there = if visible { denied } else { "FileNotFoundError" };
    for (name, before, part) in [
        ("fork", "import os; os.fork()", denied),
        ("processes", "import subprocess; subprocess.run(['/bin/true'])", denied),
        ("other programs", "import os; os.execv('/bin/true', ['true'])", denied),
        ("files of others", "open('/etc/passwd').read()", not_there),
        ("files of its own", "open('written', 'w').write('x')", denied),
        ("memory files", "import os; os.memfd_create('x')", denied),
        ("TCP", "import socket; socket.create_connection(('127.0.0.1', 80))", denied),
        ("UDP", "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", denied),
        ("signals", "import os; os.kill(os.getppid(), 9)", denied),
        ("processes of others", "import os; os.listdir('/proc')", denied),
        (
            "a call that is named",
            "import os; os.chmod('/', 0o777)",
            "in `os.chmod('/', 0o777)`; warpgauge refuses this system call: a Triton module",
        ),
        ("what starts it", "import os; os.readlink(f'/proc/{os.getppid()}/exe')", denied),
    ] {
        left_out(&server, name, &request(before), part);
    }
    is_well(&server);
}

/// PyTorch is there where it is installed beside Triton; elsewhere a stand-in is.
#[test]
fn a_source_imports_torch() {
    needs!("Triton", has_triton());
    let server = Server::start();
    let report = server.evaluate(&request("import torch\nTYPES = {torch.float32: 4}"));
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    assert!(report["compile"].get("diagnostics").is_none(), "{report}");
}

#[test]
fn a_source_that_breaks_its_interpreter_costs_itself_a_result() {
    needs!("Triton", has_triton());
    let server = Server::start();
    for (name, before, codes) in [
        ("an end", "import os; os._exit(0)", &["compiler_failed"][..]),
        ("a crash", "import ctypes; ctypes.string_at(0)", &["compiler_crashed"]),
        ("memory", "x = bytearray(9 << 30)", &["compiler_out_of_memory"]),
        ("a loop", "while True: pass", &["compiler_timeout", "compiler_cpu_limit"]),
        (
            "rubbish for an answer",
            "import os\nfor fd in range(3, 9):\n  try: os.write(fd, b'\\xff' * 64)\n  except OSError: pass",
            &["compiler_failed"],
        ),
        (
            "an answer of its own",
            "import os, json, struct\na = json.dumps({'built': {'kernel': 'k', 'texts': {'ptx': \
             'nonsense'}, 'parameters': [], 'constants': {}, 'metadata': {'name': 'k', 'shared': 0, \
             'num_warps': 4}}}).encode()\nfor fd in range(3, 9):\n  try: os.write(fd, \
             struct.pack('<I', len(a)) + a)\n  except OSError: pass",
            // Where machine code is made, the assembler is the first to meet it.
            &["compiler_failed", "compilation_failed"],
        ),
        (
            "another compiler",
            "import triton\ntriton.compiler.compile = None",
            &["compilation_failed"],
        ),
    ] {
        refused(&server, name, &request(before), codes, "");
    }
    // What it prints is read and dropped, and threads end with it.
    for before in [
        "for _ in range(1 << 8): print('x' * (1 << 20))",
        "import threading\nthreading.Thread(target=threading.Event().wait).start()",
    ] {
        let report = server.evaluate(&request(before));
        assert_eq!(report["kernel_exec_result"]["correctness"], true, "{before}: {report}");
    }
    is_well(&server);
}

#[test]
fn a_launch_says_nothing_that_the_compiler_decides() {
    needs!("Triton", has_triton());
    let server = Server::start();
    for (field, value, code) in [
        ("block", json!({"x": 128}), "wrong_field"),
        ("shared_memory_bytes", json!(1024), "wrong_field"),
        ("num_warps", json!(3), "out_of_range"),
        ("num_ctas", json!(17), "out_of_range"),
    ] {
        let mut request = request("");
        request["kernel"]["io"]["launch"][field] = value;
        let answer = server.post_json("/evaluate", &request);
        assert_eq!(answer.status, 400, "{field}: {}", answer.text);
        assert!(answer.text.contains(code), "{field}: {}", answer.text);
    }
    // A name that nobody gives a value is told when everything else is known.
    let mut request = request("");
    request["kernel"]["io"]["launch"]["grid"] = json!({"x": "cdiv(n, TILE)"});
    let answer = server.post_json("/evaluate", &request);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("no argument `TILE`"), "{}", answer.text);
}

#[test]
fn an_interpreter_that_ended_while_it_waited_costs_nobody_anything() {
    needs!("Triton", has_triton());
    let server = Server::start();
    // New to a cache that outlives this test.
    let new = || request(&format!("# {}", uuid::Uuid::new_v4()));
    // From the first kernel on, one waits for the next.
    let report = server.evaluate(&new());
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}\n{}", server.output());
    let waiting = until("an interpreter that waits", || {
        let is_one = |process: &u32| {
            let command = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains("site_packages")
        };
        descendants(server.pid()).into_iter().find(is_one)
    });
    let killed = std::process::Command::new("kill").args(["-KILL", &waiting.to_string()]).status();
    assert!(killed.unwrap().success());
    let report = server.evaluate(&new());
    let result = &report["kernel_exec_result"];
    assert_eq!(result["correctness"], true, "{report}\n{}", server.output());
}
