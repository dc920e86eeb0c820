//! Wire types of the report of one evaluation. The main type is [`EvaluateResponse`].
//!
//! `status`, `job_id` and `kernel_exec_result` have the names and meaning of the CUDA Evaluation
//! Server's response; the other fields are specific to this project. A field that does not apply is
//! absent, never zero.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::launches::StepReport;
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

/// The report of one evaluation.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EvaluateResponse {
    /// Identifies the job at `/jobs/{job_id}`.
    pub job_id: String,
    /// `success`: the evaluation ran to an end, whatever its verdict.
    pub status: ResponseStatus,
    /// The verdict on the kernel. Absent in reports that earlier versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Verdict and times.
    pub kernel_exec_result: KernelExecResult,
    /// Product name of the device, as in `device.name`; the placeholder is `CPU`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// Name of the host that answers, beside placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_name: Option<String>,
    /// Address at which the caller reached the host that answers, beside placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_ip: Option<String>,
    /// Where the wall-clock time went, milliseconds.
    pub timings: Timings,
    /// The device that ran the kernel. Absent where the CPU did; `torch` describes that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceReport>,
    /// The compilation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile: Option<CompileReport>,
    /// What was checked, and how it came out.
    pub validation: ValidationReport,
    /// How the times were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<MeasurementReport>,
    /// Outputs by name: their hash always, their content on request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, OutputReport>,
    /// Why the run ended early, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureReport>,
    /// What the kernel printed (`printf`), bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<String>,
    /// Whether there are device metrics, when asked for; they are in
    /// `kernel_exec_result.metadata.device_metrics`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Availability>,
    /// What the GPU and the driver did, when asked for (`nsys` in `profile.tools`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineReport>,
    /// Memory checks, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sanitize: Option<SanitizeReport>,
    /// What one launch does, by exact counts: on the emulated device, where it was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// The steps of a program of several launches (`kernel.launches`), each timed on its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<StepReport>,
    /// How one of several configurations of the kernel was chosen, if it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<TuningReport>,
    /// How a torch kernel was run, and on what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torch: Option<TorchReport>,
    /// What a whole program printed and returned, and what it launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramReport>,
    /// The sparse matrices that the contract named, and what was under these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixUsed>,
    /// The shared tensors that the contract named, as they were copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorUsed>,
    /// What the request had that is ignored, and what it lacked that was filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<RequestWarning>,
    /// What became of the outputs that were to be kept as shared tensors (`keep_outputs`), by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept_outputs: BTreeMap<String, KeptOutput>,
}

impl EvaluateResponse {
    /// Returns the reason why the time has no rank although no fault of the kernel is known.
    pub fn unranked(&self) -> Option<&str> {
        self.measurement.as_ref()?.unranked.as_deref()
    }

    /// Returns the size of the tensor content in the report, in bytes.
    pub fn content_bytes(&self) -> usize {
        let outputs = self.outputs.values();
        outputs.map(|output| output.data_b64.as_ref().map_or(0, String::len)).sum()
    }
}

/// Whether the evaluation ran to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResponseStatus {
    /// It did; read the verdict in `kernel_exec_result`.
    Success,
    /// It did not, for a reason that is not the kernel's.
    Error,
}

/// Verdict and times of one kernel.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct KernelExecResult {
    /// Whether the kernel compiled.
    pub compiled: bool,
    /// Whether every output is right. Null when there was nothing to check against, or when a useless
    /// kernel would pass too (`verdict`: `weak`); with placeholders it is false then.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub correctness: Option<bool>,
    /// Mean time of one launch, milliseconds. Null unless the kernel ran, was not found wrong and has a
    /// time that can be ranked (`measurement.unranked`); with placeholders it is 0 then.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub runtime: Option<f64>,
    /// Statistics of the launch times. Null unless the kernel ran and was not found wrong.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub runtime_stats: Option<RuntimeStats>,
    /// Why it did not compile.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub compilation_error: Option<String>,
    /// Why it is not right; null where the machine lacks something, which `failure` names.
    #[serde(default)]
    #[schemars(extend("nullable" = true))]
    pub validation_error: Option<String>,
    /// Kernel and device.
    pub metadata: ExecMetadata,
}

/// Kernel and device, as the reference response has them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExecMetadata {
    /// Ordinal of the device; the placeholder is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_id: Option<u32>,
    /// Kernel that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_name: Option<String>,
    /// What was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_type: Option<KernelType>,
    /// Product name of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_type: Option<String>,
    /// CUDA version of the driver, e.g. `13.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda_version: Option<String>,
    /// The configuration that was chosen for a kernel with several: its constants, `num_warps` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<BTreeMap<String, serde_json::Value>>,
    /// What the kernel asked of the hardware, when asked for and known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_metrics: Option<DeviceMetrics>,
}

