//! Assembles the report from the results of the stages. The only side effect is that files of
//! stored outputs are read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};

use crate::prepare::{Prepared, unfilled};
use crate::profiling::analysed;
use crate::profiling::profiled;
use crate::profiling::sanitized;
use crate::reporting::Ran;
use crate::reporting::measured;
use crate::reporting::steps;
use crate::reporting::unranked::unranked;
use warpgauge_compile::{CompileFailure, CompiledModule};
use warpgauge_contract::{EvaluateRequest, KernelFamily, KernelType};
use warpgauge_metrics::DeviceMetrics;
use warpgauge_model::{DeviceInfo, DeviceKind, FailureStage, ImageFormat};
use warpgauge_report::{
    CompileReport, EvaluateResponse, ExecMetadata, FailureReport, KernelExecResult, LaunchReport,
    OutputReport, ResponseStatus, Timings, ValidationReport, ValidationStatus, cuda_version,
};
use warpgauge_statistics::{Counted, RankedBy, runtime_stats};
use warpgauge_tensor::encoding;
use warpgauge_validate::{Comparison, Reason, ReasonCode, no_expectation};
use warpgauge_worker::protocol::{Blame, EvaluatedRun, RunFailure, RunOutcome};

/// Returns the report's entry for a compilation.
pub(crate) fn compile_report(artifact: &CompiledModule) -> CompileReport {
    let entry = artifact.entry_kernel();
    CompileReport {
        compiler: artifact.compiler.clone(),
        options: shown_options(&artifact.options),
        cache_hit: artifact.cache_hit,
        key: artifact.key.clone(),
        kernels: artifact.kernels.iter().map(|kernel| kernel.name.clone()).collect(),
        symbol: entry.symbol.clone(),
        resources: entry.resources,
        function: None,
        diagnostics: artifact.diagnostics.clone(),
        log: artifact.log.clone(),
    }
}

/// Maximum number of options in a report, and maximum length of each in characters.
const MAX_OPTIONS: usize = 256;
const MAX_OPTION: usize = 256;

/// Returns the options for a report. A shortened option ends in `…`.
pub(crate) fn shown_options(options: &[String]) -> Vec<String> {
    let shown = options.iter().take(MAX_OPTIONS).map(|option| {
        let cut = option.char_indices().nth(MAX_OPTION).map(|(end, _)| &option[..end]);
        cut.map_or_else(|| option.clone(), |start| format!("{start}…"))
    });
    shown.collect()
}

/// Returns the launch of a kernel of one launch.
fn launch(request: &EvaluateRequest, prepared: &Prepared) -> Option<LaunchReport> {
    let is_one = request.kernel.launches.is_empty();
    // The launches of a library function are unknown.
    let is_known = is_one && request.kernel.family() != KernelFamily::Library;
    let first = &prepared.job.program.launches.first;
    is_known.then_some(LaunchReport {
        grid: first.grid,
        block: first.block,
        shared_bytes: first.shared_bytes,
        cluster: first.cluster,
        cooperative: first.cooperative,
    })
}

/// Returns the name of an image format in the API.
pub(crate) fn format_name(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Cubin => "cubin",
        ImageFormat::Ptx => "ptx",
        ImageFormat::Fatbin => "fatbin",
        ImageFormat::Library => "library",
    }
}

/// Returns the report of a kernel that did not compile, which is a result rather than an error.
pub(crate) fn not_compiled(
    job_id: &str,
    request: &EvaluateRequest,
    device: &DeviceInfo,
    failure: &CompileFailure,
    timings: Timings,
) -> EvaluateResponse {
    let mut report = empty(job_id, request, device, timings);
    report.kernel_exec_result.compilation_error = Some(failure.message.clone());
    report.compile = Some(CompileReport {
        diagnostics: failure.diagnostics.clone(),
        log: failure.log.clone(),
        ..CompileReport::default()
    });
    report.failure = Some(FailureReport {
        stage: FailureStage::Compile,
        code: failure.code.clone(),
        message: failure.message.clone(),
    });
    report
}

/// Returns a report that contains only the request and the device.
pub(crate) fn empty(
    job_id: &str,
    request: &EvaluateRequest,
    device: &DeviceInfo,
    timings: Timings,
) -> EvaluateResponse {
    EvaluateResponse {
        job_id: job_id.to_owned(),
        status: ResponseStatus::Success,
        verdict: None,
        kernel_exec_result: KernelExecResult {
            metadata: metadata(request.kernel.kernel_type, device, None, None),
            ..KernelExecResult::default()
        },
        gpu_type: Some(device.name.clone()),
        pod_name: None,
        pod_ip: None,
        timings,
        device: Some(device.into()),
        compile: None,
        launch: None,
        validation: ValidationReport {
            status: ValidationStatus::NotRun,
            outputs: BTreeMap::new(),
            reasons: Vec::new(),
            weaknesses: Vec::new(),
            unchecked: Vec::new(),
        },
        measurement: None,
        outputs: BTreeMap::new(),
        failure: None,
        printed: None,
        profile: None,
        timeline: None,
        sanitize: None,
        counted: None,
        launches: Vec::new(),
        tuning: None,
        torch: None,
        program: None,
        matrices: Vec::new(),
        tensors: Vec::new(),
        warnings: Vec::new(),
        kept_outputs: BTreeMap::new(),
    }
}

