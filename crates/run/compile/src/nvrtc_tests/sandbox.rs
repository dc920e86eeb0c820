//! Tests of files and data that a source must not reach.

use std::os::unix::fs::symlink;

use super::*;
use warpgauge_contract::Backend;
use warpgauge_model::FailureCode;
use warpgauge_sandbox::enforcement::Enforcement;

const SECRET: &str = "warpgauge_secret_7c1e";

/// Returns everything that a caller sees of a failed compilation.
fn visible(failure: &CompileFailure) -> String {
    format!("{failure:?}")
}

fn assert_closed(bench: &Bench) {
    assert_eq!(
        bench.compiler.sandbox(),
        &Enforcement::Full,
        "this machine's kernel lacks landlock"
    );
}

#[tokio::test]
async fn files_outside_cannot_be_included() {
    let bench = Bench::new();
    assert_closed(&bench);
    let secret = bench.dir.path().join("secret.txt");
    std::fs::write(&secret, format!("int {SECRET} = 1;\n")).unwrap();
    let link = bench.dir.path().join("link.h");
    symlink(&secret, &link).unwrap();
    let own = std::env::current_exe().unwrap();
    let up = "../".repeat(16);
    let paths = [
        secret.display().to_string(),
        link.display().to_string(),
        format!("{up}{}", secret.display().to_string().trim_start_matches('/')),
        "/etc/passwd".into(),
        format!("{up}etc/passwd"),
        "/proc/self/environ".into(),
        "/proc/self/maps".into(),
        "/proc/self/fd/0".into(),
        "/dev/stdin".into(),
        own.display().to_string(),
    ];
    for path in &paths {
        for quoted in [format!("\"{path}\""), format!("<{path}>")] {
            let source = format!("#include {quoted}\n__global__ void k() {{}}");
            let failure = bench.rejected(&cuda(&source)).await;
            let seen = visible(&failure);
            for leak in [SECRET, "root:", "nologin", "PATH=", "libc.so", "ELF"] {
                assert!(!seen.contains(leak), "{path} leaks {leak}: {seen}");
            }
            assert!(seen.contains("open source file"), "{path}: {seen}");
        }
    }
}

#[tokio::test]
async fn files_cannot_be_embedded_or_assembled_in() {
    let bench = Bench::new();
    let secret = bench.dir.path().join("secret.txt");
    std::fs::write(&secret, SECRET).unwrap();
    let path = secret.display();
    for source in [
        format!(
            "__device__ const unsigned char s[] = {{\n#embed \"{path}\"\n}};
             __global__ void k(unsigned char* x) {{ x[0] = s[0]; }}"
        ),
        format!("__global__ void k() {{ asm(\".include \\\"{path}\\\"\"); }}"),
        format!("asm(\".incbin \\\"{path}\\\"\");\n__global__ void k() {{}}"),
        format!("#pragma include(\"{path}\")\n#include_next \"{path}\"\n__global__ void k() {{}}"),
    ] {
        let seen = match bench.compile(&cuda(&source)).await {
            Ok(artifact) => format!("{}{}", String::from_utf8_lossy(&artifact.image), artifact.log),
            Err(CompileError::Rejected(failure)) => visible(&failure),
            Err(other) => panic!("{source}: {other:?}"),
        };
        assert!(!seen.contains(SECRET), "{source} leaks: {seen}");
    }
}

#[tokio::test]
async fn not_even_the_existence_of_a_file_is_told() {
    let bench = Bench::new();
    let secret = bench.dir.path().join("secret.txt");
    std::fs::write(&secret, SECRET).unwrap();
    for path in [secret.display().to_string(), "/etc/passwd".into(), "/proc/self/environ".into()] {
        let source = format!(
            "#if __has_include(\"{path}\") || __has_include(<{path}>)\n#error FOUND\n#endif\n
             __global__ void k(float* x) {{ x[0] = 1; }}"
        );
        bench.built(&source).await;
    }
}

#[tokio::test]
async fn name_expressions_cannot_smuggle_lines_in() {
    let bench = Bench::new();
    let source = "template <class T> __global__ void k(T* x) { x[0] = 1; }";
    let failure =
        bench.rejected(&cuda_with(source, named("k<float>\n#include \"/etc/passwd\"\n"))).await;
    assert_eq!(failure.code, FailureCode::InvalidKernelName);
}

#[tokio::test]
async fn the_child_has_no_environment_to_leak() {
    let bench = Bench::new();
    // Even a compiler that printed its environment would print only two variables.
    let source = "#include \"/proc/self/environ\"\n__global__ void k() {}";
    let failure = bench.rejected(&cuda(source)).await;
    assert!(!visible(&failure).contains("TMPDIR"), "{}", failure.log);
}

#[tokio::test]
async fn nvcc_reaches_no_more_than_the_system() {
    let bench = Bench::new();
    let secret = bench.dir.path().join("secret.txt");
    std::fs::write(&secret, format!("int {SECRET} = 1;\n")).unwrap();
    let metadata = || KernelMetadata { backend: Some(Backend::Nvcc), ..KernelMetadata::default() };
    if bench.compiler.toolchain().nvcc.is_none() {
        let missing = bench.compile(&cuda_with("__global__ void k() {}", metadata())).await;
        assert!(matches!(missing, Err(CompileError::Environment { .. })), "{missing:?}");
    }
    the_rest_needs!("nvcc", bench.compiler.toolchain().nvcc.is_some());
    for path in [secret.display().to_string(), "/etc/passwd".into(), "/proc/self/environ".into()] {
        let source = format!("#include \"{path}\"\n__global__ void k() {{}}");
        let seen = visible(&bench.rejected(&cuda_with(&source, metadata())).await);
        for leak in [SECRET, "root:", "PATH="] {
            assert!(!seen.contains(leak), "{path} leaks {leak}: {seen}");
        }
    }
}
