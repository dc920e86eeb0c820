//! One contract at every point of its axes. The sweep is one job; its points are evaluations.

use std::sync::Arc;
use std::time::Instant;

use futures_util::{FutureExt, StreamExt};

use super::error::{self, ServiceError};
use super::jobs::{LiveJob, weight};
use super::run::{Admitted, Purpose, Shared, ms};
use super::swept;
use crate::contract::{self, ContractError, EvaluateRequest, Limits, SweepPlan, SweepRequest};
use crate::report::{
    DeviceReport, EvaluateResponse, ResponseStatus, SweepPoint, SweepResponse, SweepStarted,
    SweepStatus, SweepTable,
};

/// Bytes of reports that one answer carries, about.
const MAX_REPORT_BYTES: usize = 64 << 20;

/// News of a sweep on its way.
#[derive(Debug, Clone)]
pub enum SweepEvent {
    /// The sweep is valid and admitted.
    Started(SweepStarted),
    /// A point is done. Points come in order.
    Point(Box<SweepPoint>),
}

/// Who is told. Must not block.
pub type SweepEvents = Box<dyn Fn(SweepEvent) + Send + Sync>;

/// Evaluates every point, in the place that the caller holds and others while there are.
pub(super) async fn run(
    shared: &Shared,
    job: &LiveJob,
    request: SweepRequest,
    on_event: &SweepEvents,
) -> Result<SweepResponse, ServiceError> {
    let arrived = Instant::now();
    let lanes = more_lanes(shared)?;
    let plan = Arc::new(planned(shared, request).await?);
    job.points(0, plan.points());
    on_event(SweepEvent::Started(SweepStarted {
        job_id: job.id().to_owned(),
        points: plan.points(),
        axes: plan.axes().to_vec(),
    }));
    let done = points(shared, job, &plan, 1 + lanes.len(), on_event).await?;
    Ok(answer(job.id(), &plan, done, arrived))
}

/// Whether the sweep is valid.
pub(super) async fn check(shared: &Shared, request: SweepRequest) -> Result<(), ServiceError> {
    planned(shared, request).await.map(drop)
}

async fn planned(shared: &Shared, request: SweepRequest) -> Result<SweepPlan, ServiceError> {
    let limits = shared.limits.clone();
    tokio::task::spawn_blocking(move || plan(request, &limits))
        .await
        .map_err(|error| error::internal("planning the sweep", &error))?
        .map_err(error::invalid)
}

/// The evaluations that may run at once, beside the one that has a place: while the queue is at most
/// half full, two per device: one on it, and the next one compiling or waiting for it. So a sweep
/// never holds more than one place in the queue per device.
fn more_lanes(shared: &Shared) -> Result<Vec<Admitted>, ServiceError> {
    let mut lanes = Vec::new();
    while lanes.len() + 1 < 2 * shared.fleet.devices().len()
        && shared.admission.available_permits() > shared.admitted_at_most / 2
    {
        match shared.admit() {
            Ok(lane) => lanes.push(lane),
            Err(ServiceError::QueueFull { .. } | ServiceError::ShuttingDown) => break,
            Err(other) => return Err(other),
        }
    }
    Ok(lanes)
}

/// Checks the sweep. One that is not valid at any of its points is refused as a whole.
fn plan(request: SweepRequest, limits: &Limits) -> Result<SweepPlan, Vec<ContractError>> {
    let plan = SweepPlan::new(request, limits)?;
    let mut first = None;
    for index in 0..plan.points() {
        match checked(&plan, index, limits) {
            Ok(_) => return Ok(plan),
            Err(errors) => {
                first.get_or_insert(errors);
            }
        }
    }
    let mut errors = first.unwrap_or_default();
    for error in &mut errors {
        let values = plan.values(0);
        let at = values.iter().map(|(name, value)| format!("{name} = {value}"));
        let at = at.collect::<Vec<_>>().join(", ");
        error.message = format!("{} (at {at}, and no other point is valid)", error.message);
    }
    Err(errors)
}

fn checked(
    plan: &SweepPlan,
    index: usize,
    limits: &Limits,
) -> Result<EvaluateRequest, Vec<ContractError>> {
    let request = plan.request(index)?;
    contract::validate(&request, limits)?;
    Ok(request)
}

/// What the points came to.
#[derive(Default)]
struct Done {
    points: Vec<SweepPoint>,
    devices: Vec<DeviceReport>,
}

async fn points(
    shared: &Shared,
    job: &LiveJob,
    plan: &Arc<SweepPlan>,
    lanes: usize,
    on_event: &SweepEvents,
) -> Result<Done, ServiceError> {
    let mut done = Done::default();
    let mut report_bytes = 0;
    let evaluations = (0..plan.points()).map(|index| point(shared, job, plan, index).boxed());
    let mut evaluations = futures_util::stream::iter(evaluations).buffered(lanes);
    while let Some(evaluated) = evaluations.next().await {
        let (mut point, report) = evaluated?;
        job.points(done.points.len() + 1, plan.points());
        on_event(SweepEvent::Point(Box::new(point.clone())));
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

/// Evaluates one point. Its failures are its own; only the end of the service ends the sweep.
async fn point(
    shared: &Shared,
    job: &LiveJob,
    plan: &Arc<SweepPlan>,
    index: usize,
) -> Result<(SweepPoint, Option<Box<EvaluateResponse>>), ServiceError> {
    let arrived = Instant::now();
    let values = plan.values(index);
    let expanded = {
        let (plan, limits) = (Arc::clone(plan), shared.limits.clone());
        tokio::task::spawn_blocking(move || checked(&plan, index, &limits)).await
    };
    let expanded = expanded.map_err(|error| error::internal("writing out a point", &error));
    let (work, evaluated) = match expanded.and_then(|request| request.map_err(error::invalid)) {
        Ok(request) => {
            let work = request.work.clone();
            (work, shared.run(job, request, Purpose::Rank).await)
        }
        Err(error) => (None, Err(error)),
    };
    match evaluated {
        Ok(report) => {
            let point = swept::evaluated(index, values, &report, work.as_ref());
            Ok((point, Some(Box::new(report))))
        }
        Err(ServiceError::ShuttingDown) => Err(ServiceError::ShuttingDown),
        Err(error) => {
            let mut point = swept::failed(index, values, &error);
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
        axes: plan.axes().to_vec(),
        counts: swept::counts(&points),
        table: SweepTable::of(plan.axes(), &points),
        best: swept::best(&points, &devices),
        points,
        devices,
        total_ms: ms(arrived),
    }
}
