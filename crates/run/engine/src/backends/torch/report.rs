//! Builds the report of a torch kernel from the judge's findings.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::{Deserialize, Serialize};

use super::MOST_FETCHED;
use super::fault::{Blame, Failed, Stage};
use super::host::WARMUP;
use super::judge::Judged;
use super::player::Player;
use super::timeline::timeline_report;
use super::timing::{Clocks, median};
use super::values::Value;
use crate::error::ExecError;
use crate::profiling::nsight;
use warpgauge_contract::{EvaluateRequest, Sanitize};
use warpgauge_model::{CacheState, DeviceInfo, Diagnostic, FailureStage, Severity};
use warpgauge_report::{
    Availability, CompileReport, EvaluateResponse, ExecMetadata, FailureReport, InputsShown,
    KernelExecResult, MeasurementReport, OutputReport, ResponseStatus, SanitizeReport, Timings,
    TorchClock, TorchClocks, TorchInputs, TorchReport, ValidationReport, ValidationStatus,
};
use warpgauge_statistics::{RankedBy, Summary, runtime_stats};
use warpgauge_torch::Versions;
use warpgauge_validate::{Reason, ReasonCode, no_expectation};

/// Version of the timing method.
const METHOD_VERSION: u32 = 1;

/// Environment in which a kernel ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Setting {
    pub versions: Versions,
    pub threads: u32,
    pub seed: u64,
    /// GPU of the run; `None` on the CPU.
    pub device: Option<DeviceInfo>,
    /// Whether gradients were computed.
    pub backward: bool,
    /// Reason why the kernel ran on the CPU although there is a GPU.
    pub not_on_gpu: Option<String>,
}

/// Outcome of judging a torch kernel.
pub(super) struct Outcome {
    pub judged: Judged,
    entry: Option<String>,
    inputs: Option<TorchInputs>,
    printed: String,
    idle_ms: Option<f64>,
    /// Whether the kernel ran on the CPU although its source names a GPU.
    stands_in: bool,
    /// Outputs that the report contains only until they are stored, and that the caller does not
    /// see.
    kept: BTreeSet<String>,
}

impl Outcome {
    /// Returns the outcome of a submission that failed to load.
    pub(super) fn not_loaded(failed: Failed, printed: String) -> Self {
        let judged = Judged { failed: Some((failed, false)), ..Judged::default() };
        let kept = BTreeSet::new();
        Self { judged, entry: None, inputs: None, printed, idle_ms: None, stands_in: false, kept }
    }

    /// Returns the outcome of a submission that was not judged.
    pub(super) fn not_judged(failed: Failed) -> Self {
        Self::not_loaded(failed, String::new())
    }

    /// Replaces the outcome with a failure if the outputs to return are too large or still on the
    /// device. Otherwise selects the outputs to store.
    pub(super) fn within(mut self, request: &EvaluateRequest, most: u64) -> Self {
        let (travel, others): (Vec<_>, Vec<_>) = self
            .judged
            .findings
            .outputs
            .iter()
            .partition(|(name, _)| request.return_outputs.include(name));
        let on_device = travel.iter().any(|(_, value)| matches!(value, Value::OnDevice { .. }));
        let bytes: u64 = travel.into_iter().map(|(_, value)| value.bytes()).sum();
        if (bytes > most || on_device) && self.judged.failed.is_none() {
            let most = most.min(MOST_FETCHED);
            let message = format!(
                "the outputs that `return_outputs` requests have {bytes} bytes; at most {most} travel \
                 (limits.max_output_bytes): name fewer outputs, or none"
            );
            let refused = Failed::unusable(message);
            self.judged.findings.outputs.clear();
            self.judged.failed = Some((refused, false));
            return self;
        }
        // Outputs that are only to be stored are included up to the size limit, so that they do not
        // affect the verdict.
        let mut room = most.saturating_sub(bytes);
        let mut kept = BTreeSet::new();
        for (name, value) in others {
            let is_here = !matches!(value, Value::OnDevice { .. });
            if request.keep_outputs.contains_key(name) && is_here && value.bytes() <= room {
                room -= value.bytes();
                kept.insert(name.clone());
            }
        }
        self.kept = kept;
        self
    }

    /// Returns the outcome of a submission that was loaded.
    pub(super) fn new(
        judged: Judged,
        player: Player,
        inputs: Option<TorchInputs>,
        idle_ms: Option<f64>,
    ) -> Self {
        let Player { session, loaded, .. } = player;
        let printed = session.end();
        let kept = BTreeSet::new();
        let (entry, stands_in) = (Some(loaded.entry), loaded.stands_in);
        Self { judged, entry, inputs, printed, idle_ms, stands_in, kept }
    }

