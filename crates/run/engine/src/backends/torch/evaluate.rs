//! One evaluation of a torch kernel from contract to report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::account::{Account, Phase};
use super::expectations::{Expectations, ReferencePlayer};
use super::fault::{Failed, Stage};
use super::foreign::expected_from_device;
use super::gpu::beside::{Compared, SideBySide};
use super::gpu::calls::Extras;
use super::gpu::{Gpu, JudgeDevice};
use super::inputs::Inputs;
use super::judge::{Judge, Judged};
use super::oracles::{Oracle, data_of, oracles};
use super::player::{CANDIDATE, Player, submission_for};
use super::players::Players;
use super::process::{Answer, Order};
use super::report::{Outcome, Setting, assembled};
use super::runs::{Entered, Judged as JudgedOrder, no_verdict};
use super::timing::{Enough, Plan};
use super::verification::AskedOutputs;
use super::{TorchBackend, counters};
use crate::backend::Evaluator;
use crate::backend::Purpose;
use crate::clock::ms;
use crate::error::{ExecError, Problem, internal};
use crate::profiling::nsight;
use crate::profiling::timeline;
use crate::progress::{ActiveOrder, ProgressEvent};
use crate::reporting::{Additions, finished, kept_outputs};
use warpgauge_contract::{
    ContractLimits, EvaluateRequest, InputChoice, KernelRuntime, ReturnOutputs,
};
use warpgauge_model::{Image, ImageFormat, JobStage};
use warpgauge_report::EvaluateResponse;
use warpgauge_torch::{
    DeviceNoise, JudgeError, Queues, RunnerFault, RunnerSession, TorchSubmission,
};
use warpgauge_validate::ResolvedTolerance;

/// Default number of timed calls.
const TRIALS: u32 = 100;

/// Default time limit for starting timed calls, in seconds.
const MAX_TIME_S: f64 = 1.0;

/// Number of empty requests to a runner; their median is the time of an empty call.
const IDLE: usize = 5;

/// Maximum size of a report without its outputs, in bytes.
const MOST_REPORT_BYTES: u64 = 64 << 20;

/// One case for the judge: a submission, its references, and the request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Case {
    pub submission: TorchSubmission,
    pub oracles: Vec<Oracle>,
    pub request: EvaluateRequest,
    pub plan: Option<Plan>,
    /// Plan for timing the candidate and its only reference in turns. Only for a device.
    pub beside: Option<SideBySide>,
    /// Whether to make one call that is observed by the profiler around the candidate's runner.
    pub count: bool,
    /// Whether to compute gradients.
    pub backward: bool,
    /// Whether the submission is the reference of a comparison.
    pub is_reference: bool,
    pub seed: u64,
    /// Tolerances of an earlier evaluation beside the same reference, by output.
    pub tolerances: BTreeMap<String, ResolvedTolerance>,
}

impl Case {
    /// Returns the time allowed for timing both sides in turns, in addition to `timeout`.
    fn beside_time(&self) -> Duration {
        self.beside.as_ref().map_or(Duration::ZERO, |beside| beside.max_time)
    }
}

/// Result of judging a case.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Judgement {
    pub report: EvaluateResponse,
    /// Paired times of the candidate and the reference, if both were timed.
    pub compared: Option<Compared>,
    /// Whether the profiler observed a call, or the reason why not; `None` if no such call was
    /// requested.
    pub counted: Option<Result<(), String>>,
    /// Whether an overloaded machine may have caused the failure. A retry is then worthwhile.
    pub unsure: bool,
    /// Tolerances that later evaluations beside the same reference may reuse.
    pub tolerances: BTreeMap<String, ResolvedTolerance>,
}

