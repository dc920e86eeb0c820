//! Measures the latency, recovery, memory and throughput of the service.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::report::{self, Figure, Target};
use super::{load, payload, process, stats};
use crate::http::{Answer, Client};
use crate::server::Server;

/// Options of `bench service`.
#[derive(clap::Args)]
pub struct Options {
    /// The program to measure.
    #[arg(long, default_value = "./warpgauge")]
    program: PathBuf,
    /// Device: auto, emulator, or a GPU's ordinal.
    #[arg(long, default_value = "auto")]
    device: String,
    /// File for the figures, as JSON. The server's log is written next to it.
    #[arg(long, default_value = "bench-service.json")]
    out: PathBuf,
    /// Number of evaluations for each latency figure.
    #[arg(long, default_value_t = 200)]
    samples: usize,
    /// Duration of the load from many clients, seconds; 0 skips this part.
    #[arg(long, default_value_t = 60)]
    load_seconds: u64,
    /// Number of clients that send requests in parallel.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Size of the large request, megabytes; 0 skips this part.
    #[arg(long, default_value_t = 300)]
    big_megabytes: usize,
    /// Additional arguments for `serve`.
    #[arg(long, num_args = 1.., allow_hyphen_values = true)]
    server_args: Vec<String>,
}

/// A server, and the figures that were measured so far.
struct Bench<'a> {
    options: &'a Options,
    server: Server,
    client: Client,
    figures: Vec<Figure>,
}

/// Measures all figures, prints a table and writes JSON. Fails if a figure misses its target.
pub fn run(options: &Options) -> Result<()> {
    let mut arguments = vec!["--device".to_owned(), options.device.clone()];
    arguments.extend(options.server_args.iter().cloned());
    let server = Server::start(&options.program, &arguments, &options.out.with_extension("log"))?;
    let client = Client::new(&server.url);
    let mut bench = Bench { options, server, client, figures: Vec::new() };

    let normal = bench.cached()?;
    bench.idle_memory()?;
    bench.first_time()?;
    bench.after_crash(normal)?;
    bench.hang()?;
    bench.big_request()?;
    bench.load()?;
    let context = bench.context()?;
    if context["device"]["kind"] != "cuda" {
        eprintln!("the device is not a GPU: targets are not checked");
        bench.figures.iter_mut().for_each(|figure| figure.target = Target::None);
    }

    let table = report::markdown(&bench.figures);
    println!("{}\n\n{table}", headline(&context));
    write_json(&options.out, &report::json(&bench.figures, context))?;
    let missed = bench.figures.iter().filter(|f| f.reached() == Some(false)).count();
    if missed > 0 {
        bail!("{missed} figures missed their targets");
    }
    Ok(())
}