    /// Returns the error for a failure that the kernel did not cause, so that there is no verdict.
    /// Returns `None` if the kernel may have caused it.
    pub(super) fn of_environment(&self) -> Option<ExecError> {
        self.failed()?.of_environment()
    }

    /// Returns whether an overloaded machine may have caused the failure.
    pub(super) fn is_unsure(&self) -> bool {
        self.failed().is_some_and(|failed| failed.blame == Blame::Unsure)
    }

    fn failed(&self) -> Option<&Failed> {
        self.judged.failed.as_ref().map(|(failed, _)| failed)
    }

    fn is_loaded(&self) -> bool {
        self.failed().is_none_or(|failed| failed.stage != Stage::Load)
    }
}

/// Builds the report of a judged torch kernel.
pub(super) fn assembled(
    job_id: &str,
    request: &EvaluateRequest,
    setting: Setting,
    outcome: Outcome,
) -> io::Result<EvaluateResponse> {
    let judged = &outcome.judged;
    let validation = validation(request, &outcome);
    let correctness = match validation.status {
        _ if !outcome.is_loaded() => None,
        _ if !validation.reasons.is_empty() => Some(false),
        ValidationStatus::Passed => Some(true),
        ValidationStatus::NotChecked => None,
        ValidationStatus::Failed | ValidationStatus::NotRun => Some(false),
    };
    let right = outcome.failed().is_none() && correctness != Some(false);
    let unranked = unranked(request, judged).filter(|_| right && setting.device.is_some());
    let mut stats =
        if right && unranked.is_none() { runtime_stats(&judged.timed.samples_ms) } else { None };
    if let Some(stats) = stats.as_mut().filter(|_| setting.device.is_none()) {
        // Times on the CPU are not ranked.
        stats.ranked_by = RankedBy::Median;
    }
    let no_sanitizer = if setting.device.is_some() { NO_SANITIZER } else { NO_DEVICE };
    let wrong = validation.reasons.first().map(|reason| reason.message.clone());
    let load_error = outcome.failed().filter(|_| !outcome.is_loaded());
    Ok(EvaluateResponse {
        job_id: job_id.to_owned(),
        status: ResponseStatus::Success,
        verdict: None,
        kernel_exec_result: KernelExecResult {
            compiled: outcome.is_loaded(),
            correctness,
            runtime: stats.map(|stats| stats.mean),
            runtime_stats: stats,
            compilation_error: load_error.map(|failed| failed.message.clone()),
            validation_error: wrong.filter(|_| outcome.is_loaded()),
            metadata: ExecMetadata {
                kernel_name: outcome.entry.clone(),
                kernel_type: Some(request.kernel.kernel_type),
                ..ExecMetadata::default()
            },
        },
        gpu_type: setting.device.as_ref().map(|device| device.name.clone()),
        pod_name: None,
        pod_ip: None,
        timings: Timings::default(),
        device: setting.device.as_ref().map(Into::into),
        compile: load_error.map(compile_report),
        launch: None,
        validation,
        measurement: right
            .then(|| measurement(request, &outcome, (setting.backward, unranked)))
            .flatten(),
        outputs: outputs(request, &outcome)?,
        failure: judged.failed.as_ref().map(|(failed, of_reference)| FailureReport {
            stage: match (failed.stage, of_reference) {
                (_, true) => FailureStage::Validate,
                (Stage::Load, _) => FailureStage::Compile,
                (Stage::Call, _) => FailureStage::Execute,
            },
            code: failed.code.clone(),
            message: failed.message.clone(),
        }),
        printed: (!outcome.printed.is_empty()).then(|| outcome.printed.clone()),
        profile: without_counters(request, setting.device.is_some())
            .map(|reason| Availability { available: false, reason: Some(reason.to_owned()) }),
        timeline: timeline_report(request, judged, setting.device.is_some()),
        sanitize: (request.sanitize != Sanitize::Off).then(|| SanitizeReport {
            available: false,
            reason: Some(no_sanitizer.to_owned()),
            source: None,
            findings: Vec::new(),
            checks: Vec::new(),
        }),
        counted: None,
        launches: Vec::new(),
        tuning: None,
        torch: Some(torch_report(setting, &outcome)),
        program: None,
        matrices: Vec::new(),
        tensors: Vec::new(),
        warnings: Vec::new(),
        kept_outputs: BTreeMap::new(),
    })
}

/// Reasons why a tool reports no results.
const NO_DEVICE: &str = "the torch kernel ran on the CPU, so there is no device to profile";
const NO_SANITIZER: &str = "the memory of torch kernels is not checked";
const NOT_RIGHT: &str =
    "hardware metrics are collected only for kernels that run to their end and are not wrong";
