//! From what the judge found to the report.

use std::collections::BTreeMap;
use std::io;

use super::fault::{Failed, Stage};
use super::judge::{Judged, WARMUP};
use super::player::Player;
use warpgauge_contract::{EvaluateRequest, KernelType, ReturnOutputs, Sanitize};
use warpgauge_measure::{RankedBy, Summary, runtime_stats};
use warpgauge_model::{CacheState, Diagnostic, FailureStage, Severity};
use warpgauge_report::{
    Availability, CompileReport, EvaluateResponse, ExecMetadata, FailureReport, InputsShown,
    KernelExecResult, MeasurementReport, OutputReport, ResponseStatus, SanitizeReport, Timings,
    TorchClock, TorchInputs, TorchReport, ValidationReport, ValidationStatus,
};
use warpgauge_torch::Versions;
use warpgauge_validate::{Reason, ReasonCode, no_expectation};

/// Version of the way of timing.
const METHOD_VERSION: u32 = 1;

/// Where something ran.
pub(super) struct Setting {
    pub versions: Versions,
    pub threads: u32,
    pub seed: u64,
    /// Whether the machine has a GPU, which was not used.
    pub has_gpu: bool,
}

/// What came of a case.
pub(super) struct Outcome {
    pub judged: Judged,
    entry: Option<String>,
    inputs: Option<TorchInputs>,
    printed: String,
    load_ms: f64,
    idle_ms: Option<f64>,
}

impl Outcome {
    /// Of a submission that could not be loaded.
    pub(super) fn not_loaded(failed: Failed, printed: String, load_ms: f64) -> Self {
        let judged = Judged { failed: Some((failed, false)), ..Judged::default() };
        Self { judged, entry: None, inputs: None, printed, load_ms, idle_ms: None }
    }

    /// Of one that was called.
    pub(super) fn new(
        judged: Judged,
        player: Player,
        inputs: Option<TorchInputs>,
        load_ms: f64,
        idle_ms: Option<f64>,
    ) -> Self {
        let Player { session, loaded, .. } = player;
        let printed = session.end();
        Self { judged, entry: Some(loaded.entry), inputs, printed, load_ms, idle_ms }
    }

    fn failed(&self) -> Option<&Failed> {
        self.judged.failed.as_ref().map(|(failed, _)| failed)
    }

    fn is_loaded(&self) -> bool {
        self.failed().is_none_or(|failed| failed.stage != Stage::Load)
    }
}

/// The report of a case.
pub(super) fn assembled(
    job_id: &str,
    request: &EvaluateRequest,
    setting: Setting,
    outcome: Outcome,
    mut timings: Timings,
) -> io::Result<EvaluateResponse> {
    let judged = &outcome.judged;
    timings.compile = outcome.load_ms;
    timings.h2d = judged.presenting.as_secs_f64() * 1e3;
    timings.execute = judged.executing.as_secs_f64() * 1e3;
    timings.verify = judged.verifying.as_secs_f64() * 1e3;
    let validation = validation(request, &outcome);
    let correctness = match validation.status {
        _ if !outcome.is_loaded() => None,
        _ if !validation.reasons.is_empty() => Some(false),
        ValidationStatus::Passed => Some(true),
        ValidationStatus::NotChecked => None,
        ValidationStatus::Failed | ValidationStatus::NotRun => Some(false),
    };
    let right = outcome.failed().is_none() && correctness != Some(false);
    let mut stats = if right { runtime_stats(&judged.samples_ms) } else { None };
    if let Some(stats) = &mut stats {
        // Times of the CPU rank nothing.
        stats.ranked_by = RankedBy::Median;
    }
    let wrong = validation.reasons.first().map(|reason| reason.message.clone());
    let load_error = outcome.failed().filter(|_| !outcome.is_loaded());
    Ok(EvaluateResponse {
        job_id: job_id.to_owned(),
        status: ResponseStatus::Success,
        kernel_exec_result: KernelExecResult {
            compiled: outcome.is_loaded(),
            correctness,
            runtime: stats.map(|stats| stats.mean),
            runtime_stats: stats,
            compilation_error: load_error.map(|failed| failed.message.clone()),
            validation_error: wrong.filter(|_| outcome.is_loaded()),
            metadata: ExecMetadata {
                kernel_name: outcome.entry.clone(),
                kernel_type: Some(KernelType::Torch),
                ..ExecMetadata::default()
            },
        },
        gpu_type: None,
        timings,
        device: None,
        compile: load_error.map(compile_report),
        validation,
        measurement: right.then(|| measurement(request, &outcome)).flatten(),
        outputs: outputs(request, judged)?,
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
        profile: request
            .profile
            .as_ref()
            .map(|_| Availability { available: false, reason: Some(NO_DEVICE.to_owned()) }),
        timeline: None,
        sanitize: (request.sanitize != Sanitize::Off).then(|| SanitizeReport {
            available: false,
            reason: Some(NO_DEVICE.to_owned()),
            source: None,
            findings: Vec::new(),
            checks: Vec::new(),
        }),
        counted: None,
        tuning: None,
        torch: Some(torch_report(setting, &outcome)),
    })
}

