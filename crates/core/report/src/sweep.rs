//! Wire types of the answer to a sweep. The main type is [`SweepResponse`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DeviceReport, EvaluateResponse, KernelVerdict, ResponseStatus, RuntimeStats};
use warpgauge_contract::{AxisValue, MatrixUsed, SweepAxis, TensorUsed};
use warpgauge_model::{FailureCode, Resources};
use warpgauge_statistics::Counted;

/// Report of `POST /sweep`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SweepResponse {
    /// Id of the sweep, at `/jobs/{job_id}`.
    pub job_id: String,
    /// `success` if every point has a verdict on the kernel or on the contract.
    pub status: ResponseStatus,
    /// Worst verdict on the kernel at any point. Absent if no point has a verdict, and in reports that earlier
    /// versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Axes in the order in which they vary, the last fastest.
    pub axes: Vec<SweepAxis>,
    /// Number of points by status.
    pub counts: BTreeMap<String, usize>,
    /// Points in order.
    pub points: Vec<SweepPoint>,
    /// Points as one table.
    pub table: SweepTable,
    /// Best correct points by each measure.
    pub best: SweepBest,
    /// Devices that ran points.
    pub devices: Vec<DeviceReport>,
    /// Time from the arrival of the request to the answer, milliseconds.
    pub total_ms: f64,
}

/// Point of a sweep: one combination of the axes' values.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// Index in the order of points, from 0.
    pub index: usize,
    /// Value of each axis.
    pub values: BTreeMap<String, AxisValue>,
    /// Result of the point.
    pub status: SweepStatus,
    /// Verdict on the kernel. Absent if the contract is not valid with these values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<KernelVerdict>,
    /// Whether every checked output is right. Absent if nothing was checked, or if a useless kernel would pass too
    /// (`weak`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correctness: Option<bool>,
    /// Statistics of the launch times, as in an evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_stats: Option<RuntimeStats>,
    /// Throughput from the contract's `work.bytes` and the median time, 10⁹ bytes per second. Absent on the emulated
    /// device, whose times say nothing about a GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<f64>,
    /// Throughput from the contract's `work.flops` and the median time, 10⁹ operations per second. Absent on the
    /// emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gflops: Option<f64>,
    /// Exact counts of one launch, on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Problems of the point: from the contract, the compiler, the run and the checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<SweepReason>,
    /// Resources of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// UUID of the device that ran the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Sparse matrices that the point's contract names, with the content that was used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matrices: Vec<MatrixUsed>,
    /// Shared tensors that the point's contract names, with the content that was copied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorUsed>,
    /// Time of the point, milliseconds.
    pub total_ms: f64,
    /// Whole report without the content of outputs, if the request has `include_reports`. Absent in the stream, and
    /// once the reports of earlier points exceed the size limit of the answer (64 MiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<EvaluateResponse>>,
}

/// Result of a point, from best to worst.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SweepStatus {
    /// Every checked output is right.
    Correct,
    /// The kernel ran, and the contract gives no expectation.
    NotChecked,
    /// The kernel passes, but a useless kernel would pass too.
    Weak,
    /// The kernel is wrong, crashed, hung or ran out of memory.
    Wrong,
    /// The kernel does not compile.
    NotCompiled,
    /// The contract is not valid with these values.
    Invalid,
    /// There is no verdict, and neither the kernel nor the contract is at fault.
    Error,
}

impl SweepStatus {
    /// Returns the name used on the wire.
    pub fn name(self) -> &'static str {
        match self {
            SweepStatus::Correct => "correct",
            SweepStatus::NotChecked => "not_checked",
            SweepStatus::Weak => "weak",
            SweepStatus::Wrong => "wrong",
            SweepStatus::NotCompiled => "not_compiled",
            SweepStatus::Invalid => "invalid",
            SweepStatus::Error => "error",
        }
    }
}

impl From<KernelVerdict> for SweepStatus {
    fn from(verdict: KernelVerdict) -> Self {
        match verdict {
            KernelVerdict::Correct => SweepStatus::Correct,
            KernelVerdict::NotChecked => SweepStatus::NotChecked,
            KernelVerdict::Weak => SweepStatus::Weak,
            KernelVerdict::Wrong | KernelVerdict::Failed => SweepStatus::Wrong,
            KernelVerdict::NotCompiled => SweepStatus::NotCompiled,
            KernelVerdict::Error => SweepStatus::Error,
        }
    }
}

/// Problem of a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SweepReason {
    /// Code of the reason. It stays the same in later versions.
    pub code: FailureCode,
    /// JSON path of the field that is at fault. Absent if no field is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Description of the error, with a remedy.
    pub message: String,
}

/// Points of a sweep as a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepTable {
    /// Names of the columns: the axes, then `status`, `median_ms`, `ci_low_ms`, `ci_high_ms`, `gbps`, `gflops`,
    /// `reason`. If any point has counts, `warp_instructions` and `global_sectors` follow.
    pub columns: Vec<String>,
    /// Rows, one for each point, with `null` where a column does not apply.
    pub rows: Vec<Vec<Value>>,
}

