//! Tests of kernels, parameter types and resources in NVRTC's output.

use super::*;
use crate::ptxas;

use warpgauge_model::FailureCode;

const VECTOR_ADD: &str = "extern \"C\" __global__ void vector_add(const float* a, const float* b, \
    float* c, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i < n) c[i] = a[i] + b[i]; }";

#[tokio::test]
async fn a_kernel_with_c_linkage() {
    let bench = Bench::new();
    let artifact = bench.built(VECTOR_ADD).await;
    assert_eq!(artifact.format, ImageFormat::Cubin);
    assert!(artifact.image.starts_with(b"\x7fELF"));
    assert_eq!(artifact.kernels.len(), 1, "{:?}", artifact.kernels);
    let kernel = artifact.entry_kernel();
    assert_eq!((kernel.symbol.as_str(), kernel.name.as_str()), ("vector_add", "vector_add"));
    let float = || const_pointer(CType::F32);
    assert_eq!(types(kernel), [float(), float(), pointer(CType::F32), CType::I32]);
    let params = kernel.params.as_ref().unwrap();
    let names: Vec<_> = params.iter().map(|p| p.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c", "n"]);
    let places: Vec<_> = params.iter().map(|p| (p.offset, p.bytes)).collect();
    assert_eq!(places, [(0, 8), (8, 8), (16, 8), (24, 4)]);
    let resources = kernel.resources.unwrap();
    assert!(resources.registers >= 8, "{resources:?}");
    assert_eq!(resources.spill_store_bytes, Some(0));
    assert_eq!(resources.max_threads_per_block, 1024);
    assert!(artifact.compiler.starts_with("nvrtc 1"), "{}", artifact.compiler);
    assert!(artifact.timings.compiler_ms > 0.0);
    assert_eq!(artifact.log, "");
}

#[tokio::test]
async fn types_are_seen_through_typedefs_and_macros() {
    let bench = Bench::new();
    let source = "typedef unsigned int index_t; #define REAL double\n
        struct P { int a; float b; };
        enum Mode { A, B };
        extern \"C\" __global__ void k(const float* x, float** y, index_t n, REAL s, bool f, P p,
            unsigned long long q, signed char c, short h, uint8_t u, int64_t l, size_t z,
            void* v, const P* pp, Mode m) {
            y[0][0] = x[n] * s + f + p.a + q + c + h + u + l + z; }";
    let source = source.replace("; #define", ";\n#define");
    let artifact = bench.built(&source).await;
    let void = CType::Pointer { pointee: None, is_const: false };
    assert_eq!(
        types(artifact.entry_kernel()),
        [
            const_pointer(CType::F32),
            pointer(pointer(CType::F32)),
            CType::U32,
            CType::F64,
            CType::Bool,
            CType::Aggregate("P".into()),
            CType::U64,
            CType::I8,
            CType::I16,
            CType::U8,
            CType::I64,
            CType::U64,
            void,
            const_pointer(CType::Aggregate("P".into())),
            CType::Enumeration("Mode".into()),
        ]
    );
}

#[tokio::test]
async fn c_linkage_behind_a_macro_is_asked_about_afterwards() {
    let bench = Bench::new();
    let source =
        "#define KERNEL extern \"C\" __global__ void\nKERNEL k(float* x, unsigned n) { x[n] = 1; }";
    let artifact = bench.built(source).await;
    assert_eq!(types(artifact.entry_kernel()), [pointer(CType::F32), CType::U32]);
    assert_eq!(artifact.kernels.len(), 1);
}

