//! Answers for agents: the verdict, the three most useful facts, and links to the rest of the
//! result. Their length is limited. The main type is [`Outcome`].

mod comparison;
mod evaluation;
mod job;
mod verdict;

use schemars::JsonSchema;
use serde::Serialize;

use super::backend::JobBackendError;
use super::report::truncated;
use super::resources::{artifact_uri, report_uri};
pub(crate) use job::{answer as of_job, cut};
pub(crate) use verdict::Verdict;
use warpgauge_model::{DeviceKind, JobKind, JobState};
use warpgauge_report::{DeviceReport, ResponseStatus, RuntimeStats};
use warpgauge_service::{ArtifactKind, DeviceView};

/// Maximum number of facts in an answer.
const FACTS: usize = 3;

/// Maximum length of a summary, of a fact, and of a text that a compiler or a check wrote, bytes.
const SUMMARY_BYTES: usize = 480;
const FACT_BYTES: usize = 640;
const TEXT_BYTES: usize = 2000;

/// Result of a tool call about a job, for programs: `structuredContent`. `status`,
/// `kernel_exec_result` and `ref_runtime` have the same names and meaning as in the answers of the
/// CUDA Evaluation Server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Outcome {
    /// Verdict on the kernel, or the reason why there is none.
    pub(crate) verdict: Verdict,
    /// Verdict in one sentence.
    pub(crate) summary: String,
    /// Up to three facts, the most useful first.
    pub(crate) facts: Vec<String>,
    /// Id of the job, for `get_job`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_id: Option<String>,
    /// URL of the page that shows the job in a browser, for people. Absent unless the server's
    /// address is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) page: Option<String>,
    /// Kind of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<JobKind>,
    /// State of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<JobState>,
    /// `success` if the job ended normally, with any verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<ResponseStatus>,
    /// Correctness and times of the kernel, or of the first candidate of a comparison. Times are in
    /// milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kernel_exec_result: Option<ExecResult>,
    /// Times of the reference in a comparison, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ref_runtime: Option<RuntimeStats>,
    /// Device that ran the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) device: Option<Device>,
    /// Candidates of a comparison, in the order of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) candidates: Vec<CandidateLine>,
    /// Error of a job that failed or was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Fault>,
    /// URIs of further parts of the result. Agents can fetch them with `resources/read`, or with
    /// `read` of `get_job`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
}

/// Correctness and times of one kernel: the short fields of the report's `kernel_exec_result`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ExecResult {
    pub(crate) compiled: bool,
    /// Whether every checked output is correct. Absent if nothing was checked, or if a useless
    /// kernel would pass too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) correctness: Option<bool>,
    /// Mean time of one launch, milliseconds. Absent unless the kernel ran, was not found wrong and
    /// has a time that can be ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runtime: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) runtime_stats: Option<RuntimeStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) compilation_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) validation_error: Option<String>,
    pub(crate) metadata: ExecMetadata,
}

/// Facts about the kernel and the device.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ExecMetadata {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kernel_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gpu_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cuda_version: Option<String>,
}

/// Device that ran a kernel.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Device {
    pub(crate) name: String,
    /// Kind of the device, `cuda` or `emulator`. Times of an emulated device do not predict those
    /// on a GPU.
    pub(crate) kind: DeviceKind,
}

/// Candidate of a comparison.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct CandidateLine {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) summary: String,
    /// Time of the reference divided by the time of the candidate. Above 1, the candidate is
    /// faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) speedup: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) speedup_ci_low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) speedup_ci_high: Option<f64>,
}

/// Error of a job that failed or was rejected.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Fault {
    /// Error code. Unlike the message, it is stable.
    pub(crate) code: String,
    pub(crate) message: String,
    /// JSON path of the invalid argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
}

impl Outcome {
    pub(crate) fn new(verdict: Verdict, summary: impl Into<String>) -> Self {
        Self {
            verdict,
            summary: plain(&summary.into(), SUMMARY_BYTES),
            facts: Vec::new(),
            job_id: None,
            page: None,
            kind: None,
            state: None,
            status: None,
            kernel_exec_result: None,
            ref_runtime: None,
            device: None,
            candidates: Vec::new(),
            error: None,
            resources: Vec::new(),
        }
    }

