//! Wire types of the report of one evaluation. The main type is [`EvaluateResponse`].
//!
//! `status`, `job_id` and `kernel_exec_result` have the names and meaning of the CUDA Evaluation
//! Server's response; the other fields are specific to this project. A field that does not apply is
//! absent, never zero.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::launches::{LaunchReport, StepReport};
use super::measurement::MeasurementReport;
use super::program::ProgramReport;
use super::timeline::TimelineReport;
use super::torch::TorchReport;
use super::tuning::TuningReport;
use super::verdict::KernelVerdict;
use warpgauge_contract::{KernelType, MatrixUsed, RequestWarning, TensorUsed};
use warpgauge_metrics::DeviceMetrics;
use warpgauge_model::WorkerTimings;
use warpgauge_model::{
    DeviceInfo, DeviceKind, Diagnostic, FailureCode, FailureStage, FunctionFacts, Resources,
    Unavailable,
};
use warpgauge_statistics::{Counted, RuntimeStats};
use warpgauge_tensor::{Compress, DataFormat, Dtype};
use warpgauge_validate::{Comparison, Reason, Weakness};

/// Report of one evaluation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EvaluateResponse {
    /// Id of the job, at `/jobs/{job_id}`.
    pub job_id: String,
    /// `success` if the evaluation ran to its end, whatever the verdict.
    pub status: ResponseStatus,
    /// Verdict on the kernel. Absent in reports that earlier versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Correctness, times and errors, with the names of the CUDA Evaluation Server.
    pub kernel_exec_result: KernelExecResult,
    /// Product name of the device, as in `device.name`. The placeholder is `CPU`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// Name of the host that answers. Absent in an answer without placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// Address at which the caller reached the host that answers. Absent in an answer without placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_ip: Option<String>,
    /// Wall-clock time by stage, milliseconds.
    pub timings: Timings,
    /// Device that ran the kernel. Absent for a torch kernel on the CPU; `torch` describes that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceReport>,
    /// Compilation of the kernel. Absent if nothing was compiled or loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile: Option<CompileReport>,
    /// Launch of the kernel. Absent for several launches, library functions, torch kernels, programs, and if nothing
    /// was launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<LaunchReport>,
    /// Checks of the outputs, with their results.
    pub validation: ValidationReport,
    /// Method, samples and statistics of the timed launches. Absent if nothing was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<MeasurementReport>,
    /// Outputs by name: the hash of each, and the content of those in `return_outputs`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, OutputReport>,
    /// Error that ended the run early. Absent if the run did not end early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureReport>,
    /// Output of the kernel's `printf`, truncated to a maximum length. Absent if the kernel printed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<String>,
    /// Availability of device metrics, if the request has `profile`. The metrics are in
    /// `kernel_exec_result.metadata.device_metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Availability>,
    /// Timeline of the GPU and the driver, if the request has `nsys` in `profile.tools`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineReport>,
    /// Findings of memory checks, if the request has `sanitize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sanitize: Option<SanitizeReport>,
    /// Exact counts of one launch. Present only on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Steps of a kernel of several launches (`kernel.launches`), each timed separately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<StepReport>,
    /// Choice of one configuration, for a kernel with several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<TuningReport>,
    /// Environment, inputs and clocks of a torch kernel. Absent for other kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch: Option<TorchReport>,
    /// Output, exit code and launches of a whole program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramReport>,
    /// Sparse matrices that the contract names, with the content that was used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixUsed>,
    /// Shared tensors that the contract names, with the content that was copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorUsed>,
    /// Fields of the request that are ignored, and fields that were missing and were filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<RequestWarning>,
    /// Outputs that `keep_outputs` names, by name: the shared tensor of each, or the reason why there is none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept_outputs: BTreeMap<String, KeptOutput>,
}

impl EvaluateResponse {
    /// Returns the reason why the time is not ranked, although the kernel has no known fault.
    pub fn unranked(&self) -> Option<&str> {
        self.measurement.as_ref()?.unranked.as_deref()
    }

    /// Returns whether the kernel has a time, which may or may not be ranked. Such a kernel has no
    /// known fault.
    pub fn is_timed(&self) -> bool {
        self.kernel_exec_result.runtime.is_some() || self.unranked().is_some()
    }

    /// Returns the size of the tensor content in the report in base64, bytes.
    pub fn content_bytes(&self) -> usize {
        let outputs = self.outputs.values();
        outputs.map(|output| output.data_b64.as_ref().map_or(0, String::len)).sum()
    }
}

/// Result of the request as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResponseStatus {
    /// The evaluation ran to its end; `verdict` and `kernel_exec_result` describe the kernel.
    Success,
    /// The evaluation did not run to its end, and the kernel is not at fault.
    Error,
}