#[tokio::test]
async fn cpp_kernels_templates_and_namespaces() {
    let bench = Bench::new();
    let source =
        "template <class T, int N> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by + N; }
        template <class T> struct Traits { using type = int; };
        template <class T> __global__ void odd(typename Traits<T>::type n, T* x) { x[n] = 0; }
        namespace a { namespace { __global__ void hidden(double* x) { x[0] = 1; } } }
        static __global__ void local(int* x) { x[0] = 1; }
        __global__ void plain(float* x, long long n) { x[n] = 1; }";
    let metadata = KernelMetadata {
        name_expressions: vec!["scale<float, 4>".into(), "odd<double>".into()],
        kernel_name: Some("scale<float,4>".into()),
        ..KernelMetadata::default()
    };
    let artifact = bench.compile(&cuda_with(source, metadata)).await.unwrap();
    let found = |name: &str| {
        let kernel = artifact.kernels.iter().find(|k| k.name == name);
        types(kernel.unwrap_or_else(|| panic!("{name}: {:?}", artifact.kernels)))
    };
    assert_eq!(artifact.entry_kernel().name, "scale<float, 4>");
    assert_eq!(found("scale<float, 4>"), [pointer(CType::F32), CType::F32]);
    assert_eq!(found("odd<double>"), [CType::I32, pointer(CType::F64)]);
    assert_eq!(found("a::(anonymous namespace)::hidden"), [pointer(CType::F64)]);
    assert_eq!(found("local"), [pointer(CType::I32)]);
    assert_eq!(found("plain"), [pointer(CType::F32), CType::I64]);
    let scale = artifact.entry_kernel().params.as_ref().unwrap();
    assert_eq!(scale[1].name.as_deref(), Some("by"));
}

#[tokio::test]
async fn a_template_instance_as_kernel_name_needs_no_name_expression() {
    let bench = Bench::new();
    let source = "template <class T> __global__ void scale(T* x, T by) { x[0] *= by; }";
    let artifact = bench.compile(&cuda_with(source, named("scale<double>"))).await.unwrap();
    assert_eq!(types(artifact.entry_kernel()), [pointer(CType::F64), CType::F64]);
    let failure = bench.rejected(&cuda(source)).await;
    assert_eq!(failure.code, FailureCode::NoKernel);
    assert!(failure.message.contains("scale<float>"), "{}", failure.message);
}

#[tokio::test]
async fn several_kernels_need_a_name() {
    let bench = Bench::new();
    let source = "__global__ void one(int* x) { *x = 1; }
        extern \"C\" __global__ void two(int* x) { *x = 2; }";
    let failure = bench.rejected(&cuda(source)).await;
    assert_eq!(failure.code, FailureCode::AmbiguousKernel);
    assert!(failure.message.contains("one") && failure.message.contains("two"));
    let failure = bench.rejected(&cuda_with(source, named("three"))).await;
    assert_eq!(failure.code, FailureCode::UnknownKernel);
    for name in ["one", "_Z3onePi"] {
        let artifact = bench.compile(&cuda_with(source, named(name))).await.unwrap();
        assert_eq!(artifact.entry_kernel().name, "one");
    }
}

#[tokio::test]
async fn an_emulated_device_gets_ptx() {
    let bench = Bench::new();
    let kernel = cuda(VECTOR_ADD);
    let options = CompileOptions::default();
    let artifact = bench.compiler.compile(&kernel, &EMULATED, options).await.unwrap();
    assert_eq!(artifact.format, ImageFormat::Ptx);
    let text = std::str::from_utf8(&artifact.image).unwrap();
    assert!(text.contains(".target sm_80") && !text.ends_with('\0'), "{text}");
    let kernel = artifact.entry_kernel();
    assert_eq!(types(kernel)[2], pointer(CType::F32));
    let params = kernel.params.as_ref().unwrap();
    assert_eq!((params[3].offset, params[3].bytes), (24, 4));
}

