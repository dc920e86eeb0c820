//! The list of checks, and the checks that need no separate module.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use super::bench::{Bench, buffer, counters, init, plan, word};
use super::content::{init_bits, scale_layouts};
use super::numbers::secret_numbers;
use super::secrets::{secrets_in_global_memory, secrets_in_local_memory, secrets_in_shared_memory};
use crate::protocol::{
    Argument, Blame, BufferContent, EvaluatePlan, EvaluatedRun, ReferenceRun, RunOutcome,
    Tolerances, WorkerJob,
};
use warpgauge_contract::Role;
use warpgauge_model::FailureCode;
use warpgauge_tensor::{Dtype, InitKind};
use warpgauge_validate::{ResolvedTolerance, ToleranceBasis};

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + 'a>>;

/// A named check. It returns a description of its result, or the error.
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
    scale_layouts,
    secret_numbers,
    evaluation,
    several_launches,
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

pub(super) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

const N: u32 = 1 << 20;

/// Returns a job `out = in * 3` over a million elements, with the same kernel as reference.
fn scale_job(bench: &Bench) -> WorkerJob<EvaluatePlan> {
    let normal = BufferContent::Init(Box::new(init(InitKind::Randn)));
    let buffers = vec![
        buffer("out", Dtype::Float32, N.into(), Role::Output, BufferContent::Undefined),
        buffer("in", Dtype::Float32, N.into(), Role::Input, normal),
    ];
    let factor = Argument::Scalar(3f32.to_ne_bytes().to_vec());
    let arguments = vec![Argument::Buffer(0), Argument::Buffer(1), factor, word(N)];
    let launch = bench.launch("st_scale", arguments, N / 256);
    let mut job = bench.job(launch.clone(), buffers);
    job.task.checks.references =
        vec![ReferenceRun { launches: launch.into(), unfused: None, outputs: vec![0] }];
    job.task.checks.tolerances = Tolerances(vec![(0, EXACT)]);
    job.task.keep_outputs.clear();
    job
}

pub(super) const EXACT: ResolvedTolerance = ResolvedTolerance {
    atol: 0.0,
    rtol: 0.0,
    required_matched_ratio: 1.0,
    allow_non_finite: false,
    basis: ToleranceBasis::Given,
    computes_in: None,
    outliers: None,
};

fn passed(outcome: &RunOutcome<EvaluatedRun>) -> bool {
    !outcome.told.checks.is_empty()
        && outcome.told.checks.iter().all(|check| check.comparison.passed)
}

async fn evaluation(bench: &Bench) -> Result<String, String> {
    let mut job = scale_job(bench);
    job.task.trials = Some(plan(100));
    let outcome = bench.succeed(job).await?;
    ensure(outcome.told.samples_ms.len() == 100, || {
        format!("{} samples", outcome.told.samples_ms.len())
    })?;
    ensure(passed(&outcome), || format!("{:?}", outcome.told.checks))?;
    let mut samples = outcome.told.samples_ms.clone();
    samples.sort_by(f32::total_cmp);
    ensure(samples[0] > 0.0, || "a launch took no time".to_owned())?;
    Ok(format!("median of 100 launches {:.2} µs; {:?}", samples[50] * 1e3, outcome.timings))
}

/// Checks a program of two launches, the second of which reads the results of the first.
async fn several_launches(bench: &Bench) -> Result<String, String> {
    let mut job = scale_job(bench);
    let factor = |value: f32| Argument::Scalar(value.to_ne_bytes().to_vec());
    let doubled = vec![Argument::Buffer(0), factor(2.0), word(N)];
    let mut expected = job.program.launches.first.clone();
    expected.arguments[2] = factor(6.0);
    job.program.launches.rest = vec![bench.launch("st_scale_in_place", doubled, N / 256)];
    job.task.checks.references =
        vec![ReferenceRun { launches: expected.into(), unfused: None, outputs: vec![0] }];
    job.task.trials = Some(plan(20));
    let outcome = bench.succeed(job.clone()).await?;
    ensure(passed(&outcome), || format!("{:?}", outcome.told.checks))?;
    ensure(outcome.told.samples_ms.len() == 20, || "not all of it was timed".to_owned())?;
    job.program.launches.rest.clear();
    let outcome = bench.run(job).await?;
    ensure(!passed(&outcome), || "the second launch is not needed".to_owned())?;
    Ok("two launches of one module, verified in 20 trials".to_owned())
}

