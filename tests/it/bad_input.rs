//! Bad input gets a clear error or a correct result, and never harms the server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::contracts::{base64, increment};
use crate::server::{Answer, Server};

/// What must come of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Status 400.
    Refused,
    /// Status 200: it did not compile.
    NotCompiled,
    /// Status 200 with a failure that names the cause, and no verdict of success.
    Failed,
    /// Status 400, or 200 with a failure: where the mistake shows depends on the compiler.
    RefusedOrFailed,
}
use Outcome::{Failed, NotCompiled, Refused, RefusedOrFailed};

/// A request and what must come of it.
struct Case {
    name: &'static str,
    body: Value,
    outcome: Outcome,
    /// Words that the answer must hold, in any case of letters.
    says: &'static [&'static str],
}

/// A good contract with one field replaced, by JSON pointer; `null` removes it.
fn changed(pointer: &str, value: Value) -> Value {
    changed_from(increment(), pointer, value)
}

fn changed_from(mut contract: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = contract.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent}"));
    match parent {
        Value::Object(fields) if value.is_null() => {
            fields.remove(key);
        }
        Value::Object(fields) => {
            fields.insert(key.to_owned(), value);
        }
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        other => panic!("{pointer} leads into {other}"),
    }
    contract
}

const IN_SPEC: &str = "/kernel/io/args/0/tensor_spec";
const OUT_SPEC: &str = "/kernel/io/args/1/tensor_spec";

fn with_input(field: &str, value: Value) -> Value {
    changed(&format!("{IN_SPEC}/{field}"), value)
}

fn with_grid(x: Value) -> Value {
    changed("/kernel/io/launch/grid/x", x)
}

fn with_source(source: &str) -> Value {
    changed("/kernel/source_code", source.into())
}

/// A contract whose `in` is given as data.
fn with_data(data: Value) -> Value {
    let contract = with_input("init", Value::Null);
    changed_from(contract, &format!("{IN_SPEC}/data"), data)
}

fn machine_code(kernel_type: &str, image: &[u8]) -> Value {
    json!({
        "kernel": {
            "kernel_type": kernel_type,
            "binary_b64": base64(image),
            "metadata": {"kernel_name": "vector_add"},
            "io": {
                "args": [
                    {"name": "a", "type": "tensor", "tensor_spec": {
                        "shape": [64], "init": {"kind": "ones"}}},
                    {"name": "b", "type": "tensor", "tensor_spec": {
                        "shape": [64], "init": {"kind": "ones"}}},
                    {"name": "c", "type": "tensor", "role": "output", "tensor_spec": {
                        "shape": [64]}},
                    {"name": "n", "type": "int", "value": 64, "c_type": "int"}
                ],
                "launch": {"grid": {"x": 1}, "block": {"x": 64}}
            }
        },
        "num_trials": 1
    })
}

/// vector_add for sm_75, from NVRTC 13.5: an architecture that current devices do not run.
const CUBIN_SM75: &[u8] = include_bytes!("../fixtures/cubin/vector_add_sm75.cubin");

fn structure() -> Vec<Case> {
    let case = |name, body, says| Case { name, body, outcome: Refused, says };
    vec![
        case("an empty object", json!({}), &["kernel"]),
        case("no kernel but trials", json!({"num_trials": 3}), &["kernel"]),
        case("kernel is a string", json!({"kernel": "x"}), &["kernel", "string"]),
        case("no source", changed("/kernel/source_code", Value::Null), &["source_code"]),
        case("no io", changed("/kernel/io", Value::Null), &["kernel.io"]),
        case("unknown field at the top", changed("/num_trial", json!(3)), &["num_trial"]),
        case("unknown field deep down", with_input("shap", json!([1])), &["args[0]", "shap"]),
        case("python kernels", changed("/kernel/kernel_type", json!("torch")), &["torch"]),
        case("unknown kernel type", changed("/kernel/kernel_type", json!("opencl")), &["opencl"]),
        case("no trials", changed("/num_trials", json!(0)), &["num_trials", "1"]),
        case("too many trials", changed("/num_trials", json!(10_001)), &["num_trials", "10000"]),
        case("no time", changed("/timeout", json!(0)), &["timeout"]),
        case("two arguments of a name", changed("/kernel/io/args/1/name", json!("in")), &["in"]),
        case(
            "an expectation for nothing",
            changed("/expected", json!({"z": {"data": {"data_b64": "AAAA"}}})),
            &["expected", "z", "out"],
        ),
        case(
            "an expectation for an input",
            changed("/expected", json!({"in": {"data": {"data_b64": "AAAA"}}})),
            &["expected", "in", "output"],
        ),
    ]
}

