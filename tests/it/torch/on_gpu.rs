//! Torch kernels on a GPU: the judge's inputs and clock count there, too.

use serde_json::{Value, json};

use super::{available, right, wrong};
use crate::server::{Server, emulated};
use crate::support::has_nvcc;

pub(super) const ADD: &str = "def f(a, b):\n    return a + b";

/// Elements of the vectors.
const COUNT: u64 = 4 << 20;

/// A contract with two float32 vectors in, and their sum out.
pub(super) fn adding(source: &str) -> Value {
    let vector = json!({"shape": [COUNT], "dtype": "float32"});
    let input = |seed: u64| {
        let mut input = vector.clone();
        input["init"] = json!({"kind": "randn", "seed": seed});
        input
    };
    json!({
        "kernel": {
            "kernel_type": "torch", "source_code": source, "metadata": {"function_name": "f"},
            "io": {"args": [
                {"name": "a", "type": "tensor", "tensor_spec": input(1)},
                {"name": "b", "type": "tensor", "tensor_spec": input(2)},
                {"name": "y", "type": "tensor", "role": "output", "tensor_spec": vector},
            ]},
        },
        "expected": {"y": {"kernel": {"kernel_type": "torch", "source_code": ADD}}},
        "num_trials": 20, "timeout": 60.0,
    })
}

/// A kernel that does something when it is called, and is right otherwise.
pub(super) fn doing(what: &str) -> Value {
    let body: String = what.lines().map(|line| format!("    {line}\n")).collect();
    adding(&format!("import ctypes, gc, os, threading\ndef f(a, b):\n{body}    return a + b\n"))
}

#[test]
fn kernels_run_on_the_gpu_and_are_judged_there() {
    needs!("PyTorch", available());
    needs!("a GPU", !emulated());
    let server = Server::start();
    let report = right(&server, "an addition", &adding(ADD));
    assert_eq!(report["device"]["kind"], "cuda", "{report:#}");
    assert_eq!(report["torch"]["device"], report["gpu_type"], "{report:#}");
    let clocks = &report["torch"]["clocks"];
    let (events, judge) = (&clocks["events_ms"], &clocks["judge_ms"]);
    // 48 MiB are moved: no GPU does that in a microsecond, and each in a millisecond.
    for time in [events, judge] {
        assert!((0.001..1.0).contains(&time.as_f64().unwrap()), "{clocks}");
    }
    let method = report["measurement"]["method"].as_str().unwrap();
    assert!(method.starts_with("torch_"), "{report:#}");
    wrongs(&server);
    // What forges its events is timed by the judge's clock, for which the inputs are in the cache.
    let of = |field: &str| clocks[field].as_f64().unwrap();
    println!("clocks: {clocks}");
    forged(&server, of("events_ms").min(of("judge_ms") - of("resolution_ms")));
    right(&server, "after", &adding(ADD));
    without_contracts(&server);
    timeline(&server);
}

/// What the device did, by name.
fn timeline(server: &Server) {
    let mut traced = adding("def f(a, b):\n    return (a + b).clone()");
    traced["profile"] = json!({"tools": ["nsys"]});
    let report = right(server, "traced", &traced);
    let timeline = &report["timeline"];
    assert_eq!(timeline["available"], true, "{timeline:#}");
    let gpu = &timeline["gpu"];
    let (span, busy) = (gpu["span_ms"].as_f64().unwrap(), gpu["busy_ms"].as_f64().unwrap());
    assert!(busy > 0.0 && busy <= span, "{timeline:#}");
    // Ten calls of each; the copy is one of memory, or a kernel's.
    let adding = timeline["kernels"].as_array().unwrap();
    assert!(adding.iter().any(|kernel| kernel["count"] == 10), "{timeline:#}");
    assert!(!timeline["calls"].as_array().unwrap().is_empty(), "{timeline:#}");
    // One that ends there costs its timeline, and not its verdict.
    let ends = "if torch.autograd.profiler._is_profiler_enabled:\n    os._exit(3)";
    let mut ends = doing(ends);
    ends["profile"] = json!({"tools": ["nsys"]});
    let report = right(server, "ends when it is traced", &ends);
    assert_eq!(report["timeline"]["available"], false, "{report:#}");
}

