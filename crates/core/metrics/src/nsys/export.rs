//! Converts the rows of an SQLite export (kernels, copies, calls and ranges) to tables. The main
//! type is [`NsysExport`].
//!
//! Names follow those in the reports of `nsys stats`, so that an export can be compared with such
//! reports.

use std::collections::BTreeMap;

use super::report::{MAX_ROWS, NsysReport};
use super::rows::{NsysRow, TraceRow};
use super::trace::Trace;

/// Maximum number of names in a table.
const MAX_NAMES: usize = 100_000;
/// Maximum size of all names in a table, bytes.
const MAX_BYTES: usize = 16 << 20;
/// Length of a nanosecond, seconds.
const NS: f64 = 1e-9;

/// Activity of the GPU in an export. Times are nanoseconds since the beginning of the session.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExportedActivity<'a> {
    pub name: &'a str,
    pub device: &'a str,
    pub start: i64,
    pub end: i64,
    pub correlation: Option<u64>,
    pub stream: Option<u64>,
    /// Number of blocks in x, y and z. Only kernels have `grid`, `block` (threads per block) and
    /// `registers` (per thread).
    pub grid: Option<[u32; 3]>,
    pub block: Option<[u32; 3]>,
    pub registers: Option<u32>,
    /// Number of bytes that are copied or filled.
    pub bytes: Option<u64>,
}

/// Reasons why a row of an export is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// The tables of the export have too many rows together.
    #[error("with its rows, the export has more than {MAX_ROWS} rows")]
    TooManyRows,
    #[error("it has more than {MAX_NAMES} names, or more than {} MiB of them", MAX_BYTES >> 20)]
    TooManyNames,
    /// The end precedes the start, or their difference does not fit in 64 bits.
    #[error("a row ends before it starts")]
    Backwards,
}

/// Collects the rows of an export.
#[derive(Debug)]
pub struct NsysExport {
    kernels: Table,
    memory_time: Table,
    memory_size: Table,
    api: Table,
    ranges: Table,
    trace: Trace,
    rows: usize,
}

/// Amounts of all rows by name: durations in nanoseconds, or sizes in bytes.
#[derive(Debug, Default)]
struct Table {
    rows: BTreeMap<String, Vec<u64>>,
    bytes: usize,
}

impl Default for NsysExport {
    fn default() -> Self {
        Self {
            kernels: Table::default(),
            memory_time: Table::default(),
            memory_size: Table::default(),
            api: Table::default(),
            ranges: Table::default(),
            // Kernels and copies are in separate tables, so activities are not sorted by start.
            trace: Trace::unsorted(),
            rows: 0,
        }
    }
}

impl NsysExport {
    /// Adds a kernel, a copy or a fill.
    ///
    /// # Errors
    /// See [`ExportError`].
    pub fn activity(&mut self, activity: &ExportedActivity<'_>) -> Result<(), ExportError> {
        let duration = self.duration(activity.start, activity.end)?;
        match activity.grid {
            Some(_) => self.kernels.add(activity.name, duration)?,
            None => {
                self.memory_time.add(activity.name, duration)?;
                if let Some(bytes) = activity.bytes {
                    self.memory_size.add(activity.name, bytes)?;
                }
            }
        }
        let seconds = duration as f64 * NS;
        let bytes = activity.bytes.filter(|_| activity.grid.is_none()).map(|bytes| bytes as f64);
        self.trace.add(&TraceRow {
            name: activity.name.into(),
            start: activity.start as f64 * NS,
            duration: seconds,
            correlation: activity.correlation,
            grid: activity.grid,
            block: activity.block,
            registers: activity.registers,
            bytes,
            throughput: bytes.filter(|_| seconds > 0.0).map(|bytes| bytes / seconds),
            device: activity.device,
            stream: activity.stream,
        });
        Ok(())
    }

    /// Adds a call of the CUDA API.
    ///
    /// # Errors
    /// See [`ExportError`].
    pub fn call(&mut self, name: &str, start: i64, end: i64) -> Result<(), ExportError> {
        let duration = self.duration(start, end)?;
        self.api.add(plain_call(name), duration)
    }

    /// Adds an NVTX range, which the program marks.
    ///
    /// # Errors
    /// See [`ExportError`].
    pub fn range(&mut self, name: &str, start: i64, end: i64) -> Result<(), ExportError> {
        let duration = self.duration(start, end)?;
        self.ranges.add(name, duration)
    }