    /// Returns the outcome of a rejected call.
    pub(crate) fn refused(refusal: &JobBackendError) -> Self {
        let JobBackendError { code, message, path } = refusal;
        let message = plain(message, TEXT_BYTES);
        let error = Fault { code: code.clone(), message: message.clone(), path: path.clone() };
        Self { error: Some(error), ..Self::new(Verdict::Refused, message) }
    }

    /// Adds a fact, unless there are already three.
    pub(crate) fn fact(&mut self, fact: impl Into<String>) {
        if self.facts.len() < FACTS {
            self.facts.push(plain(&fact.into(), FACT_BYTES));
        }
    }

    /// Sets the job and the URIs of its artifacts.
    pub(crate) fn of_job(mut self, job_id: &str, artifacts: &[ArtifactKind]) -> Self {
        self.job_id = Some(job_id.to_owned());
        self.resources.push(report_uri(job_id));
        self.resources.extend(artifacts.iter().map(|kind| artifact_uri(job_id, *kind)));
        self
    }

    pub(crate) fn on(mut self, device: Option<&DeviceReport>) -> Self {
        self.device = device.map(|device| Device { name: device.name.clone(), kind: device.kind });
        self
    }

    /// Formats the answer as text. The verdict comes first.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.verdict.words(), self.summary);
        for fact in &self.facts {
            text.push_str(&format!("- {fact}\n"));
        }
        // With a single candidate, the lines above already contain this.
        for candidate in self.candidates.iter().filter(|_| self.candidates.len() > 1) {
            let CandidateLine { name, verdict, summary, .. } = candidate;
            text.push_str(&format!("- {name}: {}: {summary}\n", verdict.words()));
        }
        if let (Verdict::Refused, Some(Fault { code, path, .. })) = (self.verdict, &self.error) {
            let at = path.as_ref().map_or(String::new(), |path| format!(" at {path}"));
            text.push_str(&format!("- [{code}]{at}; nothing was run\n"));
        }
        if let (Some(job_id), false) = (&self.job_id, self.resources.is_empty()) {
            let parts: Vec<&str> =
                self.resources.iter().filter_map(|uri| uri.rsplit('/').next()).collect();
            text.push_str(&format!(
                "More: get_job with job_id {job_id:?} and read: {}; or the resource {}\n",
                parts.join(", "),
                report_uri(job_id)
            ));
        }
        if let Some(page) = &self.page {
            text.push_str(&format!("Page for people: {page}\n"));
        }
        text
    }

    /// Returns whether the call failed. An incorrect kernel is not an error.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self.verdict, Verdict::Refused | Verdict::JobFailed)
    }
}

/// Returns the answer of `list_devices`: its text, and the same data as JSON.
pub(crate) fn of_devices(devices: &[DeviceView]) -> (String, serde_json::Value) {
    let summary = match devices.len() {
        0 => "no device: kernels cannot run on this machine".to_owned(),
        1 => "1 device".to_owned(),
        n => format!("{n} devices"),
    };
    let mut text = format!("{summary}\n");
    let shown = &devices[..devices.len().min(MAX_DEVICES)];
    for view in shown {
        let device = warpgauge_report::readable::device(&view.device);
        text.push_str(&plain(&format!("- {device}: {}", view.state), FACT_BYTES));
        text.push('\n');
    }
    (text, serde_json::json!({"summary": summary, "devices": shown}))
}

/// Maximum number of devices in a list.
const MAX_DEVICES: usize = 64;

/// Shortens a text, puts it on one line and removes control characters, because kernels and
/// compilers wrote parts of it.
pub(crate) fn plain(text: &str, bytes: usize) -> String {
    let line = |c: char| if warpgauge_model::is_hidden(c) { ' ' } else { c };
    let short: String = truncated(text.trim(), bytes).chars().map(line).collect();
    if short.len() < text.trim().len() { format!("{short} …") } else { short }
}

#[cfg(test)]
mod tests;