/// Correctness and times of one kernel.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct KernelExecResult {
    /// Whether the kernel compiled.
    pub compiled: bool,
    /// Whether every checked output is right. Null if there was nothing to check against, or if a useless kernel
    /// would pass too (`verdict`: `weak`). The placeholder is false.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub correctness: Option<bool>,
    /// Mean time of one launch, milliseconds. Null unless the kernel ran, was not found wrong and
    /// has a time that is ranked (see `measurement.unranked`). The placeholder is 0.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub runtime: Option<f64>,
    /// Statistics of the launch times. Null unless the kernel ran and was not found wrong.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub runtime_stats: Option<RuntimeStats>,
    /// Reason why the kernel does not compile. Null if it compiles.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub compilation_error: Option<String>,
    /// Reason why the kernel is not correct. Null if no fault was found, or if the machine lacks something that
    /// `failure` names.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub validation_error: Option<String>,
    /// Facts about the kernel and the device.
    pub metadata: ExecMetadata,
}

/// Facts about the kernel and the device, with the names of the CUDA Evaluation Server.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExecMetadata {
    /// CUDA ordinal of the device. The placeholder is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_id: Option<u32>,
    /// Name of the kernel that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// Type of the submitted kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_type: Option<KernelType>,
    /// Product name of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// CUDA version of the driver, e.g. `13.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda_version: Option<String>,
    /// Configuration that was chosen for a kernel with several: its constants, `num_warps` and other settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<BTreeMap<String, serde_json::Value>>,
    /// Device metrics of the kernel. Absent if the request has no `profile`, or if no source could read them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_metrics: Option<DeviceMetrics>,
}

/// Wall-clock time by stage, milliseconds. The stages and `other` add up to `total`, except that kernels which are
/// compiled at the same time each count in full in `compile`. `device_busy` is a part of `execute`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    /// Time of waiting for a device.
    pub queue: f64,
    /// Time of starting the processes that run and judge a torch kernel, and of creating their CUDA contexts.
    #[serde(default)]
    pub start: f64,
    /// Time of compiling, or of finding the result in the cache.
    pub compile: f64,
    /// Time of loading the kernel's image. For a torch kernel: time of running the sources, creating the modules, and
    /// copying the reference's parameters.
    #[serde(default)]
    pub load: f64,
    /// Time of allocating and filling device buffers. For a torch kernel: time of creating its inputs.
    pub h2d: f64,
    /// Time of warm-up and timed launches.
    pub execute: f64,
    /// Part of `execute` from the first to the last timed launch of each batch. It includes the time in which the
    /// device waits for the host to queue a launch.
    pub device_busy: f64,
    /// Time of copying outputs back and hashing them.
    pub d2h: f64,
    /// Time of checks: guard bands, inputs, reference kernels, comparisons.
    pub verify: f64,
    /// Time of reading device metrics, in separate launches and processes.
    #[serde(default)]
    pub profile: f64,
    /// Time of creating and returning the report.
    #[serde(default)]
    pub report: f64,
    /// Time outside the named stages.
    #[serde(default)]
    pub other: f64,
    /// Time from the arrival of the request to the answer.
    pub total: f64,
}

impl Timings {
    /// Copies the times that a worker measured.
    pub fn set_worker(&mut self, worker: &WorkerTimings) {
        self.load = worker.load_ms;
        self.h2d = worker.h2d_ms;
        self.execute = worker.execute_ms;
        self.device_busy = worker.device_busy_ms;
        self.d2h = worker.d2h_ms;
        self.verify = worker.verify_ms;
    }

    /// Adds the times of another run, stage by stage.
    pub fn add(&mut self, other: &Timings) {
        self.queue += other.queue;
        self.start += other.start;
        self.compile += other.compile;
        self.load += other.load;
        self.h2d += other.h2d;
        self.execute += other.execute;
        self.device_busy += other.device_busy;
        self.d2h += other.d2h;
        self.verify += other.verify;
        self.profile += other.profile;
        self.report += other.report;
        self.other += other.other;
        self.total += other.total;
    }

    /// Returns the sum of the named stages.
    pub fn named(&self) -> f64 {
        let before = self.queue + self.start + self.compile + self.load + self.h2d;
        before + self.execute + self.d2h + self.verify + self.profile + self.report
    }

    /// Sets the total time, and `other` to the part outside the named stages.
    pub fn set_total(&mut self, total: f64) {
        self.total = total;
        self.other = (total - self.named()).max(0.0);
    }
}

/// Device that ran the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceReport {
    /// CUDA ordinal.
    pub id: u32,
    /// `cuda` or `emulator`. Times of different kinds are never compared.
    pub kind: DeviceKind,
    /// Product name.
    pub name: String,
    /// UUID.
    pub uuid: String,
    /// Compute capability, e.g. `9.0`.
    pub compute_capability: String,
    /// CUDA version of the driver, e.g. `13.0`.
    pub cuda_version: String,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Size of the device memory, bytes.
    pub memory_bytes: u64,
    /// Size of the L2 cache, bytes.
    pub l2_bytes: u64,
}

