//! Hardware metrics of a torch kernel's launches, collected by Nsight Compute around a separate
//! runner.
//!
//! Another process judges the kernel again in that runner, with new references. Then the kernel
//! makes one call under the profiler. The profiler reads values in the runner's process, where the
//! submission could change them. The values are therefore only explanations and do not affect the
//! verdict.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::evaluate::{Evaluation, Judgement, most_answer_bytes};
use super::process::{Answer, Order};
use super::runs::{Entered, Leash};
use crate::clock::ms;
use crate::error::ExecError;
use crate::host::Host;
use crate::profiling::nsight;
use crate::progress::ActiveOrder;
use warpgauge_metrics::DeviceMetrics;
use warpgauge_model::{Cause, Unavailable};
use warpgauge_nsight::ToolFile;
use warpgauge_nsight::ncu::{NcuTarget, ProgramServer, ServedRun};
use warpgauge_report::EvaluateResponse;
use warpgauge_torch::{Alone, Killer, Runner};

/// Judges the runner that Nsight Compute has started.
struct Counting<'a> {
    entered: &'a Entered<'a>,
    order: Arc<Order>,
    /// Number of references to run beside the candidate.
    references: usize,
    most_bytes: u64,
    /// Runners that must end before the device counts as quiet again.
    ending: &'a Mutex<Vec<Killer>>,
    /// Reason why the last run made no call under the profiler.
    failed: Mutex<Option<String>>,
}

impl std::fmt::Debug for Counting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counting").field("references", &self.references).finish_non_exhaustive()
    }
}

impl ProgramServer for Counting<'_> {
    fn begin(&self, directory: &Path) -> Result<ServedRun<'_>, Unavailable> {
        let (program, stdin, alone) =
            self.entered.side.runners.alone(directory).map_err(|error| {
                Cause::Unknown.because(format!("a runner cannot be started: {error}"))
            })?;
        let serving = async move {
            let failed = self.served(alone).await.err();
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
        };
        Ok(ServedRun { program, stdin, serving: Box::pin(serving) })
    }
}

impl Counting<'_> {
    /// Judges the runner, which makes its call under the profiler and ends.
    async fn served(&self, alone: Alone) -> Result<(), String> {
        let until = self.entered.deadline;
        let runner = tokio::task::spawn_blocking(move || alone.runner(until)).await;
        let runner = runner.map_err(|error| error.to_string())?;
        let runner = runner.map_err(|error| format!("PyTorch was not imported: {error}"))?;
        // If judging does not begin, dropping the leash kills the runner.
        let _leash = Leash(vec![runner.killer()]);
        let others = self.entered.runners(self.references).await;
        let mut runners = vec![runner];
        runners.extend(others.map_err(|error| error.to_string())?);
        let killers = runners.iter().map(Runner::killer);
        self.ending.lock().unwrap_or_else(PoisonError::into_inner).extend(killers);
        let judged = self.entered.judged(&self.order, runners, Vec::new(), self.most_bytes).await;
        match judged.answer {
            Ok(Answer::Evaluated(judgement)) => counted(*judgement),
            Ok(other) => Err(other.error().to_string()),
            Err(lost) => Err(lost.to_string()),
        }
    }
}

/// Checks that the profiler observed a call.
fn counted(judgement: Judgement) -> Result<(), String> {
    let Judgement { report, counted, .. } = judgement;
    if let Some(failure) = report.failure {
        return Err(failure.message);
    }
    if let Some(wrong) = report.kernel_exec_result.validation_error {
        return Err(format!("it was correct before, but not under the tool: {wrong}"));
    }
    counted.unwrap_or_else(|| Err("no call was made".to_owned()))
}

/// Returns whether the profiled program is the reason why there are no values. The program's own
/// error is then more informative.
fn is_of_call(why: &Unavailable) -> bool {
    matches!(
        why.cause(),
        Some(Cause::NoKernel | Cause::NoData | Cause::ApplicationFailed | Cause::Unknown)
    )
}

/// Adds the hardware metrics of one call to the report, or the reason why there are none.
pub(super) async fn add(
    host: &Host,
    job: &ActiveOrder<'_>,
    entered: &mut Entered<'_>,
    evaluation: &Evaluation,
    report: &mut EvaluateResponse,
) -> Result<(), ExecError> {
    let began = Instant::now();
    let directory = host.scratch.directory()?;
    let counted = counters_of(host, entered, evaluation, directory.path()).await;
    report.profile = Some(nsight::availability(counted.as_ref()));
    if let Ok((metrics, artifacts)) = counted {
        report.kernel_exec_result.metadata.device_metrics = Some(metrics);
        job.keep_files(&artifacts);
    }
    report.timings.profile += ms(began);
    Ok(())
}

async fn counters_of(
    host: &Host,
    entered: &mut Entered<'_>,
    evaluation: &Evaluation,
    directory: &Path,
) -> Result<(DeviceMetrics, Vec<ToolFile>), Unavailable> {
    let none = || Cause::UnsupportedDevice.because("there is no device to profile");
    let device = entered.device.clone().ok_or_else(none)?;
    let mut held = entered.held.take().ok_or_else(none)?;
    // The profiler has a separate time limit, like every tool.
    entered.deadline = Instant::now() + host.tool_limit();
    let (lease, ending) = held.parts();
    let lease = lease.ok_or_else(none)?;
    let counting = Counting {
        entered,
        order: Arc::new(Order::Evaluate(Box::new(evaluation.counting()))),
        references: evaluation.case.oracles.len(),
        most_bytes: most_answer_bytes(&host.limits),
        ending,
        failed: Mutex::default(),
    };
    let launches = nsight::LAUNCHES;
    let subject = NcuTarget::Served { service: &counting, writes: directory, launches };
    let of = (&evaluation.case.request, &device);
    let counted = nsight::metrics_of_launches(host, lease, of, subject, directory, "call").await;
    let failed = counting.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    entered.held = Some(held);
    match (counted, failed) {
        (Err(why), Some(_)) if !is_of_call(&why) => Err(why),
        (_, Some(failed)) => Err(Cause::ApplicationFailed
            .because(format!("no call was made that Nsight Compute could profile: {failed}"))),
        (counted, None) => counted,
    }
}
