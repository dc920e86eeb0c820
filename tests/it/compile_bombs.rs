//! Sources that need too much time or memory to compile. Each costs its request a result with the
//! reason, and affects no other request.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::contracts::{increment, single_thread};
use crate::server::{Server, until};
use crate::support::warpgauge;

/// Longest a compilation may take beyond its time, on a busy machine.
const GRACE: Duration = Duration::from_secs(20);

/// Seconds that a compilation has here: the least that counts.
const TIMEOUT: f64 = 10.0;

/// No compiler waits for work: each that is there was started for a source of these tests.
const NO_SPARES: &str = "[compile]\ntriton_spares = 0\n";

/// A kernel with something before it and in it.
fn kernel(before: &str, body: &str) -> Value {
    let mut request = single_thread(body);
    let source = request["kernel"]["source_code"].as_str().unwrap();
    request["kernel"]["source_code"] = format!("{before}\n{source}").into();
    request["timeout"] = TIMEOUT.into();
    request
}

/// Nested macros: each doubles what the one before it makes.
fn macros() -> Value {
    let defines = (1..=40).map(|n| format!("#define A{n} A{} A{}\n", n - 1, n - 1));
    kernel(&format!("#define A0 *out += 1;\n{}", defines.collect::<String>()), "A40")
}

/// Templates: each doubles the number of those that it needs.
fn templates() -> Value {
    let before = "template <int N, int M> struct F { static constexpr long v = \
                  F<N - 1, M>::v + F<N - 1, M + (1 << N % 30)>::v; };\n\
                  template <int M> struct F<0, M> { static constexpr long v = M; };";
    kernel(before, "*out = (int)F<26, 0>::v;")
}

/// A table that is larger than the memory a compiler has.
fn table() -> Value {
    kernel("__device__ int a[2000000000] = {1};", "*out = a[*out];")
}

/// Answered in time, as a kernel that does not compile, at the first attempt; says why.
#[track_caller]
fn assert_is_a_result(server: &Server, name: &str, request: &Value, codes: &[&str]) {
    let start = Instant::now();
    let answer = server.post_json("/evaluate", request);
    let took = start.elapsed();
    assert_eq!(answer.status, 200, "{name}: {}\n{}", answer.text, server.output());
    let report = answer.json;
    let (result, failure) = (&report["kernel_exec_result"], &report["failure"]);
    assert_eq!(result["compiled"], false, "{name}: {report}");
    assert_eq!(failure["stage"], "compile", "{name}: {report}");
    assert!(codes.contains(&failure["code"].as_str().unwrap()), "{name}: {failure}");
    let message = result["compilation_error"].as_str().unwrap();
    assert!(message.len() > 20, "{name}: {message}");
    assert!(took < Duration::from_secs_f64(TIMEOUT) + GRACE, "{name}: {took:?}");
    let job = server.get(&format!("/jobs/{}", report["job_id"].as_str().unwrap())).json;
    assert_eq!((&job["state"], &job["attempt"]), (&"completed".into(), &1.into()), "{name}: {job}");
}

/// Other kernels are as well as before, and nothing of the bombs is left.
#[track_caller]
fn assert_well(server: &Server, data: Option<&Path>) {
    let report = server.evaluate(&increment());
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "{report}");
    let left = data.map(compilations_in).unwrap_or_default();
    assert_eq!(left, Vec::<String>::new());
}

/// Private directories of compilations below a directory.
fn compilations_in(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("compile-") {
            found.push(name);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(compilations_in(&entry.path()));
        }
    }
    found
}

const EXCEEDED: [&str; 4] =
    ["compiler_timeout", "compiler_out_of_memory", "compiler_crashed", "compiler_failed"];

#[test]
fn what_takes_a_compiler_too_much_is_a_result_of_that_kernel() {
    let data = crate::server::data_directory();
    let config = data.path().join("config.toml");
    std::fs::write(&config, NO_SPARES).unwrap();
    let server = Server::start_in(data.path(), &["--config", config.to_str().unwrap()], &[]);
    assert_is_a_result(&server, "templates", &templates(), &["compiler_timeout"]);
    let start = Instant::now();
    // What cost all its time is known for a while: whoever sends it again does not pay again.
    assert_is_a_result(&server, "templates again", &templates(), &["compiler_timeout"]);
    assert!(start.elapsed() < Duration::from_secs_f64(TIMEOUT), "{:?}", start.elapsed());
    assert_is_a_result(&server, "macros", &macros(), &EXCEEDED);
    assert_well(&server, Some(data.path()));
}

/// The compile child of a server.
fn compile_child(server: &Server) -> Option<String> {
    let parent = format!("\nPPid:\t{}\n", server.pid());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().into_string().ok());
    numbers.find(|number| {
        let read = |name: &str| std::fs::read(format!("/proc/{number}/{name}")).unwrap_or_default();
        let text = |name: &str| String::from_utf8_lossy(&read(name)).into_owned();
        text("status").contains(&parent) && text("cmdline").contains("__compile")
    })
}

#[test]
fn a_compiler_that_crashes_on_a_source_says_something_of_that_source() {
    let server = Server::start_configured(NO_SPARES);
    assert_well(&server, None);
    std::thread::scope(|scope| {
        let crash = || {
            let child = until("a compile child", || compile_child(&server));
            let sent = std::process::Command::new("kill").args(["-ABRT", &child]).status();
            assert!(sent.unwrap().success());
        };
        let crashed = scope.spawn(crash);
        assert_is_a_result(&server, "a crash", &templates(), &["compiler_crashed"]);
        crashed.join().unwrap();
    });
    assert_well(&server, None);
}

