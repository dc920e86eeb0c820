//! The result of a product, as a row of the table and as JSON: [`Row`].

use serde::Serialize;

use super::against::{Measured, Rival};
use crate::cli::CliError;
use crate::cli::format::{duration_ms, percent};
use crate::exit::Exit;
use warpgauge_contract::MatrixUsed;
use warpgauge_model::DeviceKind;
use warpgauge_report::EvaluateResponse;

/// Explains which bytes the column GB/s counts.
const BYTES: &str = "bytes: matrix in CSR form and x read once, y written once: nnz · (size of a value + 4) \
    + (rows + 1) · 4 + (rows + cols) · size of a value";

/// Maximum length of a reason in the table, characters.
const MAX_REASON: usize = 160;

/// Result of the product with one matrix.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// Name of the matrix.
    pub(super) matrix: String,
    /// Hash and size of the content of the matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<MatrixUsed>,
    /// Verdict on the kernel, or `invalid` if the matrix cannot be multiplied.
    pub(super) verdict: &'static str,
    /// Reason for a verdict other than `correct`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Median time of a launch, and its 95 % confidence interval, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) median_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ci_ms: Option<[f64; 2]>,
    /// 10⁹ operations per second. Each entry counts as two operations. Absent for an emulated
    /// device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gflops: Option<f64>,
    /// 10⁹ bytes per second. Absent for an emulated device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gbps: Option<f64>,
    /// Share of the roofline. Absent for an emulated device.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_speed_of_light: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) device_kind: Option<DeviceKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) job_id: Option<String>,
    /// Result of the library's product with the same matrix.
    #[serde(rename = "cusparse", skip_serializing_if = "Option::is_none")]
    pub(super) against: Option<Measured>,
    /// Exit code of a command that multiplies only this matrix.
    #[serde(skip)]
    pub(super) exit: Exit,
}

impl Row {
    /// Returns the row that corresponds to a report.
    pub(super) fn of(matrix: &str, report: &EvaluateResponse) -> Self {
        let exit = Exit::of_report(report);
        let result = &report.kernel_exec_result;
        let reason = result.compilation_error.clone().or_else(|| result.validation_error.clone());
        let failure = || report.failure.as_ref().map(|failure| failure.message.clone());
        let measured = report.measurement.as_ref().filter(|_| result.runtime.is_some());
        let summary = measured.and_then(|measured| measured.summary.as_ref());
        let rates = measured.and_then(|measured| measured.rates.as_ref());
        let ends = summary.map(|summary| (summary.median_ci_low, summary.median_ci_high));
        Self {
            matrix: matrix.to_owned(),
            used: report.matrices.first().cloned(),
            verdict: report.kernel_verdict().name(),
            reason: reason
                .or_else(failure)
                .or_else(|| report.why_weak().map(str::to_owned))
                .filter(|_| exit != Exit::Success),
            median_ms: summary.map(|summary| summary.median),
            ci_ms: ends.and_then(|(low, high)| Some([low?, high?])),
            gflops: rates.and_then(|rates| rates.flops_per_second).map(|rate| rate / 1e9),
            gbps: rates.and_then(|rates| rates.bytes_per_second).map(|rate| rate / 1e9),
            of_speed_of_light: rates.and_then(|rates| rates.of_speed_of_light),
            device: report.device.as_ref().map(|device| device.name.clone()),
            device_kind: report.device.as_ref().map(|device| device.kind),
            job_id: Some(report.job_id.clone()),
            against: None,
            exit,
        }
    }

    /// Returns the row for a matrix that could not be multiplied.
    pub(super) fn failed(matrix: &str, error: &CliError) -> Self {
        Self {
            matrix: matrix.to_owned(),
            used: None,
            verdict: "invalid",
            reason: Some(error.render()),
            median_ms: None,
            ci_ms: None,
            gflops: None,
            gbps: None,
            of_speed_of_light: None,
            device: None,
            device_kind: None,
            job_id: None,
            against: None,
            exit: error.exit(),
        }
    }

    /// Returns the library's time divided by the kernel's.
    pub(super) fn times(&self) -> Option<f64> {
        self.against.as_ref()?.times(self.median_ms?)
    }