impl TorchBackend {
    /// Evaluates a torch kernel and returns the report.
    pub(super) async fn evaluate_torch(
        &self,
        evaluator: &dyn Evaluator,
        job: &ActiveOrder<'_>,
        mut request: EvaluateRequest,
        purpose: Purpose,
    ) -> Result<EvaluateResponse, ExecError> {
        let arrived = Instant::now();
        if purpose == Purpose::Execute {
            kept_outputs::return_something(&mut request);
        } else if self.host.config.devices.device_metrics {
            request.profile.get_or_insert_default();
        }
        let from_device =
            request.expected.values().filter_map(|expected| expected.kernel.as_deref());
        let beside_device =
            from_device.into_iter().any(|one| one.family().runtime() == KernelRuntime::Worker);
        let began = Instant::now();
        expected_from_device(evaluator, job, &mut request).await?;
        let expecting_ms = ms(began);
        job.stage(JobStage::WaitingForDevice);
        let mut entered = match beside_device {
            true => self.enter(request.timeout, job.owner()).await?,
            false => self.enter_for(&request, job.owner()).await?,
        };
        let plan = (purpose != Purpose::Execute).then(|| plan_of(&request));
        let io = request.kernel.io.as_ref().filter(|_| beside_device);
        let case = Case {
            submission: submission_for(&request.kernel, CANDIDATE, io),
            oracles: oracles(&request),
            plan,
            beside: None,
            count: false,
            backward: request.kernel.wants_backward(),
            is_reference: false,
            seed: seed(),
            tolerances: BTreeMap::new(),
            request,
        };
        let mut report = self.judge_torch(job, &mut entered, case, arrived).await?.report;
        report.timings.verify += expecting_ms;
        report.timings.set_total(report.timings.total);
        Ok(report)
    }

    /// Judges one case with newly started runners.
    pub(super) async fn judge_torch(
        &self,
        job: &ActiveOrder<'_>,
        entered: &mut Entered<'_>,
        case: Case,
        arrived: Instant,
    ) -> Result<Judgement, ExecError> {
        let began = Instant::now();
        let _room = self.host.room.share(case.request.decoded_bytes()).await?;
        let beside = case.beside_time();
        entered.deadline += beside;
        let (sides, timeout) =
            (1 + case.oracles.len(), case.request.timeout + beside.as_secs_f64());
        let allow_weak = case.request.allow_weak;
        let others = case.oracles.iter().map(|oracle| &oracle.submission);
        let sources = others.chain([&case.submission]).map(|one| one.source.as_str());
        entered.queues = Queues::of(sources);
        let runners = entered.runners(sides).await?;
        let asked = Instant::now();
        let (queue, mut start) = (entered.queue, entered.start + (asked - began));
        job.stage(JobStage::Running);
        let order = Arc::new(Order::Evaluate(Box::new(Evaluation {
            job_id: job.id().to_owned(),
            setting: Setting {
                versions: entered.versions.clone(),
                threads: entered.threads(),
                seed: case.seed,
                device: entered.device.clone(),
                backward: case.backward,
                not_on_gpu: entered.not_on_gpu.clone(),
            },
            image: entered.image.clone(),
            case,
            most_output_bytes: self.host.limits.max_output_bytes,
        })));
        let most = most_answer_bytes(&self.host.limits);
        let judged =
            entered.judged_surely(&order, (sides, runners), timeout, most, || Ok(Vec::new()));
        let JudgedOrder { answer, extensions, waited } = judged.await?;
        start += waited;
        let judging = asked.elapsed() - waited;
        let (mut report, compared, tolerances) = match (answer, &*order) {
            (Ok(Answer::Evaluated(judgement)), Order::Evaluate(evaluation)) => {
                let Judgement { mut report, compared, tolerances, .. } = *judgement;
                let handed_over = judging.as_secs_f64() * 1e3 - report.timings.named();
                report.timings.report += handed_over.max(0.0);
                let mut report = self.keep_returned(job, &evaluation.case.request, report).await?;
                if evaluation.wants_counters(&report) {
                    job.stage(JobStage::Profiling);
                    counters::add(&self.host, job, entered, evaluation, &mut report).await?;
                }
                (report, compared, tolerances)
            }
            (Ok(other), _) => return Err(other.error()),
            (Err(JudgeError::TimedOut), Order::Evaluate(evaluation)) => {
                let mut report = evaluation.timed_out()?;
                report.timings.execute = judging.as_secs_f64() * 1e3;
                (report, None, BTreeMap::new())
            }
            (Err(lost), _) => return Err(no_verdict(lost)),
        };
        report.timings.queue += queue.as_secs_f64() * 1e3;
        report.timings.start += start.as_secs_f64() * 1e3;
        let additions = Additions { extensions, ..Additions::default() };
        let report = finished(report, allow_weak, ms(arrived), additions);
        Ok(Judgement { report, compared, counted: None, unsure: false, tolerances })
    }

