//! From what the stages found to the report. Pure, but for reading kept output files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};

use super::prepare::Prepared;
use super::{profiled, sanitized};
use crate::compile::{Artifact, CompileFailure, ImageFormat};
use crate::contract::{ArgKind, EvaluateRequest, KernelType, Role};
use crate::measure::runtime_stats;
use crate::profile::DeviceMetrics;
use crate::report::{
    CompileReport, DeviceReport, EvaluateResponse, ExecMetadata, FailureReport, KernelExecResult,
    MeasurementReport, OutputReport, ResponseStatus, Timings, ValidationReport, ValidationStatus,
};
use crate::tensor::encoding;
use crate::validate::validation_error;
use crate::worker::protocol::{Blame, DeviceInfo, RunOutcome};

/// A device as reports show it.
pub(super) fn device_report(info: &DeviceInfo) -> DeviceReport {
    let (major, minor) = info.target.compute_capability;
    DeviceReport {
        id: info.ordinal,
        kind: info.kind,
        name: info.name.clone(),
        uuid: info.uuid.clone(),
        compute_capability: format!("{major}.{minor}"),
        cuda_version: cuda_version(info.target.driver_version),
        multiprocessors: info.multiprocessors,
        memory_bytes: info.memory_bytes,
        l2_bytes: info.l2_bytes,
    }
}

/// `13000` → `13.0`.
fn cuda_version(driver: i32) -> String {
    format!("{}.{}", driver / 1000, driver % 1000 / 10)
}

