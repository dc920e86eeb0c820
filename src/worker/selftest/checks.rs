//! The checks.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use super::bench::{Bench, buffer, counters, init, plan, word};
use crate::contract::{InitKind, Role};
use crate::tensor::{self, Dtype, Generator};
use crate::validate::ResolvedTolerance;
use crate::worker::protocol::{Argument, Blame, Content, Job, ReferenceRun, RunOutcome};

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + 'a>>;

/// A named check: what it found, or what is wrong.
pub(super) struct Check {
    pub name: &'static str,
    pub run: fn(&Bench) -> Outcome<'_>,
}

macro_rules! checks {
    ($($function:ident),* $(,)?) => {
        /// Every check, in order.
        pub(super) const ALL: &[Check] = &[
            $(Check { name: stringify!($function), run: |bench| Box::pin($function(bench)) }),*
        ];
    };
}
checks![
    init_bits,
    evaluation,
    inout_is_restored,
    input_modified,
    printf_is_bounded,
    big_shared_memory,
    cluster_launch,
    cooperative_launch,
    out_of_memory,
    illegal_address,
    misaligned_address,
    trap,
    hang_is_killed,
    secrets_in_global_memory,
    secrets_in_shared_memory,
    secrets_in_local_memory,
    fresh_process,
];

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Every element type and kind: the device's bits equal the CPU's.
async fn init_bits(bench: &Bench) -> Result<String, String> {
    const ELEMENTS: u64 = 100_003;
    let kinds = [
        InitKind::Zeros,
        InitKind::Ones,
        InitKind::Full,
        InitKind::Arange,
        InitKind::Uniform,
        InitKind::Randn,
        InitKind::Randint,
    ];
    let mut compared = 0;
    for dtype in Dtype::ALL {
        for kind in kinds {
            let mut spec = init(kind);
            spec.fill_value = Some(1.0);
            spec.start = dtype.is_float().then_some(-1000.5);
            spec.step = dtype.is_float().then_some(0.37);
            if Generator::new(&spec, dtype).is_err() {
                continue;
            }
            let mut expected = vec![0; ELEMENTS as usize * dtype.size()];
            tensor::fill_parallel(&spec, dtype, "tensor", 0, &mut expected)
                .map_err(|error| error.to_string())?;
            let content = Content::Init(spec);
            let buffers = vec![buffer("tensor", dtype, ELEMENTS, Role::Inout, content)];
            let launch = bench.launch("st_nothing", vec![Argument::Buffer(0)], 1);
            let outcome = bench.succeed(bench.job(launch, buffers)).await?;
            let actual = outcome.outputs.first().map(|output| output.blake3.as_str());
            let hash = blake3::hash(&expected).to_hex();
            ensure(actual == Some(hash.as_str()), || format!("{dtype} {kind:?} differ"))?;
            compared += 1;
        }
    }
    Ok(format!("{compared} combinations of {ELEMENTS} elements are equal to the CPU's"))
}

const N: u32 = 1 << 20;

/// `out = in * 3` over a million elements, with a reference kernel.
fn scale_job(bench: &Bench) -> Job {
    let normal = Content::Init(init(InitKind::Randn));
    let buffers = vec![
        buffer("out", Dtype::Float32, N.into(), Role::Output, Content::Undefined),
        buffer("in", Dtype::Float32, N.into(), Role::Input, normal),
    ];
    let factor = Argument::Scalar(3f32.to_ne_bytes().to_vec());
    let arguments = vec![Argument::Buffer(0), Argument::Buffer(1), factor, word(N)];
    let launch = bench.launch("st_scale", arguments, N / 256);
    let mut job = bench.job(launch.clone(), buffers);
    job.references = vec![ReferenceRun { launch, outputs: vec![0] }];
    job.tolerances = vec![(0, EXACT)];
    job.keep_outputs.clear();
    job
}

const EXACT: ResolvedTolerance = ResolvedTolerance {
    atol: 0.0,
    rtol: 0.0,
    required_matched_ratio: 1.0,
    allow_non_finite: false,
};

fn passed(outcome: &RunOutcome) -> bool {
    !outcome.checks.is_empty() && outcome.checks.iter().all(|check| check.comparison.passed)
}

async fn evaluation(bench: &Bench) -> Result<String, String> {
    let mut job = scale_job(bench);
    job.trials = Some(plan(100));
    let outcome = bench.succeed(job).await?;
    ensure(outcome.samples_ms.len() == 100, || format!("{} samples", outcome.samples_ms.len()))?;
    ensure(passed(&outcome), || format!("{:?}", outcome.checks))?;
    let mut samples = outcome.samples_ms.clone();
    samples.sort_by(f32::total_cmp);
    ensure(samples[0] > 0.0, || "a launch took no time".to_owned())?;
    Ok(format!("median of 100 launches {:.2} µs; {:?}", samples[50] * 1e3, outcome.timings))
}

