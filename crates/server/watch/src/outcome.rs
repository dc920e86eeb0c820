//! Results of kernel files. They contain the fields of the reference executor's results, and the
//! report. The main type is [`KernelResult`].
//!
//! If a field of the reference executor was not measured, it is `null`, and `unavailable` contains
//! the reason.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Map, Value, json};

use warpgauge_contract::{EvaluateRequest, KernelRuntime};
use warpgauge_report::{CompileResponse, EvaluateResponse, KernelVerdict};

use crate::evaluator::FileRejection;
use crate::kernel_file::{ContractFrom, KernelRequest};

/// Identifies the kernel file to which a result belongs.
#[derive(Debug, Clone)]
pub struct KernelFileId<'a> {
    /// Name of the kernel file.
    pub file: &'a str,
    /// blake3 hash of the file's content, hex; `None` if the file was not read.
    pub blake3: Option<String>,
}

/// The result for a kernel file.
#[derive(Debug, Clone, Serialize)]
pub struct KernelResult {
    /// Whether `status` is `completed`.
    pub success: bool,
    /// Reason for the failure, or a summary of the measurement.
    pub message: String,
    /// `completed` if the kernel ran, no check found it incorrect, and the checks would reject a
    /// useless kernel; otherwise `failed`.
    pub status: &'static str,
    /// Verdict on the kernel; `None` if the kernel did not run.
    pub verdict: Option<KernelVerdict>,
    /// Name of the kernel file.
    pub kernel_file: String,
    /// blake3 hash of the file's content, hex.
    pub kernel_file_blake3: Option<String>,
    /// Product name of the device.
    pub hardware: Option<String>,
    /// `cuda` or `emulator`. Times on the emulator do not predict times on a GPU.
    pub device_kind: Option<Value>,
    /// Name of the kernel that ran.
    pub kernel_name: Option<String>,
    /// Arguments of the kernel by name, as in the contract, with the `position` of each from 0.
    pub kernel_parameters: Value,
    /// Mean time of a launch, milliseconds. For a whole program, the time during which the GPU ran
    /// kernels.
    pub execution_time: Option<f64>,
    /// Throughput of the multiprocessors, percent of their peak. For a whole program, the
    /// percentage of its time on the GPU during which the GPU was busy.
    pub gpu_utilization: Option<f64>,
    /// Total size of the contract's tensors, megabytes (10^6 bytes).
    pub memory_usage: Option<f64>,
    /// Floating-point operations per second.
    pub throughput: Option<f64>,
    /// Floating-point operations per launch.
    pub total_flops: Option<f64>,
    /// Floating-point operations per byte of device memory.
    pub arithmetic_intensity: Option<f64>,
    /// Resource that limits the kernel, according to the roofline.
    pub bound_type: Option<Value>,
    /// Field of the reference executor that is never measured.
    pub vectorization: Option<Value>,
    /// Advice that is based on the profile.
    pub optimizations: Vec<Value>,
    /// Field of the reference executor that is always `null`, because there is no such measure.
    pub performance_score: Option<f64>,
    /// Field of the reference executor that is always `null`, because code is never rewritten.
    pub corrected_code: Option<String>,
    /// Caveats about the other fields.
    pub warnings: Vec<String>,
    /// Name and version of this program.
    pub provider: &'static str,
    /// Time at which the result was created, seconds since the Unix epoch.
    pub timestamp: f64,
    /// Source of the contract: `file`, `comment` or `inferred`.
    pub contract: Option<&'static str>,
    /// Assumptions of an inferred contract.
    pub assumed: Vec<String>,
    /// For each field that is `null`, the reason.
    pub unavailable: BTreeMap<&'static str, String>,
    /// Reason for the failure, with `code` and `message`.
    pub error: Option<Value>,
    pub report: Option<EvaluateResponse>,
}

