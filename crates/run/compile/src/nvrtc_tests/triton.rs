//! Tests of Triton: the code equals that of Triton's own launch, in every version.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use super::*;
use crate::toolchain::TritonInstall;
use warpgauge_sandbox::program::{ChildProgram, Environment};

/// Variable with the `site-packages` of another version of Triton, which `cargo xtask test` installs.
const OTHER: &str = "WARPGAUGE_OTHER_TRITON";

/// A kernel whose code depends on properties of its arguments: multiples of 16, and 1.
const SCALE: &str = "
import triton
import triton.language as tl

@triton.jit
def helper(value, factor):
    return value * factor

@triton.jit
def scale(x, out, n, stride, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at * stride, mask=at < n)
    tl.store(out + at, helper(value, factor), mask=at < n)
";

/// A product of matrices: tensor cores, pipelined loads, shared memory.
const PRODUCT: &str = "
import triton
import triton.language as tl

@triton.jit
def product(a, b, c, M, N, K, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        total += tl.dot(x, y)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))
";

/// A script in which Triton's own launch compiles, without any of this program's code.
const PLAIN: &str = "
import importlib.util, json, sys
settings = json.loads(sys.argv[1])
sys.path.insert(0, settings['site_packages'])
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import MockTensor

class Driver:
    def get_current_target(self): return GPUTarget('cuda', settings['arch'], 32)
    def get_current_device(self): return 0
    def get_current_stream(self, device=None): return 0

triton.runtime.driver.set_active(Driver())
spec = importlib.util.spec_from_file_location('kernel', settings['file'])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
args = [MockTensor(getattr(tl, a)) if isinstance(a, str) else a for a in settings['args']]
kernel = getattr(module, settings['name'])
built = kernel.warmup(*args, grid=(1,), **settings['keywords'])
print(json.dumps({'ptx': built.asm['ptx'], 'shared': built.metadata.shared}))
";

pub(super) struct Case<'a> {
    pub(super) name: &'static str,
    pub(super) source: &'a str,
    /// Types of tensors, and values of scalars.
    pub(super) args: Vec<Value>,
    pub(super) meta: Vec<(&'static str, i64)>,
    pub(super) num_warps: u32,
}

fn cases() -> Vec<Case<'static>> {
    let scale = |n: i64, stride: i64, factor: f64| Case {
        name: "scale",
        source: SCALE,
        args: vec!["float32".into(), "float32".into(), n.into(), stride.into(), factor.into()],
        meta: vec![("BLOCK", 256)],
        num_warps: 4,
    };
    let half = || Value::from("float16");
    vec![
        scale(1024, 1, 2.0),
        scale(1000, 1, 2.0),
        scale(1023, 3, 1.0),
        scale(1 << 40, 16, 0.5),
        Case {
            name: "product",
            source: PRODUCT,
            args: vec![half(), half(), half(), 128.into(), 128.into(), 64.into()],
            meta: vec![("BLOCK", 32)],
            num_warps: 2,
        },
    ]
}

impl Case<'_> {
    pub(super) fn request(&self, options: &[String]) -> KernelCode {
        let arg = |(index, value): (usize, &Value)| match value {
            Value::String(dtype) => json!({
                "name": format!("a{index}"), "type": "tensor", "role": "inout",
                "tensor_spec": {"shape": [1024], "dtype": dtype, "init": {"kind": "zeros"}},
            }),
            other => json!({
                "name": format!("a{index}"), "value": other,
                "type": if other.is_i64() { "int" } else { "float" },
            }),
        };
        let mut args: Vec<Value> = self.args.iter().enumerate().map(arg).collect();
        args.extend(self.meta.iter().map(
            |(name, value)| json!({"name": name, "type": "int", "value": value, "is_meta": true}),
        ));
        serde_json::from_value(json!({
            "kernel_type": "triton",
            "source_code": self.source,
            "metadata": {"kernel_name": self.name, "compiler_options": options},
            "io": {"args": args, "launch": {"grid": {"x": 1}, "num_warps": self.num_warps}},
        }))
        .unwrap()
    }

    /// Returns the result of Triton's own launch: the PTX and the shared memory in bytes.
    fn plain(&self, triton: &TritonInstall, arch: u32, directory: &Path) -> (String, u64) {
        let file = directory.join("kernel.py");
        std::fs::write(&file, self.source).unwrap();
        let mut keywords =
            serde_json::Map::from_iter([("num_warps".into(), self.num_warps.into())]);
        keywords.extend(self.meta.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        let settings = json!({
            "site_packages": triton.site_packages, "arch": arch, "file": file, "name": self.name,
            "args": self.args, "keywords": keywords,
        });
        let program = ChildProgram::new(&triton.python, Environment::Empty)
            .args(["-S", "-s", "-c", PLAIN])
            .arg(settings.to_string())
            .variable("HOME", directory)
            .variable("TRITON_CACHE_DIR", directory.join(format!("cache-{arch}")))
            .variable("PATH", "/usr/bin:/bin")
            .within(directory);
        let output = program.to_blocking().stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "{} on sm_{arch}", self.name);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        (told["ptx"].as_str().unwrap().to_owned(), told["shared"].as_u64().unwrap())
    }
}

