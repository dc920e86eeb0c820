//! The wire types of answers, which are created from reports. The main type is [`SpmvResponse`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use warpgauge_contract::KernelType;
use warpgauge_model::{DeviceKind, FailureCode};
use warpgauge_report::{EvaluateResponse, KernelVerdict};

use super::numbers::Numbers;
use super::request::Method;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Report of `POST /execute_spmv` and `POST /execute_spmv_mtx`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SpmvResponse {
    /// Whether the verdict is `correct`, and the product and its times are available.
    pub success: bool,
    /// Verdict on the kernel. With method `all`, the worse of both verdicts. Absent if nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Product and times. Absent unless the verdict on the kernel is `correct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<SpmvResult>,
    /// Output of the kernel, if the verdict is `wrong`. Elements that are not finite are null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<Vec<Option<f64>>>,
    /// Description of the error. Absent if `success` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<FailureCode>,
    /// Id of the job. Its report is at `/jobs/{job_id}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Product name of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// Kind of the device, `cuda` or `emulator`. The times of an emulated device have no meaning
    /// for a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_kind: Option<DeviceKind>,
    /// Result of each method, with method `all`. `result` and `job_id` then belong to `custom`, and
    /// `success` applies to both.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, MethodAnswer>,
    /// Time of cuSPARSE divided by the time of the kernel, with method `all`, if both are correct
    /// and ran on a GPU. Above 1, the kernel is faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_of_cusparse: Option<f64>,
}

/// Result of one of several methods.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct MethodAnswer {
    /// Whether the verdict is `correct`, and the product and its times are available.
    pub success: bool,
    /// Verdict on the method. Absent if nothing ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Product and times. Absent unless the verdict is `correct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<SpmvResult>,
    /// Output of the method, if the verdict is `wrong`. Elements that are not finite are null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<Vec<Option<f64>>>,
    /// Description of the error. Absent if `success` is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Stable code of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<FailureCode>,
    /// Id of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
}

/// Product with its times.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpmvResult {
    /// Product, one element for each row.
    pub y: Vec<f64>,
    /// Mean time of a launch, measured with events on the device, milliseconds.
    pub execution_time_ms: f64,
    /// Standard deviation of the launch times, milliseconds.
    pub execution_time_std_ms: f64,
    /// Time of allocating and filling device buffers, milliseconds.
    pub transfer_h2d_ms: f64,
    /// Time of copying the result back and hashing it, milliseconds.
    pub transfer_d2h_ms: f64,
    /// Sum of `transfer_h2d_ms` and `transfer_d2h_ms`, milliseconds.
    pub transfer_time_ms: f64,
    /// Time from the arrival of the request to the answer, including warm-up, launches and checks,
    /// milliseconds.
    pub total_time_ms: f64,
    /// Throughput, 10⁹ operations per second, with two operations for each non-zero. It is based on
    /// `execution_time_ms`.
    pub gflops: f64,
    /// Number of rows.
    pub num_rows: u64,
    /// Number of columns.
    pub num_cols: u64,
    /// Number of non-zeros.
    pub nnz: u64,
    /// Number of timed launches, without rejected ones.
    pub num_runs: u64,
    /// Method: `custom` or `cusparse`.
    pub method: String,
}

impl SpmvResponse {
    /// Creates the answer from the report on the request's contract. The tuple contains the
    /// matrix's numbers of rows, columns and non-zeros.
    pub fn new(report: &EvaluateResponse, (rows, cols, nnz): (u32, u32, u32)) -> Self {
        let result = result_of(report, (rows, cols, nnz));
        let error = match &result {
            Some(_) => None,
            None => Some(why_not(report)),
        };
        Self {
            success: result.is_some(),
            verdict: Some(report.kernel_verdict()),
            code: code_of(report),
            y: wrong_product(report),
            result,
            error,
            job_id: Some(report.job_id.clone()),
            device_name: report.device.as_ref().map(|device| device.name.clone()),
            device_kind: report.device.as_ref().map(|device| device.kind),
            results: BTreeMap::new(),
            x_of_cusparse: None,
        }
    }

    /// Combines the answers of the kernel and of cuSPARSE, for method `all`.
    pub fn beside(self, cusparse: Self) -> Self {
        let mean = |one: &Self| one.result.as_ref().map(|result| result.execution_time_ms);
        // Times on the emulated device are not compared.
        let real = |one: &Self| one.device_kind == Some(DeviceKind::Cuda);
        let times = mean(&self).zip(mean(&cusparse)).filter(|_| real(&self) && real(&cusparse));
        let answers = [(Method::Custom, &self), (Method::Cusparse, &cusparse)];
        let results = answers.map(|(method, one)| (method.name().to_owned(), one.of_method()));
        let first = |one: &Option<String>, other: &Option<String>| one.clone().or(other.clone());
        Self {
            success: self.success && cusparse.success,
            verdict: self.verdict.max(cusparse.verdict),
            error: first(&self.error, &cusparse.error),
            code: self.code.clone().or(cusparse.code.clone()),
            results: results.into(),
            x_of_cusparse: times.map(|(own, theirs)| theirs / own),
            ..self
        }
    }

    fn of_method(&self) -> MethodAnswer {
        MethodAnswer {
            success: self.success,
            verdict: self.verdict,
            result: self.result.clone(),
            y: self.y.clone(),
            error: self.error.clone(),
            code: self.code.clone(),
            job_id: self.job_id.clone(),
        }
    }
}