/// Returns the report of a kernel that ran or failed to run.
pub(crate) fn ran(job_id: &str, ran: &Ran, timings: Timings) -> io::Result<EvaluateResponse> {
    let Ran { request, prepared, outcome, tool_runs, device } = ran;
    let mut validation = validation_report(request, prepared, outcome);
    let outputs = output_reports(request, prepared, outcome)?;
    let failure = outcome.failure.as_ref();
    let sanitize = tool_runs.sanitize.clone();
    let sanitize = sanitize.or_else(|| sanitized::emulated(request, device, outcome));
    let screened = measured::screened(outcome);
    let kept = measured::kept(request, device, outcome, &screened);
    let ours = failure.is_some_and(|failure| failure.blame == Blame::Environment);
    let fault = sanitized::fault(sanitize.as_ref())
        .map(|text| Reason::new(ReasonCode::SanitizerFault, text));
    let impossible = measured::impossible(request, device, &screened, &kept.samples);
    // Rejected samples are not evidence against the kernel's outputs.
    let (untimed, faster) = match impossible {
        Some(reason) if reason.code == ReasonCode::NoValidSamples => (Some(reason), None),
        other => (None, other),
    };
    validation.reasons.extend(fault.into_iter().chain(faster));
    let correctness = match validation.status {
        _ if ours => None,
        _ if !validation.reasons.is_empty() => Some(false),
        ValidationStatus::Passed => Some(true),
        ValidationStatus::Failed => Some(false),
        // A kernel whose launch failed is not correct, regardless of the contract's expectations.
        ValidationStatus::NotRun => Some(false),
        ValidationStatus::NotChecked => None,
    };
    validation.reasons.extend(untimed);
    // A time may be ranked only if no check of the kernel failed.
    let is_right = failure.is_none() && correctness != Some(false);
    let unranked = unranked(request, device, outcome).filter(|_| is_right);
    let ranked = is_right && unranked.is_none();
    let mut stats = if ranked { runtime_stats(&kept.samples) } else { None };
    if let (Some(stats), DeviceKind::Emulator) = (&mut stats, device.kind) {
        // Times on the emulated device are noise of the host and must not be used for ranking.
        stats.ranked_by = RankedBy::Median;
    }
    let mut measurement = measured::report(request, device, outcome, &screened, &kept);
    if let Some(measurement) = &mut measurement {
        measurement.notes.extend(unranked.clone());
        measurement.unranked = unranked;
        measurement.notes.extend(stats.as_ref().and_then(measured::parted));
        // Rates are derived from the runtime, so a kernel without a runtime has none.
        if stats.is_none() {
            measurement.rates = None;
        }
        let grid = prepared.job.program.launches.first.grid.map(u64::from);
        // The launches of a library function are unknown.
        let known = request.kernel.family() != KernelFamily::Library;
        measurement.grid_blocks = known.then(|| grid.into_iter().product());
    }
    let (profile, mut device_metrics) =
        profiled::report(request, device, prepared, outcome, tool_runs.profiled.as_ref());
    if let Some(metrics) = &mut device_metrics {
        analysed::complete(metrics, request, device, prepared, measurement.as_ref());
    }
    let why = validation.reasons.first().map(|reason| reason.message.clone());
    let mut compile = compile_report(&prepared.artifact);
    compile.function = outcome.function;
    compile.diagnostics.extend(unfilled(&prepared.artifact, request.kernel.io.as_ref()));
    Ok(EvaluateResponse {
        job_id: job_id.to_owned(),
        status: if ours { ResponseStatus::Error } else { ResponseStatus::Success },
        verdict: None,
        kernel_exec_result: KernelExecResult {
            compiled: true,
            correctness,
            runtime: stats.map(|stats| stats.mean),
            runtime_stats: stats,
            compilation_error: None,
            // A fault of the machine is not evidence against the kernel. The report's `failure`
            // contains it.
            validation_error: why
                .or_else(|| failure.filter(|_| !ours).map(|failure| failure.message.clone())),
            metadata: metadata(
                request.kernel.kernel_type,
                device,
                Some(steps::kernel_name(request, prepared)),
                device_metrics,
            ),
        },
        gpu_type: Some(device.name.clone()),
        pod_name: None,
        pod_ip: None,
        timings,
        device: Some(device.into()),
        compile: Some(compile),
        launch: launch(request, prepared),
        validation,
        measurement,
        outputs,
        failure: failure.map(|failure| FailureReport {
            stage: match failure.blame {
                Blame::Reference => FailureStage::Validate,
                Blame::Candidate | Blame::Environment => FailureStage::Execute,
            },
            code: failure.code.clone(),
            message: failure.message.clone(),
        }),
        printed: (!outcome.printed.is_empty()).then(|| outcome.printed.clone()),
        profile,
        timeline: tool_runs.timeline.clone(),
        sanitize,
        counted: outcome.told.counts.as_ref().and_then(|counts| Counted::of(&counts.counts)),
        launches: steps::reports(request, prepared, outcome),
        tuning: None,
        torch: None,
        program: None,
        matrices: Vec::new(),
        tensors: Vec::new(),
        warnings: Vec::new(),
        kept_outputs: BTreeMap::new(),
    })
}