async fn inout_is_restored(bench: &Bench) -> Result<String, String> {
    let ones = BufferContent::Init(Box::new(init(InitKind::Ones)));
    let buffers = vec![buffer("data", Dtype::Float32, 1 << 20, Role::Inout, ones)];
    let factor = Argument::Scalar(2f32.to_ne_bytes().to_vec());
    let arguments = vec![Argument::Buffer(0), factor, word(N)];
    let mut job = bench.job(bench.launch("st_scale_in_place", arguments, N / 256), buffers);
    job.task.trials = Some(plan(20));
    let outcome = bench.succeed(job).await?;
    let words = bench.words(&outcome, 0)?;
    let two = 2f32.to_bits();
    ensure(words.iter().all(|&bits| bits == two), || {
        "launches saw each other's result".to_owned()
    })?;
    Ok("20 launches in place each saw the same data".to_owned())
}

async fn input_modified(bench: &Bench) -> Result<String, String> {
    let mut job = scale_job(bench);
    job.program.launches.first.symbol = "st_change_input".to_owned();
    job.program.launches.first.arguments.remove(2);
    let outcome = bench.run(job).await?;
    let failure = outcome.failure.ok_or("the change was not noticed")?;
    ensure(failure.code == FailureCode::InputModified, || failure.code.to_string())?;
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
    ensure(many.printed.contains("not kept"), || {
        "the text does not mention that it was cut".to_owned()
    })?;
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
    let refused = refused.ok_or("more shared memory than the device has was accepted")?;
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
    let huge = buffer("out", Dtype::Float32, 1 << 43, Role::Output, BufferContent::Undefined);
    let launch = bench.launch("st_nothing", vec![Argument::Buffer(0)], 1);
    fails_with(bench, bench.job(launch, vec![huge]), &[FailureCode::OutOfMemory]).await
}

async fn illegal_address(bench: &Bench) -> Result<String, String> {
    let launch = bench.launch("st_null", vec![Argument::Buffer(0)], 1);
    fails_with(bench, bench.job(launch, vec![counters(1)]), &[FailureCode::IllegalAddress]).await
}

async fn misaligned_address(bench: &Bench) -> Result<String, String> {
    let launch = bench.launch("st_misaligned", vec![Argument::Buffer(0)], 1);
    fails_with(bench, bench.job(launch, vec![counters(4)]), &[FailureCode::MisalignedAddress]).await
}

async fn trap(bench: &Bench) -> Result<String, String> {
    let launch = bench.launch("st_trap", vec![Argument::Buffer(0)], 1);
    let codes = [FailureCode::LaunchFailed, FailureCode::IllegalInstruction];
    fails_with(bench, bench.job(launch, vec![counters(1)]), &codes).await
}

/// Checks that the job fails with one of `codes`, and that the next evaluation works.
pub(super) async fn fails_with(
    bench: &Bench,
    job: WorkerJob<EvaluatePlan>,
    codes: &[FailureCode],
) -> Result<String, String> {
    let failure = bench.run(job).await?.failure.ok_or("it did not fail")?;
    ensure(codes.contains(&failure.code), || format!("{}: {}", failure.code, failure.message))?;
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
    ensure(failure.code == FailureCode::Timeout, || {
        format!("{}: {}", failure.code, failure.message)
    })?;
    ensure(gone < limit + Duration::from_secs(1), || format!("it took {gone:?}"))?;
    let ms = next_evaluation(bench).await?;
    Ok(format!("gone after {gone:.1?}; the next evaluation took {ms:.1} ms"))
}

async fn fresh_process(bench: &Bench) -> Result<String, String> {
    let lease = bench.fleet.lease(&crate::queue::LeaseNeeds::default()).await;
    let mut lease = lease.map_err(|error| error.to_string())?;
    let limit = Duration::from_secs(60);
    for _ in 0..2 {
        let outcome = lease.run(scale_job(bench), limit, true, &|_| ()).await;
        ensure(passed(&outcome), || format!("{:?}", outcome.failure))?;
    }
    Ok("two evaluations, each in a separate process".to_owned())
}