fn result_of(report: &EvaluateResponse, (rows, cols, nnz): (u32, u32, u32)) -> Option<SpmvResult> {
    let exec = &report.kernel_exec_result;
    let (true, Some(stats), Some(mean)) =
        (report.kernel_verdict() == KernelVerdict::Correct, &exec.runtime_stats, exec.runtime)
    else {
        return None;
    };
    let timings = &report.timings;
    let rejected: u64 = report
        .measurement
        .iter()
        .flat_map(|measured| &measured.rejected)
        .map(|rejected| rejected.count as u64)
        .sum();
    let samples =
        report.measurement.as_ref().map_or(0, |measured| measured.samples_ms.len() as u64);
    Some(SpmvResult {
        y: product(report)?,
        execution_time_ms: mean,
        execution_time_std_ms: stats.std,
        transfer_h2d_ms: timings.h2d,
        transfer_d2h_ms: timings.d2h,
        transfer_time_ms: timings.h2d + timings.d2h,
        total_time_ms: timings.total,
        gflops: 2.0 * f64::from(nnz) / (mean * 1e6),
        num_rows: u64::from(rows),
        num_cols: u64::from(cols),
        nnz: u64::from(nnz),
        num_runs: samples.saturating_sub(rejected),
        method: method_of(report).name().to_owned(),
    })
}

fn method_of(report: &EvaluateResponse) -> Method {
    match report.kernel_exec_result.metadata.kernel_type {
        Some(KernelType::Library) => Method::Cusparse,
        _ => Method::Custom,
    }
}

/// Returns the kernel's output `y`, which the contract requests as raw elements.
fn product(report: &EvaluateResponse) -> Option<Vec<f64>> {
    let y = report.outputs.get("y")?;
    let bytes = STANDARD.decode(y.data_b64.as_ref()?).ok()?;
    Numbers::Bytes(bytes).floats(y.dtype.size()).ok()
}

/// Returns the kernel's output if its verdict is `wrong`.
fn wrong_product(report: &EvaluateResponse) -> Option<Vec<Option<f64>>> {
    if report.kernel_verdict() != KernelVerdict::Wrong {
        return None;
    }
    let finite = |element: f64| element.is_finite().then_some(element);
    Some(product(report)?.into_iter().map(finite).collect())
}

fn code_of(report: &EvaluateResponse) -> Option<FailureCode> {
    let failed = report.failure.as_ref().map(|failure| failure.code.clone());
    failed.or_else(|| report.why_weak().map(|_| FailureCode::WeakContract))
}

fn why_not(report: &EvaluateResponse) -> String {
    if let Some(why) = report.why_weak() {
        return format!(
            "the product is right, but a useless kernel would pass too: {why}; if that is intended, set the \
             option `allow_weak`"
        );
    }
    let exec = &report.kernel_exec_result;
    if let Some(error) = &exec.compilation_error {
        return format!("the kernel does not compile: {error}");
    }
    match (&report.failure, &exec.validation_error) {
        (_, Some(error)) if report.kernel_verdict() == KernelVerdict::Wrong => {
            format!("the product is wrong: {error}")
        }
        (Some(failure), _) if failure.code == FailureCode::Timeout => format!(
            "the kernel hung: {}; if it only needs more time, set a larger `options.timeout`",
            failure.message
        ),
        (Some(failure), _) => failure.message.clone(),
        (None, Some(error)) => error.clone(),
        (None, None) => {
            let is_right = report.kernel_verdict() == KernelVerdict::Correct;
            let what = match (is_right, exec.runtime) {
                (true, Some(_)) => "the kernel was timed, but its product is not in the report",
                (true, None) => "the kernel is right, but none of its times can be used",
                _ => "the kernel was not judged",
            };
            let notes = report.measurement.iter().flat_map(|measured| &measured.notes);
            let notes: String = notes.map(|note| format!("; {note}")).collect();
            format!("{what}{notes}; the job has the complete report")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(mean: Option<f64>, kind: DeviceKind, job: &str) -> SpmvResponse {
        SpmvResponse {
            success: mean.is_some(),
            result: mean
                .map(|execution_time_ms| SpmvResult { execution_time_ms, ..SpmvResult::default() }),
            error: mean.is_none().then(|| format!("{job} is wrong")),
            job_id: Some(job.to_owned()),
            device_kind: Some(kind),
            ..SpmvResponse::default()
        }
    }

    #[test]
    fn both_methods_are_told_and_compared_where_both_are_right() {
        let (gpu, emulator) = (DeviceKind::Cuda, DeviceKind::Emulator);
        let both = answer(Some(0.5), gpu, "own").beside(answer(Some(1.0), gpu, "theirs"));
        assert_eq!((both.success, both.x_of_cusparse), (true, Some(2.0)));
        assert_eq!(both.job_id.as_deref(), Some("own"));
        assert_eq!(both.results["cusparse"].job_id.as_deref(), Some("theirs"));
        let wrong = answer(None, gpu, "own").beside(answer(Some(1.0), gpu, "theirs"));
        assert_eq!((wrong.success, wrong.x_of_cusparse), (false, None));
        assert_eq!(wrong.error.as_deref(), Some("own is wrong"));
        assert!(wrong.results["cusparse"].success && !wrong.results["custom"].success);
        let emulated =
            answer(Some(0.5), emulator, "own").beside(answer(Some(1.0), emulator, "theirs"));
        assert_eq!(emulated.x_of_cusparse, None);
    }
}
