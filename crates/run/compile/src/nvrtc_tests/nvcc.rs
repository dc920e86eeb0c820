//! Tests of the nvcc backend, where nvcc is installed.

use super::*;
use warpgauge_contract::Backend;
use warpgauge_model::FailureCode;

fn metadata() -> KernelMetadata {
    KernelMetadata { backend: Some(Backend::Nvcc), ..KernelMetadata::default() }
}

/// Returns nvcc's result, or without nvcc checks the error, which says how to install it.
pub(super) async fn nvcc(
    bench: &Bench,
    kernel: &KernelCode,
) -> Option<Result<CompiledModule, CompileError>> {
    let result = bench.compile(kernel).await;
    if bench.compiler.toolchain().nvcc.is_some() {
        return Some(result);
    }
    match result {
        Err(CompileError::Environment { remedy, .. }) => {
            assert!(remedy.contains("--with nvcc"), "{remedy}");
            None
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn kernels_types_and_resources() {
    let bench = Bench::new();
    let source = "#include <cstdint>\n
        extern \"C\" __global__ void k(const float* x, uint32_t n, double d) {
            if (n > d) __trap(); }
        template <class T> __global__ void scale(T* x, T by) { x[0] *= by; }";
    let metadata = KernelMetadata { name_expressions: vec!["scale<float>".into()], ..metadata() };
    let mut kernel = cuda_with(source, metadata);
    let result = the_rest_needs_some!("nvcc", nvcc(&bench, &kernel).await);
    let failure = match result {
        Err(CompileError::Rejected(failure)) => failure,
        other => panic!("two kernels and no name: {other:?}"),
    };
    assert_eq!(failure.code, FailureCode::AmbiguousKernel);
    kernel.metadata.as_mut().unwrap().kernel_name = Some("k".into());
    let artifact = bench.compile(&kernel).await.unwrap();
    assert!(artifact.compiler.starts_with("nvcc 1"), "{}", artifact.compiler);
    assert_eq!(artifact.options, ["-cubin", "-arch=sm_90", "--ptxas-options=-v"]);
    assert_eq!(artifact.kernels.len(), 2, "{:?}", artifact.kernels);
    let expected = [const_pointer(CType::F32), CType::U32, CType::F64];
    assert_eq!(types(artifact.entry_kernel()), expected);
    assert_eq!(artifact.entry_kernel().params.as_ref().unwrap()[1].name.as_deref(), Some("n"));
    let resources = artifact.entry_kernel().resources.unwrap();
    assert!(resources.registers > 0 && resources.spill_store_bytes == Some(0), "{resources:?}");
    let scale = artifact.kernels.iter().find(|k| k.name == "scale<float>").unwrap();
    assert_eq!(types(scale), [pointer(CType::F32), CType::F32]);
}

#[tokio::test]
async fn errors_carry_lines() {
    let bench = Bench::new();
    let source = "\nextern \"C\" __global__ void k(float* x) {\n  x[0] = undefined_thing;\n}\n";
    let result = the_rest_needs_some!("nvcc", nvcc(&bench, &cuda_with(source, metadata())).await);
    let Err(CompileError::Rejected(failure)) = result else { panic!("{result:?}") };
    let first = &failure.diagnostics[0];
    assert_eq!((first.file.as_deref(), first.line), (Some("kernel.cu"), Some(3)), "{failure:?}");
}

#[tokio::test]
async fn an_emulated_device_gets_ptx() {
    let bench = Bench::new();
    let kernel = cuda_with("extern \"C\" __global__ void k(float* x) { x[0] = 1; }", metadata());
    needs!("nvcc", bench.compiler.toolchain().nvcc.is_some());
    let artifact = bench.compiler.compile(&kernel, &EMULATED, CompileOptions::default()).await;
    let artifact = artifact.unwrap();
    assert_eq!(artifact.format, ImageFormat::Ptx);
    assert_eq!(types(artifact.entry_kernel()), [pointer(CType::F32)]);
}

#[tokio::test]
async fn what_nvrtc_alone_rejects_is_compiled_with_nvcc_where_it_is_there() {
    let bench = Bench::new();
    needs!("nvcc", bench.compiler.toolchain().nvcc.is_some());
    let source = "class Host { public: int f() { return 1; } int value; };
        __global__ void k(Host h, int* x) { x[0] = h.value; }";
    let kernel = cuda_with(
        source,
        KernelMetadata { kernel_name: Some("k".into()), ..KernelMetadata::default() },
    );
    for _ in 0..2 {
        let artifact = bench.compile(&kernel).await.unwrap();
        assert!(artifact.compiler.starts_with("nvcc"), "{}", artifact.compiler);
        let note = &artifact.diagnostics[0].message;
        assert_eq!(note, "NVRTC does not accept this source: nvcc compiled it");
    }
    // The compiler that the caller names is the one that counts.
    let mut named = kernel.clone();
    named.metadata.as_mut().unwrap().backend = Some(Backend::Nvrtc);
    assert!(bench.rejected(&named).await.log.contains("in JIT mode"));
    // If nvcc rejects it too, the errors are NVRTC's.
    let mut wrong = kernel;
    wrong.source_code = Some(source.replace("h.value;", "h.f();"));
    let failure = bench.rejected(&wrong).await;
    assert!(failure.log.contains("in JIT mode"), "{}", failure.log);
}