    /// Writes the requested outputs to files, and emits an event for each. The returned report no
    /// longer contains outputs that were requested only as files.
    async fn keep_returned(
        &self,
        job: &ActiveOrder<'_>,
        request: &EvaluateRequest,
        mut report: EvaluateResponse,
    ) -> Result<EvaluateResponse, ExecError> {
        if request.keep_outputs.is_empty() {
            return Ok(report);
        }
        let directory = self.host.scratch.directory()?;
        let names: Vec<String> = request.keep_outputs.keys().cloned().collect();
        let shown = request.return_outputs.clone();
        let taking = tokio::task::spawn_blocking(move || {
            let files = kept_outputs::taken_out(&names, &shown, &mut report, directory.path());
            (report, files, directory)
        });
        let (report, files, _directory) =
            taking.await.map_err(|error| internal("unpacking the outputs", &error))?;
        for (name, file) in files {
            job.emit(ProgressEvent::Output { name, file });
        }
        Ok(report)
    }
}

/// Returns the maximum size of the judge's answer, in bytes. Outputs in it are in base64.
pub(super) fn most_answer_bytes(limits: &ContractLimits) -> u64 {
    limits.max_output_bytes.saturating_mul(3) / 2 + MOST_REPORT_BYTES
}

/// Returns a new random seed.
pub(super) fn seed() -> u64 {
    warpgauge_torch::Secret::default().bits() >> 32
}

/// Returns the number of calls to time, and the time limit for them.
pub(super) fn plan_of(request: &EvaluateRequest) -> Plan {
    let unbounded = request.num_trials.map(|_| request.timeout);
    let seconds = request.measure.max_time.or(unbounded).unwrap_or(MAX_TIME_S);
    Plan {
        trials: request.num_trials.unwrap_or(TRIALS),
        max_time: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        fresh: request.measure.inputs == InputChoice::Fresh,
        enough: if request.num_trials.is_none() { Enough::Precise } else { Enough::All },
    }
}

/// Order to a judge process: one case, and facts that its report contains besides the verdict.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Evaluation {
    job_id: String,
    setting: Setting,
    pub(super) case: Case,
    most_output_bytes: u64,
    /// Image of the judge's kernels, which write inputs and compare outputs; `None` on the CPU.
    image: Option<Kernels>,
}

/// An image, encoded for the message to the judge process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kernels {
    base64: String,
    format: ImageFormat,
}

impl Kernels {
    pub(super) fn of(image: &Image) -> Self {
        Self { base64: STANDARD.encode(&image.bytes), format: image.format }
    }

    fn image(&self) -> Result<Image, String> {
        let bytes = STANDARD.decode(&self.base64).map_err(|error| error.to_string())?;
        Ok(Image { bytes: bytes.into(), format: self.format })
    }
}

