//! Placeholders for fields of the CUDA Evaluation Server without a value, because its clients require all of them.

use super::{CompareResponse, EvaluateResponse, KernelExecResult};
use warpgauge_statistics::{RankedBy, RuntimeStats};

/// `gpu_type` of a kernel that ran on the CPU.
const ON_CPU: &str = "CPU";

/// The host that answers, as its `pod_name` and `pod_ip`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// Name of the host.
    pub name: String,
    /// Address at which the caller reached the host.
    pub ip: String,
}

impl EvaluateResponse {
    /// Adds the host, and a placeholder to each field of the CUDA Evaluation Server that has no value: `false`, 0,
    /// and `CPU` in place of a GPU.
    pub fn add_placeholders(&mut self, pod: Pod) {
        add_to(&mut self.kernel_exec_result, &mut self.gpu_type);
        (self.pod_name, self.pod_ip) = (Some(pod.name), Some(pod.ip));
    }
}

impl CompareResponse {
    /// Adds the host and the same placeholders, and statistics of zeros for a reference without
    /// times.
    pub fn add_placeholders(&mut self, pod: Pod) {
        add_to(&mut self.kernel_exec_result, &mut self.gpu_type);
        self.ref_runtime.get_or_insert(NO_TIMES);
        (self.pod_name, self.pod_ip) = (Some(pod.name), Some(pod.ip));
    }
}

const NO_TIMES: RuntimeStats = RuntimeStats {
    mean: 0.0,
    std: 0.0,
    min: 0.0,
    max: 0.0,
    median: 0.0,
    percentile_95: 0.0,
    percentile_99: 0.0,
    samples: 0,
    median_ci_low: None,
    median_ci_high: None,
    ranked_by: RankedBy::Median,
};

fn add_to(result: &mut KernelExecResult, gpu_type: &mut Option<String>) {
    result.correctness.get_or_insert(false);
    result.runtime.get_or_insert(0.0);
    let gpu_type = gpu_type.get_or_insert_with(|| ON_CPU.to_owned()).clone();
    result.metadata.gpu_id.get_or_insert(0);
    result.metadata.gpu_type.get_or_insert(gpu_type);
}
