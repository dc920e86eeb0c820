//! Nsight Compute and Nsight Systems round an evaluation's kernel.

use std::collections::BTreeSet;

use super::local::LocalExecutor;
use super::prepare::Prepared;
use warpgauge_contract::EvaluateRequest;
use warpgauge_model::Unavailable;
use warpgauge_profile::{ClockControl, Collected};
use warpgauge_tools::{Artifact, ncu};
use warpgauge_worker::Lease;

/// Counters of one launch, from Nsight Compute.
pub(super) async fn counters(
    shared: &LocalExecutor,
    lease: &mut Lease,
    request: &EvaluateRequest,
    prepared: &Prepared,
    names: &BTreeSet<&'static str>,
) -> Result<(Collected, Vec<Artifact>), Unavailable> {
    let asked = ncu::ProfileRun {
        job: &prepared.job,
        directory: &prepared.job.directory,
        metrics: ncu::Metrics::Named(names.iter().map(|name| (*name).to_owned()).collect()),
        cache: request.measure.cache,
        clocks: clocks(&shared.config.tools.clock_control),
        time_limit: shared.tool_limit(),
    };
    let profiled = ncu::profile(&shared.tools, lease, &asked).await?;
    let collected = ncu::collected(&profiled, &names.iter().copied().collect())?;
    Ok((collected, profiled.artifacts))
}

/// The configuration's word, which was checked when it was read.
fn clocks(word: &str) -> ClockControl {
    match word {
        "base" => ClockControl::Base,
        "boost" => ClockControl::Boost,
        _ => ClockControl::None,
    }
}