impl KernelResult {
    fn new(subject: &KernelFileId<'_>) -> Self {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            success: false,
            message: String::new(),
            status: "failed",
            verdict: None,
            kernel_file: subject.file.to_owned(),
            kernel_file_blake3: subject.blake3.clone(),
            hardware: None,
            device_kind: None,
            kernel_name: None,
            kernel_parameters: Value::Null,
            execution_time: None,
            gpu_utilization: None,
            memory_usage: None,
            throughput: None,
            total_flops: None,
            arithmetic_intensity: None,
            bound_type: None,
            vectorization: None,
            optimizations: Vec::new(),
            performance_score: None,
            corrected_code: None,
            warnings: Vec::new(),
            provider: concat!("warpgauge ", env!("CARGO_PKG_VERSION")),
            timestamp: now.as_secs_f64(),
            contract: None,
            assumed: Vec::new(),
            unavailable: BTreeMap::new(),
            error: None,
            report: None,
        }
    }

    /// Returns the result for a file that was not evaluated.
    pub fn refused(
        subject: &KernelFileId<'_>,
        request: Option<&KernelRequest>,
        refusal: &FileRejection,
    ) -> Self {
        let mut outcome = Self::new(subject);
        if let Some(request) = request {
            outcome.take_request(request);
        }
        outcome.error = Some(json!({"code": refusal.code, "message": refusal.message}));
        outcome.explain("the kernel was not evaluated: see `error`");
        outcome.summarise();
        outcome
    }

    /// Returns the result for a file that requests only a compilation.
    pub fn compiled(
        subject: &KernelFileId<'_>,
        report: CompileResponse,
        caveats: Vec<String>,
    ) -> Self {
        let mut outcome = Self::new(subject);
        outcome.warnings = caveats;
        outcome.warnings.extend(report.diagnostics.into_iter().map(|one| one.message));
        if report.compiled {
            outcome.status = "completed";
        } else {
            outcome.verdict = Some(KernelVerdict::NotCompiled);
            let message = report.compilation_error.unwrap_or_else(|| "unknown reason".to_owned());
            outcome.error = Some(json!({"code": "compile_error", "message": message}));
        }
        outcome.kernel_name = report.compile.map(|one| one.symbol).filter(|one| !one.is_empty());
        outcome.explain("the file requests only a compilation (`Type: compile_only`)");
        outcome.summarise();
        if report.compiled {
            outcome.message = "the kernel compiled".to_owned();
        }
        outcome
    }

    /// Returns the result of an evaluation.
    pub fn evaluated(
        subject: &KernelFileId<'_>,
        request: &KernelRequest,
        report: EvaluateResponse,
    ) -> Self {
        let mut outcome = Self::new(subject);
        outcome.take_request(request);
        outcome.take_verdict(&report);
        outcome.take_profile(&report);
        let why = match (&report.failure, &report.profile) {
            (Some(failure), _) => format!("the kernel failed earlier: {}", failure.message),
            (None, Some(profile)) if !profile.available => {
                profile.reason.clone().unwrap_or_else(|| "there is no profile".to_owned())
            }
            (None, _) => "this was not measured: see `report`".to_owned(),
        };
        outcome.explain(&why);
        outcome.report = Some(report);
        outcome.summarise();
        outcome
    }

    /// Returns the result as JSON. For KRAIT's backend, `error` is a string, and is absent if there
    /// is no error, because that backend treats a result with an `error` as a failure. `error_code`
    /// contains the code.
    pub(crate) fn written(&self, for_krait: bool) -> Result<Vec<u8>, serde_json::Error> {
        if !for_krait {
            return serde_json::to_vec_pretty(self);
        }
        let mut result = serde_json::to_value(self)?;
        if let Value::Object(fields) = &mut result
            && let Some(Value::Object(error)) = fields.remove("error")
        {
            let mut error = error;
            for (name, of_error) in [("error", "message"), ("error_code", "code")] {
                fields.insert(name.to_owned(), error.remove(of_error).unwrap_or_default());
            }
        }
        serde_json::to_vec_pretty(&result)
    }

    /// Sets `success` and `message` from the other fields.
    fn summarise(&mut self) {
        self.success = self.status == "completed";
        let failure = self.error.as_ref().and_then(|error| error["message"].as_str());
        self.message = match (failure, self.execution_time) {
            (Some(failure), _) => failure.to_owned(),
            (None, Some(time)) => format!("the kernel ran in {time:.4} ms"),
            (None, None) => "the kernel ran".to_owned(),
        };
    }

    /// Returns a one-line summary of the result.
    pub fn line(&self) -> String {
        let what = match (&self.error, self.execution_time) {
            (Some(error), _) => {
                let message = error["message"].as_str().unwrap_or_default();
                let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
                lines.collect::<Vec<_>>().join("; ").chars().take(200).collect()
            }
            (None, Some(time)) => format!("{time:.4} ms"),
            (None, None) => String::new(),
        };
        format!("{}  {}  {what}", self.kernel_file, self.status)
    }

    fn take_request(&mut self, request: &KernelRequest) {
        self.contract = Some(request.from.name());
        self.assumed = request.assumed.clone();
        self.memory_usage = tensors(&request.request).map(|bytes| bytes as f64 / 1e6);
        let io = request.request.kernel.io.as_ref();
        self.kernel_parameters = io.map_or(Value::Null, |io| {
            io.args
                .iter()
                .enumerate()
                .map(|(position, arg)| {
                    let mut shown = serde_json::to_value(arg).unwrap_or_default();
                    // The content of a tensor may take several megabytes.
                    if let Some(spec) = shown.get_mut("tensor_spec").and_then(Value::as_object_mut)
                    {
                        spec.remove("data");
                    }
                    if let Some(shown) = shown.as_object_mut() {
                        shown.insert("position".to_owned(), position.into());
                    }
                    (arg.name.clone(), shown)
                })
                .collect::<Map<_, _>>()
                .into()
        });
        if request.from == ContractFrom::Inferred {
            let checked = match request.request.kernel.family().runtime() {
                KernelRuntime::Process => "its exit code",
                KernelRuntime::Worker | KernelRuntime::Judge => "whether the kernel runs",
            };
            self.warnings.push(format!(
                "the contract was inferred (see `assumed`): only {checked} was checked"
            ));
        }
    }

    fn take_verdict(&mut self, report: &EvaluateResponse) {
        let result = &report.kernel_exec_result;
        self.hardware = report.device.as_ref().map(|device| device.name.clone());
        self.device_kind =
            report.device.as_ref().and_then(|device| serde_json::to_value(device.kind).ok());
        self.kernel_name = result.metadata.kernel_name.clone();
        self.execution_time = result.runtime;
        let measured = report.measurement.as_ref();
        self.warnings
            .extend(measured.into_iter().flat_map(|measured| measured.notes.iter().cloned()));
        self.warnings
            .extend(report.validation.weaknesses.iter().map(|weakness| weakness.message.clone()));
        let diagnostics = report.compile.iter().flat_map(|compile| &compile.diagnostics);
        self.warnings.extend(diagnostics.map(|diagnostic| diagnostic.message.clone()));
        let verdict = report.kernel_verdict();
        self.verdict = Some(verdict);
        if verdict.is_good() {
            self.status = "completed";
            return;
        }
        let code = match (&report.failure, verdict) {
            (Some(failure), _) => json!(failure.code),
            (None, KernelVerdict::Weak) => Value::from("weak_contract"),
            (None, _) => Value::from("wrong_result"),
        };
        let message = result
            .compilation_error
            .clone()
            .or_else(|| result.validation_error.clone())
            .or_else(|| report.failure.as_ref().map(|failure| failure.message.clone()))
            .or_else(|| {
                report.why_weak().map(|why| format!("a useless kernel would pass too: {why}"))
            })
            .unwrap_or_else(|| "the kernel was found wrong".to_owned());
        let guessed = self.contract == Some(ContractFrom::Inferred.name());
        let message = if guessed && result.compiled && report.program.is_none() {
            format!(
                "{message}; the contract was inferred, so a wrong guess may be the cause, not the kernel: \
                 see `assumed`, and put a contract beside the file or in its first comment"
            )
        } else {
            message
        };
        self.error = Some(json!({"code": code, "message": message}));
    }

    fn take_profile(&mut self, report: &EvaluateResponse) {
        let rates = report.measurement.as_ref().and_then(|measured| measured.rates.as_ref());
        self.throughput = rates.and_then(|rates| rates.flops_per_second);
        self.total_flops = rates.and_then(|rates| rates.flops);
        if let Some(rates) = rates
            && rates.bytes_from.is_some()
            && let (Some(flops), Some(bytes)) = (rates.flops, rates.bytes)
        {
            self.arithmetic_intensity = Some(flops / bytes);
        }
        if report.program.is_some() {
            self.take_timeline(report);
        }
        let Some(metrics) = &report.kernel_exec_result.metadata.device_metrics else { return };
        if report.program.is_some() && self.kernel_name.is_none() {
            // Without a timeline, the first kernel in the profiler's report is the one that took
            // longest.
            let longest = metrics.kernels.first().map_or(&metrics.kernel, |one| &one.kernel);
            self.kernel_name = Some(plain_name(longest).to_owned());
        }
        let mut value = |field: &'static str, id: &str| {
            let metric = metrics.metrics.get(id)?;
            if let (None, Some(reason)) = (metric.value, &metric.reason) {
                self.unavailable.insert(field, reason.clone());
            }
            metric.value
        };
        let utilization = value("gpu_utilization", "sm_throughput");
        let rate = value("throughput", "flop_rate");
        let counted = value("total_flops", "flop_count");
        let intensity = value("arithmetic_intensity", "arithmetic_intensity");
        self.gpu_utilization = self.gpu_utilization.or(utilization);
        // Measured values replace those that the contract declares.
        self.throughput = rate.or(self.throughput);
        self.total_flops = counted.or(self.total_flops);
        self.arithmetic_intensity = intensity.or(self.arithmetic_intensity);
        if let Some(roofline) = &metrics.roofline {
            match roofline.bound_by {
                Some(bound) => self.bound_type = serde_json::to_value(bound).ok(),
                None => drop(self.unavailable.insert("bound_type", roofline.bound_reason.clone())),
            }
        }
        self.optimizations =
            metrics.advice.iter().filter_map(|advice| serde_json::to_value(advice).ok()).collect();
    }

    /// Sets the fields of a whole program from its timeline.
    fn take_timeline(&mut self, report: &EvaluateResponse) {
        let Some(timeline) = &report.timeline else { return };
        let longest = report.program.as_ref().and_then(|program| program.kernels.first());
        self.kernel_name = longest.map(|kernel| plain_name(&kernel.name).to_owned());
        self.execution_time = timeline.gpu.as_ref().map(|gpu| gpu.kernels_ms);
        let summary = timeline.summary.as_ref();
        self.gpu_utilization = summary.and_then(|summary| summary.gpu_utilization_pct);
        if let Some(why) = &timeline.unavailable {
            for field in ["execution_time", "gpu_utilization"] {
                self.unavailable.insert(field, why.reason.clone());
            }
        }
    }

    /// Adds the reason for each field that is `null`.
    fn explain(&mut self, why: &str) {
        let fields = [
            ("hardware", self.hardware.is_none()),
            ("kernel_name", self.kernel_name.is_none()),
            ("execution_time", self.execution_time.is_none()),
            ("gpu_utilization", self.gpu_utilization.is_none()),
            ("memory_usage", self.memory_usage.is_none()),
            ("throughput", self.throughput.is_none()),
            ("total_flops", self.total_flops.is_none()),
            ("arithmetic_intensity", self.arithmetic_intensity.is_none()),
            ("bound_type", self.bound_type.is_none()),
        ];
        for (field, absent) in fields {
            if absent {
                self.unavailable.entry(field).or_insert_with(|| why.to_owned());
            } else {
                self.unavailable.remove(field);
            }
        }
        let never = [
            (
                "vectorization",
                "it is not measured; the access pattern metrics in `report` show access widths",
            ),
            (
                "performance_score",
                "there is no such measure: times, rates and the roofline are in `report`",
            ),
            ("corrected_code", "code is evaluated unchanged, never rewritten"),
        ];
        self.unavailable.extend(never.map(|(field, why)| (field, why.to_owned())));
    }
}

