//! Extensions of torch kernels: `load_inline` compiles outside the submission's process, and a
//! failure affects that submission alone.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{available, expecting, on_cpu, right, there_is_gxx, unloaded, wrong};
use crate::server::{Server, share_caches};

const DOUBLE: &str = "def f(x):\n    return x * 2";

/// C++ that doubles a tensor.
const SCALE: &str = "torch::Tensor scale(torch::Tensor x) { return x * 2; }";

/// A kernel that calls `scale` of an extension. `more`: arguments of `load_inline` beside the sources.
fn extended(cpp: &str, more: &str) -> Value {
    let source = format!(
        "from torch.utils.cpp_extension import load_inline
built = load_inline(name='scaling', cpp_sources=r'''{cpp}''', {more})
def f(x):
    return built.scale(x)
"
    );
    let mut request = expecting(&source, DOUBLE);
    request["kernel"]["metadata"] = json!({"function_name": "f"});
    request["timeout"] = json!(300.0);
    request
}

/// A comment that no source had before: what compilers made is kept from run to run of these tests.
fn unseen() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("// {} {}\n", std::process::id(), now.as_nanos())
}

/// The same with its functions.
fn bound(cpp: &str) -> Value {
    extended(cpp, "functions=['scale']")
}

#[test]
fn an_extension_is_compiled_once_and_computes() {
    needs!("PyTorch", available());
    needs!("g++", there_is_gxx());
    let data = tempfile::tempdir().unwrap();
    share_caches(data.path());
    let server = Server::start_in(data.path(), &["--device", "emulator"], &[]);
    let scale = bound(&format!("{}{SCALE}", unseen()));
    let report = right(&server, "first", &scale);
    let first = &report["torch"]["extensions"][0];
    assert_eq!((&first["name"], &first["kind"]), (&json!("scaling"), &json!("extension")));
    assert_eq!((&first["built"], &first["cached"]), (&json!(true), &json!(false)), "{report:#}");
    assert_eq!(first["how"], "main.cpp: lean headers", "{report:#}");
    assert!(first["seconds"].as_f64().unwrap() > 0.1, "{first}");
    // Compiling is none of its time.
    assert!(report["kernel_exec_result"]["runtime"].as_f64().unwrap() < 100.0, "{report:#}");
    let report = right(&server, "again", &scale);
    assert_eq!(report["torch"]["extensions"][0]["cached"], true, "{report:#}");
    drop(server);
    let server = Server::start_in(data.path(), &["--device", "emulator"], &[]);
    let report = right(&server, "after a restart", &scale);
    assert_eq!(report["torch"]["extensions"][0]["cached"], true, "{report:#}");
}