/// Wall-clock time by stage, milliseconds. The stages and `other` add up to `total`, except that compilations which
/// run side by side count once each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timings {
    /// Waiting for a device.
    pub queue: f64,
    /// Starting the processes that run and judge a torch kernel, and making their contexts.
    #[serde(default)]
    pub start: f64,
    /// Compiling, or finding the result in the cache.
    pub compile: f64,
    /// Loading the kernel's image; of a torch kernel running the sources, making the modules, and giving both sides the
    /// same parameters.
    #[serde(default)]
    pub load: f64,
    /// Allocating and filling device buffers; making the inputs of a torch kernel.
    pub h2d: f64,
    /// Warm-up and timed launches.
    pub execute: f64,
    /// Part of `execute` from the first to the last timed launch of each batch; the device waits in
    /// it for the host where a launch must not begin before it is queued.
    pub device_busy: f64,
    /// Copying back and hashing outputs.
    pub d2h: f64,
    /// Checking: guard bands, inputs, reference kernels, comparisons.
    pub verify: f64,
    /// Reading device metrics, in launches and processes of their own.
    #[serde(default)]
    pub profile: f64,
    /// Writing the report, and handing it over.
    #[serde(default)]
    pub report: f64,
    /// What is in no other entry.
    #[serde(default)]
    pub other: f64,
    /// From the request's arrival to the answer.
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

/// The device that ran the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceReport {
    /// CUDA ordinal.
    pub id: u32,
    /// `cuda` or `emulator`; times of different kinds are never compared.
    pub kind: DeviceKind,
    /// Product name.
    pub name: String,
    /// UUID.
    pub uuid: String,
    /// `9.0`.
    pub compute_capability: String,
    /// CUDA version of the driver, e.g. `13.0`.
    pub cuda_version: String,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Device memory, bytes.
    pub memory_bytes: u64,
    /// L2 cache, bytes.
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

/// The compilation.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct CompileReport {
    /// Compiler and version.
    pub compiler: String,
    /// Whether the image came from the cache.
    pub cache_hit: bool,
    /// Content address of the image.
    pub key: String,
    /// Kernels found in the image.
    pub kernels: Vec<String>,
    /// Symbol of the kernel that ran. Empty for a compilation that names none of several kernels.
    pub symbol: String,
    /// Resources of the kernel that ran, from the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Resources and occupancy as the driver reports them for this launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionFacts>,
    /// Errors and warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// The compiler's whole log, bounded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

/// What was checked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ValidationReport {
    /// Overall.
    pub status: ValidationStatus,
    /// Verdict of each checked output, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Comparison>,
    /// Everything that speaks against the kernel; the first is in `validation_error`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    /// How a kernel that does not do the work could pass: what to improve in the contract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weaknesses: Vec<Weakness>,
    /// Outputs that the contract says nothing about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<String>,
}

/// Outcome of validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidationStatus {
    /// Every checked output matches.
    Passed,
    /// One does not.
    Failed,
    /// The contract gives no expectation.
    NotChecked,
    /// The kernel did not get that far.
    NotRun,
}

/// One output.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct OutputReport {
    /// Element type.
    pub dtype: Dtype,
    /// Shape, C order.
    pub shape: Vec<u64>,
    /// blake3 of the raw elements, hex.
    pub blake3: String,
    /// Content, base64, when asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_b64: Option<String>,
    /// Compression under the base64, when there is content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<Compress>,
    /// Layout of the content, when there is content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<DataFormat>,
}

/// What became of an output that was to be kept as a shared tensor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptOutput {
    /// The tensor that it is: `GET /tensors/{tensor_id}`. Absent if it is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor_id: Option<String>,
    /// Where it is: `cuda:0`, or `cpu` for the host's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Why it is not kept, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl KeptOutput {
    /// Creates the entry of an output that is not kept.
    pub fn not_kept(reason: impl Into<String>) -> Self {
        Self { tensor_id: None, device: None, reason: Some(reason.into()) }
    }
}

/// Why a run ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureReport {
    /// Stage that failed: `compile`, `execute`, `validate`.
    pub stage: FailureStage,
    /// Stable code.
    pub code: FailureCode,
    /// What happened, where, and what to do.
    pub message: String,
}

/// Whether a capability that was asked for could be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Availability {
    /// Whether it was done.
    pub available: bool,
    /// Why not, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Outcome of memory checks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SanitizeReport {
    /// Whether they ran.
    pub available: bool,
    /// Why not, if they did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What ran them: `emulator` or `compute-sanitizer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Findings, bounded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Each checker of compute-sanitizer that was asked for; none on the emulated device, whose
    /// checks are one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckReport>,
}

/// How one checker of compute-sanitizer fared, in a run of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// `memcheck`, `racecheck`, `initcheck` or `synccheck`.
    pub tool: String,
    /// Whether it ran to its end.
    pub available: bool,
    /// Version of compute-sanitizer, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How long it took, milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<f64>,
    /// Why it did not run to its end, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<Unavailable>,
    /// Findings that it left out, because there were too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
}

/// One finding of a memory check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Which check: `out_of_bounds`, `misaligned`, `use_after_free`, `uninitialised_read`,
    /// `shared_race`, `global_race`, `divergent_barrier`, `undefined_mask`, `read_only_write`; from
    /// compute-sanitizer also `invalid_barrier`, `bad_free`, `host_access`, `api_error`, `other`.
    pub check: String,
    /// Kernel.
    pub kernel: String,
    /// Block index. Absent where a checker does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// Thread index. Absent where a checker does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<[u32; 3]>,
    /// Source file and line, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What happened.
    pub message: String,
    /// How often.
    pub count: u64,
}
