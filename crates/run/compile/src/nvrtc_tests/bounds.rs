//! Tests of time limits, cancellation, sharing, the cache and the choice of a library.

use std::pin::pin;
use std::sync::Arc;

use super::*;
use crate::toolchain::Toolchain;

use warpgauge_model::FailureCode;
use warpgauge_turns::Owner;

/// Compiles for a very long time: nested templates double with each level.
const ENDLESS: &str = "template <int N, int M> struct F {
        static constexpr long v = F<N - 1, M>::v + F<N - 1, M + (1 << N % 30)>::v; };
    template <int M> struct F<0, M> { static constexpr long v = M; };
    __global__ void k(long* x) { x[0] = F<26, 0>::v; }";

#[tokio::test]
async fn a_compilation_that_does_not_end_is_stopped() {
    let bench = Bench::with(toolchain(), Duration::from_millis(800));
    let started = std::time::Instant::now();
    let result = bench.compile(&cuda(ENDLESS)).await;
    let Err(CompileError::Rejected(failure)) = result else { panic!("{result:?}") };
    assert_eq!(failure.code, FailureCode::CompilerTimeout);
    assert!(failure.message.contains("within 0.8 s"), "{}", failure.message);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert_eq!(bench.compiler.stats().running, 0);
    assert_eq!(std::fs::read_dir(bench.dir.path().join("run")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_dropped_compilation_is_killed() {
    let bench = Bench::new();
    let kernel = cuda(ENDLESS);
    let run_dir = bench.dir.path().join("run");
    {
        let compile = bench.compile(&kernel);
        let started = wait_until(|| std::fs::read_dir(&run_dir).unwrap().count() > 0);
        tokio::select! {
            result = compile => panic!("it ended: {result:?}"),
            () = started => {}
        }
    }
    assert_eq!(bench.compiler.stats().running, 0);
    assert_eq!(std::fs::read_dir(&run_dir).unwrap().count(), 0);
    let inside = run_dir.display().to_string();
    wait_until(|| children_in(&inside) == 0).await;
    // The slot is free again.
    bench.built("__global__ void k(float* x) { x[0] = 1; }").await;
}

/// Polls until another process has done something.
async fn wait_until(mut done: impl FnMut() -> bool) {
    let poll = async {
        while !done() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), poll).await.unwrap();
}

/// Returns the number of live processes whose working directory is in `directory`.
fn children_in(directory: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let cwds = entries.filter_map(|e| std::fs::read_link(e.path().join("cwd")).ok());
    cwds.filter(|cwd| cwd.display().to_string().starts_with(directory)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identical_requests_at_once_compile_once() {
    let bench = Arc::new(Bench::new());
    let source = "__global__ void k(float* x) { x[0] = 42; }";
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move { bench.built(source).await })
        })
        .collect();
    let mut hits = 0;
    for task in tasks {
        hits += usize::from(task.await.unwrap().cache_hit);
    }
    let stats = bench.compiler.stats();
    assert_eq!((stats.compiled, hits), (1, 7), "{stats:?}");
}

#[tokio::test]
async fn failures_are_not_cached() {
    let bench = Bench::new();
    for _ in 0..2 {
        bench.rejected(&cuda("__global__ void k() { nonsense }")).await;
    }
    let stats = bench.compiler.stats();
    assert_eq!((stats.failed, stats.memory_hits, stats.disk_hits), (2, 0, 0), "{stats:?}");
}

#[tokio::test]
async fn a_second_request_and_a_restart_find_the_artifact() {
    let bench = Bench::new();
    let kernel = cuda("extern \"C\" __global__ void k(float* x) { x[0] = 7; }");
    let first = bench.compile(&kernel).await.unwrap();
    let second = bench.compile(&kernel).await.unwrap();
    assert!(!first.cache_hit && second.cache_hit);
    assert_eq!((first.key.clone(), first.kernels.clone()), (second.key, second.kernels));
    assert_eq!(second.timings.compiler_ms, 0.0);
    // The file is written after the result is returned.
    let artifacts = bench.dir.path().join("cache/artifacts");
    wait_until(|| {
        let shards = std::fs::read_dir(&artifacts).unwrap().flatten();
        shards
            .flat_map(|s| std::fs::read_dir(s.path()).unwrap().flatten())
            .any(|f| f.path().extension().is_some_and(|e| e == "artifact"))
    })
    .await;
    let config = CompilerConfig {
        program: "/nonexistent".into(),
        cache_dir: bench.dir.path().join("cache"),
        cache_max_bytes: 64 << 20,
        run_dir: bench.dir.path().join("run"),
        parallelism: 1,
        shared: false,
        timeout: Duration::from_secs(10),
        toolchain: toolchain(),
    };
    let restarted = Compiler::new(config).unwrap();
    let third = restarted.compile(&kernel, &H100, CompileOptions::default()).await.unwrap();
    assert!(third.cache_hit);
    assert_eq!((third.key, third.image), (first.key, first.image));
    assert_eq!(restarted.stats().disk_hits, 1);
    let other = CompileOptions { lineinfo: true, ..CompileOptions::default() };
    let missed = restarted.compile(&kernel, &H100, other).await;
    assert!(matches!(missed, Err(CompileError::Internal { .. })), "{missed:?}");
}

#[tokio::test]
async fn line_information_is_added_on_request() {
    let bench = Bench::new();
    let kernel = cuda("extern \"C\" __global__ void k(float* x) { x[0] = 7; }");
    let options = CompileOptions { lineinfo: true, ..CompileOptions::default() };
    let with = bench.compiler.compile(&kernel, &H100, options).await.unwrap();
    let has = |image: &[u8]| image.windows(12).any(|w| w == b".debug_line\0");
    assert!(has(&with.image) && !has(&bench.compile(&kernel).await.unwrap().image));
}

#[tokio::test]
async fn an_architecture_that_no_library_compiles_for_names_them_all() {
    let bench = Bench::new();
    let kernel = cuda("__global__ void k(float* x) { x[0] = 1; }");
    let old = Target { compute_capability: (3, 5), ..H100 };
    for _ in 0..2 {
        match bench.compiler.compile(&kernel, &old, CompileOptions::default()).await {
            Err(CompileError::Environment { what, remedy }) => {
                for install in &bench.compiler.toolchain().nvrtc {
                    assert!(what.contains(&install.version_text()), "{what}");
                }
                assert!(what.contains("sm_35") && remedy.contains("warpgauge toolchain install"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn volta_is_served_by_cuda_12_and_a_driver_12_gets_no_code_of_13() {
    let found = toolchain();
    let majors: Vec<u32> = found.nvrtc.iter().map(|i| i.version.0).collect();
    assert!(majors.contains(&12), "these tests need NVRTC 12 and 13, found {majors:?}");
    let bench = Bench::new();
    let kernel = cuda("__global__ void k(float* x) { x[0] = 1; }");
    for target in
        [Target { compute_capability: (7, 0), ..H100 }, Target { driver_version: 12040, ..H100 }]
    {
        let artifact = bench.compiler.compile(&kernel, &target, CompileOptions::default()).await;
        let artifact = artifact.unwrap();
        assert!(artifact.compiler.starts_with("nvrtc 12."), "{}", artifact.compiler);
    }
    let only_13 = Toolchain {
        nvrtc: found.nvrtc.into_iter().filter(|i| i.version.0 == 13).collect(),
        ..Toolchain::default()
    };
    let bench = Bench::with(only_13, Duration::from_secs(60));
    let target = Target { driver_version: 12040, ..H100 };
    let refused = bench.compiler.compile(&kernel, &target, CompileOptions::default()).await;
    assert!(
        matches!(&refused, Err(CompileError::Environment { what, .. }) if what.contains("12.4"))
    );
}

#[tokio::test]
async fn without_a_toolchain_the_error_says_what_to_do() {
    let bench = Bench::with(Toolchain::default(), Duration::from_secs(10));
    match bench.compile(&cuda("__global__ void k() {}")).await {
        Err(e @ CompileError::Environment { .. }) => {
            assert!(e.to_string().contains("warpgauge toolchain install"), "{e}");
        }
        other => panic!("{other:?}"),
    }
}

/// Two endless compilations of one owner fill both slots, and a third waits behind them. Another owner's
/// compilation of the same source does not wait.
#[tokio::test]
async fn an_owner_waits_for_no_turn_of_another_also_for_the_same_source() {
    let bench = Bench::with(toolchain(), Duration::from_secs(60));
    let (one, two) = (Owner::named("one"), Owner::named("two"));
    let by = |owner| CompileOptions { owner, ..CompileOptions::default() };
    let bombs = ["", "// another"].map(|end| cuda(&format!("{ENDLESS}{end}")));
    let kernel = cuda("__global__ void fair(float* x) { *x = 1; }");
    let compile = |kernel, owner| bench.compiler.compile(kernel, &H100, by(owner));
    {
        let mut first = pin!(compile(&bombs[0], one));
        let mut second = pin!(compile(&bombs[1], one));
        let both_run = async {
            while bench.compiler.stats().running < 2 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            ended = &mut first => panic!("{ended:?}"),
            ended = &mut second => panic!("{ended:?}"),
            () = both_run => {}
        }
        tokio::select! {
            ended = first => panic!("{ended:?}"),
            ended = second => panic!("{ended:?}"),
            ended = compile(&kernel, one) => panic!("it has overtaken two of its owner's: {ended:?}"),
            artifact = compile(&kernel, two) => assert!(!artifact.unwrap().cache_hit),
        }
    }
    assert_eq!(bench.compiler.stats().running, 0);
}

#[tokio::test]
async fn a_program_that_is_no_compile_child_is_a_crash_with_its_words() {
    let dir = tempfile::tempdir().unwrap();
    let config = CompilerConfig {
        program: "/bin/ls".into(),
        cache_dir: dir.path().join("cache"),
        cache_max_bytes: 0,
        run_dir: dir.path().join("run"),
        parallelism: 1,
        shared: false,
        timeout: Duration::from_secs(10),
        toolchain: toolchain(),
    };
    let compiler = Compiler::new(config).unwrap();
    let kernel = cuda("__global__ void k() {}");
    match compiler.compile(&kernel, &H100, CompileOptions::default()).await {
        Err(CompileError::Crashed { signal: None, log, .. }) => {
            assert!(log.contains("__compile"), "{log}")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn sources_that_are_none() {
    let bench = Bench::new();
    assert_eq!(bench.rejected(&cuda("  ")).await.code, FailureCode::MissingSource);
    assert_eq!(bench.rejected(&cuda("int x;\0")).await.code, FailureCode::InvalidSource);
    let huge = " x".repeat(9 << 20);
    assert_eq!(bench.rejected(&cuda(&huge)).await.code, FailureCode::SourceTooLarge);
}

#[tokio::test]
async fn what_one_owner_had_compiled_no_other_owner_finds() {
    let bench = Bench::new();
    let kernel = cuda("extern \"C\" __global__ void k(float* y) { y[0] = 4.0f; }");
    let hit = async |owner: &str, bench: &Bench| {
        let options = CompileOptions { owner: Owner::named(owner), ..CompileOptions::default() };
        let artifact = bench.compiler.compile(&kernel, &H100, options).await.unwrap();
        let listing =
            bench.compiler.disassemble(&artifact.image, artifact.format, options.owner).await;
        assert!(!listing.unwrap().is_empty());
        artifact.cache_hit
    };
    assert!(!hit("one", &bench).await);
    assert!(hit("one", &bench).await);
    assert!(!hit("two", &bench).await, "the same source, and another owner");
    assert!(hit("two", &bench).await);
    assert!(!hit("", &bench).await, "nor does the server's own owner find it");
    assert_eq!(bench.compiler.stats().compiled, 3);
}