fn tensors() -> Vec<Case> {
    let case = |name, body, says| Case { name, body, outcome: Refused, says };
    let short = base64(&[0; 12]);
    vec![
        case("zero extent", with_input("shape", json!([0, 4])), &["shape"]),
        case("negative extent", with_input("shape", json!([-4])), &["shape", "-4"]),
        case("fractional extent", with_input("shape", json!([1.5])), &["shape", "1.5"]),
        case(
            "size beyond 64 bits",
            with_input("shape", json!([1u64 << 40, 1u64 << 40])),
            &["shape"],
        ),
        case("ten terabytes", with_input("shape", json!([2_500_000_000_000u64])), &["bytes"]),
        case("data too short", with_data(json!({"data_b64": short})), &["12", "1024"]),
        case(
            "data of another shape",
            with_data(json!({"data_b64": base64(&[0; 1024]), "shape": [16, 15]})),
            &["shape", "256", "15"],
        ),
        case(
            "data of another type",
            with_data(json!({"data_b64": base64(&[0; 1024]), "dtype": "int32"})),
            &["int32", "float32"],
        ),
        case("data that is no base64", with_data(json!({"data_b64": "!!!!"})), &["base64"]),
        case(
            "data that is not zlib",
            with_data(json!({"data_b64": base64(&[7; 64]), "compress": "zlib"})),
            &["zlib"],
        ),
        case("content twice", with_input("data", json!({"data_b64": short})), &["init", "data"]),
        case("no tensor", changed(IN_SPEC, Value::Null), &["tensor_spec"]),
        case("unknown type", with_input("dtype", json!("float42")), &["float42", "dtype"]),
        case("no scalar", changed("/kernel/io/args/2/value", Value::Null), &["value"]),
        case("text for a number", changed("/kernel/io/args/2/value", json!("many")), &["value"]),
        case(
            "ten gigabytes of answer",
            {
                let shape = json!([2_684_354_560u64]);
                let contract = changed(&format!("{OUT_SPEC}/shape"), shape);
                let contract = changed_from(contract, "/expected", Value::Null);
                changed_from(contract, "/return_outputs", json!("all"))
            },
            &["return_outputs", "bytes"],
        ),
    ]
}

fn launches() -> Vec<Case> {
    let case = |name, body, says| Case { name, body, outcome: Refused, says };
    vec![
        case("empty grid", with_grid(json!(0)), &["grid.x", "0"]),
        case("negative grid", with_grid(json!(-1)), &["grid", "-1"]),
        case("grid beyond CUDA", with_grid(json!(1u64 << 31)), &["grid.x", "2147483647"]),
        case("expression below one", with_grid(json!("n - 300")), &["grid.x", "-44"]),
        case("expression too large", with_grid(json!("n * n * n * n")), &["grid.x"]),
        case(
            "expression beyond all types",
            with_grid(json!("n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n")),
            &["grid.x"],
        ),
        case("division by zero", with_grid(json!("n / 0")), &["grid.x", "zero"]),
        case("unknown variable", with_grid(json!("rows")), &["rows"]),
        case("not an expression", with_grid(json!("ceil_div(n,")), &["grid.x"]),
        case("block of 1025", changed("/kernel/io/launch/block/x", json!(1025)), &["1024", "1025"]),
        case(
            "block of 32 × 33",
            changed("/kernel/io/launch/block", json!({"x": 32, "y": 33})),
            &["1024", "1056"],
        ),
    ]
}

