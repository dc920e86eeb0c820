//! Trials of the configurations of a kernel.

use warpgauge_compile::{Configuration, Constant, Tunable};
use warpgauge_contract::{EvaluateRequest, ReturnOutputs, Sanitize};
use warpgauge_model::DeviceInfo;
use warpgauge_report::{
    EvaluateResponse, KernelVerdict, Timings, TunedConfiguration, TunedOutcome,
};
use warpgauge_worker::Lease;

use super::choose;
use crate::backend::Purpose;
use crate::backends::device::DeviceBackend;
use crate::error::{self, ExecError};
use crate::host::Host;
use crate::prepare::{self, CompileOutcome, Compiled};
use crate::profiling::tool_runs::ToolRuns;
use crate::progress::ActiveOrder;
use crate::reporting::Ran;
use crate::reporting::assemble;

/// Maximum number of configurations that are tried.
pub(super) const MAX_CONFIGURATIONS: usize = 512;

/// Minimum warm-up of a configuration in a round, in seconds. A short warm-up suffices, because the
/// first configuration has already raised the clocks.
const WARMUP_S: f64 = 0.002;

/// A configuration of a kernel that is being tried.
pub(super) struct Contender {
    /// The configuration's entry in the tuning report.
    pub shown: TunedConfiguration,
    /// `None` if the configuration was eliminated.
    compiled: Option<Compiled>,
}

/// Compiles all configurations, in parallel as far as the compile stage allows.
pub(super) async fn compiled(
    host: &Host,
    job: &ActiveOrder<'_>,
    request: &EvaluateRequest,
    tunable: &Tunable,
    device: &DeviceInfo,
) -> Result<Vec<Contender>, ExecError> {
    let all = tunable.configurations.iter().map(async |configuration| {
        let mut request = request.clone();
        choose(&mut request.kernel, configuration.index);
        let outcome =
            prepare::compile(&host.compiler, &request, &device.target, job.owner()).await?;
        let mut contender = Contender { shown: shown(configuration), compiled: None };
        match outcome {
            CompileOutcome::Compiled(compiled) => contender.compiled = Some(*compiled),
            CompileOutcome::Failed(failure) => {
                contender.leave(TunedOutcome::NotCompiled, Some(failure.message));
            }
        }
        Ok(contender)
    });
    futures_util::future::join_all(all).await.into_iter().collect()
}

fn shown(configuration: &Configuration) -> TunedConfiguration {
    let value = |constant: &Constant| match constant {
        Constant::Bool(value) => (*value).into(),
        Constant::Int(value) => (*value).into(),
        Constant::Unsigned(value) => (*value).into(),
        Constant::Float(value) => (*value).into(),
        Constant::Text(value) => value.as_str().into(),
    };
    TunedConfiguration {
        index: configuration.index,
        meta: configuration.meta.iter().map(|(name, v)| (name.clone(), value(v))).collect(),
        num_warps: configuration.num_warps,
        num_stages: configuration.num_stages,
        num_ctas: configuration.num_ctas,
        maxnreg: configuration.maxnreg,
        // This entry is chosen unless another configuration proves faster.
        outcome: TunedOutcome::Chosen,
        reason: None,
        median_ms: None,
        launches: 0,
        rounds: 0,
        counted: None,
    }
}

impl Contender {
    /// Returns whether this configuration may still be chosen.
    pub(super) fn is_in(&self) -> bool {
        self.compiled.is_some()
    }

    /// Eliminates this configuration.
    pub(super) fn leave(&mut self, outcome: TunedOutcome, reason: Option<String>) {
        self.compiled = None;
        self.shown.outcome = outcome;
        self.shown.reason = reason;
    }

    /// Runs this configuration with `launches` timed launches, on a leased device.
    pub(super) async fn run(
        &mut self,
        backend: &DeviceBackend,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        lease: &mut Lease,
        launches: u32,
    ) -> Result<(), ExecError> {
        let Some(compiled) = self.compiled.clone() else { return Ok(()) };
        let request = self.trial(request, launches);
        let id = format!("{}-tune-{}", job.id(), self.shown.index);
        // A launch that does not fit is a fault of the configuration rather than of the contract,
        // like a compile error.
        let laid = match backend.lay_out(job, request, compiled, id, Purpose::Rank).await {
            Ok(laid) => laid,
            Err(ExecError::Invalid(problems)) => {
                let reason = problems.into_iter().next().map(|problem| problem.message);
                self.leave(TunedOutcome::Failed, reason);
                return Ok(());
            }
            Err(other) => return Err(other),
        };
        let mut run = laid.prepared.job.clone();
        run.task.lint = false;
        if let Some(trials) = &mut run.task.trials {
            // The evaluation of the chosen configuration has sealed launches, so trials need none.
            trials.sealed = 0;
        }
        let outcome = backend.run_task(job, &laid.request, run, lease).await;
        let device = lease.device().clone();
        let (request, prepared) = (laid.request, laid.prepared);
        let tool_runs = ToolRuns::default();
        let ran = Ran { request, prepared, outcome, tool_runs, device };
        let report = assemble::ran(job.id(), &ran, Timings::default());
        self.judge(report.map_err(|error| error::internal("trying a configuration", &error))?);
        Ok(())
    }

    /// Returns the request with which a round runs this configuration.
    fn trial(&self, request: &EvaluateRequest, launches: u32) -> EvaluateRequest {
        let mut trial = request.clone();
        choose(&mut trial.kernel, self.shown.index);
        trial.num_trials = Some(launches);
        trial.measure.min_warmup_time = Some(WARMUP_S);
        trial.profile = None;
        trial.sanitize = Sanitize::Off;
        trial.return_outputs = ReturnOutputs::None;
        trial.keep_outputs.clear();
        trial
    }

    fn judge(&mut self, report: EvaluateResponse) {
        let result = &report.kernel_exec_result;
        self.shown.rounds += 1;
        if let Some(failure) = &report.failure {
            self.leave(TunedOutcome::Failed, Some(failure.message.clone()));
            return;
        }
        // A weak contract is not the configuration's fault.
        if KernelVerdict::of(&report, true) > KernelVerdict::Weak {
            let reason = result.validation_error.clone();
            self.leave(TunedOutcome::Wrong, reason);
            return;
        }
        let stats = result.runtime_stats.as_ref();
        self.shown.median_ms = stats.map(|stats| stats.median);
        let samples = report.measurement.as_ref().map_or(0, |measured| measured.samples_ms.len());
        self.shown.launches = u32::try_from(samples).unwrap_or(u32::MAX);
        self.shown.counted = report.counted;
    }
}