#[test]
fn hardware_metrics_are_told_of_what_a_torch_kernel_launches() {
    needs!("PyTorch", available());
    needs!("a GPU", !emulated());
    let server = Server::start();
    let capabilities = server.get("/capabilities").json;
    let mut tools = capabilities["tools"].as_array().unwrap().iter();
    needs!("Nsight Compute", tools.any(|it| it["name"] == "ncu" && it["available"] == true));
    // The first call is another one than those after it.
    let two = "calls = 0\ndef f(a, b):\n    global calls\n    calls += 1\n    if calls == 1:\n        \
               torch.softmax(a, 0)\n    return (a + b) * 1.0";
    let mut request = adding(two);
    request["profile"] = json!({"metrics": ["duration", "fadd_instructions", "ffma_instructions", "fmul_instructions"]});
    let report = right(&server, "two kernels", &request);
    assert_eq!(report["profile"]["available"], true, "{}", report["profile"]);
    let metrics = &report["kernel_exec_result"]["metadata"]["device_metrics"];
    assert_eq!(metrics["source"], "ncu", "{metrics:#}");
    let kernels = metrics["kernels"].as_array().unwrap();
    let launches: u64 = kernels.iter().map(|kernel| kernel["launches"].as_u64().unwrap()).sum();
    assert_eq!(launches, 2, "{metrics:#}");
    let value = |name: &str| metrics["metrics"][name]["value"].as_f64().unwrap();
    // 96 MiB are moved by both together.
    assert!((10e-6..1e-3).contains(&value("duration")), "{metrics:#}");
    // PyTorch adds by `a + alpha * b`.
    let added = value("fadd_instructions") + value("ffma_instructions");
    assert_eq!((added, value("fmul_instructions")), (COUNT as f64, COUNT as f64), "{metrics:#}");
    // Nothing is counted of one that is wrong, and one that behaves otherwise under a tool has no metrics.
    let mut other = adding("def f(a, b):\n    return a - b");
    other["profile"] = json!({});
    let report = server.evaluate(&other);
    assert_eq!(report["profile"]["available"], false, "{report:#}");
    let mut notices = doing("if os.environ.get('TMPDIR'):\n    return a - b");
    notices["profile"] = json!({});
    let report = right(&server, "one that notices", &notices);
    let reason = report["profile"]["reason"].as_str().unwrap();
    assert!(reason.contains("under the tool"), "{reason}");
    both_sides(&server);
    right(&server, "after", &adding(ADD));
}

/// In a comparison, with inputs that the reference makes.
fn both_sides(server: &Server) {
    let kernel = |body: &str, name: &str| {
        let source = format!(
            "class {name}(nn.Module):\n    def __init__(self):\n        super().__init__()\n        \
             self.layer = nn.Linear(512, 512)\n    def forward(self, x):\n        {body}\n\
             def get_inputs():\n    return [torch.randn(256, 512)]\n"
        );
        json!({"kernel_type": "torch", "source_code": source})
    };
    let request = json!({
        "ref_kernel": kernel("return torch.relu(self.layer(x))", "Model"),
        "custom_kernel": kernel("return self.layer(x).clamp(min=0) + 0.0", "ModelNew"),
        "profile": {"metrics": ["duration"]},
        "measure": {"max_time": 1.0}, "timeout": 60.0,
    });
    let report = server.post_json("/compare", &request).json;
    let launches = |side: &Value| -> u64 {
        let metrics = &side["kernel_exec_result"]["metadata"]["device_metrics"];
        let kernels = metrics["kernels"].as_array().unwrap_or_else(|| panic!("{side:#}"));
        kernels.iter().map(|kernel| kernel["launches"].as_u64().unwrap()).sum()
    };
    let (reference, candidate) =
        (launches(&report["reference"]), launches(&report["candidates"][0]["evaluation"]));
    assert_eq!(candidate, reference + 1, "{report:#}");
    let groups = &report["kernel_exec_result"]["metadata"]["device_metrics"];
    for side in ["original_device_metrics", "custom_device_metrics"] {
        assert!(groups[side]["timing_metrics"].is_object(), "{side}: {groups:#}");
    }
}