async fn inout_is_restored(bench: &Bench) -> Result<String, String> {
    let ones = Content::Init(init(InitKind::Ones));
    let buffers = vec![buffer("data", Dtype::Float32, 1 << 20, Role::Inout, ones)];
    let factor = Argument::Scalar(2f32.to_ne_bytes().to_vec());
    let arguments = vec![Argument::Buffer(0), factor, word(N)];
    let mut job = bench.job(bench.launch("st_scale_in_place", arguments, N / 256), buffers);
    job.trials = Some(plan(20));
    let outcome = bench.succeed(job).await?;
    let words = bench.words(&outcome, 0)?;
    let two = 2f32.to_bits();
    ensure(words.iter().all(|&bits| bits == two), || "launches saw each other's result".to_owned())?;
    Ok("20 launches in place each saw the same data".to_owned())
}

async fn input_modified(bench: &Bench) -> Result<String, String> {
    let mut job = scale_job(bench);
    job.launch.symbol = "st_change_input".to_owned();
    job.launch.arguments.remove(2);
    let outcome = bench.run(job).await?;
    let failure = outcome.failure.ok_or("the change was not noticed")?;
    ensure(failure.code == "input_modified", || failure.code.clone())?;
    ensure(failure.message.contains("1048575"), || failure.message.clone())?;
    Ok(failure.message)
}

async fn printf_is_bounded(bench: &Bench) -> Result<String, String> {
    let arguments = vec![Argument::Buffer(0), word(8)];
    let mut launch = bench.launch("st_print", arguments, 1);
    launch.block = [1, 1, 1];
    let few = bench.succeed(bench.job(launch.clone(), vec![counters(1)])).await?;
    ensure(few.printed.lines().count() == 8, || format!("{:?}", few.printed))?;
    launch.arguments[1] = word(20_000);
    let many = bench.succeed(bench.job(launch, vec![counters(1)])).await?;
    let bytes = many.printed.len();
    ensure(bytes > 60_000 && bytes < 70_000, || format!("{bytes} bytes of a flood"))?;
    ensure(many.printed.contains("not kept"), || "the cut is not said".to_owned())?;
    Ok(format!("8 lines whole; a flood cut to {bytes} bytes"))
}

async fn big_shared_memory(bench: &Bench) -> Result<String, String> {
    let bytes = bench.device.max_shared_optin_bytes;
    let mut launch = bench.launch("st_big_shared", vec![Argument::Buffer(0), word(bytes / 8)], 4);
    launch.shared_bytes = bytes;
    let outcome = bench.succeed(bench.job(launch.clone(), vec![counters(4)])).await?;
    let words = bench.words(&outcome, 0)?;
    ensure(words == [1; 4], || format!("{words:?}"))?;
    launch.shared_bytes = bytes + 1024;
    let refused = bench.run(bench.job(launch, vec![counters(4)])).await?.failure;
    let refused = refused.ok_or("more than the device has was accepted")?;
    Ok(format!("{bytes} bytes work; more: {}", refused.code))
}

async fn cluster_launch(bench: &Bench) -> Result<String, String> {
    let mut launch = bench.launch("st_cluster", vec![Argument::Buffer(0)], 8);
    launch.cluster = Some([4, 1, 1]);
    let job = bench.job(launch, vec![counters(8)]);
    if bench.emulated() || bench.device.target.compute_capability.0 < 9 {
        let failure = bench.run(job).await?.failure.ok_or("clusters were accepted")?;
        return Ok(format!("not on this device: {}", failure.code));
    }
    let outcome = bench.succeed(job).await?;
    let words = bench.words(&outcome, 0)?;
    ensure(words == [400, 401, 402, 403, 400, 401, 402, 403], || format!("{words:?}"))?;
    Ok("2 clusters of 4".to_owned())
}

async fn cooperative_launch(bench: &Bench) -> Result<String, String> {
    let blocks = bench.device.multiprocessors;
    let arguments = vec![Argument::Buffer(0), Argument::Buffer(1)];
    let mut launch = bench.launch("st_cooperative", arguments, blocks);
    launch.cooperative = true;
    let mut arrived = counters(1);
    arrived.name = "arrived".to_owned();
    let buffers = vec![arrived, counters(blocks.into())];
    let outcome = bench.succeed(bench.job(launch, buffers)).await?;
    let words = bench.words(&outcome, 1)?;
    ensure(words.iter().all(|&word| word == blocks), || format!("{words:?}"))?;
    Ok(format!("{blocks} blocks met"))
}

async fn out_of_memory(bench: &Bench) -> Result<String, String> {
    let huge = buffer("out", Dtype::Float32, 1 << 43, Role::Output, Content::Undefined);
    let launch = bench.launch("st_nothing", vec![Argument::Buffer(0)], 1);
    fails_with(bench, bench.job(launch, vec![huge]), &["out_of_memory"]).await
}

async fn illegal_address(bench: &Bench) -> Result<String, String> {
    let launch = bench.launch("st_null", vec![Argument::Buffer(0)], 1);
    fails_with(bench, bench.job(launch, vec![counters(1)]), &["illegal_address"]).await
}

async fn misaligned_address(bench: &Bench) -> Result<String, String> {
    let launch = bench.launch("st_misaligned", vec![Argument::Buffer(0)], 1);
    fails_with(bench, bench.job(launch, vec![counters(4)]), &["misaligned_address"]).await
}