fn kernels() -> Vec<Case> {
    let two = "__global__ void first(const float* i, float* o, int n) {}\n\
               __global__ void second(const float* i, float* o, int n) {}\n";
    let no_name =
        |contract: Value| changed_from(contract, "/kernel/metadata/kernel_name", Value::Null);
    let option = |option: &str| changed("/kernel/metadata/compiler_options", json!([option]));
    // A fixed grid, so that the value itself is what does not fit.
    let with_n = |n: Value| changed_from(with_grid(json!(4)), "/kernel/io/args/2/value", n);
    let case = |name, body, outcome, says| Case { name, body, outcome, says };
    vec![
        case(
            "syntax error",
            with_source("__global__ void increment( {\n"),
            NotCompiled,
            &["error", "line"],
        ),
        case("unknown option", option("--no-such-option"), NotCompiled, &["no-such-option"]),
        case(
            "a file of the host",
            with_source("#include \"/etc/passwd\"\n__global__ void increment() {}\n"),
            NotCompiled,
            &["passwd"],
        ),
        case("no kernel in the source", with_source("int x;\n"), RefusedOrFailed, &["kernel"]),
        case(
            "another kernel's name",
            changed("/kernel/metadata/kernel_name", json!("decrement")),
            RefusedOrFailed,
            &["decrement", "increment"],
        ),
        case(
            "two kernels, no name",
            no_name(with_source(two)),
            RefusedOrFailed,
            &["first", "second"],
        ),
        case("value beyond int", with_n(json!(1u64 << 40)), RefusedOrFailed, &["`n`", "int"]),
        case(
            "scalar for a pointer",
            changed("/kernel/io/args/0", json!({"name": "in", "type": "int", "value": 1})),
            RefusedOrFailed,
            &["in", "pointer"],
        ),
        case(
            "an argument too few",
            {
                let mut contract = changed_from(increment(), "/kernel/io/launch/grid/x", json!(4));
                contract["kernel"]["io"]["args"].as_array_mut().unwrap().pop();
                contract
            },
            RefusedOrFailed,
            &["2", "3"],
        ),
        case(
            "cut-off cubin",
            machine_code("cubin", &CUBIN_SM75[..CUBIN_SM75.len() / 2]),
            RefusedOrFailed,
            &["cubin"],
        ),
        case(
            "a cubin that is none",
            machine_code("cubin", b"not an ELF file"),
            RefusedOrFailed,
            &["cubin"],
        ),
        case(
            "cubin of another architecture",
            machine_code("cubin", CUBIN_SM75),
            Failed,
            &["sm_75"],
        ),
    ]
}

/// The answer holds every word, ends as it should, and names no success.
fn check(case: &Case, answer: &Answer) -> Result<(), String> {
    let text = answer.text.to_lowercase();
    for word in case.says {
        if !text.contains(&word.to_lowercase()) {
            return Err(format!("does not say `{word}`"));
        }
    }
    let result = &answer.json["kernel_exec_result"];
    let refused = answer.status == 400
        && ["code", "error"].iter().all(|field| answer.json[field].is_string());
    let no_verdict =
        answer.status == 200 && result["correctness"] != true && result["runtime"].is_null();
    let failed = no_verdict
        && (answer.json["failure"]["message"].is_string()
            || result["compilation_error"].is_string());
    let fine = match case.outcome {
        Refused => refused,
        NotCompiled => {
            no_verdict && result["compiled"] == false && result["compilation_error"].is_string()
        }
        Failed => failed,
        RefusedOrFailed => refused || failed,
    };
    if fine { Ok(()) } else { Err(format!("is not {:?}", case.outcome)) }
}