    /// Returns the row as a line of the table. `width` is the width of the matrix names, in
    /// characters. `compared` adds the columns for the library.
    pub(super) fn line(&self, width: usize, compared: bool) -> String {
        let none = || "-".to_owned();
        let count = |of: fn(&MatrixUsed) -> u64| {
            self.used.as_ref().map_or_else(none, |it| of(it).to_string())
        };
        let rate = |rate: Option<f64>| rate.map_or_else(none, |rate| format!("{rate:.1}"));
        let error = self
            .ci_ms
            .zip(self.median_ms)
            .map(|([low, high], median)| format!("± {}", percent((high - low) / 2.0 / median)));
        let mut line = line(
            width,
            [
                self.matrix.clone(),
                count(|it| it.num_rows),
                count(|it| it.nnz),
                self.verdict.to_owned(),
                self.median_ms.map_or_else(none, duration_ms),
                error.unwrap_or_else(none),
                rate(self.gflops),
                rate(self.gbps),
                self.of_speed_of_light.map_or_else(none, percent),
            ],
        );
        let theirs = self.against.as_ref();
        if compared {
            let median = theirs.and_then(|one| one.median_ms).map_or_else(none, duration_ms);
            let times = self.times().map_or_else(none, |times| format!("{times:.2}"));
            line.push_str(&beside(&median, &times));
        }
        let lacks = theirs.and_then(|one| one.reason.as_ref());
        if let Some(reason) = self.reason.as_ref().or(lacks) {
            let first: String =
                reason.lines().next().unwrap_or("").chars().take(MAX_REASON).collect();
            line.push_str(&format!("  {first}"));
        }
        line.push('\n');
        line
    }
}

/// Returns the header of the table.
pub(super) fn header(width: usize, compared: bool) -> String {
    let names =
        ["matrix", "rows", "nnz", "verdict", "median", "error", "GFLOP/s", "GB/s", "of roofline"];
    let beside = if compared { beside("cuSPARSE", "x cuSPARSE") } else { String::new() };
    format!("{}{beside}\n", line(width, names.map(str::to_owned)))
}

/// Returns the columns for the library.
fn beside(median: &str, times: &str) -> String {
    format!("  {median:>11}  {times:>10}")
}

fn line(width: usize, cells: [String; 9]) -> String {
    let [matrix, rows, nnz, verdict, median, error, gflops, gbps, share] = cells;
    let width = width.max("matrix".len());
    format!(
        "{matrix:<width$}  {rows:>9}  {nnz:>10}  {verdict:<12}  {median:>11}  {error:>9}  {gflops:>9}  \
         {gbps:>9}  {share:>11}"
    )
}

/// Returns the notes that follow the table.
pub(super) fn notes(rows: &[Row], rival: Option<&Rival>) -> String {
    let mut text = format!("\n{BYTES}\n");
    if rows.iter().any(|row| row.device_kind == Some(DeviceKind::Emulator)) {
        text.push_str(
            "times on the emulator do not predict those on a GPU, so there are no rates and no \
             share of the roofline\n",
        );
    }
    if let Some(rival) = rival {
        let title = rival.title();
        match rival.missing() {
            Some(reason) => text.push_str(&format!("no times of {title}: {reason}\n")),
            None => text.push_str(&format!(
                "x {title}: its median divided by the kernel's, so that 2 means that the kernel is twice as fast; both are timed \
                 separately, one after the other, and checked\n"
            )),
        }
    }
    if let Some(device) = rows.iter().find_map(|row| row.device.as_ref()) {
        text.push_str(&format!("device {device}\n"));
    }
    text
}

/// Returns all rows as JSON.
pub(super) fn answer<'a>(rows: &'a [Row], rival: Option<&'a Rival>) -> impl Serialize + 'a {
    #[derive(Serialize)]
    struct Answer<'a> {
        bytes: &'static str,
        /// Reason why the library is not compared.
        #[serde(skip_serializing_if = "Option::is_none")]
        not_compared: Option<&'a str>,
        rows: Vec<Compared<'a>>,
    }
    #[derive(Serialize)]
    struct Compared<'a> {
        #[serde(flatten)]
        row: &'a Row,
        #[serde(skip_serializing_if = "Option::is_none")]
        x_of_cusparse: Option<f64>,
    }
    let compared = |row: &'a Row| Compared { row, x_of_cusparse: row.times() };
    Answer {
        bytes: BYTES,
        not_compared: rival.and_then(Rival::missing),
        rows: rows.iter().map(compared).collect(),
    }
}