#[test]
fn a_table_that_no_compiler_has_room_for_is_a_result() {
    let server = Server::start();
    let all = [&EXCEEDED[..], &["compiler_output_too_large", "compilation_failed"]].concat();
    assert_is_a_result(&server, "table", &table(), &all);
    assert_well(&server, None);
}

#[test]
fn the_time_of_the_server_bounds_that_of_a_request() {
    let server = Server::start_configured("[compile]\ntimeout_s = 1.0\n");
    let mut request = templates();
    request["timeout"] = 600.0.into();
    let answer = server.post_json("/evaluate", &request);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let error = answer.json["kernel_exec_result"]["compilation_error"].as_str().unwrap().to_owned();
    assert!(error.contains("within 1 s") && error.contains("compile.timeout_s"), "{error}");
    // `/compile` has no time of its own.
    let kernel = json!({"kernel": templates()["kernel"]});
    let answer = server.post_json("/compile", &kernel);
    assert_eq!((answer.status, &answer.json["compiled"]), (200, &false.into()), "{}", answer.text);
    assert!(answer.text.contains("within 1 s"), "{}", answer.text);
}

#[test]
fn a_bomb_costs_a_comparison_and_a_sweep_no_more_than_itself() {
    let server = Server::start();
    let good = single_thread("*out = 7;");
    let named = |name: &str, request: &Value| json!({"name": name, "kernel": request["kernel"]});
    let body = json!({"ref_kernel": good["kernel"], "timeout": TIMEOUT, "num_trials": 1,
        "candidates": [named("bomb", &templates()), named("same", &good)]});
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let found = answer.json["candidates"].as_array().unwrap().iter();
    let found = found.map(|one| {
        let evaluation = &one["evaluation"];
        (
            evaluation["kernel_exec_result"]["compiled"].clone(),
            evaluation["failure"]["code"].clone(),
        )
    });
    let expected = [(json!(false), json!("compiler_timeout")), (json!(true), Value::Null)];
    assert_eq!(found.collect::<Vec<_>>(), expected, "{}", answer.text);
    // As the reference it is a result, as any that does not compile.
    let body = json!({"ref_kernel": templates()["kernel"], "custom_kernel": good["kernel"],
        "timeout": TIMEOUT, "num_trials": 1});
    let answer = server.post_json("/compare", &body);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.text.contains("reference_not_compiled"), "{}", answer.text);
    // It is the request's fault as what an output is expected to be.
    let mut expected = good.clone();
    expected["timeout"] = TIMEOUT.into();
    expected["expected"] = json!({"out": {"kernel": templates()["kernel"]}});
    expected["expected"]["out"]["kernel"].as_object_mut().unwrap().remove("io");
    let answer = server.post_json("/evaluate", &expected);
    assert_eq!(answer.status, 400, "{}", answer.text);
    assert!(answer.text.contains("reference_compiler_timeout"), "{}", answer.text);
    // Of a sweep it is one point.
    let mut sweep = templates();
    let source =
        sweep["kernel"]["source_code"].as_str().unwrap().replace("F<26, 0>", "F<DEPTH, 0>");
    sweep["kernel"]["source_code"] = source.into();
    sweep["kernel"]["metadata"]["compiler_options"] = json!(["-DDEPTH=${depth}"]);
    sweep["axes"] = json!({"depth": [3, 26]});
    let answer = server.post_json("/sweep", &sweep);
    assert_eq!(answer.status, 200, "{}", answer.text);
    let points = answer.json["points"].as_array().unwrap().iter();
    let outcomes = points.map(|point| point["status"].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(outcomes[1], "not_compiled", "{}", answer.text);
    assert_ne!(outcomes[0], "not_compiled", "{}", answer.text);
    assert_well(&server, None);
}

#[test]
fn the_command_line_says_that_a_bomb_does_not_compile() {
    let data = crate::server::data_directory();
    let file = data.path().join("bomb.json");
    std::fs::write(&file, templates().to_string()).unwrap();
    let given = ["HOME", "PATH", "LD_LIBRARY_PATH", "WARPGAUGE_TOOLCHAIN"];
    let given = given.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?)));
    let device = crate::server::device();
    let arguments = ["--device", &device, "eval", file.to_str().unwrap(), "--quiet"];
    let mut command = warpgauge(data.path(), &arguments);
    command.envs(given).env("WARPGAUGE_DATA_DIR", data.path());
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{text}\n{output:?}");
    assert!(text.contains("did not finish within 10 s"), "{text}");
}

#[test]
fn ptx_that_asks_for_more_than_there_is_fails_on_its_own() {
    let server = Server::start();
    let entry = ".visible .entry k(.param .u64 out)";
    let head = ".version 7.0\n.target sm_70\n.address_size 64\n";
    let of = |code: String| {
        let mut request = single_thread("");
        request["kernel"]["kernel_type"] = "ptx".into();
        request["kernel"]["source_code"] = code.into();
        request["timeout"] = TIMEOUT.into();
        request
    };
    let long = "    add.s32 %r1, %r1, 1;\n".repeat(120_000);
    for (name, code) in [
        ("a huge table", format!("{head}.global .b8 a[1099511627776];\n{entry} {{ ret; }}\n")),
        (
            "a long kernel",
            format!("{head}{entry} {{ .reg .b32 %r<2>;\n mov.u32 %r1, 0;\n{long} ret; }}\n"),
        ),
    ] {
        let start = Instant::now();
        let answer = server.post_json("/evaluate", &of(code));
        assert_eq!(answer.status, 200, "{name}: {}", answer.text);
        let took = start.elapsed();
        assert!(took < Duration::from_secs_f64(TIMEOUT) + GRACE, "{name}: {took:?}");
        assert_well(&server, None);
    }
}
