//! Tests of the compile stage with a real NVRTC, in real children.
//!
//! These tests need a toolchain and fail without one: `warpgauge toolchain install` provides it.

mod bounds;
mod descriptors;
mod extensions;
mod figures;
mod files;
mod kernels;
mod listings;
mod nvcc;
mod sandbox;
mod sources;
mod triton;
mod triton_imports;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use super::toolchain::{Toolchain, ToolchainSearch, discover};
use super::*;
use warpgauge_contract::{KernelCode, KernelMetadata, KernelType};
use warpgauge_model::{ImageFormat, Target};

/// The child of these tests is this test program itself. Started as `PROGRAM __compile`, it runs the
/// tests whose names contain that word, which is only this one. Among the other tests this one has no
/// effect: their standard input is no socket.
#[test]
fn __compile() {
    let is_socket = rustix::fs::fstat(io::stdin().as_fd())
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_socket());
    if is_socket {
        // The harness would write its report to the socket.
        std::process::exit(if child::main() == std::process::ExitCode::SUCCESS { 0 } else { 1 });
    }
}

const H100: Target = Target { compute_capability: (9, 0), driver_version: 13000, emulated: false };
const EMULATED: Target =
    Target { compute_capability: (8, 0), driver_version: 13000, emulated: true };

pub(crate) fn toolchain() -> Toolchain {
    let env = |name: &str| std::env::var(name).ok();
    let config = warpgauge_config::Config::load(None, &env, &Default::default()).unwrap();
    let cache_dir = config.data_dir().to_owned();
    let toolchain = discover(&ToolchainSearch { cache_dir, ..ToolchainSearch::default() });
    assert!(
        !toolchain.nvrtc.is_empty(),
        "no NVRTC found: run `warpgauge toolchain install`, or set WARPGAUGE_TOOLCHAIN"
    );
    toolchain
}

/// A compiler with a separate cache.
struct Bench {
    compiler: Compiler,
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self::with(toolchain(), Duration::from_secs(60))
    }

    fn with(toolchain: Toolchain, timeout: Duration) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = CompilerConfig {
            program: std::env::current_exe().unwrap(),
            cache_dir: dir.path().join("cache"),
            cache_max_bytes: 64 << 20,
            run_dir: dir.path().join("run"),
            parallelism: 2,
            shared: false,
            timeout,
            toolchain,
        };
        Self { compiler: Compiler::new(config).unwrap(), dir }
    }

    async fn compile(&self, kernel: &KernelCode) -> Result<CompiledModule, CompileError> {
        self.compiler.compile(kernel, &H100, CompileOptions::default()).await
    }

    async fn built(&self, source: &str) -> CompiledModule {
        self.compile(&cuda(source)).await.unwrap_or_else(|e| panic!("{source}\n{e:?}"))
    }

    async fn rejected(&self, kernel: &KernelCode) -> CompileFailure {
        match self.compile(kernel).await {
            Err(CompileError::Rejected(failure)) => *failure,
            other => panic!("{other:?}"),
        }
    }
}

fn cuda(source: &str) -> KernelCode {
    cuda_with(source, KernelMetadata::default())
}

fn cuda_with(source: &str, metadata: KernelMetadata) -> KernelCode {
    KernelCode {
        source_code: Some(source.to_owned()),
        files: BTreeMap::new(),
        source_path: None,
        launches: Vec::new(),
        setup: Vec::new(),
        binary_b64: None,
        kernel_type: KernelType::Cuda,
        io: None,
        metadata: Some(metadata),
    }
}

fn named(name: &str) -> KernelMetadata {
    KernelMetadata { kernel_name: Some(name.to_owned()), ..KernelMetadata::default() }
}

fn types(kernel: &KernelInfo) -> Vec<CType> {
    kernel.params.as_ref().unwrap().iter().map(|p| p.ctype.clone()).collect()
}

fn pointer(pointee: CType) -> CType {
    CType::Pointer { pointee: Some(Box::new(pointee)), is_const: false }
}

fn const_pointer(pointee: CType) -> CType {
    CType::Pointer { pointee: Some(Box::new(pointee)), is_const: true }
}