/// What may be written with a GPU in mind, compared with itself: inputs of the source or generated ones, on the
/// device or brought there; gradients; streams and graphs.
fn without_contracts(server: &Server) {
    let layer = "class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(128, 64)
    def forward(self, x):
";
    let with = |forward: &str| format!("{layer}        {forward}\n");
    let inputs = "def get_inputs():\n    return [torch.randn(64, 128, device='cuda')]\n";
    let own = "class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((256,), 2.0, device='cuda'))
    def forward(self, x):
        return x.cuda() * self.scale
";
    let aside = "s = torch.cuda.Stream()
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            y = self.layer(x)
        torch.cuda.current_stream().wait_stream(s)
        return y";
    for (what, source, backward) in [
        ("generated inputs", with("return self.layer(x)"), false),
        ("brought to the device", with("return self.layer(x.cuda())"), false),
        ("parameters made there", own.to_owned(), false),
        ("inputs made there", with("return self.layer(x)") + inputs, false),
        ("gradients", with("return torch.relu(self.layer(x))"), true),
        ("a stream of its own", with(aside), false),
        (
            "tensors made there",
            "def f(x):\n    return x + torch.ones(256, device='cuda')".to_owned(),
            false,
        ),
    ] {
        let mut kernel = json!({"kernel_type": "torch", "source_code": source});
        if backward {
            kernel["metadata"] = json!({"backward": true});
        }
        let both = json!({"ref_kernel": kernel, "custom_kernel": kernel, "num_trials": 5});
        let answer = server.post_json("/compare", &both);
        assert_eq!(answer.status, 200, "{what}: {}\n{}", answer.text, server.output());
        let report = &answer.json["candidates"][0]["evaluation"];
        assert_eq!(report["kernel_exec_result"]["correctness"], true, "{what}: {report:#}");
        assert_eq!(report["torch"]["device"], report["gpu_type"], "{what}: {report:#}");
    }
}

/// It is wrong, or somewhere else.
fn wrongs(server: &Server) {
    wrong(server, "less", &adding("def f(a, b):\n    return a - b"), "output_mismatch", "`y`");
    let away = adding("def f(a, b):\n    return (a + b).cpu()");
    wrong(server, "on the CPU", &away, "output_mismatch", "on the CPU");
    let in_place = adding("def f(a, b):\n    return a.add_(b).clone()");
    wrong(server, "in place", &in_place, "input_modified", "`a`");
    let kept = "global kept\nkept = globals().get('kept', a + b)\nreturn kept.clone()";
    wrong(server, "kept", &doing(kept), "wrong_for_other_seeds", "right at first");
    for key in ["a.data_ptr()", "id(a)"] {
        let cached = format!(
            "global kept\nkept = globals().get('kept', {{}})\nreturn kept.setdefault({key}, a + b).clone()"
        );
        wrong(server, key, &doing(&cached), "wrong_for_other_seeds", "right at first");
    }
    for (what, part) in [
        ("ctypes.string_at(0)", "segmentation fault"),
        ("os._exit(3)", "exit code 3"),
        ("a[torch.tensor([1 << 40], device='cuda')].sum().item()", "device-side assert"),
    ] {
        wrong(server, what, &doing(what), "launch_failed", part);
    }
    let all = doing("torch.empty(1 << 42, device=a.device)");
    wrong(server, "all of the memory", &all, "out_of_memory", "CUDA out of memory");
    let mut hangs = doing("torch.cuda._sleep(1 << 60)\ntorch.cuda.synchronize()");
    hangs["timeout"] = json!(2.0);
    wrong(server, "hangs", &hangs, "timeout", "within 2 s");
}