#[tokio::test]
async fn resources_agree_with_what_the_assembler_prints() {
    let source = "extern \"C\" __global__ void __launch_bounds__(128) k(float* x, int n) {
        __shared__ float s[300]; volatile float local[50];
        for (int i = 0; i < 50; i++) local[i] = x[i * n];
        s[threadIdx.x] = local[n % 50]; __syncthreads();
        x[threadIdx.x] = s[127 - threadIdx.x] + local[(n + 1) % 50]; }";
    let bench = Bench::new();
    let artifact = bench.built(source).await;
    let resources = artifact.entry_kernel().resources.unwrap();
    // The same compilation by hand gives the assembler's own report.
    let toolchain = toolchain();
    let install = toolchain.nvrtc_for(H100.driver_version, true)[0];
    let library = warpgauge_device::nvrtc::LoadedLibrary::open(&install.path, install.version);
    let nvrtc = library.unwrap().bind().unwrap();
    let outcome = nvrtc
        .compile(&warpgauge_device::nvrtc::NvrtcJob {
            source,
            file_name: "k.cu",
            headers: &[],
            options: &["-arch=sm_90".into(), "--ptxas-options=-v".into()],
            name_expressions: &[],
            cubin: true,
        })
        .unwrap();
    let printed = ptxas::usage(&outcome.log)["k"];
    assert_eq!(Some(resources.registers), printed.registers);
    assert_eq!(Some(resources.static_shared_bytes), printed.shared);
    assert_eq!(resources.stack_bytes, printed.stack);
    assert_eq!(resources.spill_store_bytes, printed.spill_stores);
    assert_eq!(resources.spill_load_bytes, printed.spill_loads);
    assert_eq!(resources.static_shared_bytes, 1200);
    assert!(resources.local_bytes >= 200, "{resources:?}");
    assert_eq!(resources.max_threads_per_block, 128);
    assert!(resources.const_bytes > 0);
}

#[tokio::test]
async fn the_best_library_reaches_its_headers() {
    let source = "#include <mma.h>
        extern \"C\" __global__ void k(half* x) {
            nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, half> f;
            nvcuda::wmma::fill_fragment(f, x[0]);
            nvcuda::wmma::store_matrix_sync(x, f, 16, nvcuda::wmma::mem_row_major); }";
    let artifact = Bench::new().built(source).await;
    let best = toolchain().nvrtc_for(H100.driver_version, true)[0].version_text();
    assert_eq!(artifact.compiler, format!("nvrtc {best}"));
}

#[tokio::test]
async fn large_parameters_are_placed() {
    let bench = Bench::new();
    let source = "struct Big { float x[3000]; };
        extern \"C\" __global__ void k(char c, Big b, double d) {
            b.x[0] = c; if (b.x[1] > d) __trap(); }";
    let artifact = bench.built(source).await;
    let params = artifact.entry_kernel().params.as_ref().unwrap();
    let places: Vec<_> = params.iter().map(|p| (p.offset, p.bytes)).collect();
    assert_eq!(places, [(0, 1), (4, 12000), (12008, 8)]);
}

#[tokio::test]
async fn the_same_code_is_recognised_under_another_name() {
    let bench = Bench::new();
    let first = bench.built(VECTOR_ADD).await;
    let renamed = bench.built(&VECTOR_ADD.replace("vector_add", "another_name")).await;
    let commented = bench.built(&format!("// a comment\n{VECTOR_ADD}")).await;
    let subtracts = bench.built(&VECTOR_ADD.replace("a[i] + b[i]", "a[i] - b[i]")).await;
    assert_eq!(first.same_code(&renamed), Some(true));
    assert_eq!(first.same_code(&commented), Some(true));
    assert_eq!(first.same_code(&subtracts), Some(false));
}

/// `a` and `f` in the name of an architecture, and an option of the request before them.
#[tokio::test]
async fn the_suffix_of_an_architecture_is_compiled_for() {
    let bench = Bench::new();
    let source = "extern \"C\" __global__ void k(int* x) {\n#ifdef __CUDA_ARCH_FEAT_SM90_ALL\n*x = 12345;\n#endif\n}";
    let target = Target { emulated: true, ..H100 };
    let ptx = async |kernel: &KernelCode, arch_suffix| {
        let options = CompileOptions { arch_suffix, ..CompileOptions::default() };
        let built = bench.compiler.compile(kernel, &target, options).await.unwrap();
        String::from_utf8_lossy(&built.image).into_owned()
    };
    let kernel = cuda(source);
    let (plain, own) = (ptx(&kernel, None).await, ptx(&kernel, Some('a')).await);
    assert!(plain.contains(".target sm_90\n") && !plain.contains("12345"), "{plain}");
    assert!(own.contains(".target sm_90a") && own.contains("12345"), "{own}");
    let compiler_options = vec!["-arch=sm_90a".to_owned()];
    let given = cuda_with(source, KernelMetadata { compiler_options, ..Default::default() });
    assert!(ptx(&given, None).await.contains(".target sm_90a"));
}
