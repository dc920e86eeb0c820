//! Measures how long operations take: `cargo test --lib figures -- --ignored --nocapture`.

use std::time::Instant;

use super::*;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[tokio::test]
#[ignore = "prints figures; needs the program at WARPGAUGE_PROGRAM"]
async fn compile_times() {
    let program = std::env::var_os("WARPGAUGE_PROGRAM").expect("WARPGAUGE_PROGRAM is set");
    let dir = tempfile::tempdir().unwrap();
    let config = CompilerConfig {
        program: program.into(),
        cache_dir: dir.path().join("cache"),
        cache_max_bytes: 64 << 20,
        run_dir: dir.path().join("run"),
        parallelism: 2,
        shared: false,
        timeout: Duration::from_secs(60),
        toolchain: toolchain(),
    };
    let compiler = Compiler::new(config).unwrap();
    for example in ["vector_add", "softmax", "matmul_tiled"] {
        let path = format!("{}/../../../kernels/{example}/kernel.cu", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let (mut total, mut inside) = (Vec::new(), Vec::new());
        for round in 0..11 {
            let kernel = cuda(&format!("{text}\n// {round}\n"));
            let artifact =
                compiler.compile(&kernel, &H100, CompileOptions::default()).await.unwrap();
            total.push(artifact.timings.total_ms);
            inside.push(artifact.timings.compiler_ms);
        }
        let first = total[0];
        let kernel = cuda(&format!("{text}\n// 0\n"));
        let mut hits = Vec::new();
        for _ in 0..200 {
            let started = Instant::now();
            compiler.compile(&kernel, &H100, CompileOptions::default()).await.unwrap();
            hits.push(started.elapsed().as_secs_f64() * 1e3);
        }
        println!(
            "{example}: first {first:.1} ms, median {:.1} ms (compiler {:.1} ms), cached {:.3} ms",
            median(total),
            median(inside),
            median(hits)
        );
    }
}

#[test]
#[ignore = "downloads several hundred megabytes; needs a network"]
fn installation() {
    use crate::toolchain::{InstallRequest, install};
    let dir = tempfile::tempdir().unwrap();
    let request = InstallRequest {
        program: std::env::current_exe().unwrap(),
        cache_dir: dir.path().to_owned(),
        cuda: vec![12, 13],
        nvcc: true,
        triton: true,
        torch: false,
        named_python: None,
    };
    let started = Instant::now();
    install(&request, &mut |line| println!("{line}")).unwrap();
    println!("installed in {:.0} s", started.elapsed().as_secs_f64());
    let search = ToolchainSearch { cache_dir: dir.path().to_owned(), ..ToolchainSearch::default() };
    let found = discover(&search);
    let versions: Vec<u32> = found.nvrtc.iter().map(|i| i.version.0).collect();
    assert!(versions.contains(&12) && versions.contains(&13), "{found:?}");
    assert!(found.nvrtc.iter().all(|i| !i.include_dirs.is_empty()), "{found:?}");
    assert!(found.nvcc.is_some());
    assert!(found.triton.is_some(), "{:?}", found.no_triton);
}
