//! Sources of several files.

use super::*;
use warpgauge_contract::Backend;

const KERNEL: &str = "#include \"../include/tile.cuh\"\n#include <cuda_runtime.h>\n\
                      __global__ void k(float* x) { x[at()] = scaled(1.0f); }\n";

fn files() -> BTreeMap<String, String> {
    let tile = "#pragma once\n#include \"ops/scale.h\"\n#include <vector>\n\
                __device__ int at() { return threadIdx.x; }\n\
                inline std::vector<int> host() { return {}; }\n\
                __global__ void inner(int* x) { *x = 1; }\n";
    let scale =
        "#ifndef S\n#define S\n__device__ float scaled(float x) { return 2 * x; }\n#endif\n";
    let unused = "this is no C++";
    [("include/tile.cuh", tile), ("include/ops/scale.h", scale), ("unused.h", unused)]
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into()
}

fn kernel(metadata: KernelMetadata) -> KernelCode {
    let source_path = Some("src/kernel.cu".to_owned());
    KernelCode { files: files(), source_path, ..cuda_with(KERNEL, metadata) }
}

async fn ok(bench: &Bench, kernel: &KernelCode) -> CompiledModule {
    bench.compile(kernel).await.unwrap_or_else(|error| panic!("{error:?}"))
}

#[tokio::test]
async fn files_are_found_from_the_including_ones_and_are_part_of_the_address() {
    let bench = Bench::new();
    let first = ok(&bench, &kernel(named("k"))).await;
    assert_eq!(types(&first.kernels[first.entry]), [pointer(CType::F32)]);
    assert!(first.kernels.iter().any(|kernel| kernel.name == "inner"), "{:?}", first.kernels);
    assert!(ok(&bench, &kernel(named("k"))).await.cache_hit);
    let mut other = kernel(named("k"));
    let scale = other.files.get_mut("include/ops/scale.h").unwrap();
    *scale = scale.replace("2 * x", "3 * x");
    let changed = ok(&bench, &other).await;
    assert!(!changed.cache_hit && changed.image != first.image);
    other.files.insert("unused.h".to_owned(), String::new());
    assert!(ok(&bench, &other).await.cache_hit, "no file includes it");
}

#[tokio::test]
async fn mistakes_name_the_file() {
    let bench = Bench::new();
    let mut bad = kernel(named("k"));
    bad.files
        .get_mut("include/ops/scale.h")
        .unwrap()
        .push_str("\n__device__ int bad() { return y; }\n");
    let failure = bench.rejected(&bad).await;
    let first = &failure.diagnostics[0];
    assert_eq!((first.file.as_deref(), first.line), (Some("include/ops/scale.h"), Some(6)));
    let mut missing = kernel(named("k"));
    missing.files.remove("include/ops/scale.h");
    let failure = bench.rejected(&missing).await;
    assert!(failure.message.contains("ops/scale.h"), "{}", failure.message);
    let mut twice = kernel(named("k"));
    twice.source_path = None;
    twice.source_code = Some("#include \"scale.h\"\n__global__ void k() {}\n".to_owned());
    twice.files.insert("other/scale.h".to_owned(), String::new());
    let failure = bench.rejected(&twice).await;
    let expected = "may mean include/ops/scale.h or other/scale.h";
    assert!(failure.message.contains(expected), "{}", failure.message);
}

#[tokio::test]
async fn nvcc_has_the_same_files() {
    let bench = Bench::new();
    let metadata = KernelMetadata { backend: Some(Backend::Nvcc), ..named("k") };
    let result = the_rest_needs_some!("nvcc", nvcc::nvcc(&bench, &kernel(metadata)).await);
    let built = result.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(types(&built.kernels[built.entry]), [pointer(CType::F32)]);
}

/// Files named as the source, the prelude, a stub, and the whole of CUB, which the compile stage replaces.
#[tokio::test]
async fn files_may_have_the_names_of_the_compilers_own() {
    let bench = Bench::new();
    for name in
        ["kernel.cu", "program.cu", "warpgauge/prelude.cuh", "stdio.h", "cub/cub.cuh", "nvcc.log"]
    {
        for backend in [Backend::Nvrtc, Backend::Nvcc] {
            if backend == Backend::Nvcc && bench.compiler.toolchain().nvcc.is_none() {
                continue;
            }
            let source =
                format!("#include \"{name}\"\n__global__ void k(int* x) {{ *x = OWN; }}\n");
            let metadata = KernelMetadata { backend: Some(backend), ..named("k") };
            let mut kernel = cuda_with(&source, metadata);
            kernel.files.insert(name.to_owned(), "\u{feff}#define OWN 7\r\n".to_owned());
            ok(&bench, &kernel).await;
            kernel.source_code = Some(source.replace(&format!("\"{name}\""), "NAME"));
            kernel.files.insert("x.h".to_owned(), "#define OWN 8\n".to_owned());
            let source = format!("#define NAME \"x.h\"\n{}", kernel.source_code.unwrap());
            kernel.source_code = Some(source);
            ok(&bench, &kernel).await;
        }
    }
}