const OTHER_TOOL: &str = "hardware metrics of a torch kernel come from Nsight Compute: leave `profile.tools` \
                          out, or name `ncu`";

/// Returns the reason why there are no hardware metrics. Returns `None` if the request does not ask
/// for them. The result of a profiler later replaces this reason.
fn without_counters(request: &EvaluateRequest, on_device: bool) -> Option<&'static str> {
    let profile = request.profile.as_ref()?;
    if !on_device {
        return Some(NO_DEVICE);
    }
    if nsight::wants_counters(profile) {
        return Some(NOT_RIGHT);
    }
    // A timeline is not a hardware metric, and is reported separately.
    let others = profile.tools.iter().any(|tool| tool != "nsys");
    others.then_some(OTHER_TOOL)
}

fn torch_report(setting: Setting, outcome: &Outcome) -> TorchReport {
    let clocks =
        outcome.judged.timed.clocks.as_ref().filter(|clocks| !clocks.outside_ms.is_empty());
    TorchReport {
        torch: setting.versions.torch,
        python: setting.versions.python,
        clock: match (&setting.device, clocks) {
            (None, _) => TorchClock::Cpu,
            (Some(_), Some(clocks)) if !clocks.by_events() => TorchClock::Judge,
            (Some(_), _) => TorchClock::Events,
        },
        not_on_gpu: setting.not_on_gpu,
        stand_in: outcome.stands_in,
        device: setting.device.map(|device| device.name),
        clocks: clocks.map(|clocks| TorchClocks {
            events_ms: median(&clocks.inside_ms),
            judge_ms: median(&clocks.outside_ms),
            calls: clocks.calls,
            overhead_ms: clocks.overhead_ms,
            resolution_ms: clocks.resolution_ms,
            waits: clocks.waits,
            agree: clocks.agree(),
        }),
        threads: setting.threads,
        entry: outcome.entry.clone(),
        seed: setting.seed,
        backward: setting.backward,
        inputs: outcome.inputs.clone(),
        parameters: outcome.judged.parameters.clone(),
        // Only the server knows the compiled extensions. It adds them later.
        extensions: Vec::new(),
        traceback: outcome.failed().and_then(|failed| failed.traceback.clone()),
        reused_from: None,
    }
}

/// Reports a load failure in the form of compiler diagnostics, for clients that read these.
fn compile_report(failed: &Failed) -> CompileReport {
    let diagnostic = Diagnostic {
        severity: Severity::Error,
        file: Some("kernel.py".to_owned()),
        line: failed.line,
        column: None,
        message: failed.message.clone(),
    };
    CompileReport {
        diagnostics: vec![diagnostic],
        log: failed.traceback.clone().unwrap_or_default(),
        ..CompileReport::default()
    }
}

fn validation(request: &EvaluateRequest, outcome: &Outcome) -> ValidationReport {
    let judged = &outcome.judged;
    let mut reasons = judged.findings.reasons.clone();
    if let Some((failed, of_reference)) = judged.failed.as_ref().filter(|_| outcome.is_loaded()) {
        let code = match of_reference {
            true => ReasonCode::ReferenceFailed,
            false => ReasonCode::of_failure(&failed.code).unwrap_or(ReasonCode::LaunchFailed),
        };
        reasons.push(Reason::new(code, failed.message.clone()));
    }
    let compared = !judged.findings.comparisons.is_empty();
    let expects = !request.expected.is_empty() || compared;
    let args = request.kernel.io.iter().flat_map(|io| &io.args);
    let unchecked = args.filter(|arg| arg.is_output() && !request.expected.contains_key(&arg.name));
    let unchecked = unchecked.map(|arg| arg.name.clone());
    let unchecked: Vec<String> =
        unchecked.chain(judged.findings.unchecked.iter().cloned()).collect();
    let wrong = judged.findings.comparisons.values().any(|comparison| !comparison.passed);
    let status = match () {
        () if wrong || !judged.findings.reasons.is_empty() => ValidationStatus::Failed,
        () if judged.failed.is_some() => ValidationStatus::NotRun,
        () if expects => ValidationStatus::Passed,
        () => ValidationStatus::NotChecked,
    };
    ValidationReport {
        status,
        outputs: judged.findings.comparisons.clone(),
        reasons,
        weaknesses: [
            judged.findings.weaknesses.clone(),
            unchecked.iter().map(|name| no_expectation(name)).collect(),
        ]
        .concat(),
        unchecked,
    }
}