impl From<&DeviceInfo> for DeviceReport {
    fn from(info: &DeviceInfo) -> Self {
        let (major, minor) = info.target.compute_capability;
        Self {
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
}

/// Formats a CUDA version as NVIDIA does: `13000` is `13.0`.
pub fn cuda_version(driver: i32) -> String {
    format!("{}.{}", driver / 1000, driver % 1000 / 10)
}

/// Compilation of a kernel.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct CompileReport {
    /// Name and version of the compiler.
    pub compiler: String,
    /// Options of the compiler: those of the request and those that the service adds, without directories. Up to a
    /// maximum number and length. Absent if no compiler ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Whether the image came from the compile cache.
    pub cache_hit: bool,
    /// Key of the image in the compile cache, a hash of everything that the image depends on.
    pub key: String,
    /// Names of the kernels in the image.
    pub kernels: Vec<String>,
    /// Symbol of the kernel that ran. Empty if several kernels were compiled and the request names none of them.
    pub symbol: String,
    /// Resources of the kernel that ran, from the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Resources and occupancy that the driver reports for this launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionFacts>,
    /// Errors and warnings of the compiler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// Log of the compiler, truncated to a maximum length.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

/// Checks of the outputs, with their results.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ValidationReport {
    /// Result of all checks together.
    pub status: ValidationStatus,
    /// Comparison of each checked output with its expectation, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Comparison>,
    /// Reasons why the kernel is wrong. The first one is also in `validation_error`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// Weaknesses of the contract: ways in which a kernel that does not do the work could pass, and how to improve
    /// the contract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weaknesses: Vec<Weakness>,
    /// Names of outputs without an expectation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<String>,
}

/// Result of all checks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidationStatus {
    /// Every checked output matches its expectation.
    Passed,
    /// An output does not match its expectation, or another check failed.
    Failed,
    /// The contract gives no expectation.
    NotChecked,
    /// The run ended before the checks.
    NotRun,
}

/// Output of a kernel.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OutputReport {
    /// Element type.
    pub dtype: Dtype,
    /// Shape, in C order.
    pub shape: Vec<u64>,
    /// BLAKE3 hash of the raw elements, hexadecimal.
    pub blake3: String,
    /// Content in base64. Absent unless the request asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_b64: Option<String>,
    /// Compression of the content before base64. Absent without content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<Compress>,
    /// Layout of the content. Absent without content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<DataFormat>,
}

/// Output that the request asks to keep as a shared tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptOutput {
    /// Id of the shared tensor, at `/tensors/{tensor_id}`. Absent if the output is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_id: Option<String>,
    /// Memory that holds the tensor: `cuda:0` for the GPU with ordinal 0, or `cpu` for the host's memory. Absent if
    /// the output is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Reason why the output is not kept, with a remedy. Absent if the output is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl KeptOutput {
    /// Creates the entry of an output that is not kept.
    pub fn not_kept(reason: impl Into<String>) -> Self {
        Self { tensor_id: None, device: None, reason: Some(reason.into()) }
    }
}

/// Error that ended a run early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureReport {
    /// Stage that failed.
    pub stage: FailureStage,
    /// Stable code of the error.
    pub code: FailureCode,
    /// Description of the error, with its place and a remedy.
    pub message: String,
}

/// Availability of something that the request asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Availability {
    /// Whether it is available.
    pub available: bool,
    /// Reason why it is not available, with a remedy. Absent if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Result of memory checks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SanitizeReport {
    /// Whether the checks ran.
    pub available: bool,
    /// Reason why the checks did not run. Absent if they ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Tool that ran the checks: `emulator` or `compute-sanitizer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Findings, up to a maximum number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Checkers of compute-sanitizer that the request asks for. Empty on the emulated device, which has a single
    /// checker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckReport>,
}

/// Run of one checker of compute-sanitizer, in a separate process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Name of the checker: `memcheck`, `racecheck`, `initcheck` or `synccheck`.
    pub tool: String,
    /// Whether the checker ran to its end.
    pub available: bool,
    /// Version of compute-sanitizer. Absent if it did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Wall-clock time of the checker, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<f64>,
    /// Reason why the checker did not run to its end, with a remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
    /// Number of findings that the checker left out because there were too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
}

/// Finding of a memory check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Kind of fault: `out_of_bounds`, `misaligned`, `use_after_free`, `uninitialised_read`, `shared_race`,
    /// `global_race`, `divergent_barrier`, `undefined_mask`, `read_only_write`; from compute-sanitizer also
    /// `invalid_barrier`, `bad_free`, `host_access`, `api_error`, `other`.
    pub check: String,
    /// Name of the kernel.
    pub kernel: String,
    /// Index of the block (x, y, z). Absent where the checker does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// Index of the thread in its block (x, y, z). Absent where the checker does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<[u32; 3]>,
    /// Source file and line. Absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Description of the fault.
    pub message: String,
    /// Number of occurrences.
    pub count: u64,
}
