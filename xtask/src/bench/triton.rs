//! Compares a kernel in Triton with the same kernel in CUDA: the first evaluation, cached
//! evaluations, and the choice of a configuration.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::report::{self, Figure, Target};
use super::stats::quantile;
use crate::http::{Answer, Client};
use crate::server::Server;

/// Options of `bench triton`.
#[derive(clap::Args)]
pub struct Options {
    /// The program to measure.
    #[arg(long, default_value = "./warpgauge")]
    program: PathBuf,
    /// Device: auto, emulator, or a GPU's ordinal.
    #[arg(long, default_value = "auto")]
    device: String,
    /// File for the figures, as JSON. The server's log is written next to it.
    #[arg(long, default_value = "bench-triton.json")]
    out: PathBuf,
    /// Number of kernels that are compiled for the first time.
    #[arg(long, default_value_t = 20)]
    new: usize,
    /// Number of cached evaluations in each language; the languages alternate.
    #[arg(long, default_value_t = 100)]
    cached: usize,
    /// Number of kernels that are autotuned.
    #[arg(long, default_value_t = 3)]
    tuned: usize,
}

/// Number of elements in each vector.
const N: u64 = 1 << 16;

/// Number of timed launches in an evaluation.
const TRIALS: u32 = 20;

const BODY: &str = "
@triton.jit
def add(a, b, c, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(c + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)
";

const TUNER: &str = "
@triton.autotune(
    configs=[triton.Config({'BLOCK': b}, num_warps=w) for b in (256, 512, 1024, 2048)
             for w in (1, 2, 4, 8)],
    key=['n'],
)";

const CUDA: &str =
    "extern \"C\" __global__ void add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}";

/// Measures the figures, prints a table and writes JSON. Fails if a figure misses its target.
pub fn run(options: &Options) -> Result<()> {
    let arguments = ["--device".to_owned(), options.device.clone()];
    let server = Server::start(&options.program, &arguments, &options.out.with_extension("log"))?;
    let client = Client::new(&server.url);
    let send = |body: &Value| evaluate(&client, body);
    let on_gpu = send(&cuda())?.body["device"]["kind"] == "cuda";
    let target = |most: f64| if on_gpu { Target::AtMost(most) } else { Target::None };
    // The salt contains the time, because a cache may survive restarts of the server.
    let salt = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as usize;

    eprintln!("new kernels …");
    let first = (0..options.new).map(|i| {
        let answer = send(&triton(&format!("{BODY}# {}", salt + i), true))?;
        if answer.body["compile"]["cache_hit"] != false {
            bail!("the cache already contained a new source");
        }
        Ok(answer.elapsed.as_secs_f64() * 1e3)
    });
    let first = first.collect::<Result<Vec<_>>>()?;

    eprintln!("cached kernels in turns …");
    let (mut of_triton, mut of_cuda) = (Vec::new(), Vec::new());
    for _ in 0..options.cached + 5 {
        of_triton.push(send(&triton(BODY, true))?.elapsed.as_secs_f64() * 1e3);
        of_cuda.push(send(&cuda())?.elapsed.as_secs_f64() * 1e3);
    }
    let (of_triton, of_cuda) = (&of_triton[5..], &of_cuda[5..]);

    eprintln!("configurations …");
    let tuned = (0..options.tuned).map(|i| {
        let source = format!("{TUNER}{BODY}# {}", salt + i);
        let answer = send(&triton(&source, false))?;
        let ms = answer.body["tuning"]["total_ms"].as_f64();
        ms.with_context(|| format!("no configuration was tuned: {}", answer.body))
    });
    let tuned = tuned.collect::<Result<Vec<_>>>()?;

    let figure = |name: &str, value, target, n: usize| Figure {
        name: name.to_owned(),
        unit: "ms",
        value,
        target,
        detail: format!("n = {n}"),
    };
    let difference = quantile(of_triton, 0.5).zip(quantile(of_cuda, 0.5)).map(|(a, b)| a - b);
    let figures = [
        figure(
            "new kernel in Triton: round trip, p50",
            quantile(&first, 0.5),
            target(600.0),
            first.len(),
        ),
        figure("new kernel in Triton: slowest", quantile(&first, 1.0), Target::None, first.len()),
        figure("cached in Triton: p50", quantile(of_triton, 0.5), Target::None, of_triton.len()),
        figure("cached in CUDA: p50", quantile(of_cuda, 0.5), Target::None, of_cuda.len()),
        figure("cached: Triton minus CUDA", difference, target(1.0), of_cuda.len()),
        figure(
            "16 configurations: compiled and chosen, p50",
            quantile(&tuned, 0.5),
            Target::None,
            tuned.len(),
        ),
    ];
    println!("{}", report::markdown(&figures));
    let context = json!({"device": send(&cuda())?.body["device"]});
    let text = serde_json::to_string_pretty(&report::json(&figures, context))?;
    std::fs::write(&options.out, text + "\n")
        .with_context(|| format!("cannot write {}", options.out.display()))?;
    if figures.iter().any(|figure| figure.reached() == Some(false)) {
        bail!("a figure missed its target");
    }
    Ok(())
}

fn evaluate(client: &Client, body: &Value) -> Result<Answer> {
    let answer = client.post_json("/evaluate", body)?;
    if answer.status != 200 || answer.body["kernel_exec_result"]["correctness"] != true {
        bail!("the evaluation failed: status {}: {}", answer.status, answer.body);
    }
    Ok(answer)
}

fn request(mut kernel: Value, mut args: Vec<Value>, launch: Value) -> Value {
    let tensor = |name: &str, seed: u64| {
        json!({"name": name, "type": "tensor",
               "tensor_spec": {"shape": [N], "init": {"kind": "randn", "seed": seed}}})
    };
    let out =
        json!({"name": "c", "type": "tensor", "role": "output", "tensor_spec": {"shape": [N]}});
    let n = json!({"name": "n", "type": "int", "value": N});
    let mut all = vec![tensor("a", 1), tensor("b", 2), out, n];
    all.append(&mut args);
    kernel["io"] = json!({"args": all, "launch": launch});
    let reference = json!({"kernel_type": "cuda", "source_code": CUDA, "io": {"launch": blocks()}});
    json!({"kernel": kernel, "num_trials": TRIALS, "expected": {"c": {"kernel": reference}}})
}

fn blocks() -> Value {
    json!({"grid": {"x": "ceil_div(n, 256)"}, "block": {"x": 256}})
}

fn cuda() -> Value {
    request(json!({"kernel_type": "cuda", "source_code": CUDA}), Vec::new(), blocks())
}

fn triton(body: &str, with_block: bool) -> Value {
    let source = format!("import triton\nimport triton.language as tl\n{body}\n");
    let block = json!({"name": "BLOCK", "type": "int", "value": 1024, "is_meta": true});
    let args = if with_block { vec![block] } else { Vec::new() };
    let launch = json!({"grid": {"x": "cdiv(n, BLOCK)"}});
    request(json!({"kernel_type": "triton", "source_code": source}), args, launch)
}