async fn trap(bench: &Bench) -> Result<String, String> {
    let launch = bench.launch("st_trap", vec![Argument::Buffer(0)], 1);
    let codes = ["launch_failed", "illegal_instruction"];
    fails_with(bench, bench.job(launch, vec![counters(1)]), &codes).await
}

/// The job fails with one of `codes`, and the next evaluation works and is not held up.
async fn fails_with(bench: &Bench, job: Job, codes: &[&str]) -> Result<String, String> {
    let failure = bench.run(job).await?.failure.ok_or("it did not fail")?;
    ensure(codes.contains(&failure.code.as_str()), || {
        format!("{}: {}", failure.code, failure.message)
    })?;
    ensure(failure.blame == Blame::Candidate, || format!("{:?} is blamed", failure.blame))?;
    let ms = next_evaluation(bench).await?;
    Ok(format!("{}; the next evaluation took {ms:.1} ms", failure.code))
}

async fn next_evaluation(bench: &Bench) -> Result<f64, String> {
    let start = Instant::now();
    let outcome = bench.succeed(scale_job(bench)).await?;
    ensure(passed(&outcome), || "the next evaluation is wrong".to_owned())?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

async fn hang_is_killed(bench: &Bench) -> Result<String, String> {
    let limit = Duration::from_millis(500);
    let launch = bench.launch("st_spin", vec![Argument::Buffer(0)], 1);
    let start = Instant::now();
    let outcome = bench.run_within(bench.job(launch, vec![counters(1)]), limit).await?;
    let gone = start.elapsed();
    let failure = outcome.failure.ok_or("it did not hang")?;
    ensure(failure.code == "timeout", || format!("{}: {}", failure.code, failure.message))?;
    ensure(gone < limit + Duration::from_secs(1), || format!("it took {gone:?}"))?;
    let ms = next_evaluation(bench).await?;
    Ok(format!("gone after {gone:.1?}; the next evaluation took {ms:.1} ms"))
}

async fn secrets_in_global_memory(bench: &Bench) -> Result<String, String> {
    let words = 1u32 << 20;
    let secret = buffer("secret", Dtype::Uint64, words.into(), Role::Output, Content::Undefined);
    let hide = bench.launch("st_hide_global", vec![Argument::Buffer(0), word(words)], 1);
    let mut hide = bench.job(hide, vec![secret]);
    hide.keep_outputs.clear();
    bench.succeed(hide).await?;
    let seek = bench.launch("st_seek_global", vec![Argument::Buffer(0)], 1);
    let seek = bench.job(seek, vec![counters(1)]);
    if bench.emulated() {
        // Every access is checked there: looking outside a buffer is a fault.
        return fails_with(bench, seek, &["illegal_address"]).await;
    }
    found_nothing(bench, seek).await
}

async fn secrets_in_shared_memory(bench: &Bench) -> Result<String, String> {
    let bytes = bench.device.max_shared_optin_bytes;
    let blocks = 4 * bench.device.multiprocessors;
    let arguments = vec![Argument::Buffer(0), word(bytes / 8)];
    let mut launch = bench.launch("st_hide_shared", arguments, blocks);
    launch.shared_bytes = bytes;
    let hidden = bench.job(launch.clone(), vec![counters(blocks.into())]);
    bench.succeed(hidden).await?;
    launch.symbol = "st_seek_shared".to_owned();
    found_nothing(bench, bench.job(launch, vec![counters(1)])).await
}

async fn secrets_in_local_memory(bench: &Bench) -> Result<String, String> {
    let blocks = 16 * bench.device.multiprocessors;
    let mut launch = bench.launch("st_hide_local", vec![Argument::Buffer(0)], blocks);
    bench.succeed(bench.job(launch.clone(), vec![counters(blocks.into())])).await?;
    launch.symbol = "st_seek_local".to_owned();
    found_nothing(bench, bench.job(launch, vec![counters(1)])).await
}

async fn found_nothing(bench: &Bench, job: Job) -> Result<String, String> {
    let before = bench.fleet.devices().first().map(|device| device.restarts);
    let outcome = bench.succeed(job).await?;
    let found = bench.words(&outcome, 0)?;
    ensure(found == [0], || format!("{} words of the job before were seen", found[0]))?;
    let after = bench.fleet.devices().first().map(|device| device.restarts);
    let same = if before == after { "" } else { " (a worker was replaced in between)" };
    Ok(format!("nothing of the job before was seen{same}"))
}

async fn fresh_process(bench: &Bench) -> Result<String, String> {
    let lease = bench.fleet.lease(&crate::queue::Need::default()).await;
    let mut lease = lease.map_err(|error| error.to_string())?;
    let limit = Duration::from_secs(60);
    for _ in 0..2 {
        let outcome = lease.run(scale_job(bench), limit, true, &|_| ()).await;
        ensure(passed(&outcome), || format!("{:?}", outcome.failure))?;
    }
    Ok("two evaluations, each in a process of its own".to_owned())
}
