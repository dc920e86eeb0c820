//! Checks that a job sees no data of the previous job.

use super::bench::{Bench, buffer, counters, word};
use super::checks::{EXACT, ensure, fails_with};
use crate::protocol::{
    Argument, BufferContent, EvaluatePlan, KernelLaunch, ReferenceRun, Tolerances, WorkerJob,
};
use warpgauge_contract::Role;
use warpgauge_model::FailureCode;
use warpgauge_tensor::Dtype;

pub(super) async fn secrets_in_global_memory(bench: &Bench) -> Result<String, String> {
    let words = 1u32 << 20;
    let secret =
        buffer("secret", Dtype::Uint64, words.into(), Role::Output, BufferContent::Undefined);
    let hide = bench.launch("st_hide_global", vec![Argument::Buffer(0), word(words)], 1);
    let mut hide = bench.job(hide, vec![secret]);
    hide.task.keep_outputs.clear();
    bench.succeed(hide).await?;
    let seek = bench.launch("st_seek_global", vec![Argument::Buffer(0)], 1);
    let seek = bench.job(seek, vec![counters(1)]);
    if bench.emulated() {
        // The emulator checks every access: reading outside a buffer is a fault.
        return fails_with(bench, seek, &[FailureCode::IllegalAddress]).await;
    }
    found_nothing(bench, seek).await
}

pub(super) async fn secrets_in_shared_memory(bench: &Bench) -> Result<String, String> {
    let bytes = bench.device.max_shared_optin_bytes;
    let blocks = 4 * bench.device.multiprocessors;
    let arguments = vec![Argument::Buffer(0), word(bytes / 8)];
    let mut hide = bench.launch("st_hide_shared", arguments, blocks);
    hide.shared_bytes = bytes;
    let mut seek = hide.clone();
    seek.symbol = "st_seek_shared".to_owned();
    hidden_from_the_next(bench, hide, seek).await
}

pub(super) async fn secrets_in_local_memory(bench: &Bench) -> Result<String, String> {
    let blocks = 16 * bench.device.multiprocessors;
    let hide = bench.launch("st_hide_local", vec![Argument::Buffer(0)], blocks);
    let mut seek = hide.clone();
    seek.symbol = "st_seek_local".to_owned();
    hidden_from_the_next(bench, hide, seek).await
}

/// Checks that a job that runs `seek` sees no data of a job that ran `hide`. As a control, `seek`
/// also runs without scrubbing, as the reference kernel of the same job.
async fn hidden_from_the_next(
    bench: &Bench,
    hide: KernelLaunch,
    seek: KernelLaunch,
) -> Result<String, String> {
    let words = u64::from(hide.grid[0]);
    let mut control = bench.job(hide.clone(), vec![counters(words)]);
    control.task.checks.references =
        vec![ReferenceRun { launches: seek.clone().into(), unfused: None, outputs: vec![0] }];
    control.task.checks.tolerances = Tolerances(vec![(0, EXACT)]);
    let control = bench.succeed(control).await?;
    let seen =
        control.told.checks.first().and_then(|check| check.comparison.first_mismatches.first());
    let seen = seen.map_or("0", |mismatch| mismatch.expected.as_str()).to_owned();
    bench.succeed(bench.job(hide, vec![counters(words)])).await?;
    let text = found_nothing(bench, bench.job(seek, vec![counters(words)])).await?;
    Ok(format!("{text}; unscrubbed, {seen} words would have been"))
}

async fn found_nothing(bench: &Bench, job: WorkerJob<EvaluatePlan>) -> Result<String, String> {
    let before = bench.fleet.devices().first().map(|device| device.restarts);
    let outcome = bench.succeed(job).await?;
    let found = bench.words(&outcome, 0)?.first().copied();
    ensure(found == Some(0), || format!("{found:?} words of the previous job were seen"))?;
    let after = bench.fleet.devices().first().map(|device| device.restarts);
    let same = if before == after { "" } else { " (a worker was replaced in between)" };
    Ok(format!("no data of the previous job was seen{same}"))
}