impl Bench<'_> {
    /// Sends an evaluation request. Fails if the report has no runtime.
    fn evaluate(&self, body: &Value) -> Result<Answer> {
        let answer = self.client.post_json("/evaluate", body)?;
        let result = &answer.body["kernel_exec_result"];
        if answer.status != 200 || !result["runtime"].is_number() {
            bail!("the report has no runtime: status {}: {}", answer.status, answer.body);
        }
        Ok(answer)
    }

    fn push(
        &mut self,
        name: &str,
        unit: &'static str,
        value: Option<f64>,
        target: Target,
        detail: impl Into<String>,
    ) {
        let detail = detail.into();
        self.figures.push(Figure { name: name.to_owned(), unit, value, target, detail });
    }

    /// Measures the round trips of a kernel that is in the compiler cache. Returns their median,
    /// milliseconds.
    fn cached(&mut self) -> Result<f64> {
        eprintln!("cached evaluation …");
        for (name, body, limits) in [
            ("cached", payload::vector_add(), Some((5.0, 15.0))),
            ("cached, checked against a reference kernel", payload::vector_add_checked(), None),
        ] {
            for _ in 0..10 {
                self.evaluate(&body)?;
            }
            let mut total = Vec::new();
            let mut overhead = Vec::new();
            for _ in 0..self.options.samples {
                let answer = self.evaluate(&body)?;
                let busy = number(&answer.body["timings"]["device_busy"])?;
                total.push(milliseconds(answer.elapsed));
                overhead.push(milliseconds(answer.elapsed) - busy);
            }
            let n = format!("n = {}", total.len());
            let [p50, p99] =
                limits.map_or([Target::None; 2], |(a, b)| [Target::AtMost(a), Target::AtMost(b)]);
            let less_busy = format!("{name}: round trip minus device-busy time");
            let q = |samples: &[f64], q| stats::quantile(samples, q);
            self.push(&format!("{name}: round trip, p50"), "ms", q(&total, 0.5), Target::None, &n);
            self.push(&format!("{less_busy}, p50"), "ms", q(&overhead, 0.5), p50, &n);
            self.push(&format!("{less_busy}, p99"), "ms", q(&overhead, 0.99), p99, &n);
        }
        self.figures[0].value.context("no samples: --samples must not be 0")
    }

    /// Measures the memory of the idle server.
    fn idle_memory(&mut self) -> Result<()> {
        let memory = process::memory(self.server.pid())?;
        self.push(
            "server memory, idle",
            "MiB",
            Some(memory.resident),
            Target::AtMost(40.0),
            "resident, after the evaluations above",
        );
        Ok(())
    }

    /// Measures evaluations of sources that were never compiled before.
    fn first_time(&mut self) -> Result<()> {
        eprintln!("first-time compile and evaluate …");
        // The salt contains the time, because a cache may survive restarts of the server.
        let salt = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as u64;
        let mut total = Vec::new();
        for i in 0..(self.options.samples / 4).max(5) as u64 {
            let answer = self.evaluate(&payload::vector_add_unique(salt + i))?;
            if answer.body["compile"]["cache_hit"] != false {
                bail!("the cache already contained a new source");
            }
            total.push(milliseconds(answer.elapsed));
        }
        let n = format!("n = {}", total.len());
        let p50 = stats::quantile(&total, 0.5);
        let p99 = stats::quantile(&total, 0.99);
        self.push("first time: compile and evaluate, p50", "ms", p50, Target::AtMost(150.0), &n);
        self.push("first time: compile and evaluate, p99", "ms", p99, Target::None, &n);
        Ok(())
    }

    /// Measures an evaluation immediately after a crash.
    fn after_crash(&mut self, normal_ms: f64) -> Result<()> {
        eprintln!("evaluation after a crash …");
        let crash = payload::crash();
        let body = payload::vector_add();
        let mut after = Vec::new();
        for _ in 0..(self.options.samples / 10).max(5) {
            let crashed = self.client.post_json("/evaluate", &crash)?;
            if crashed.body["failure"].is_null() {
                bail!("the crashing kernel did not fail: {}", crashed.body);
            }
            after.push(milliseconds(self.evaluate(&body)?.elapsed));
        }
        let n = format!("n = {}, normal: {normal_ms:.1} ms", after.len());
        let ratio = stats::quantile(&after, 0.5).map(|p50| p50 / normal_ms);
        let worst = stats::quantile(&after, 1.0);
        self.push(
            "right after a crash: p50 divided by the normal p50",
            "×",
            ratio,
            Target::AtMost(2.0),
            &n,
        );
        self.push("right after a crash: slowest round trip", "ms", worst, Target::None, &n);
        Ok(())
    }

    /// Measures how long after the timeout of a hanging kernel the answer arrives and the kernel's
    /// process ends.
    fn hang(&mut self) -> Result<()> {
        const TIMEOUT_S: f64 = 1.0;
        eprintln!("hanging kernel …");
        let body = payload::hang(TIMEOUT_S);
        let (mut answered, mut gone) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            // When this answer arrives, a spare worker has replaced the worker that ended in the
            // last round.
            self.evaluate(&payload::vector_add())?;
            let workers = process::children(self.server.pid())?;
            let start = Instant::now();
            let answer = self.client.post_json("/evaluate", &body)?;
            if answer.body["failure"].is_null() {
                bail!("the hanging kernel did not fail: {}", answer.body);
            }
            process::wait_for_one_to_end(&workers, Duration::from_secs(30))?;
            let ended = milliseconds(start.elapsed());
            // The timeout does not include compilation and the wait for a device.
            let timings = &answer.body["timings"];
            let before = number(&timings["compile"])? + number(&timings["queue"])?;
            let due = before + TIMEOUT_S * 1e3;
            answered.push(milliseconds(answer.elapsed) - due);
            gone.push(ended - due);
        }
        let n = format!("maximum of {}, timeout {TIMEOUT_S} s", gone.len());
        let (answered, gone) = (stats::quantile(&answered, 1.0), stats::quantile(&gone, 1.0));
        self.push("hang: answer after the timeout", "ms", answered, Target::None, &n);
        self.push("hang: worker ended after the timeout", "ms", gone, Target::AtMost(1000.0), &n);
        Ok(())
    }

    /// Measures memory during and after a very large request.
    fn big_request(&mut self) -> Result<()> {
        if self.options.big_megabytes == 0 {
            return Ok(());
        }
        eprintln!("request of {} MB …", self.options.big_megabytes);
        let body = payload::big_body(self.options.big_megabytes * 1_000_000);
        let body_mib = body.len() as f64 / (1024.0 * 1024.0);
        process::reset_peak(self.server.pid())?;
        let answer = self.client.post("/evaluate", "application/json", &body)?;
        if answer.status != 200 {
            bail!("the large request was answered with status {}: {}", answer.status, answer.body);
        }
        let memory = process::memory(self.server.pid())?;
        let detail = format!("body {body_mib:.0} MiB");
        self.push(
            "server memory, maximum during a large request, minus its body",
            "MiB",
            Some(memory.peak - body_mib),
            Target::AtMost(60.0),
            &detail,
        );
        let resident = Some(memory.resident);
        self.push("server memory, after a large request", "MiB", resident, Target::None, &detail);
        let elapsed = Some(milliseconds(answer.elapsed));
        self.push("large request: round trip", "ms", elapsed, Target::None, &detail);
        Ok(())
    }

    /// Measures throughput and latency while many clients send requests.
    fn load(&mut self) -> Result<()> {
        if self.options.load_seconds == 0 {
            return Ok(());
        }
        let (clients, seconds) = (self.options.clients, self.options.load_seconds);
        eprintln!("{clients} clients for {seconds} s …");
        let devices = self.devices()?.max(1) as f64;
        let url = self.server.url.clone();
        let duration = Duration::from_secs(seconds);
        let load = load::run(&url, &payload::vector_add(), clients, duration)?;
        let elapsed = load.elapsed.as_secs_f64();
        let detail = format!("{clients} clients, {elapsed:.0} s; {}", load.statuses());
        let rate = load.completed as f64 / elapsed;
        let busy = 100.0 * load.device_busy_ms / 1e3 / elapsed / devices;
        let each = load.device_busy_ms / load.completed.max(1) as f64;
        let busy_detail = format!("{each:.2} ms per evaluation, {devices} devices");
        let errors = load.errors() as f64;
        self.push("load: errors other than 429", "", Some(errors), Target::AtMost(0.0), &detail);
        self.push("load: evaluations", "/s", Some(rate), Target::None, &detail);
        self.push("load: device-busy share", "%", Some(busy), Target::AtLeast(80.0), &busy_detail);
        for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
            let value = stats::quantile(&load.latency_ms, q);
            self.push(&format!("load: round trip, {name}"), "ms", value, Target::None, &detail);
        }
        Ok(())
    }

    fn devices(&self) -> Result<usize> {
        let health = self.client.get("/health")?.body;
        health["device_count"]
            .as_u64()
            .map(|count| count as usize)
            .with_context(|| format!("/health has no device_count: {health}"))
    }

    /// Returns the device, compiler, version and time of the measurement.
    fn context(&self) -> Result<Value> {
        let answer = self.evaluate(&payload::vector_add())?;
        let health = self.client.get("/health")?.body;
        let time = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        Ok(json!({
            "device": answer.body["device"],
            "compiler": answer.body["compile"]["compiler"],
            "version": health["version"],
            "unix_time": time,
            "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        }))
    }
}

fn headline(context: &Value) -> String {
    let device = &context["device"];
    format!(
        "warpgauge {} on {} ({}), CUDA {}, {}",
        context["version"].as_str().unwrap_or("?"),
        device["name"].as_str().unwrap_or("?"),
        device["kind"].as_str().unwrap_or("?"),
        device["cuda_version"].as_str().unwrap_or("?"),
        context["compiler"].as_str().unwrap_or("?"),
    )
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().with_context(|| format!("expected a number, found {value}"))
}