/// Why tools that look at devices tell nothing.
const NO_DEVICE: &str = "torch kernels run on the CPU, where there is no device to look at";

fn torch_report(setting: Setting, outcome: &Outcome) -> TorchReport {
    let not_on_gpu = "torch kernels do not run on GPUs yet; this one was evaluated on the CPU";
    TorchReport {
        torch: setting.versions.torch,
        python: setting.versions.python,
        clock: TorchClock::Cpu,
        not_on_gpu: setting.has_gpu.then(|| not_on_gpu.to_owned()),
        threads: setting.threads,
        entry: outcome.entry.clone(),
        seed: setting.seed,
        inputs: outcome.inputs.clone(),
        parameters: outcome.judged.parameters.clone(),
        traceback: outcome.failed().and_then(|failed| failed.traceback.clone()),
    }
}

/// What is wrong with a submission that cannot be loaded, where those look who read of compilers.
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
    let mut reasons = judged.reasons.clone();
    if let Some((failed, of_reference)) = judged.failed.as_ref().filter(|_| outcome.is_loaded()) {
        let code = match of_reference {
            true => ReasonCode::ReferenceFailed,
            false => ReasonCode::of_failure(&failed.code).unwrap_or(ReasonCode::LaunchFailed),
        };
        reasons.push(Reason::new(code, failed.message.clone()));
    }
    let compared = !judged.comparisons.is_empty();
    let expects = !request.expected.is_empty() || compared;
    let args = request.kernel.io.iter().flat_map(|io| &io.args);
    let unchecked = args.filter(|arg| arg.is_output() && !request.expected.contains_key(&arg.name));
    let unchecked: Vec<String> = unchecked.map(|arg| arg.name.clone()).collect();
    let wrong = judged.comparisons.values().any(|comparison| !comparison.passed);
    let status = match () {
        () if wrong || !judged.reasons.is_empty() => ValidationStatus::Failed,
        () if judged.failed.is_some() => ValidationStatus::NotRun,
        () if expects => ValidationStatus::Passed,
        () => ValidationStatus::NotChecked,
    };
    ValidationReport {
        status,
        outputs: judged.comparisons.clone(),
        reasons,
        weaknesses: unchecked.iter().map(|name| no_expectation(name)).collect(),
        unchecked,
    }
}

fn measurement(request: &EvaluateRequest, outcome: &Outcome) -> Option<MeasurementReport> {
    let judged = &outcome.judged;
    if judged.samples_ms.is_empty() {
        return None;
    }
    let notes = vec![
        "times are those of the CPU, by the clock of the process that judges, round each call and with \
         the hand-over to the runner (`empty_launch_ms`) in them: they are ranked with nothing"
            .to_owned(),
    ];
    Some(MeasurementReport {
        method: "cpu_wall_clock".to_owned(),
        method_version: METHOD_VERSION,
        // Nothing is flushed.
        cache: CacheState::Hot,
        regime: request.measure.regime,
        inputs: judged.shown.unwrap_or(InputsShown::Same),
        state: None,
        grid_blocks: None,
        warmup_launches: 1 + WARMUP,
        warmup_stable: false,
        stopped: judged.stopped,
        summary: Summary::new(&judged.samples_ms),
        empty_launch_ms: outcome.idle_ms,
        at_floor: false,
        speed_of_light: None,
        rates: None,
        rejected: Vec::new(),
        audited: judged.verified.saturating_sub(1 + WARMUP),
        sealed: None,
        load: None,
        sm_clock: None,
        gpu: None,
        batches: Vec::new(),
        notes,
        samples_ms: judged.samples_ms.clone(),
    })
}

fn outputs(
    request: &EvaluateRequest,
    judged: &Judged,
) -> io::Result<BTreeMap<String, OutputReport>> {
    let mut reports = BTreeMap::new();
    for (name, value) in &judged.outputs {
        let travels = match &request.return_outputs {
            ReturnOutputs::None => false,
            ReturnOutputs::All => true,
            ReturnOutputs::Names(names) => names.contains(name),
        };
        let encoding = travels.then_some(request.output_encoding);
        if let Some(report) = value.shown(encoding)? {
            reports.insert(name.clone(), report);
        }
    }
    Ok(reports)
}