/// Returns the code of a PTX module, without parts that show where the source is.
fn code(ptx: &str) -> String {
    let lines = ptx.lines().take_while(|line| !line.trim_start().starts_with(".section"));
    let places = |line: &&str| {
        let line = line.trim_start();
        !(line.starts_with(".loc") || line.starts_with(".file") || line.starts_with("//"))
    };
    // The comment behind a line names its source line.
    let bare = |line: &str| line.split("//").next().unwrap_or_default().trim_end().to_owned();
    lines.filter(places).map(bare).collect::<Vec<_>>().join("\n")
}

pub(super) fn installed() -> Option<TritonInstall> {
    toolchain().triton
}

/// Returns the other version, with the same interpreter.
pub(super) fn other(known: &TritonInstall) -> Option<TritonInstall> {
    let site_packages = PathBuf::from(std::env::var_os(OTHER)?);
    let program = |name: &str| site_packages.join("triton/backends/nvidia/bin").join(name);
    let blackwell = Some(program("ptxas-blackwell")).filter(|path| path.is_file());
    let version = site_packages.read_dir().ok()?.flatten().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some(name.strip_prefix("triton-")?.strip_suffix(".dist-info")?.to_owned())
    })?;
    Some(TritonInstall {
        ptxas: program("ptxas"),
        ptxas_blackwell: blackwell,
        site_packages,
        version,
        ..known.clone()
    })
}

async fn same_as_plain(triton: &TritonInstall) {
    let directory = tempfile::tempdir().unwrap();
    let toolchain = Toolchain { triton: Some(triton.clone()), ..Toolchain::default() };
    let bench = Bench::with(toolchain, Duration::from_secs(120));
    for case in cases() {
        for arch in [80, 89, 90] {
            let options = [format!("arch=sm_{arch}")];
            let built = bench.compile(&case.request(&options)).await;
            let built = built.unwrap_or_else(|error| panic!("{} {arch}: {error:?}", case.name));
            let (ptx, shared) = case.plain(triton, arch, directory.path());
            let own = &built.stages.iter().find(|(name, _)| name == "ptx").unwrap().1;
            assert_eq!(code(own), code(&ptx), "Triton {}, sm_{arch}", triton.version);
            let launch = built.launch.as_ref().unwrap();
            assert_eq!(u64::from(launch.shared_bytes), shared);
            assert_eq!(launch.threads, 32 * case.num_warps);
            // Machine code for the device's own architecture, PTX for any other.
            let format = if arch == 90 { ImageFormat::Cubin } else { ImageFormat::Ptx };
            assert_eq!(built.format, format, "sm_{arch}");
            let warps = format!("num_warps={}", case.num_warps);
            assert_eq!(built.options[..2], [format!("arch=sm_{arch}"), warps]);
            assert!(built.options.iter().any(|option| option.starts_with("num_stages=")));
            if arch == 90 {
                assert!(built.entry_kernel().resources.unwrap().registers > 0);
            }
        }
    }
}

#[tokio::test]
async fn triton_compiles_what_its_own_launch_does() {
    let installed = installed();
    needs!("Triton", installed.is_some());
    same_as_plain(&installed.unwrap()).await;
}