/// The compilation as reports show it.
pub(super) fn compile_report(artifact: &Artifact) -> CompileReport {
    let entry = artifact.entry_kernel();
    CompileReport {
        compiler: artifact.compiler.clone(),
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

/// Name of an image format on the wire.
pub(super) fn format_name(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Cubin => "cubin",
        ImageFormat::Ptx => "ptx",
        ImageFormat::Fatbin => "fatbin",
    }
}

/// The report of a kernel that did not compile: a result, not an error.
pub(super) fn not_compiled(
    job_id: &str,
    request: &EvaluateRequest,
    device: &DeviceInfo,
    failure: &CompileFailure,
    timings: Timings,
) -> EvaluateResponse {
    EvaluateResponse {
        job_id: job_id.to_owned(),
        status: ResponseStatus::Success,
        kernel_exec_result: KernelExecResult {
            compiled: false,
            compilation_error: Some(failure.message.clone()),
            metadata: metadata(request.kernel.kernel_type, device, None, None),
            ..KernelExecResult::default()
        },
        gpu_type: Some(device.name.clone()),
        timings,
        device: Some(device_report(device)),
        compile: Some(CompileReport {
            compiler: String::new(),
            cache_hit: false,
            key: String::new(),
            kernels: Vec::new(),
            symbol: String::new(),
            resources: None,
            function: None,
            diagnostics: failure.diagnostics.clone(),
            log: failure.log.clone(),
        }),
        validation: ValidationReport {
            status: ValidationStatus::NotRun,
            outputs: BTreeMap::new(),
            unchecked: Vec::new(),
        },
        measurement: None,
        outputs: BTreeMap::new(),
        failure: Some(FailureReport {
            stage: "compile".to_owned(),
            code: failure.code.to_owned(),
            message: failure.message.clone(),
        }),
        printed: None,
        profile: None,
        sanitize: None,
    }
}

/// The report of a kernel that ran, or tried to.
pub(super) fn ran(
    job_id: &str,
    request: &EvaluateRequest,
    device: &DeviceInfo,
    prepared: &Prepared,
    outcome: RunOutcome,
    timings: Timings,
) -> io::Result<EvaluateResponse> {
    let validation = validation_report(request, prepared, &outcome);
    let outputs = output_reports(request, prepared, &outcome)?;
    let failure = outcome.failure.as_ref();
    let sanitize = sanitized::report(request, device, &outcome);
    let fault = sanitized::fault(sanitize.as_ref());
    let ours = failure.is_some_and(|failure| failure.blame == Blame::Environment);
    let correctness = match validation.status {
        _ if ours => None,
        _ if fault.is_some() => Some(false),
        ValidationStatus::Passed => Some(true),
        ValidationStatus::Failed => Some(false),
        // A kernel that did not survive its launch is not right, whatever the contract expects.
        ValidationStatus::NotRun => Some(false),
        ValidationStatus::NotChecked => None,
    };
    // A time may only be ranked when nothing is known against the kernel.
    let ranked = failure.is_none() && correctness != Some(false);
    let stats = if ranked { runtime_stats(&outcome.samples_ms) } else { None };
    let (profile, device_metrics) = profiled::report(request, device, prepared, &outcome);
    let mut compile = compile_report(&prepared.artifact);
    compile.function = outcome.function;
    Ok(EvaluateResponse {
        job_id: job_id.to_owned(),
        status: if ours { ResponseStatus::Error } else { ResponseStatus::Success },
        kernel_exec_result: KernelExecResult {
            compiled: true,
            correctness,
            runtime: stats.map(|stats| stats.mean),
            runtime_stats: stats,
            compilation_error: None,
            validation_error: why_not_right(&validation, failure.map(|f| f.message.as_str()))
                .or(fault),
            metadata: metadata(
                request.kernel.kernel_type,
                device,
                Some(prepared.artifact.entry_kernel().name.clone()),
                device_metrics,
            ),
        },
        gpu_type: Some(device.name.clone()),
        timings,
        device: Some(device_report(device)),
        compile: Some(compile),
        validation,
        measurement: (!outcome.samples_ms.is_empty()).then(|| MeasurementReport {
            method: "cuda_events_per_launch".to_owned(),
            cache: request.measure.cache,
            warmup_launches: outcome.warmup_launches,
            samples_ms: outcome.samples_ms.clone(),
        }),
        outputs,
        failure: failure.map(|failure| FailureReport {
            stage: if failure.blame == Blame::Reference { "validate" } else { "execute" }
                .to_owned(),
            code: failure.code.clone(),
            message: failure.message.clone(),
        }),
        printed: (!outcome.printed.is_empty()).then(|| outcome.printed.clone()),
        profile,
        sanitize,
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
        device_metrics,
    }
}

fn validation_report(
    request: &EvaluateRequest,
    prepared: &Prepared,
    outcome: &RunOutcome,
) -> ValidationReport {
    let outputs = outcome
        .checks
        .iter()
        .map(|check| (prepared.buffer_name(check.buffer).to_owned(), check.comparison.clone()))
        .collect::<BTreeMap<_, _>>();
    let io = request.kernel.io.as_ref();
    let unchecked = io
        .map_or(&[][..], |io| &io.args)
        .iter()
        .filter(|arg| arg.kind == ArgKind::Tensor && arg.role != Role::Input)
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
    ValidationReport { status, outputs, unchecked }
}

fn why_not_right(report: &ValidationReport, failure: Option<&str>) -> Option<String> {
    let describe = |(name, comparison): (&String, _)| validation_error(name, comparison);
    let wrong = report.outputs.iter().filter_map(describe).collect::<Vec<_>>();
    if wrong.is_empty() { failure.map(str::to_owned) } else { Some(wrong.join("; ")) }
}

fn output_reports(
    request: &EvaluateRequest,
    prepared: &Prepared,
    outcome: &RunOutcome,
) -> io::Result<BTreeMap<String, OutputReport>> {
    let mut reports = BTreeMap::new();
    for output in &outcome.outputs {
        let buffer = &prepared.job.buffers[output.buffer];
        let mut report = OutputReport {
            dtype: buffer.dtype,
            shape: buffer.shape.clone(),
            blake3: output.blake3.clone(),
            data_b64: None,
            compress: None,
            format: None,
        };
        if let Some(file) = &output.file {
            let raw = BufReader::new(File::open(file)?);
            let encoded =
                encoding::encode(raw, buffer.dtype, &buffer.shape, request.output_encoding)?;
            report.data_b64 = Some(encoded.data_b64);
            report.compress = Some(encoded.compress);
            report.format = Some(encoded.format);
        }
        reports.insert(buffer.name.clone(), report);
    }
    Ok(reports)
}
