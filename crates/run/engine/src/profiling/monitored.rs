//! The driver's monitoring of the whole GPU while an evaluation's kernel runs repeatedly.

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

/// Time between two readings, in milliseconds: twice the time that a reading needs, to halve the
/// noise.
const WINDOW_MS: u32 = 200;

/// Maximum time for a worker to become ready, in addition to the timeout of the request.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Usual total time in milliseconds. It includes the start of a worker, the time until readings
/// cover only the kernel, and the time between the readings. Restoring inputs adds half a second.
pub(crate) const USUAL_MS: f64 = 780.0;

/// Returns the metrics that monitoring reads while the request's kernel runs in a separate process.
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
        return Err(Cause::NoData.because("it supplies none of the requested metrics"));
    }
    let job = prepared.job.with(MonitorPlan { window_ms: WINDOW_MS });
    let limit = START_LIMIT + Duration::from_secs_f64(request.timeout);
    let limit = limit.min(host.tool_limit());
    let outcome = own_worker(lease, &prepared.job.directory, job, "gpm", limit).await?;
    if let Some(failure) = &outcome.failure {
        return Err(of_failure(failure));
    }
    let Some(facts) = &outcome.told.facts else {
        return Err(Cause::Unknown.because("the worker reported nothing about the monitoring"));
    };
    let driver = outcome.told.settings.as_ref().and_then(|settings| settings.driver.as_deref());
    gpm::collected(facts, &prepared.job.program.launches.first.symbol, driver)
}