/// None is told faster than it is, by more than 3 %.
fn forged(server: &Server, honest_ms: f64) {
    let least = honest_ms * 0.97;
    let events = "torch.cuda.Event.elapsed_time = lambda self, other: 0.0001";
    let report = right(server, "events", &doing(events));
    assert_eq!(report["torch"]["clock"], "judge", "{report:#}");
    assert_eq!(report["torch"]["clocks"]["agree"], false, "{report:#}");
    let median = report["kernel_exec_result"]["runtime_stats"]["median"].as_f64().unwrap();
    assert!(median > least, "{median} of {honest_ms}: {report:#}");
    let aside = "
global s
s = globals().get('s') or torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
out = torch.empty_like(a)
with torch.cuda.stream(s):
    torch.cuda._sleep(1000000)
    torch.add(a, b, out=out)
";
    let joined = doing(&format!("{aside}torch.cuda.current_stream().wait_stream(s)\nreturn out"));
    let report = right(server, "a side stream", &joined);
    let median = report["kernel_exec_result"]["runtime_stats"]["median"].as_f64().unwrap();
    assert!(median > 2.0 * least, "{median}: {report:#}");
    // Without that, what is returned is not there when the call ends.
    let left = doing(&format!("{aside}return out"));
    wrong(server, "a side stream that is left", &left, "output_mismatch", "current stream");
    let early = "
for found in gc.get_objects():
    if type(found).__name__ == 'Device':
        found.synchronize = lambda: None
torch.cuda._sleep(10000000)";
    let report = server.evaluate(&doing(early));
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report:#}");
}

/// A product of a matrix and a vector; `forward`: the body of the method.
fn product(name: &str, forward: &str) -> Value {
    let source = format!(
        "import gc, sys\nN = 4096\nclass {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(N, N) / 64)
        self.of = {{}}
    def forward(self, x):
{forward}
def get_inputs():
    return [torch.randn(N)]
"
    );
    json!({"kernel_type": "torch", "source_code": source})
}

#[test]
fn calls_are_computed_one_at_a_time() {
    needs!("PyTorch", available());
    needs!("a GPU", !emulated());
    let server = Server::start();
    let compared = |what: &str, reference: &str, forward: &str| {
        let both = json!({"ref_kernel": product("Model", reference),
            "custom_kernel": product("ModelNew", forward), "num_trials": 20, "timeout": 60.0});
        let answer = server.post_json("/compare", &both);
        assert_eq!(answer.status, 200, "{what}: {}\n{}", answer.text, server.output());
        answer.json
    };
    let plain = "        return torch.mv(self.w, x)";
    let report = compared("the same", plain, plain);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let clocks = &report["candidates"][0]["evaluation"]["torch"]["clocks"];
    println!("clocks: {clocks}, comparison: {}", report["comparison"]);
    assert_eq!(clocks["waits"], false, "{clocks}");
    let judge = clocks["judge_ms"].as_f64().unwrap();
    assert!((0.003..0.5).contains(&judge), "{clocks}");

    // One product for the calls of a whole batch, as far as their inputs can be read.
    let all = "        made = next((it for it in gc.get_objects() if type(it).__name__ == 'Batch'), None)
        if made is None or len(made.arguments) < 2:
            return torch.mv(self.w, x)
        if x.data_ptr() not in self.of:
            rows = torch.stack([each[0] for each in made.arguments])
            self.of = dict(zip((each[0].data_ptr() for each in made.arguments), torch.mm(rows, self.w.t())))
        return self.of.pop(x.data_ptr()).clone()";
    let report = compared("a batch at once", plain, all);
    assert_ne!(report["comparison"]["verdict"], "faster", "{report:#}");
    println!("a batch at once: {} {}", report["verdict"], report["summary"]);

    // A call that waits for the device is timed with what the host does.
    let waits =
        "        y = torch.mv(self.w, x)\n        torch.cuda.synchronize()\n        return y";
    let report = compared("waits", plain, waits);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let clocks = &report["candidates"][0]["evaluation"]["torch"]["clocks"];
    assert_eq!(clocks["waits"], true, "{clocks}");
    println!("waits: {clocks}, comparison: {}", report["comparison"]);
    assert_ne!(report["comparison"]["verdict"], "faster", "{report:#}");

    // Elements that do not lie side by side, none at all, and an argument.
    let views = "        y = torch.mv(self.w, x)\n        \
                 return y.view(64, 64).t(), y[::3], y[:0], y.expand(2, N), x";
    let report = compared("views", views, views);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    assert!(report["comparison"].is_object(), "{report:#}");

    // What lies on the host is not settled.
    let number = "        return torch.mv(self.w, x), 1.5";
    let report = compared("a number", number, number);
    assert_eq!(report["verdict"], "correct", "{report:#}");
    let unranked = &report["candidates"][0]["evaluation"]["measurement"]["unranked"];
    assert!(unranked.as_str().unwrap().contains("on the host"), "{report:#}");
    let many = "        return [x + i for i in range(70)]";
    let report = compared("many", many, many);
    assert_eq!(report["verdict"], "correct", "{report:#}");
}

