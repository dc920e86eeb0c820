//! A sweep: one contract, evaluated at every point of its axes. The sweep is one job, and its
//! points are evaluations.

use std::sync::Arc;
use std::time::Instant;

use futures_util::{FutureExt, StreamExt};

use crate::backend::{Evaluator, Purpose};
use crate::clock::ms;
use crate::engine::Engine;
use crate::error::{self, ExecError};
use crate::progress::{ActiveOrder, ProgressEvent};
use warpgauge_contract::{ContractLimits, EvaluateRequest, SweepPlan, SweepRequest};
use warpgauge_executor::plan_sweep;
use warpgauge_job_views::SweepEvent;
use warpgauge_report::{
    DeviceReport, EvaluateResponse, ResponseStatus, SweepPoint, SweepResponse, SweepStarted,
    SweepStatus, SweepTable,
};

mod names;
mod points;

/// Approximate maximum size of the reports in one response, in bytes.
const MAX_REPORT_BYTES: usize = 64 << 20;

/// Evaluates every point, `lanes` points at once.
pub(crate) async fn run(
    engine: &Engine,
    job: &ActiveOrder<'_>,
    request: SweepRequest,
    lanes: usize,
) -> Result<SweepResponse, ExecError> {
    let arrived = Instant::now();
    let plan = Arc::new(plan_sweep(engine.host.limits.clone(), request).await?);
    job.points(0, plan.points());
    job.emit(ProgressEvent::Sweep(SweepEvent::Started(SweepStarted {
        job_id: job.id().to_owned(),
        points: plan.points(),
        axes: plan.axes().to_vec(),
    })));
    let done = all_points(engine, job, &plan, lanes.max(1)).await?;
    Ok(answer(job.id(), &plan, done, arrived))
}

/// Returns the contract of a point with all values inserted. Blocking.
fn whole(
    plan: &SweepPlan,
    index: usize,
    limits: &ContractLimits,
) -> Result<EvaluateRequest, ExecError> {
    let mut request = plan.request(index).map_err(error::invalid)?;
    names::put_into(&mut request, plan, limits)?;
    Ok(request)
}

/// Results of the points so far.
#[derive(Default)]
struct Done {
    points: Vec<SweepPoint>,
    devices: Vec<DeviceReport>,
}

async fn all_points(
    engine: &Engine,
    job: &ActiveOrder<'_>,
    plan: &Arc<SweepPlan>,
    lanes: usize,
) -> Result<Done, ExecError> {
    let mut done = Done::default();
    let mut report_bytes = 0;
    let evaluations = (0..plan.points()).map(|index| point(engine, job, plan, index).boxed());
    let mut evaluations = futures_util::stream::iter(evaluations).buffered(lanes);
    while let Some(evaluated) = evaluations.next().await {
        let (mut point, report) = evaluated?;
        job.points(done.points.len() + 1, plan.points());
        job.emit(ProgressEvent::Sweep(SweepEvent::Point(Box::new(point.clone()))));
        if let Some(report) = report {
            let device = report.device.as_ref();
            done.devices.extend(device.filter(|it| !done.devices.contains(it)).cloned());
            report_bytes += weight(&report);
            if plan.include_reports && report_bytes <= MAX_REPORT_BYTES {
                point.report = Some(report);
            }
        }
        done.points.push(point);
    }
    Ok(done)
}

/// Evaluates one point. A failure does not end the sweep, unless the cause is that the service
/// shuts down.
async fn point(
    engine: &Engine,
    job: &ActiveOrder<'_>,
    plan: &Arc<SweepPlan>,
    index: usize,
) -> Result<(SweepPoint, Option<Box<EvaluateResponse>>), ExecError> {
    let arrived = Instant::now();
    let values = plan.values(index);
    let expanded = {
        let (plan, limits) = (Arc::clone(plan), engine.host.limits.clone());
        tokio::task::spawn_blocking(move || whole(&plan, index, &limits)).await
    };
    let expanded = expanded.map_err(|error| error::internal("expanding a point", &error));
    let (work, named, evaluated) = match expanded.flatten() {
        Ok(request) => {
            let named = (request.matrices.clone(), request.tensors.clone());
            (request.work.clone(), named, engine.evaluate(job, request, Purpose::Rank).await)
        }
        Err(error) => (None, Default::default(), Err(error)),
    };
    match evaluated {
        Ok(report) => {
            let mut point = points::evaluated(index, values, &report, work.as_ref());
            (point.matrices, point.tensors) = named;
            Ok((point, Some(Box::new(report))))
        }
        Err(ExecError::ShuttingDown) => Err(ExecError::ShuttingDown),
        Err(error) => {
            let mut point = points::failed(index, values, &error);
            point.total_ms = ms(arrived);
            Ok((point, None))
        }
    }
}

fn answer(job_id: &str, plan: &SweepPlan, done: Done, arrived: Instant) -> SweepResponse {
    let Done { points, devices } = done;
    let broken = points.iter().any(|point| point.status == SweepStatus::Error);
    SweepResponse {
        job_id: job_id.to_owned(),
        status: if broken { ResponseStatus::Error } else { ResponseStatus::Success },
        verdict: points.iter().filter_map(|point| point.verdict).max(),
        axes: plan.axes().to_vec(),
        counts: points::counts(&points),
        table: SweepTable::of(plan.axes(), &points),
        best: points::best(&points, &devices),
        points,
        devices,
        total_ms: ms(arrived),
    }
}

/// Returns the approximate size of a report in memory, in bytes.
fn weight(report: &EvaluateResponse) -> usize {
    let outputs = report.outputs.values().map(|o| o.data_b64.as_ref().map_or(0, String::len));
    let samples = report.measurement.as_ref().map_or(0, |m| m.samples_ms.len() * 4);
    let log = report.compile.as_ref().map_or(0, |c| c.log.len());
    1024 + outputs.sum::<usize>() + samples + log + report.printed.as_ref().map_or(0, String::len)
}
