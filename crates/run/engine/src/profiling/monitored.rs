//! The driver's monitoring of the whole GPU while an evaluation's kernel runs again and again.

use std::time::Duration;

use crate::host::Host;
use crate::prepare::Prepared;
use crate::profiling::profiled::of_failure;
use warpgauge_contract::EvaluateRequest;
use warpgauge_metrics::{CollectedMetrics, Selection, gpm};
use warpgauge_model::{Cause, Unavailable};
use warpgauge_nsight::own_worker;
use warpgauge_worker::Lease;
use warpgauge_worker::protocol::MonitorPlan;

/// Time between two readings: twice what they need, for half the noise.
const WINDOW_MS: u32 = 200;

/// Longest time for a worker to become ready, beyond what the request allows its kernel.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Time that it takes in all, milliseconds: the start of a worker, the time until readings are of
/// the kernel alone, and the window. Half a second more where inputs are put back.
pub(crate) const USUAL_MS: f64 = 780.0;

/// What monitoring tells of the request's kernel, in a process of its own.
pub(crate) async fn metrics(
    host: &Host,
    lease: &mut Lease,
    request: &EvaluateRequest,
    prepared: &Prepared,
    selection: &Selection,
) -> Result<CollectedMetrics, Unavailable> {
    if let Some(why) = &lease.device().unmonitored {
        return Err(why.clone());
    }
    if !gpm::tells(selection) {
        return Err(Cause::NoData.because("it tells none of the metrics that were asked for"));
    }
    let job = prepared.job.with(MonitorPlan { window_ms: WINDOW_MS });
    let limit = START_LIMIT + Duration::from_secs_f64(request.timeout);
    let limit = limit.min(host.tool_limit());
    let outcome = own_worker(lease, &prepared.job.directory, job, "gpm", limit).await?;
    if let Some(failure) = &outcome.failure {
        return Err(of_failure(failure));
    }
    let Some(facts) = &outcome.told.facts else {
        return Err(Cause::Unknown.because("the worker told nothing of the monitoring"));
    };
    let driver = outcome.told.settings.as_ref().and_then(|settings| settings.driver.as_deref());
    gpm::collected(facts, &prepared.job.program.launches.first.symbol, driver)
}