fn metadata(
    kind: KernelType,
    device: &DeviceInfo,
    kernel: Option<String>,
    device_metrics: Option<DeviceMetrics>,
) -> ExecMetadata {
    ExecMetadata {
        gpu_id: Some(device.ordinal),
        kernel_name: kernel,
        kernel_type: Some(kind),
        gpu_type: Some(device.name.clone()),
        cuda_version: Some(cuda_version(device.target.driver_version)),
        configuration: None,
        device_metrics,
    }
}

fn validation_report(
    request: &EvaluateRequest,
    prepared: &Prepared,
    outcome: &RunOutcome<EvaluatedRun>,
) -> ValidationReport {
    let outputs = outcome
        .told
        .checks
        .iter()
        .map(|check| (prepared.buffer_name(check.buffer).to_owned(), check.comparison.clone()))
        .collect::<BTreeMap<_, _>>();
    let io = request.kernel.io.as_ref();
    let unchecked: Vec<String> = io
        .map_or(&[][..], |io| &io.args)
        .iter()
        .filter(|arg| arg.is_output())
        .filter(|arg| !request.expected.contains_key(&arg.name))
        .map(|arg| arg.name.clone())
        .collect();
    let all_compared = outputs.len() == request.expected.len();
    let status = if outputs.values().any(|comparison| !comparison.passed) {
        ValidationStatus::Failed
    } else if outcome.failure.is_some() || !all_compared {
        ValidationStatus::NotRun
    } else if request.expected.is_empty() {
        ValidationStatus::NotChecked
    } else {
        ValidationStatus::Passed
    };
    let reasons = reasons(&outputs, outcome.failure.as_ref());
    let mut weaknesses = outcome.told.weaknesses.clone();
    weaknesses.extend(unchecked.iter().map(|name| no_expectation(name)));
    ValidationReport { status, outputs, reasons, weaknesses, unchecked }
}

/// Returns the reasons for rejecting the kernel: outputs that are wrong, or a failed run.
fn reasons(outputs: &BTreeMap<String, Comparison>, failure: Option<&RunFailure>) -> Vec<Reason> {
    let wrong = outputs.iter().filter_map(|(name, found)| Reason::of_comparison(name, found));
    let failed = failure.and_then(|failure| match failure.blame {
        Blame::Environment => None,
        Blame::Reference => Some(Reason::new(ReasonCode::ReferenceFailed, failure.message.clone())),
        Blame::Candidate => {
            // A fault without a specific code counts as a launch failure.
            let code = ReasonCode::of_failure(&failure.code).unwrap_or(ReasonCode::LaunchFailed);
            Some(Reason::new(code, failure.message.clone()))
        }
    });
    wrong.chain(failed).collect()
}

fn output_reports(
    request: &EvaluateRequest,
    prepared: &Prepared,
    outcome: &RunOutcome<EvaluatedRun>,
) -> io::Result<BTreeMap<String, OutputReport>> {
    let mut reports = BTreeMap::new();
    for output in &outcome.told.outputs {
        let buffer = &prepared.job.program.buffers[output.buffer];
        let (dtype, shape) = buffer.tensor();
        let mut report = OutputReport {
            dtype,
            shape: shape.to_vec(),
            blake3: output.blake3.clone(),
            data_b64: None,
            compress: None,
            format: None,
        };
        let travels = request.return_outputs.include(&buffer.name);
        if let Some(file) = output.file.as_ref().filter(|_| travels) {
            let raw = BufReader::new(File::open(file)?);
            let encoded = encoding::encode(raw, dtype, shape, request.output_encoding)?;
            report.data_b64 = Some(encoded.data_b64);
            report.compress = Some(encoded.compress);
            report.format = Some(encoded.format);
        }
        reports.insert(buffer.name.clone(), report);
    }
    Ok(reports)
}