fn measurement(
    request: &EvaluateRequest,
    outcome: &Outcome,
    (backward, unranked): (bool, Option<String>),
) -> Option<MeasurementReport> {
    let judged = &outcome.judged;
    if judged.timed.samples_ms.is_empty() {
        return None;
    }
    let Timing { method, cache, mut notes, warmup } = timing(judged.timed.clocks.as_ref());
    if backward {
        notes.push("each time includes forward and backward".to_owned());
    }
    Some(MeasurementReport {
        method: method.to_owned(),
        method_version: METHOD_VERSION,
        cache,
        regime: request.measure.regime,
        inputs: judged.shown.unwrap_or(InputsShown::Same),
        input_sets: None,
        state: None,
        grid_blocks: None,
        warmup_launches: warmup,
        warmup_stable: false,
        stopped: judged.timed.stopped,
        summary: Summary::new(&judged.timed.samples_ms),
        empty_launch_ms: outcome.idle_ms,
        at_floor: false,
        speed_of_light: None,
        rates: None,
        rejected: Vec::new(),
        audited: judged.findings.verified.saturating_sub(warmup),
        sealed: None,
        load: None,
        sm_clock: None,
        gpu: None,
        unranked,
        batches: Vec::new(),
        notes,
        samples_ms: judged.timed.samples_ms.clone(),
    })
}

/// Returns the reason why a time is not ranked, or `None` if it is ranked. A process may keep
/// results from one call to the next, which makes later calls faster if the inputs are the same.
/// Results on the host may still change when the next inputs arrive.
fn unranked(request: &EvaluateRequest, judged: &Judged) -> Option<String> {
    if judged.timed.clocks.as_ref().is_some_and(|clocks| clocks.outside_ms.is_empty()) {
        return Some(
            "a call returns a number, a tensor on the host, or more than 64 tensors, whose content cannot be recorded \
             before the next call: the time has no rank. Return fewer tensors, on the device"
                .to_owned(),
        );
    }
    if judged.shown == Some(InputsShown::Fresh) || request.measure.rank_unlisted_state {
        return None;
    }
    let what = match judged.findings.repeated_inputs {
        0 => "the inputs do not vary".to_owned(),
        repeated => format!("the inputs of {repeated} calls equal those of an earlier call"),
    };
    Some(format!(
        "{what}, so a torch kernel may keep a result from one call to the next: the time has no rank. \
         Generate random inputs without a fixed seed, or set `measure.rank_unlisted_state`"
    ))
}

/// Method by which times were measured.
struct Timing {
    method: &'static str,
    cache: CacheState,
    notes: Vec<String>,
    warmup: u32,
}

fn timing(clocks: Option<&Clocks>) -> Timing {
    let Some(clocks) = clocks else {
        let note = "times were measured on the CPU by the judge process's clock, around each call, \
                    and include the hand-over to the runner (`empty_launch_ms`): they are not ranked";
        return Timing {
            method: "cpu_wall_clock",
            // Caches are not flushed on the CPU.
            cache: CacheState::Hot,
            notes: vec![note.to_owned()],
            warmup: 1 + WARMUP,
        };
    };
    let (events, judge) = (median(&clocks.inside_ms), median(&clocks.outside_ms));
    let told = format!(
        "one call takes {events:.5} ms by CUDA events in the submission's process, after a write of {} bytes. \
         It takes {judge:.5} ms by the judge's clock, from the moment when its inputs can be read until its \
         results are hashed, minus {:.5} ms for decrypting the inputs and hashing the results",
        clocks.flushed, clocks.overhead_ms
    );
    let warmup = 1 + clocks.warmup;
    if clocks.by_events() {
        let (method, cache) = ("torch_cuda_events", CacheState::Cold);
        return Timing { method, cache, notes: vec![told], warmup };
    }
    let why = if clocks.waits {
        "the judge's clock counts: the calls themselves wait for the device, so that each time includes work \
         on the host; L2 contains as much of the inputs as fits"
    } else if clocks.agree() {
        "a call moves several times as much data as L2 holds: both clocks measure the same, and the judge's \
         clock counts, because it times more calls"
    } else {
        "the judge's clock measures a longer time, so it counts: either decrypting and hashing took longer with the \
         call than without it, or the events are not reliable; L2 contains as much of the inputs as fits"
    };
    let (method, cache) = ("torch_judge_clock", CacheState::Hot);
    Timing { method, cache, notes: vec![told, why.to_owned()], warmup }
}

fn outputs(
    request: &EvaluateRequest,
    outcome: &Outcome,
) -> io::Result<BTreeMap<String, OutputReport>> {
    let mut reports = BTreeMap::new();
    for (name, value) in &outcome.judged.findings.outputs {
        let travels = request.return_outputs.include(name) || outcome.kept.contains(name);
        if let Some(report) = value.shown(travels.then_some(request.output_encoding))? {
            reports.insert(name.clone(), report);
        }
    }
    Ok(reports)
}