impl SweepTable {
    /// Columns after the axes.
    const MEASURES: [&str; 7] =
        ["status", "median_ms", "ci_low_ms", "ci_high_ms", "gbps", "gflops", "reason"];

    /// Additional columns if points have counts.
    const COUNTS: [&str; 2] = ["warp_instructions", "global_sectors"];

    /// Creates the table of the points.
    pub fn of(axes: &[SweepAxis], points: &[SweepPoint]) -> Self {
        let names = axes.iter().map(|axis| axis.name.as_str());
        let counted = points.iter().any(|point| point.counted.is_some());
        let counts = Self::COUNTS.into_iter().filter(|_| counted);
        let columns: Vec<_> =
            names.chain(Self::MEASURES).chain(counts).map(str::to_owned).collect();
        Self { columns, rows: points.iter().map(|point| row(axes, point, counted)).collect() }
    }

    /// Returns the table as comma-separated values (RFC 4180), with the column names first. Text
    /// that a spreadsheet would read as a formula gets a leading apostrophe.
    pub fn to_csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|name| inert(name.clone())))?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|cell| match cell {
                Value::Null => String::new(),
                Value::String(text) => inert(text.clone()),
                other => other.to_string(),
            }))?;
        }
        let bytes = writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Changes text that a spreadsheet would read as a formula. Numbers stay unchanged.
fn inert(text: String) -> String {
    let begins = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    if begins && !is_number { format!("'{text}") } else { text }
}

fn row(axes: &[SweepAxis], point: &SweepPoint, counted: bool) -> Vec<Value> {
    let values = axes
        .iter()
        .map(|axis| point.values.get(&axis.name).map_or(Value::Null, AxisValue::to_json));
    let stats = point.runtime_stats.as_ref();
    let counts = [
        point.counted.map(|counted| counted.warp_instructions).into(),
        point.counted.map(|counted| counted.global_sectors).into(),
    ];
    values
        .chain([
            point.status.name().into(),
            stats.map(|stats| stats.median).into(),
            stats.and_then(|stats| stats.median_ci_low).into(),
            stats.and_then(|stats| stats.median_ci_high).into(),
            point.gbps.into(),
            point.gflops.into(),
            point.reasons.first().map(|reason| reason.message.clone()).into(),
        ])
        .chain(counts.into_iter().filter(|_| counted))
        .collect()
}

/// Best points of a sweep. Only correct points count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepBest {
    /// Point with the shortest median time. If an axis changes the problem size, throughput is the better measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_ms: Option<BestPoint>,
    /// Point with the most bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps: Option<BestPoint>,
    /// Point with the most operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gflops: Option<BestPoint>,
    /// Point with the fewest warp instructions in one launch, if all points ran on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warp_instructions: Option<BestPoint>,
    /// Point with the fewest sectors of global memory in one launch, if all points ran on the emulated device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_sectors: Option<BestPoint>,
    /// Reason why the points are not ranked by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ranked: Option<String>,
}

/// Best point by one measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BestPoint {
    /// Index of the point.
    pub index: usize,
    /// Value of each axis.
    pub values: BTreeMap<String, AxisValue>,
    /// Value of the measure at this point.
    pub value: f64,
}

/// First event in the stream of a sweep.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SweepStarted {
    /// Id of the sweep, at `/jobs/{job_id}`.
    pub job_id: String,
    /// Number of points.
    pub points: usize,
    /// Axes in the order in which they vary, the last fastest.
    pub axes: Vec<SweepAxis>,
}

/// Progress of a sweep, and its report once it has ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SweepView {
    /// Number of points.
    pub points: usize,
    /// Number of points that are done.
    pub points_done: usize,
    /// Report of the sweep, without the reports of its points. Absent until the sweep has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<SweepResponse>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_of_a_table_is_a_formula_and_numbers_stay_numbers() {
        let texts = ["=1+1", "@SUM(A1)", "+1 x", "-cmd", "\tx", "-1.5", "+2e3", "-inf", "plain"];
        let columns = vec!["=n".to_owned(), "m".to_owned()];
        let rows = texts.map(|text| vec![text.into(), serde_json::json!(-1.5)]).to_vec();
        let csv = SweepTable { columns, rows }.to_csv().unwrap();
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        assert_eq!(&reader.headers().unwrap()[0], "'=n");
        let cells: Vec<_> = reader.records().map(|row| row.unwrap()).collect();
        let first: Vec<&str> = cells.iter().map(|row| &row[0]).collect();
        assert_eq!(
            first,
            ["'=1+1", "'@SUM(A1)", "'+1 x", "'-cmd", "'\tx", "-1.5", "+2e3", "'-inf", "plain"]
        );
        assert!(cells.iter().all(|row| &row[1] == "-1.5"));
    }
}