impl Evaluation {
    /// Judges the case. Blocking.
    pub(super) fn carried_out(
        self,
        sessions: Vec<RunnerSession>,
        device: Option<&mut JudgeDevice>,
        (noise, mut account): (Option<DeviceNoise>, Account),
    ) -> Result<Judgement, ExecError> {
        let Self { job_id, setting, case, most_output_bytes, image } = self;
        let gpu = match (device, image) {
            (Some(device), Some(image)) => {
                let image = image.image().map_err(no_device)?;
                Some(device.with(&image).map_err(no_device)?)
            }
            _ => None,
        };
        let noise = match gpu {
            Some(gpu) => gpu.with_memory(noise).map_err(no_device)?,
            None => noise,
        };
        account.spent_on(Phase::Starting);
        let (outcome, mut account) = judged(sessions, &case, (gpu, noise), account)?;
        if let Some(error) = outcome.of_environment().filter(|_| !case.count) {
            return Err(error);
        }
        let unsure = outcome.is_unsure();
        let mut outcome = outcome.within(&case.request, most_output_bytes);
        let compared = outcome.judged.observed.compared.take();
        let counted = outcome.judged.observed.counted.take();
        let tolerances = std::mem::take(&mut outcome.judged.findings.tolerances);
        let report = assembled(&job_id, &case.request, setting, outcome);
        let mut report = report.map_err(|error| internal("encoding the outputs", &error))?;
        account.spent_on(Phase::Reporting);
        report.timings = account.timings();
        Ok(Judgement { report, compared, counted, unsure, tolerances })
    }

    /// Returns whether hardware metrics are to be collected: the request asks for them, and the
    /// kernel ran on a device and has a runtime.
    fn wants_counters(&self, report: &EvaluateResponse) -> bool {
        let wanted = self.case.request.profile.as_ref().is_some_and(nsight::wants_counters);
        let ran = report.kernel_exec_result.runtime.is_some();
        wanted && ran && self.setting.device.is_some()
    }

    /// Returns the same case with one untimed call, and one call that is observed by the profiler
    /// around the candidate's runner.
    pub(super) fn counting(&self) -> Self {
        let mut counting = self.clone();
        let case = &mut counting.case;
        (case.plan, case.beside, case.count) = (None, None, true);
        (case.request.profile, case.request.keep_outputs) = (None, BTreeMap::new());
        case.request.return_outputs = ReturnOutputs::None;
        counting
    }

    /// Returns the report of a case whose deadline passed before the judge answered.
    fn timed_out(&self) -> Result<EvaluateResponse, ExecError> {
        let Self { job_id, setting, case, .. } = self;
        let outcome = Outcome::not_judged(Failed::late(case.request.timeout));
        let report = assembled(job_id, &case.request, setting.clone(), outcome);
        report.map_err(|error| internal("encoding the outputs", &error))
    }
}

/// Returns the error for a device that the judge cannot use. The submission did not cause it.
fn no_device(what: String) -> ExecError {
    ExecError::Unavailable(format!("the device cannot be used to judge a torch kernel: {what}"))
}

