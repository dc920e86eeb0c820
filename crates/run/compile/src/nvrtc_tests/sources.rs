//! Tests of sources as people write them: which ones must compile, and the errors of the others.

use super::*;

use warpgauge_model::{Diagnostic, FailureCode, Severity};

#[tokio::test]
async fn what_nvcc_defines_is_defined() {
    let bench = Bench::new();
    let source = "#include <cuda_runtime.h>\n#include <device_launch_parameters.h>\n
        #include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n#include <stdint.h>\n
        #include <limits.h>\n#include <float.h>\n#include <assert.h>\n#include <string.h>\n
        #include <cmath>\n#include <cstdint>\n#include <cstdio>\n#include <algorithm>\n
        #include <limits>\n
        __global__ void k(float* x, uint32_t n, int64_t m, uint u, ushort s, uchar c, uintptr_t p) {
            float a = -INFINITY + NAN + HUGE_VALF + FLT_MAX - FLT_MIN + FLT_EPSILON;
            double b = DBL_MAX - DBL_MIN + DBL_EPSILON + M_PI + M_E + M_SQRT2;
            long long i = (long long)INT_MAX + INT_MIN + UINT_MAX + LLONG_MAX + CHAR_BIT + SIZE_MAX;
            constexpr float top = std::numeric_limits<float>::max();
            constexpr int low = std::numeric_limits<int>::lowest();
            x[0] = std::max(a, top) + std::min(x[1], 2.0f) + low + i + b + std::sqrt(x[2])
                + std::abs(x[3]);
            std::swap(x[4], x[5]);
            x[6] = std::numeric_limits<double>::infinity() + n + m + u + s + c + p;
            assert(n > 0); printf(\"%d\", n);
        }";
    bench.built(source).await;
}

#[tokio::test]
async fn names_of_namespace_std_are_there() {
    let bench = Bench::new();
    let source = "#include <cstdint>\n#include <cmath>\n#include <type_traits>\n#include <utility>\n
        template <class T, std::enable_if_t<std::is_floating_point<T>::value, int> = 0>
        __device__ T half_of(T x) { return x / T(2); }
        template <class T, std::enable_if_t<!std::is_floating_point<T>::value, int> = 0>
        __device__ T half_of(T x) { return x >> 1; }
        template <class T> __device__ T pass(T&& x) { return std::forward<T>(x); }
        static_assert(std::is_same<std::remove_cv_t<const volatile int>, int>::value, \"\");
        static_assert(std::is_same_v<std::conditional_t<true, int, float>, int>, \"\");
        static_assert(std::is_unsigned_v<std::uint8_t> && std::is_signed_v<std::int64_t>, \"\");
        static_assert(!std::is_signed_v<float*> && std::is_pointer_v<float*>, \"\");
        static_assert(std::is_integral_v<const char> && !std::is_integral_v<double>, \"\");
        static_assert(sizeof(std::intptr_t) == 8 && sizeof(std::ptrdiff_t) == 8, \"\");
        static_assert(std::integral_constant<int, 3>() + 1 == 4, \"\");
        __global__ void k(float* x, const std::uint32_t* n, std::nullptr_t) {
            x[0] = half_of(x[1]) + half_of(n[0]) + pass(std::move(x[2])) + std::hypot(x[3], x[4]);
            x[5] = std::sqrtf(x[6]) + std::cbrt(x[7]) + std::copysign(x[8], -1.0f) + std::rint(x[9]);
        }";
    let artifact = bench.built(source).await;
    let image = String::from_utf8_lossy(&artifact.image);
    assert!(!image.contains(".nv.global") && !image.contains(".global .align"), "{image}");
}

#[tokio::test]
async fn mathematical_functions_take_integers() {
    let bench = Bench::new();
    let source = "__global__ void k(float* x, int n, unsigned m, long long l) {
            int tiles = ceil(n / 4) + floor(m);
            x[0] = sqrt(n) + log(m) + pow(n, 2) + pow(n, 0.5f) + std::exp(l) + fabs(n) + tiles;
            x[1] = pow(x[2], 2) + pow(2.0, n) + sqrt(x[3]) + ceil(x[4]);
        }";
    bench.built(source).await;
    let own = "template <class T> struct S {};\n__device__ int ceil(int a) { return a + 1; }
        __global__ void k(int* x) { x[0] = ceil(x[1]); }";
    bench.built(own).await;
}

#[tokio::test]
async fn an_absent_file_that_device_code_does_not_need_is_left_out() {
    let bench = Bench::new();
    let source = "#include \"timer.h\"\n#include \"bitmap_image.hpp\"\n
        __global__ void k(float* x) { x[0] = 1; }
        int main() { Timer timer; bitmap_image image; return timer.stop(); }";
    let artifact = bench.built(source).await;
    for name in ["timer.h", "bitmap_image.hpp"] {
        let is_named = |one: &Diagnostic| {
            one.severity == Severity::Warning
                && one.message.contains(&format!("\"{name}\"` is left out"))
        };
        assert!(artifact.diagnostics.iter().any(is_named), "{:?}", artifact.diagnostics);
    }
    let needed = "#include \"scale.h\"\n__global__ void k(float* x) { x[0] = scale(x[1]); }";
    let failure = bench.rejected(&cuda(needed)).await;
    assert_eq!(failure.code, FailureCode::CompilationFailed);
    assert!(failure.message.contains("cannot open source file \"scale.h\""), "{}", failure.message);
    let has_remedy = failure.diagnostics.iter().any(|one| one.message.contains("`kernel.files`"));
    assert!(has_remedy, "{:?}", failure.diagnostics);
}

#[tokio::test]
async fn host_code_beside_kernels_is_left_out_and_named() {
    let bench = Bench::new();
    let source = "#include <vector>\n#include <iostream>\n#include <sys/time.h>\n
        using namespace std;
        double now();
        static float* buffer;
        void check(cudaError_t e) { if (e != cudaSuccess) cerr << cudaGetErrorString(e) << endl; }
        __global__ void k(float* x) { x[threadIdx.x] = 1; }
        int main() { vector<float> v(32); k<<<1, 32>>>(buffer); check(cudaGetLastError()); }";
    let artifact = bench.built(source).await;
    let told = artifact.diagnostics.iter().map(|d| d.message.as_str()).collect::<Vec<_>>();
    let expected =
        "host code is left out, since only kernels are compiled here: now, buffer, check, main";
    assert_eq!(told, [expected]);
}

/// Types, aliases, variables and headers that no kernel leads to may use what NVRTC lacks; constants may follow from
/// constants; and a message about what is left says that nvcc may take it.
#[tokio::test]
async fn nothing_but_what_kernels_reach_has_to_compile() {
    let bench = Bench::new();
    for source in [
        "const float a = 1.5f;\nconst float b = -a;\n__global__ void k(float* x) { x[0] = b; }",
        "const char* name = \"x\";\nusing std::cerr;\n__global__ void k(float* x) { x[0] = 1; }",
        "#include <bits/stdc++.h>\n#include <thrust/device_vector.h>\nusing namespace std;\n
        typedef vector<bool> Code;\ntypedef map<char, Code> Codes;\n
        struct __align__(8) Pair { float m, s; };\n
        class Option { public: string name; static Code codes; void print(); };\n
        __global__ void k(Pair* x) { x[0].m = 1; }\n
        int main() { thrust::device_vector<Pair> x(1); k<<<1, 1>>>(thrust::raw_pointer_cast(x.data())); }",
    ] {
        bench.built(source).await;
    }
    let source =
        "class Host { public: int f(); };\n__global__ void k(Host h, int* x) { x[0] = h.f(); }";
    let failure = bench.rejected(&cuda(source)).await;
    let is_advised = bench.compiler.toolchain().nvcc.is_none();
    assert_eq!(
        failure.message.contains("toolchain install --with nvcc"),
        is_advised,
        "{failure:?}"
    );
}

#[tokio::test]
async fn what_is_wrong_beside_host_code_is_told_without_it() {
    let bench = Bench::new();
    let source =
        "void run();\n__global__ void k(float* x) { x[0] = nothing; }\nint main() { run(); }";
    let rejected = bench.rejected(&cuda(source)).await;
    assert_eq!(rejected.code, FailureCode::CompilationFailed);
    let first = &rejected.diagnostics[0];
    assert!(
        first.message.contains("nothing") && first.line == Some(2),
        "{:?}",
        rejected.diagnostics
    );
    let last = &rejected.diagnostics.last().unwrap().message;
    assert!(last.ends_with("only kernels are compiled here: run, main"), "{last}");
}

#[tokio::test]
async fn what_is_defined_for_it_adds_no_variables_to_a_kernel() {
    let bench = Bench::new();
    let used = "__global__ void k(int* x) {
            static_assert(std::numeric_limits<int>::is_integer, \"\");
            static_assert(!std::numeric_limits<float>::is_integer, \"\");
            static_assert(!std::numeric_limits<unsigned>::is_signed, \"\");
            static_assert(std::numeric_limits<double>::has_infinity, \"\");
            x[0] = std::numeric_limits<char>::is_signed;
        }";
    bench.built(used).await;
    let artifact = bench.built("__global__ void k(int* x) { x[0] = 1; }").await;
    let image = String::from_utf8_lossy(&artifact.image);
    assert!(!image.contains(".nv.global"), "{image}");
}

#[tokio::test]
async fn sources_that_define_such_names_themselves_still_compile() {
    let bench = Bench::new();
    for source in [
        "#define INFINITY __int_as_float(0x7f800000)\n#define INT_MAX 2147483647
#define M_PI 3.14\n
         __global__ void k(float* x) { x[0] = INFINITY + INT_MAX + M_PI; }",
        "typedef unsigned long long uint64_t; typedef unsigned char uint8_t;
         using int64_t = long long;
         __global__ void k(uint64_t* x, int64_t y, uint8_t z) { x[0] = y + z; }",
        "const float FLT_MAX = 1e38f; constexpr double M_PI = 3.14; typedef unsigned int uint;
         __global__ void k(float* x) { x[0] = 1; }",
        "namespace std { template <class T> __device__ T max(T a, T b) { return a > b ? a : b; } }
         __global__ void k(float* x) { x[0] = std::max(x[1], x[2]); }",
        "__global__ void k(float* x, int n) { int half = n / 2; x[half] = x[half * 2]; } // end",
        "__global__ void k(float* x) { x[0] = 1; } /* ends in a comment */",
    ] {
        bench.built(source).await;
    }
}

#[tokio::test]
async fn half_precision_without_an_include() {
    let bench = Bench::new();
    let source = "__global__ void k(const half* x, __nv_bfloat16* y, half2* z, half by) {
        y[0] = __float2bfloat16(__half2float(__hadd(x[0], by))); z[0] = __float2half2_rn(1.0f); }";
    let artifact = bench.built(source).await;
    assert_eq!(
        types(artifact.entry_kernel()),
        [
            const_pointer(CType::F16),
            pointer(CType::Bf16),
            pointer(CType::Aggregate("__half2".into())),
            CType::F16,
        ]
    );
}

#[tokio::test]
async fn toolkit_headers_with_the_prelude() {
    let bench = Bench::new();
    let source = "#include <cuda_fp16.h>\n#include <mma.h>\n#include <cooperative_groups.h>\n
        #include <cub/block/block_reduce.cuh>\n#include <cuda/std/limits>\n#include <stdint.h>\n
        namespace cg = cooperative_groups;
        __global__ void k(float* x, uint64_t n, int64_t m) {
            using Reduce = cub::BlockReduce<float, 128>;
            __shared__ typename Reduce::TempStorage storage;
            float sum = Reduce(storage).Sum(x[threadIdx.x]);
            cg::this_thread_block().sync();
            if (threadIdx.x == 0) x[0] = sum + INT_MAX + INFINITY + n + m + std::max(1.0f, x[1]);
        }";
    let artifact = bench.built(source).await;
    assert_eq!(types(artifact.entry_kernel()), [pointer(CType::F32), CType::U64, CType::I64]);
}

#[tokio::test]
async fn errors_carry_the_callers_lines_and_columns() {
    let bench = Bench::new();
    let source =
        "// one\nextern \"C\" __global__ void k(float* x) {\n    x[0] = undefined_thing;\n}\n";
    let failure = bench.rejected(&cuda(source)).await;
    assert_eq!(failure.code, FailureCode::CompilationFailed);
    let first = &failure.diagnostics[0];
    assert_eq!((first.severity, first.line, first.column), (Severity::Error, Some(3), Some(12)));
    assert_eq!(first.file.as_deref(), Some("kernel.cu"));
    assert!(first.message.contains("undefined_thing"));
    assert!(failure.message.contains("kernel.cu:3:12"), "{}", failure.message);
    assert!(!failure.log.contains("__warpgauge"), "{}", failure.log);
}

#[tokio::test]
async fn broken_ends_are_blamed_on_the_source() {
    let bench = Bench::new();
    for source in [
        "extern \"C\" __global__ void k(float* x) { x[0] = 1;",
        "extern \"C\" __global__ void k(float* x) { x[0] = 1; }\n#if 1\n",
        "extern \"C\" __global__ void k(float* x) { x[0] = 1; } /* open",
        "extern \"C\" __global__ void k(Unknown* x) {}",
        "#error no\n",
    ] {
        let failure = bench.rejected(&cuda(source)).await;
        assert_eq!(failure.code, FailureCode::CompilationFailed, "{source}");
        assert!(!failure.log.contains("warpgauge_signature"), "{source}\n{}", failure.log);
        assert!(!failure.diagnostics.is_empty(), "{source}\n{}", failure.log);
    }
}

#[tokio::test]
async fn warnings_come_with_a_successful_compilation() {
    let bench = Bench::new();
    let artifact = bench.built("__global__ void k(float* x) {\n int unused; x[0] = 1; }").await;
    let warning = &artifact.diagnostics[0];
    assert_eq!((warning.severity, warning.line), (Severity::Warning, Some(2)));
    assert!(artifact.log.contains("unused"));
}

#[tokio::test]
async fn name_expressions_that_do_not_exist_are_the_callers_fault() {
    let bench = Bench::new();
    let source = "template <class T> __global__ void scale(T* x) { x[0] = 1; }";
    let failure = bench.rejected(&cuda_with(source, named("scael<float>"))).await;
    assert_eq!(failure.code, FailureCode::CompilationFailed);
    assert!(failure.message.contains("scael"), "{}", failure.message);
}

#[tokio::test]
async fn options_reach_the_compiler_and_unknown_ones_are_named() {
    let bench = Bench::new();
    let with = |options: &[&str]| {
        let source =
            "#if N != 4\n#error N\n#endif\n__global__ void k(float* x) { x[0] = expf(x[1]); }";
        let compiler_options = options.iter().map(|o| (*o).to_owned()).collect();
        cuda_with(source, KernelMetadata { compiler_options, ..KernelMetadata::default() })
    };
    let options = [
        "-DN=4",
        "--use_fast_math",
        "-std=c++20",
        "-O3",
        "-arch=sm_90",
        "-lineinfo",
        "-maxrregcount=32",
        "-Xptxas -O2",
        "--fmad=false",
        "--ftz",
        "true",
    ];
    let built = bench.compile(&with(&options)).await.unwrap();
    let expected = [
        "-arch=sm_90",
        "--define-macro=N=4",
        "--use_fast_math",
        "--std=c++20",
        "--maxrregcount=32",
        "--ptxas-options=-O2",
        "--fmad=false",
        "--ftz=true",
        "-lineinfo",
        "--ptxas-options=-v",
    ];
    assert_eq!(built.options, expected);
    // A cached result has them, too.
    let again = bench.compile(&with(&options)).await.unwrap();
    assert!(again.cache_hit);
    assert_eq!(again.options, expected);
    assert_eq!(
        bench.rejected(&with(&["--frobnicate"])).await.code,
        FailureCode::UnknownCompilerOption
    );
    let failure = bench.rejected(&with(&["-arch=sm_80"])).await;
    assert!(failure.message.contains("sm_80") && failure.message.contains("sm_90"));
    let failure = bench.rejected(&with(&["-DN=4", "--std=c++99"])).await;
    assert_eq!(failure.code, FailureCode::CompilerOptionRefused, "{}", failure.message);
}

#[tokio::test]
async fn every_fixture_kernel_of_the_examples_compiles() {
    let bench = Bench::new();
    let root =
        std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../..")).join("kernels");
    let mut count = 0;
    for entry in std::fs::read_dir(&root).unwrap() {
        let source = entry.unwrap().path().join("kernel.cu");
        if source.is_file() {
            let text = std::fs::read_to_string(&source).unwrap();
            let artifact = bench.built(&text).await;
            let typed = types(artifact.entry_kernel());
            assert!(!typed.contains(&CType::Unknown), "{}: {typed:?}", source.display());
            count += 1;
        }
    }
    assert!(count >= 10, "{count} example kernels found in {}", root.display());
}

#[tokio::test]
async fn names_of_namespace_std_come_from_libcuxx() {
    let bench = Bench::new();
    let source = "#include <array>\n#include <atomic>\n#include <chrono>\n#include <cinttypes>\n#include <complex>\n
        #include <execution>\n#include <functional>\n#include <tuple>\n#include <utility>\n#include <cooperative_groups.h>\n
        using namespace std::chrono;\n
        template <class T> __device__ std::decay_t<T> same(T x) { return x; }
        __global__ void k(uint64_t* x) {
            std::pair<int, int> p = std::make_pair(1, 2);
            std::array<int, 3> a{{1, 2, 3}};
            std::tuple<int, float> t = std::make_tuple(4, 5.0f);
            std::complex<float> c(1, 2);
            static_assert(std::is_same_v<std::common_type_t<int, long>, long>, \"\");
            x[0] = p.first + a[1] + std::get<0>(t) + std::plus<int>()(1, 2) + (int)c.real() + same(3);
            printf(\"%\" PRIu64 \" %\" PRId32, x[0] + UINT64_C(3), INT32_C(4));
        }";
    let artifact = bench.built(source).await;
    assert_eq!(artifact.diagnostics, [], "the prelude itself causes no warnings");
}

#[tokio::test]
async fn the_whole_of_cub_may_be_included() {
    let bench = Bench::new();
    let source = "#include <cub/cub.cuh>\nusing namespace cub;
        __global__ void k(const int* x, int* y) {
            using Reduce = BlockReduce<int, 128>;
            using Sort = cub::BlockRadixSort<int, 128, 1>;
            __shared__ union { typename Reduce::TempStorage reduce; typename Sort::TempStorage sort; } shared;
            int items[1] = {x[threadIdx.x]};
            Sort(shared.sort).Sort(items);
            __syncthreads();
            int sum = Reduce(shared.reduce).Sum(items[0]);
            int most = Reduce(shared.reduce).Reduce(items[0], cub::Max());
            if (threadIdx.x == 0) *y = sum + most;
        }";
    bench.built(source).await;
}

#[tokio::test]
async fn libcuxx_and_cub_have_every_name_of_the_tables() {
    let bench = Bench::new();
    // A using-declaration in a kernel's namespace, which names each as a source does.
    let names = crate::std_names::StdNames::all();
    let uses: String = names.names().map(|name| format!("using std::{name};\n")).collect();
    let kernel = "__global__ void k(int* x) { x[0] = 1; }";
    bench.built(&format!("namespace own {{\n{uses}}}\n{kernel}")).await;
    let names = crate::cub::HEADERS.iter().chain(&crate::cub::REMOVED);
    let uses: String = names.map(|(name, _)| format!("using cub::{name};\n")).collect();
    bench.built(&format!("#include <cub/cub.cuh>\nnamespace own {{\n{uses}}}\n{kernel}")).await;
}

#[tokio::test]
async fn constant_functions_need_no_execution_space() {
    let bench = Bench::new();
    let source = "#include <vector>\nconstexpr int triple(int x) { return 3 * x; }
        template <typename T> constexpr T next(T x) { return x + 1; }
        struct Half { int a; constexpr Half(int v) : a(v) {} constexpr int get() const { return a / 2; } };
        constexpr int SIZE = 4;
        __global__ void k(int* x) { Half h(x[0]); x[1] = triple(x[1]) + next(x[2]) + h.get() + SIZE; }
        int main() { std::vector<int> v; return triple(1); }";
    bench.built(source).await;
}

#[tokio::test]
async fn what_is_no_longer_in_cuda_is_named() {
    let bench = Bench::new();
    let source = "\u{feff}texture<float, 2, cudaReadModeElementType> tex;
        __global__ void k(float* x) { x[0] = tex2D(tex, 0.0f, 0.0f); }";
    let failure = bench.rejected(&cuda(source)).await;
    assert!(failure.message.contains("cudaTextureObject_t"), "{}", failure.message);
}

#[tokio::test]
async fn several_kernels_need_a_name_only_where_one_runs() {
    let bench = Bench::new();
    let source = "__global__ void a(int* x) { x[0] = 1; } __global__ void b(int* x) { x[0] = 2; }";
    let options = CompileOptions { any_kernel: true, ..CompileOptions::default() };
    let listed = bench.compiler.compile(&cuda(source), &EMULATED, options).await.unwrap();
    let names: Vec<&str> = listed.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!((names.len(), names.contains(&"a"), names.contains(&"b")), (2, true, true));
    // The image that is kept for the list is not the one that runs.
    let failure = bench.rejected(&cuda(source)).await;
    assert_eq!(failure.code, FailureCode::AmbiguousKernel);
    for (name, code) in [("*", FailureCode::UnknownKernel), ("\0", FailureCode::InvalidKernelName)]
    {
        let metadata = KernelMetadata { kernel_name: Some(name.to_owned()), ..Default::default() };
        assert_eq!(bench.rejected(&cuda_with(source, metadata)).await.code, code, "{name:?}");
    }
}