/// As sources are written: with bindings of their own, names with texts, includes, options.
#[test]
fn extensions_are_taken_as_they_are_written() {
    needs!("PyTorch", available());
    needs!("g++", there_is_gxx());
    let server = &on_cpu();
    let own = "#include <torch/extension.h>
torch::Tensor scale(const torch::Tensor& x, double by) { return torch::mul(x, by); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def(\"scale\", &scale, \"scales\", py::arg(\"x\"), py::arg(\"by\") = 2.0);
}";
    let loop_ = "#include <vector>
torch::Tensor scale(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* from = x.contiguous().data_ptr<float>();
  float* to = y.data_ptr<float>();
#pragma omp parallel for
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] * FACTOR;
  TORCH_CHECK(y.sizes() == x.sizes(), \"sizes\");
  return y;
}";
    for (what, request) in [
        ("bindings of its own", extended(own, "no_implicit_headers=True")),
        (
            "options",
            extended(
                loop_,
                "functions={'scale': 'scales'}, extra_cflags=['-O3', '-fopenmp', '-DFACTOR=2'], \
                 extra_ldflags=['-fopenmp'], verbose=True, with_cuda=False",
            ),
        ),
    ] {
        let report = right(server, what, &request);
        assert_eq!(report["torch"]["extensions"][0]["how"], "main.cpp: lean headers", "{report:#}");
    }
    // What the reference has compiled is its own.
    let mut both = bound(SCALE);
    both["expected"]["y"]["kernel"] = both["kernel"].clone();
    both["expected"]["y"]["kernel"].as_object_mut().unwrap().remove("io");
    right(server, "on both sides", &both);
    // It raises as PyTorch does, so whoever can do without does.
    let without = expecting(
        "from torch.utils.cpp_extension import load_inline
def f(x):
    try:
        load_inline('broken', 'int f() { return', functions=['f'])
    except RuntimeError:
        return x * 2
",
        DOUBLE,
    );
    let report = right(server, "without", &without);
    assert_eq!(report["torch"]["extensions"][0]["built"], false, "{report:#}");
}

/// What a source needs of PyTorch is there, also where that is not foreseen.
#[test]
fn what_lean_headers_lack_the_whole_ones_have() {
    needs!("PyTorch", available());
    needs!("g++", there_is_gxx());
    let unforeseen = "namespace all = at;
torch::Tensor scale(torch::Tensor x) { return all::stack({x, x}).sum(0); }";
    let report = right(&on_cpu(), "whole headers", &bound(&format!("{}{unforeseen}", unseen())));
    assert_eq!(report["torch"]["extensions"][0]["how"], "main.cpp: whole headers", "{report:#}");
}

#[test]
fn extensions_that_cannot_be_had_cost_themselves() {
    needs!("PyTorch", available());
    needs!("g++", there_is_gxx());
    let server = on_cpu();
    let broken = bound("torch::Tensor scale(torch::Tensor x) {\n  return x * 2\n}");
    let report = unloaded(&server, "syntax", &broken, "compilation_failed", "main.cpp:3");
    assert!(report["failure"]["message"].as_str().unwrap().contains("expected"), "{report:#}");
    let traceback = report["torch"]["traceback"].as_str().unwrap();
    for part in ["kernel.py\", line 2", "main.cpp:3", "return x * 2"] {
        assert!(traceback.contains(part), "{part}: {traceback}");
    }
    assert_eq!(report["compile"]["diagnostics"][0]["line"], 2, "{report:#}");
    // There is nothing to be read.
    let secret = "/etc/passwd";
    for include in
        [format!("#include \"{secret}\""), format!("__asm__(\".incbin \\\"{secret}\\\"\");")]
    {
        let report = server.evaluate(&bound(&format!("{include}\n{SCALE}")));
        assert_eq!(report["kernel_exec_result"]["compiled"], false, "{report:#}");
        assert!(!report.to_string().contains("root:"), "{report:#}");
    }
    for (options, part) in [
        ("functions=['scale'], extra_cflags=['-I/etc']", "extra_cflags"),
        ("functions=['scale'], extra_ldflags=['-lssl']", "extra_ldflags"),
        ("functions=['scale'], extra_include_paths=['/etc']", "extra_include_paths"),
    ] {
        unloaded(&server, part, &extended(SCALE, options), "compiler_option_refused", part);
    }
    let data = "char data[100 << 20] = {1}; char* where() { return data; }";
    let huge = bound(&format!("{data}\n{SCALE}"));
    unloaded(&server, "huge", &huge, "compiler_output_too_large", "too large");
    let began = Instant::now();
    let mut endless = bound(&format!(
        "template <int N, int M> struct F {{ static constexpr long v = F<N - 1, M>::v + \
         F<N - 1, M + (1 << N % 30)>::v; }};
template <int M> struct F<0, M> {{ static constexpr long v = M; }};
long long_() {{ return F<26, 0>::v; }}\n{SCALE}"
    ));
    endless["timeout"] = json!(8.0);
    unloaded(&server, "endless", &endless, "compiler_timeout", "did not finish within");
    assert!(began.elapsed() < Duration::from_secs(60));
    crashes(&server);
    right(&server, "after", &expecting(DOUBLE, DOUBLE));
}

/// What was loaded has what its process has.
fn crashes(server: &Server) {
    let null = "torch::Tensor scale(torch::Tensor x) { *(volatile int*)0 = 1; return x; }";
    wrong(server, "a crash", &bound(null), "launch_failed", "segmentation fault");
    let curious = "#include <fcntl.h>\n#include <unistd.h>
torch::Tensor scale(torch::Tensor x) {
  bool has = open(\"/etc/passwd\", O_RDONLY) >= 0 || fork() >= 0 || open(\"/tmp/x\", O_CREAT | O_RDWR, 0600) >= 0;
  return has ? x : x * 2;
}";
    right(server, "confined", &bound(curious));
}

/// It says on the builder's socket what it likes, or nothing.
#[test]
fn whoever_says_rubbish_to_the_builder_is_served_no_more() {
    needs!("PyTorch", available());
    let server = on_cpu();
    // Each call says it again, and nobody listens any more.
    let source = |what: &str| {
        let what = what.replace('\n', "\n        ");
        format!(
            "import os, struct\ndef f(x):\n    try:\n        {what}\n    except OSError:\n        pass\n    \
             return x * 2\n"
        )
    };
    let order = "message = b'{\"c\": {\"name\": \"x\", \"source\": \"int x;\"}}'
message = struct.pack('<I', len(message)) + message";
    for what in [
        "os.write(4, b'\\xff\\xff\\xff\\xff')".to_owned(),
        "os.write(4, struct.pack('<I', 2) + b'[]')".to_owned(),
        "os.write(4, struct.pack('<I', 1 << 20) + b'x' * 1000)".to_owned(),
        "os.write(4, b'{' * 100000)".to_owned(),
        "os.close(4)".to_owned(),
        // It orders, and listens to nothing.
        format!(
            "{order}\nfor _ in range(5):\n    try:\n        os.write(4, message)\n    except OSError: break"
        ),
    ] {
        right(&server, &what, &expecting(&source(&what), DOUBLE));
    }
    let after = "os.write(4, struct.pack('<I', 2) + b'[]')
from torch.utils.cpp_extension import load_inline
load_inline('x', '')";
    let request = expecting(&source(after), DOUBLE);
    let report =
        wrong(&server, "after rubbish", &request, "launch_failed", "nothing more is compiled");
    assert_eq!(report["failure"]["code"], "not_supported", "{report:#}");
}

/// What two want at once is compiled once.
#[test]
fn evaluations_beside_each_other_share_an_extension() {
    needs!("PyTorch", available());
    needs!("g++", there_is_gxx());
    let server = Server::start_configured("[devices]\nuse = \"emulator\"\ntorch_places = 2\n");
    let scale = bound(&format!("{}{SCALE}", unseen()));
    let mut reports = Vec::new();
    std::thread::scope(|scope| {
        let asked: Vec<_> =
            (0..2).map(|_| scope.spawn(|| right(&server, "beside", &scale))).collect();
        reports.extend(asked.into_iter().map(|one| one.join().unwrap()));
    });
    let cached = |report: &Value| report["torch"]["extensions"][0]["cached"].as_bool().unwrap();
    let compiled = reports.iter().filter(|report| !cached(report)).count();
    assert_eq!(compiled, 1, "{reports:#?}");
}