/// A submission with an addition of its own in CUDA C++; `cuda`: its source, which defines `add`.
fn extended(cuda: &str) -> Value {
    let source = format!(
        "from torch.utils.cpp_extension import load_inline
built = load_inline(name='adding', cpp_sources='torch::Tensor add(torch::Tensor a, torch::Tensor b);',
    cuda_sources=r'''{cuda}''', functions=['add'], extra_cuda_cflags=['-O3', '--use_fast_math'])
def f(a, b):
    return built.add(a, b)
"
    );
    let mut request = adding(&source);
    request["timeout"] = json!(500.0);
    request
}

/// A kernel, and what launches it.
const CUDA_ADD: &str = "
__global__ void add_kernel(const float* a, const float* b, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a[i] + b[i];
}
torch::Tensor add(torch::Tensor a, torch::Tensor b) {
    TORCH_CHECK(a.is_cuda() && b.is_cuda(), \"a and b must be on the GPU\");
    auto y = torch::empty_like(a);
    int n = a.numel();
    add_kernel<<<(n + 255) / 256, 256>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}";

/// A comment that no source had before: what compilers made is kept from run to run of these tests.
fn unseen() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    format!("// {} {}\n", std::process::id(), now.as_nanos())
}

#[test]
fn cuda_extensions_are_compiled_and_run_on_the_gpu() {
    needs!("PyTorch", available());
    needs!("a GPU", !emulated());
    needs!("nvcc", has_nvcc());
    let server = Server::start();
    let source = unseen() + CUDA_ADD;
    let report = right(&server, "an extension", &extended(&source));
    assert_eq!(report["torch"]["device"], report["gpu_type"], "{report:#}");
    let built = &report["torch"]["extensions"][0];
    assert_eq!(built["how"], "main.cpp: lean headers; cuda.cu: lean headers", "{report:#}");
    assert_eq!(built["cached"], false, "{report:#}");
    println!("a CUDA extension took {} s", built["seconds"]);
    let report = right(&server, "again", &extended(&source));
    let built = &report["torch"]["extensions"][0];
    assert_eq!(built["cached"], true, "{report:#}");
    assert!(built["seconds"].as_f64().unwrap() < 2.0, "{report:#}");
    // Streams, libraries and whole headers, as submissions use them.
    let streams = source.replace(
        "add_kernel<<<(n + 255) / 256, 256>>>",
        "add_kernel<<<(n + 255) / 256, 256, 0, \
         c10::cuda::getCurrentCUDAStream()>>>",
    );
    let streams =
        format!("#include <c10/cuda/CUDAStream.h>\n#include <torch/extension.h>\n{streams}");
    right(&server, "on the current stream", &extended(&streams));
    let unforeseen =
        "namespace everything = at;\ntorch::Tensor add(torch::Tensor a, torch::Tensor b) {
    return everything::stack({a, b}).sum(0);\n}";
    let report = right(&server, "whole headers", &extended(&format!("{}{unforeseen}", unseen())));
    let how = report["torch"]["extensions"][0]["how"].as_str().unwrap();
    assert!(how.ends_with("cuda.cu: whole headers"), "{how}");
    println!("with whole headers {} s", report["torch"]["extensions"][0]["seconds"]);
    let less = source.replace("a[i] + b[i]", "a[i] - b[i]");
    wrong(&server, "less", &extended(&less), "output_mismatch", "`y`");
    let broken = source.replace("int n = a.numel();", "int n = a.numel()");
    let report = server.evaluate(&extended(&broken));
    assert_eq!(report["failure"]["code"], "compilation_failed", "{report:#}");
    assert!(report["failure"]["message"].as_str().unwrap().contains("cuda.cu:"), "{report:#}");
    // Where it writes beside its memory, its own evaluation ends.
    let stray = source.replace("y[i] = a[i] + b[i]", "y[i + (1l << 40)] = 0");
    let report = server.evaluate(&extended(&stray));
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report:#}");
    right(&server, "after", &extended(&source));
}

/// A kernel of Triton's within Python, launched as its authors do.
const TRITON_ADD: &str = "
import triton
import triton.language as tl

