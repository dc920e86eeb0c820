//! Tests of PyTorch extensions with real compilers. The results are not loaded.

use std::time::Duration;

use super::{Bench, toolchain};
use crate::{BuildOrder, BuildOutput, CompileError, ExtensionOrder, ModuleOrder, PythonHost};
use warpgauge_sandbox::program::{ChildProgram, Environment};
use warpgauge_turns::Owner;

/// Time limit, longer than nvcc needs for all of PyTorch's headers on a busy machine.
const LONG: Duration = Duration::from_secs(600);

const PROTOTYPE: &str = "#include <torch/extension.h>
torch::Tensor scale(torch::Tensor x);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
m.def(\"scale\", torch::wrap_pybind_function(scale), \"scale\");
}";

const KERNEL: &str = "#include <torch/types.h>
#include <cuda.h>
#include <cuda_runtime.h>
template <typename T>
__global__ void k(const T* x, T* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
torch::Tensor scale(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), \"x must be on a GPU\");
  auto y = torch::empty_like(x);
  int n = x.numel();
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), \"scale\", [&] {
    k<scalar_t><<<(n + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), n);
  });
  return y;
}";

/// Returns the facts that the interpreter of the installed PyTorch would report.
fn python() -> PythonHost {
    let toolchain = toolchain();
    let torch = toolchain.torch().expect("PyTorch");
    let script = "import sysconfig; print(sysconfig.get_path('include', scheme='posix_prefix'))";
    let asked = ChildProgram::new(&torch.python, Environment::Empty).args(["-S", "-c", script]);
    let told = asked.to_blocking().output().unwrap();
    PythonHost {
        include: String::from_utf8(told.stdout).unwrap().trim().into(),
        standard: "c++17".into(),
        defines: Vec::new(),
        cuda: toolchain.nvcc.as_ref().map(|nvcc| nvcc.version.clone()),
        arch: Some(90),
    }
}

fn order(cuda: Option<&str>, cpp: &str) -> ExtensionOrder {
    ExtensionOrder {
        name: "scale".into(),
        cpp: cpp.into(),
        cuda: cuda.map(str::to_owned),
        with_cuda: cuda.is_some(),
        ..ExtensionOrder::default()
    }
}

async fn built(bench: &Bench, order: ExtensionOrder) -> Result<BuildOutput, CompileError> {
    bench
        .compiler
        .build_for_python(&BuildOrder::Extension(order), &python(), LONG, Owner::SERVER)
        .await
}

#[tokio::test]
async fn a_cuda_extension_is_built_with_few_headers_and_kept() {
    let toolchain = toolchain();
    needs!("g++", crate::toolchain::host::cxx().is_some());
    needs!("PyTorch", toolchain.torch.is_some());
    needs!("nvcc", toolchain.nvcc.is_some());
    let bench = Bench::with(toolchain, LONG);
    let mut wanted = order(Some(KERNEL), PROTOTYPE);
    wanted.cuda_cflags =
        ["-O3", "--use_fast_math", "-gencode=arch=compute_80,code=sm_80"].map(str::to_owned).into();
    wanted.ldflags = vec!["-lcublas".into()];
    let first = built(&bench, wanted.clone()).await.unwrap();
    assert_eq!(first.how, "main.cpp: lean headers; cuda.cu: lean headers", "{}", first.log);
    assert!(first.object.starts_with(b"\x7fELF") && !first.cached);
    let contains = |text: &[u8]| first.object.windows(text.len()).any(|part| part == text);
    assert!(contains(b"PyInit_scale"));
    let again = built(&bench, wanted.clone()).await.unwrap();
    assert!(again.cached && again.object == first.object);
    wanted.cuda_cflags.push("-rdc=true".into());
    let Err(CompileError::Rejected(failure)) = built(&bench, wanted).await else {
        panic!("refused")
    };
    assert!(failure.message.contains("relocatable"), "{}", failure.message);
}

#[tokio::test]
async fn what_is_wrong_with_cuda_source_is_told_with_its_line() {
    let toolchain = toolchain();
    needs!("PyTorch", toolchain.torch.is_some());
    needs!("nvcc", toolchain.nvcc.is_some());
    let bench = Bench::with(toolchain, LONG);
    let broken = KERNEL.replace("2 * x[i];", "2 * x[i]");
    let result = built(&bench, order(Some(&broken), PROTOTYPE)).await;
    let Err(CompileError::Rejected(failure)) = result else { panic!("{result:?}") };
    assert!(
        failure.message.contains("cuda.cu:") && failure.log.contains("expected"),
        "{failure:?}"
    );
}

#[tokio::test]
async fn what_is_missing_is_told() {
    let mut toolchain = toolchain();
    needs!("g++", crate::toolchain::host::cxx().is_some());
    needs!("PyTorch", toolchain.torch.is_some());
    let host = python();
    toolchain.nvcc = None;
    let bench = Bench::with(toolchain, LONG);
    let wanted = BuildOrder::Extension(order(Some(KERNEL), PROTOTYPE));
    let cuda = PythonHost { cuda: Some("13.0".into()), ..host.clone() };
    let error =
        bench.compiler.build_for_python(&wanted, &cuda, LONG, Owner::SERVER).await.unwrap_err();
    assert!(error.to_string().contains("toolchain install --with nvcc"), "{error}");
    let cpu = PythonHost { cuda: None, ..host.clone() };
    let error =
        bench.compiler.build_for_python(&wanted, &cpu, LONG, Owner::SERVER).await.unwrap_err();
    assert!(error.to_string().contains("built for the CPU only"), "{error}");
    for name in ["", "a-b", "../x", "1x", &"x".repeat(101)] {
        let order = ModuleOrder { name: name.to_owned(), source: String::new() };
        let wanted = BuildOrder::Module(order);
        let error =
            bench.compiler.build_for_python(&wanted, &host, LONG, Owner::SERVER).await.unwrap_err();
        assert!(error.to_string().contains("must be a Python identifier"), "{name}: {error}");
    }
    let order = ModuleOrder { name: "answer".into(), source: "int answer = 42;".into() };
    let wanted = BuildOrder::Module(order);
    let built = bench.compiler.build_for_python(&wanted, &host, LONG, Owner::SERVER).await.unwrap();
    assert!(built.object.starts_with(b"\x7fELF"));
}