#[tokio::test]
async fn another_version_of_triton_does_too() {
    let installed = installed();
    needs!("Triton", installed.is_some());
    let other = other(&installed.unwrap());
    needs!("another version of Triton", other.is_some());
    same_as_plain(&other.unwrap()).await;
}

#[tokio::test]
async fn integers_that_are_one_are_compiled_in_and_the_rest_is_passed() {
    let installed = installed();
    needs!("Triton", installed.is_some());
    let bench = Bench::new();
    let [ones, others] = [0, 2].map(|at| cases().remove(at).request(&[]));
    let passed = |built: CompiledModule| built.launch.unwrap().parameters;
    let ones = passed(bench.compile(&ones).await.unwrap());
    let others = passed(bench.compile(&others).await.unwrap());
    let arguments = |passed: &[PassedValue]| -> Vec<usize> {
        let index =
            |one: &PassedValue| if let PassedValue::Argument(at) = one { Some(*at) } else { None };
        passed.iter().filter_map(index).collect()
    };
    assert_eq!(arguments(&ones), [0, 1, 2, 4], "the stride is 1");
    assert_eq!(arguments(&others), [0, 1, 2, 3, 4]);
}

/// Links the same files into another directory.
fn link_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            link_tree(&entry.path(), &target);
        } else if std::fs::hard_link(entry.path(), &target).is_err() {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// Importing PyTorch takes seconds, and Triton imports it wherever it finds it.
#[tokio::test]
async fn torch_is_imported_by_nobody_but_the_source() {
    let installed = installed();
    needs!("Triton", installed.is_some());
    let installed = installed.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let site_packages = directory.path().to_owned();
    // The package, and the metadata that names its backends.
    for entry in installed.site_packages.read_dir().unwrap().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("triton") {
            link_tree(&entry.path(), &site_packages.join(name));
        }
    }
    std::fs::create_dir(site_packages.join("torch")).unwrap();
    // Triton ignores every exception of an import.
    let own = "import os\nos._exit(7)";
    std::fs::write(site_packages.join("torch/__init__.py"), own).unwrap();
    let bin = site_packages.join("triton/backends/nvidia/bin");
    let triton = TritonInstall {
        ptxas: bin.join("ptxas"),
        ptxas_blackwell: None,
        site_packages,
        torch: true,
        ..installed
    };

    let toolchain = Toolchain { triton: Some(triton), ..Toolchain::default() };
    let bench = Bench::with(toolchain, Duration::from_secs(120));
    let mut case = cases().remove(0);
    bench.compile(&case.request(&[])).await.unwrap();
    let importing = format!("import torch\n{SCALE}");
    case.source = &importing;
    let error = bench.compile(&case.request(&[])).await.unwrap_err();
    assert!(format!("{error:?}").contains("exit status: 7"), "{error:?}");
}

/// The imports and the first statement of Triton's own tutorials, and tests of a kernel at the end of its module.
#[tokio::test]
async fn modules_import_torch_ask_for_the_device_and_test_themselves() {
    let source = "\
from __future__ import annotations
import torch
import torch.nn.functional as F
from torch import nn, Tensor
import triton
import triton.language as tl
DEVICE = triton.runtime.driver.active.get_active_torch_device()
TYPES = {torch.float16: tl.float16, torch.float32: tl.float32}
assert not torch.cuda.is_available() and torch.version.hip is None and torch.float16 is torch.float16 \
    and torch.cuda.get_device_capability()[0] >= 7 and torch.__version__.split('.')[:2] == ['2', '11']
SMS = torch.cuda.get_device_properties(0).multi_processor_count

@triton.jit
def add(x, y, BLOCK: tl.constexpr, n):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

class Add(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type='cuda')
    def forward(ctx, x: Tensor, eps: float = torch.finfo) -> Tensor | None:
        return x
call = Add.apply
@torch.no_grad()
def under(x): return x
assert under(3) == 3
class Net(nn.Module): pass
x = torch.rand(98432, device=DEVICE)
assert torch.allclose(x, call(x)), 'wrong'
raise SystemExit(1)
nothing_after_the_end
";
    let args = vec!["float32".into(), "float32".into(), 1000.into()];
    let case = Case { name: "add", source, args, meta: vec![("BLOCK", 128)], num_warps: 4 };
    let kernel = case.request(&[]);
    let bench = Bench::new();
    let built = bench.compile(&kernel).await.unwrap_or_else(|error| panic!("{error:?}"));
    let told: Vec<(Option<u32>, &str)> =
        built.diagnostics.iter().map(|one| (one.line, one.message.as_str())).collect();
    assert_eq!(
        told.iter().map(|(line, _)| *line).collect::<Vec<_>>(),
        [10, 28, 29].map(Some),
        "{told:?}"
    );
    assert!(told[0].1.contains("`torch.cuda.get_device_properties` needs PyTorch"), "{told:?}");
}