fn check_all(cases: &[Case]) {
    let server = Server::start();
    let mut wrong = Vec::new();
    for case in cases {
        let answer = server.post_json("/evaluate", &case.body);
        if let Err(reason) = check(case, &answer) {
            wrong.push(format!("{}: {reason}: {} {}", case.name, answer.status, answer.text));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n\n"));
    let report = server.evaluate(&increment());
    assert_eq!(report["kernel_exec_result"]["correctness"], true, "the server is not well after");
}

#[test]
fn structural_mistakes_are_refused_with_their_path() {
    check_all(&structure());
}

#[test]
fn tensors_that_do_not_fit_are_refused_with_both_sizes() {
    check_all(&tensors());
}

#[test]
fn launches_that_no_device_takes_are_refused() {
    check_all(&launches());
}

#[test]
fn kernels_that_cannot_run_say_why() {
    check_all(&kernels());
}

#[test]
fn a_cubin_for_another_architecture_names_both() {
    let server = Server::start();
    let report = server.evaluate(&machine_code("cubin", CUBIN_SM75));
    let text = report.to_string();
    assert!(text.contains("sm_75"), "{text}");
    let device = &report["device"];
    the_rest_needs!("a GPU", device["kind"] == "cuda");
    let own = device["compute_capability"].as_str().unwrap().replace('.', "");
    assert!(text.contains(&format!("sm_{own}")), "{text}");
}

#[test]
fn malformed_bodies_are_refused_with_line_and_column() {
    let server = Server::start();
    let msgpack = rmp_serde::to_vec_named(&increment()).unwrap();
    for (media_type, body, code) in [
        ("application/json", &b"{\n  \"kernel\": {,\n}"[..], "malformed_json"),
        ("application/json", b"{\"kernel\": {\"kernel_type\": \"cuda\"", "truncated_body"),
        ("application/yaml", b"kernel:\n  kernel_type: cuda\n bad: [1\n", "malformed_yaml"),
        ("application/yaml", b"kernel: {a: 1, a: 2}\n", ""),
        ("application/msgpack", &msgpack[..msgpack.len() / 2], ""),
        ("application/msgpack", b"\xc1\xc1", ""),
        ("application/json", b"", ""),
        ("application/json", b"\xff\xfe", ""),
    ] {
        let answer = server.post("/evaluate", &[("content-type", media_type)], body);
        let shown = String::from_utf8_lossy(body);
        assert_eq!(answer.status, 400, "{media_type} {shown}: {}", answer.text);
        assert!(answer.json["error"].is_string(), "{media_type} {shown}: {}", answer.text);
        if !code.is_empty() {
            assert_eq!(answer.json["code"], code, "{media_type} {shown}: {}", answer.text);
            for place in ["line", "column"] {
                assert!(answer.json[place].is_u64(), "{media_type} {shown}: {}", answer.text);
            }
        }
    }
    let answer = server.post("/evaluate", &[("content-type", "text/csv")], b"a,b");
    assert_eq!(answer.status, 415, "{}", answer.text);
}

#[test]
fn a_yaml_alias_bomb_costs_neither_memory_nor_time() {
    let server = Server::start();
    // 3.5 kB that stand for 10⁹ strings of 1 kB.
    let mut bomb = format!("a0: &a0 \"{}\"\n", "x".repeat(1000));
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    // One long scalar, very many times.
    let scalars =
        format!("kernel: &s \"{}\"\nl: [{}]\n", "x".repeat(20_000), "*s, ".repeat(50_000));
    for body in [bomb, scalars] {
        let start = Instant::now();
        let headers = [("content-type", "application/yaml")];
        let answer = server.post("/evaluate", &headers, body.as_bytes());
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
    let peak = peak_memory_mib(server.pid());
    assert!(peak < 200.0, "{peak} MiB");
}

#[test]
fn data_that_become_too_much_are_refused_before_they_are_unpacked() {
    let server = Server::start_configured("[limits]\nmax_decoded_bytes = 1048576\n");
    // Less than a kilobyte of zeros that are packed, in either way; together too much, alone not.
    let elements = 160 << 10;
    let zeros = vec![0; 4 * elements];
    let zlib = {
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&zeros).unwrap();
        packer.finish().unwrap()
    };
    let zstd = zstd::bulk::compress(&zeros, 19).unwrap();
    let tensor = |compress: &str, packed: &[u8]| {
        json!({"shape": [elements], "dtype": "float32",
               "data": {"data_b64": base64(packed), "compress": compress}})
    };
    let mut contract = increment();
    let args = contract["kernel"]["io"]["args"].as_array_mut().unwrap();
    args[0]["tensor_spec"] = tensor("zstd", &zstd);
    args[1]["tensor_spec"] = json!({"shape": [elements], "dtype": "float32"});
    args[2]["value"] = json!(elements);
    contract.as_object_mut().unwrap().remove("expected");
    let fits = server.post_json("/execute", &contract);
    assert_eq!(fits.status, 200, "{}", fits.text);
    let output = contract["kernel"]["io"]["args"][1]["name"].as_str().unwrap().to_owned();
    let expected = tensor("zlib", &zlib);
    contract["expected"] = json!({output: {"data": expected["data"]}});
    for path in ["/evaluate", "/evaluate?wait=false", "/execute"] {
        let answer = server.post_json(path, &contract);
        let told = (answer.status, answer.json["code"].as_str());
        assert_eq!(told, (413, Some("too_much_data")), "{path}: {}", answer.text);
        assert!(answer.text.contains("limits.max_decoded_bytes"), "{}", answer.text);
    }
}

/// Largest resident memory of a process so far.
fn peak_memory_mib(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<f64>().unwrap() / 1024.0
}

#[test]
fn a_body_cut_off_half_way_harms_nobody() {
    let server = Server::start();
    let address = server.url.strip_prefix("http://").unwrap();
    for sent in [0, 1, 500] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let body = serde_json::to_vec(&increment()).unwrap();
        write!(
            stream,
            "POST /evaluate HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        )
        .unwrap();
        stream.write_all(&body[..sent]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        // Either the connection just ends, or an answer says what is wrong.
        let _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1).unwrap_or("400");
        assert!(status.starts_with('4'), "{sent} bytes: {answer}");
    }
    let report = server.evaluate(&increment());
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let server = Server::start_configured("[server]\nbody_limit_bytes = 100000\n");
    let body = vec![b' '; 200_000];
    let answer = server.post("/evaluate", &[("content-type", "application/json")], &body);
    assert_eq!(answer.status, 413, "{}", answer.text);
    assert!(answer.text.contains("100000"), "{}", answer.text);
    let report = server.evaluate(&increment());
    assert_eq!(report["kernel_exec_result"]["correctness"], true);
}