@triton.jit
def add_kernel(a, b, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(y + at, tl.load(a + at, mask=mask) + tl.load(b + at, mask=mask), mask=mask)

def f(a, b):
    y = torch.empty_like(a)
    n = a.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta['BLOCK']),)](a, b, y, n, BLOCK=1024)
    return y
";

#[test]
fn kernels_of_triton_run_within_torch_kernels() {
    needs!("PyTorch", available());
    needs!("a GPU", !emulated());
    needs!("Triton", crate::support::has_triton());
    let server = Server::start();
    let mut request = adding(TRITON_ADD);
    request["timeout"] = json!(120.0);
    let report = right(&server, "an addition", &request);
    let kinds = |report: &Value| -> Vec<String> {
        let all = report["torch"]["extensions"].as_array().unwrap().iter();
        all.map(|one| one["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert!(kinds(&report).contains(&"ptxas".to_owned()), "{report:#}");
    assert!(kinds(&report).contains(&"c".to_owned()), "{report:#}");
    let report = right(&server, "again", &request);
    let all = report["torch"]["extensions"].as_array().unwrap();
    assert!(all.iter().all(|one| one["cached"] == true), "{report:#}");
    // Several configurations, which Triton itself times, one of which cannot be had.
    let tuned = TRITON_ADD
        .replace(
            "@triton.jit",
            "@triton.autotune(configs=[triton.Config({'BLOCK': 1 << size}, num_warps=4) for size in (8, 10)], \
             key=['n'])\n@triton.jit",
        )
        .replace(", BLOCK=1024", "");
    let mut tuned = adding(&tuned);
    tuned["timeout"] = json!(120.0);
    right(&server, "tuned", &tuned);
    let less = TRITON_ADD.replace("mask=mask) + tl", "mask=mask) - tl");
    wrong(&server, "less", &adding(&less), "output_mismatch", "`y`");
    let broken = TRITON_ADD.replace("tl.load(b + at", "tl.no_such(b + at");
    let report = server.evaluate(&adding(&broken));
    assert_eq!(report["kernel_exec_result"]["correctness"], false, "{report:#}");
    assert!(report.to_string().contains("no_such"), "{report:#}");
}

/// `torch.compile`: Inductor's kernels are Triton's there.
#[test]
fn compiled_functions_run_on_the_gpu() {
    needs!("PyTorch", available());
    needs!("a GPU", !emulated());
    let server = Server::start();
    let compiled = |body: &str, how: &str| {
        let source = format!(
            "def g(a, b):\n    {body}\nh = torch.compile(g{how})\ndef f(a, b):\n    return h(a, b)\n"
        );
        let mut request = adding(&source);
        request["tolerance"] = json!({"atol": 1e-4, "rtol": 1e-4});
        request["timeout"] = json!(120.0);
        request
    };
    let report = right(&server, "a sum", &compiled("return a + b", ""));
    assert_eq!(report["torch"]["device"], report["gpu_type"], "{report:#}");
    let built = report["torch"]["extensions"].as_array().unwrap();
    assert!(built.iter().any(|one| one["kind"] == "ptxas"), "{report:#}");
    right(&server, "tuned", &compiled("return a + b", ", mode='max-autotune-no-cudagraphs'"));
    let rows = "return (a.view(-1, 1024).softmax(1) * 0 + (a + b).view(-1, 1024)).view(-1)";
    right(&server, "with a reduction", &compiled(rows, ", dynamic=False"));
    let broken = "return a + b if float(a[0]) < 1e9 else a";
    right(&server, "in two graphs", &compiled(broken, ""));
    let less = compiled("return a - b", "");
    wrong(&server, "another function", &less, "output_mismatch", "`y`");
    // Graphs give their outputs the same memory each time, so that copies are returned.
    let copied = "torch.compiler.cudagraph_mark_step_begin()\n    return h(a, b).clone()\n";
    let mut graphs = compiled("return a + b", ", mode='reduce-overhead'");
    let source =
        graphs["kernel"]["source_code"].as_str().unwrap().replace("return h(a, b)\n", copied);
    graphs["kernel"]["source_code"] = json!(source);
    right(&server, "in a graph", &graphs);
}