/// Returns the total size of a contract's tensors, bytes.
fn tensors(request: &EvaluateRequest) -> Option<u64> {
    let args = &request.kernel.io.as_ref()?.args;
    let specs = args.iter().filter_map(|arg| arg.tensor_spec.as_ref());
    let bytes = specs.map(|spec| {
        let elements = spec.shape.iter().try_fold(1_u64, |all, extent| all.checked_mul(*extent))?;
        elements.checked_mul(spec.dtype.size() as u64)
    });
    bytes.sum()
}

/// Removes the return type and the parameters that tools add to the name of a kernel.
fn plain_name(told: &str) -> &str {
    let name = told.strip_prefix("void ").unwrap_or(told);
    if !name.ends_with(')') {
        return name;
    }
    let mut open = 0;
    // This finds the parenthesis that matches the last one. Others may belong to parameters and
    // template arguments.
    let begin = name.bytes().rposition(|byte| {
        open += i32::from(byte == b')') - i32::from(byte == b'(');
        open == 0
    });
    begin.filter(|begin| *begin > 0).map_or(name, |begin| &name[..begin])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kernels_are_told_without_their_parameters() {
        for (told, name) in [
            ("k", "k"),
            ("k(int *)", "k"),
            ("void scale<float, (int)4>(float *, void (*)(int), int)", "scale<float, (int)4>"),
            ("(anonymous namespace)::k(int)", "(anonymous namespace)::k"),
            ("k<(int)4>", "k<(int)4>"),
            ("(odd)", "(odd)"),
            ("odd)", "odd)"),
            ("", ""),
        ] {
            assert_eq!(plain_name(told), name);
        }
    }
}