/// Loads the candidate and the references, and judges the candidate. Blocking.
fn judged(
    mut sessions: Vec<RunnerSession>,
    case: &Case,
    (gpu, noise): (Option<&Gpu>, Option<DeviceNoise>),
    mut account: Account,
) -> Result<(Outcome, Account), ExecError> {
    let timeout = case.request.timeout;
    let beside = case.beside_time();
    sessions = sessions.into_iter().map(|session| session.earlier(beside)).collect();
    let data = data_of(&case.request)?;
    let mut references = Vec::new();
    let mut init = None;
    for (oracle, session) in case.oracles.iter().zip(sessions.split_off(1)) {
        // A reference defines the expected results, and gains nothing from a wrong time.
        let session = session.unobserved();
        let loaded = Player::load(session, &oracle.submission, None, case.seed, timeout);
        let player = loaded.map_err(|failed| reference_failed(&oracle.path, failed.1))?;
        if oracle.lends_init {
            init = player.loaded.init.clone().filter(|init| !init.leaves("").is_empty());
        }
        references.push(ReferencePlayer { player, outputs: oracle.outputs.clone() });
    }
    let Some(mut session) = sessions.pop() else {
        return Err(internal("judging", &std::io::Error::other("there is no runner")));
    };
    // Measured before the submission is loaded, since it could slow the runner down.
    let idle = match idle(&mut session) {
        Ok(idle) => idle,
        Err(RunnerFault::TimedOut) => {
            return Ok((Outcome::not_judged(Failed::late(timeout)), account));
        }
        Err(fault) => {
            // The runner has not received the submission yet, so the submission is not the cause.
            let failed = Failed::of(fault, Stage::Load, timeout);
            let error = failed.of_environment();
            return Err(error.unwrap_or(ExecError::RunnersLost(failed.message)));
        }
    };
    let idle_ms = Some(idle.as_secs_f64() * 1e3);
    let loaded = Player::load(session, &case.submission, init.as_ref(), case.seed, timeout);
    account.spent_on(Phase::Loading);
    let mut player = match loaded {
        Ok(player) => player,
        Err(failed) => {
            let (session, failed) = *failed;
            let printed = session.end();
            return Ok((Outcome::not_loaded(failed, printed), account));
        }
    };
    let maker = references.first_mut().map_or(&mut player, |one| &mut one.player);
    let inputs = match inputs_of(case, maker)? {
        Ok(inputs) => inputs,
        Err(failed) => {
            if let Some(oracle) = case.oracles.first() {
                return Err(reference_failed(&oracle.path, failed));
            }
            let judged = Judged { failed: Some((failed, false)), ..Judged::default() };
            return Ok((Outcome::new(judged, player, None, idle_ms), account));
        }
    };
    let mut secret = warpgauge_torch::Secret::default();
    let judge = Judge {
        players: Players {
            candidate: player,
            expectations: Expectations { data, references, changed: None },
            inputs: inputs.clone(),
            salt: secret.key(),
            secret,
            account,
        },
        tolerance: case.request.tolerance.clone(),
        tolerances: case.tolerances.clone(),
        asked: AskedOutputs::of(&case.request),
        plan: case.plan,
        backward: case.backward,
        is_reference: case.is_reference,
        extras: Extras {
            beside: case.beside.clone(),
            trace: timeline::is_wanted(&case.request),
            count: case.count,
        },
    };
    let (judged, player, mut account) = judge.run(gpu, noise);
    account.spent_on(Phase::Verifying);
    if let Some(what) = judged.broken {
        return Err(no_device(what));
    }
    let shown = judged.findings.arguments.as_ref().map(|made| inputs.shown(Some(made)));
    Ok((Outcome::new(judged, player, shown, idle_ms), account))
}

/// Chooses the source of the inputs: the contract, `get_inputs()` of `maker`, or otherwise inputs
/// that `maker`'s runner suggests.
fn inputs_of(case: &Case, maker: &mut Player) -> Result<Result<Inputs, Failed>, ExecError> {
    if let Some(io) = case.request.kernel.io.as_ref().filter(|io| !io.args.is_empty()) {
        return Inputs::of_contract(io).map(Ok);
    }
    if maker.loaded.has_inputs {
        return Ok(Ok(Inputs::Made));
    }
    let suggested = match maker.session.suggest() {
        Ok(suggestion) => Inputs::of_suggestion(suggestion, seed()).map_err(RunnerFault::Forged),
        Err(fault) => Err(fault),
    };
    Ok(suggested.map_err(|fault| maker.failed(fault)))
}

/// Returns the median time of an empty request to the runner.
fn idle(session: &mut RunnerSession) -> Result<Duration, RunnerFault> {
    let mut times =
        (0..IDLE).map(|_| session.idle()).collect::<Result<Vec<Duration>, RunnerFault>>()?;
    times.sort();
    Ok(times[IDLE / 2])
}

/// Returns the error for a reference that fails. The request is invalid, unless the environment is
/// the cause.
pub(super) fn reference_failed(path: &str, failed: Failed) -> ExecError {
    if let Some(error) = failed.of_environment() {
        return error;
    }
    let traceback = failed.traceback.map(|text| format!(": {text}")).unwrap_or_default();
    ExecError::Invalid(vec![Problem {
        path: path.to_owned(),
        code: failed.code.of_reference(),
        message: format!("the reference cannot be used: {}{traceback}", failed.message),
    }])
}