#[tokio::test]
async fn heuristics_above_the_tuner_are_computed_as_in_a_launch() {
    let source = |rule: &str| {
        format!(
            "\
import triton
import triton.language as tl
@triton.heuristics({{'TWICE': {rule}}})
@triton.autotune(configs=[triton.Config({{'BLOCK': 64}}), triton.Config({{'BLOCK': 128}})], key=['n'])
@triton.jit
def k(x, n, BLOCK: tl.constexpr, TWICE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(x + at, value * 2 if TWICE else value + 7, mask=at < n)
"
        )
    };
    let request = |source: &str| {
        let args = vec!["float32".into(), 1000.into()];
        let mut kernel =
            Case { name: "k", source, args, meta: Vec::new(), num_warps: 4 }.request(&[]);
        kernel.metadata.as_mut().unwrap().configuration = Some(1);
        kernel.io.as_mut().unwrap().launch.as_mut().unwrap().num_warps = None;
        kernel
    };
    let bench = Bench::new();
    let built = bench.compile(&request(&source("lambda args: args['n'] > 1"))).await;
    let stages = built.unwrap_or_else(|error| panic!("{error:?}")).stages;
    let ttir = &stages.iter().find(|stage| stage.0 == "ttir").unwrap().1;
    assert!(ttir.contains("arith.mulf") && ttir.contains("128") && !ttir.contains("7.0"), "{ttir}");
    let failure = bench.rejected(&request(&source("lambda args: args['BLOCK'] > 1"))).await;
    assert!(failure.message.contains("below @triton.autotune"), "{}", failure.message);
}

/// A definition that fails says why, and so does a kernel that needs a statement that failed.
#[tokio::test]
async fn what_failed_is_told_where_a_kernel_needs_it() {
    let bench = Bench::new();
    let head = "import torch, triton\nimport triton.language as tl\n";
    let kernel = |text: &str| {
        let source = format!("{head}{text}");
        let args = vec!["float32".into()];
        Case { name: "k", source: &source, args, meta: Vec::new(), num_warps: 4 }.request(&[])
    };
    let failure = bench
        .rejected(&kernel(
            "@triton.autotune(configs=made(), key=[])\n@triton.jit\ndef k(x): pass\n",
        ))
        .await;
    assert!(failure.message.contains("name 'made' is not defined"), "{}", failure.message);
    let uses =
        "N = tl.constexpr(torch.cuda.device_count() + 1)\n@triton.jit\ndef k(x): tl.store(x, N)\n";
    let failure = bench.rejected(&kernel(uses)).await;
    let expected = ["N is not defined", "needs PyTorch"];
    assert!(expected.iter().all(|one| failure.message.contains(one)), "{}", failure.message);
    assert_eq!(failure.diagnostics[0].line, Some(5));
}

#[tokio::test]
async fn errors_without_a_message_are_left_out_too() {
    let source = "import triton\nimport triton.language as tl\nclass E(Exception):\n    def __str__(self): \
                  raise self\nraise E()\n@triton.jit\ndef k(x): tl.store(x, 1)\n";
    let args = vec!["float32".into()];
    let kernel = Case { name: "k", source, args, meta: Vec::new(), num_warps: 4 }.request(&[]);
    let bench = Bench::new();
    let built = bench.compile(&kernel).await.unwrap_or_else(|error| panic!("{error:?}"));
    let [warning] = &built.diagnostics[..] else { panic!("{:?}", built.diagnostics) };
    assert_eq!(warning.line, Some(5));
    assert!(warning.message.ends_with(": E"), "{warning:?}");
}