    fn duration(&mut self, start: i64, end: i64) -> Result<u64, ExportError> {
        self.rows += 1;
        if self.rows > MAX_ROWS {
            return Err(ExportError::TooManyRows);
        }
        end.checked_sub(start).and_then(|d| u64::try_from(d).ok()).ok_or(ExportError::Backwards)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the tables, each sorted by total in descending order. The report contains `notes`.
    pub fn finish(mut self, mut notes: Vec<String>) -> NsysReport {
        notes.extend(self.trace.devices());
        NsysReport {
            kernels: self.kernels.rows(NS),
            memory_time: self.memory_time.rows(NS),
            memory_size: self.memory_size.rows(1.0),
            api: self.api.rows(NS),
            ranges: self.ranges.rows(NS),
            timelines: self.trace.timelines(),
            trace_left_out: Some(self.trace.left_out).filter(|left_out| *left_out > 0),
            trace: self.trace.events,
            traces: 1,
            notes,
            ..NsysReport::default()
        }
    }
}

/// Returns the name of a function without the version of its interface: `cudaMalloc` for
/// `cudaMalloc_v3020`.
fn plain_call(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((plain, version))
            if name.starts_with("cuda")
                && version.len() >= 4
                && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            plain
        }
        _ => name,
    }
}

impl Table {
    fn add(&mut self, name: &str, amount: u64) -> Result<(), ExportError> {
        if let Some(amounts) = self.rows.get_mut(name) {
            amounts.push(amount);
            return Ok(());
        }
        self.bytes += name.len();
        if self.rows.len() == MAX_NAMES || self.bytes > MAX_BYTES {
            return Err(ExportError::TooManyNames);
        }
        self.rows.insert(name.to_owned(), vec![amount]);
        Ok(())
    }

    fn rows(self, scale: f64) -> Vec<NsysRow> {
        let totals = self.rows.values().flatten().map(|amount| *amount as f64);
        let all: f64 = totals.sum();
        let rows = self.rows.into_iter().map(|(name, mut amounts)| {
            amounts.sort_unstable();
            let count = amounts.len();
            let total: f64 = amounts.iter().map(|amount| *amount as f64).sum();
            let mean = total / count as f64;
            let apart = |amount: &u64| (*amount as f64 - mean).powi(2);
            let squares: f64 = amounts.iter().map(apart).sum();
            let at = |index: usize| amounts.get(index).map(|amount| *amount as f64 * scale);
            let median = at((count - 1) / 2).zip(at(count / 2)).map(|(a, b)| (a + b) / 2.0);
            NsysRow {
                name,
                share_pct: (all > 0.0 && scale == NS).then(|| 100.0 * total / all),
                total: total * scale,
                count: count as u64,
                mean: Some(mean * scale),
                median,
                min: at(0),
                max: at(count - 1),
                std_dev: (count > 1).then(|| (squares / (count - 1) as f64).sqrt() * scale),
                grid: None,
                block: None,
            }
        });
        let mut rows: Vec<NsysRow> = rows.collect();
        rows.sort_by(|a, b| b.total.total_cmp(&a.total));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() <= 1e-12 * b.abs())
    }

    #[test]
    fn rows_become_tables_and_a_timeline() {
        let mut export = NsysExport::default();
        let kernel = |start, end| ExportedActivity {
            name: "k",
            device: "GPU (0)",
            start,
            end,
            grid: Some([8, 1, 1]),
            ..ExportedActivity::default()
        };
        let copy = ExportedActivity {
            name: "[CUDA memcpy Host-to-Device]",
            device: "GPU (0)",
            start: 0,
            end: 50,
            bytes: Some(400),
            ..ExportedActivity::default()
        };
        for (start, end) in [(200, 210), (100, 120), (300, 330), (400, 440)] {
            export.activity(&kernel(start, end)).unwrap();
        }
        export.activity(&copy).unwrap();
        export.call("cudaMalloc_v3020", 0, 7).unwrap();
        export.call("cudaMalloc_v3020", 10, 13).unwrap();
        export.range("step", 0, 500).unwrap();
        let report = export.finish(Vec::new());
        let row = &report.kernels[0];
        assert_eq!((row.name.as_str(), row.count, row.share_pct), ("k", 4, Some(100.0)));
        assert!(close(Some(row.total), 100e-9) && close(row.median, 25e-9));
        assert!(close(row.std_dev, (500.0_f64 / 3.0).sqrt() * 1e-9), "of a sample");
        assert_eq!((report.memory_size[0].total, report.memory_size[0].share_pct), (400.0, None));
        assert!(close(report.trace.last().unwrap().throughput, 8e9));
        assert_eq!((report.api[0].name.as_str(), report.api[0].count), ("cudaMalloc", 2));
        assert!(close(Some(report.ranges[0].total), 500e-9));
        let (device, timeline) = &report.timelines[0];
        assert_eq!((device.as_str(), timeline.gaps), ("GPU (0)", 4));
        assert!(close(Some(timeline.busy), 150e-9) && close(Some(timeline.kernels), 100e-9));
    }

    #[test]
    fn rows_that_no_tool_writes_are_refused() {
        let mut export = NsysExport::default();
        assert_eq!(export.call("c", 7, 3), Err(ExportError::Backwards));
        assert_eq!(export.call("c", i64::MIN, i64::MAX), Err(ExportError::Backwards));
        let long = "x".repeat(MAX_BYTES + 1);
        assert_eq!(export.range(&long, 0, 1), Err(ExportError::TooManyNames));
        assert_eq!(plain_call("cuLaunchKernel_v2"), "cuLaunchKernel_v2", "a name of the driver");
    }
}
