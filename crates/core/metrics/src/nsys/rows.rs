//! Rows of the tables of Nsight Systems. The main types are [`NsysRow`], [`NsysEvent`] and
//! [`NsysLaunch`].

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{Column, Quantity};
use super::locale;
use super::report::NsysError;
use super::trace::SharedName;
use crate::text::{Convention, Record};

/// Row of a summary: all kernels, copies or calls with the same name.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NsysRow {
    /// Name of the kernel, operation or function.
    pub name: String,
    /// Percentage of the total time of the table's rows. Absent in summaries by size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_pct: Option<f64>,
    /// Total time in seconds, or total size in bytes in a summary by size.
    pub total: f64,
    pub count: u64,
    /// Mean per occurrence, in the unit of `total`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std_dev: Option<f64>,
    /// Number of blocks, if the tool's version reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<[u32; 3]>,
    /// Number of threads per block, if the tool's version reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
}

/// Activity of the GPU: a kernel, a copy or a fill.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NsysEvent {
    /// Name of the kernel or operation.
    pub name: SharedName,
    /// Start, seconds after the time origin of the trace. It may be negative.
    pub start: f64,
    /// Duration of the activity, seconds.
    pub duration: f64,
    /// Correlation id, which the activity shares with the API call that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correlation: Option<u64>,
    /// Number of blocks. Only for kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<[u32; 3]>,
    /// Number of threads per block. Only for kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<[u32; 3]>,
    /// Number of registers per thread. Only for kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// Number of bytes that are copied or filled. `nsys stats` rounds it to a multiple of 1,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<f64>,
    /// Throughput of the copy or fill, bytes per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    /// Name of the device in the tool's output.
    pub device: SharedName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u64>,
}

/// Row of a trace. It borrows its names from the input.
#[derive(Debug)]
pub(super) struct TraceRow<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) start: f64,
    pub(super) duration: f64,
    pub(super) correlation: Option<u64>,
    pub(super) grid: Option<[u32; 3]>,
    pub(super) block: Option<[u32; 3]>,
    pub(super) registers: Option<u32>,
    pub(super) bytes: Option<f64>,
    pub(super) throughput: Option<f64>,
    pub(super) device: &'a str,
    pub(super) stream: Option<u64>,
}

impl TraceRow<'_> {
    pub(super) fn event(&self, name: SharedName, device: SharedName) -> NsysEvent {
        NsysEvent {
            name,
            start: self.start,
            duration: self.duration,
            correlation: self.correlation,
            grid: self.grid,
            block: self.block,
            registers: self.registers,
            bytes: self.bytes,
            throughput: self.throughput,
            device,
            stream: self.stream,
        }
    }
}

/// Launches of one kernel by one function of the API. Times are means in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NsysLaunch {
    pub kernel: String,
    /// API function that launched the kernel.
    pub api: String,
    pub count: u64,
    /// Time from the start of the call to the kernel's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// Duration of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_time: Option<f64>,
    /// Time from the end of the call to the kernel's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_time: Option<f64>,
    /// Duration of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_time: Option<f64>,
}

/// Fields of a record, accessed by the names of their columns.
pub(super) struct Fields<'a> {
    pub(super) columns: &'a [Column],
    pub(super) record: &'a Record<'a>,
    /// Decimal separator of the numbers.
    pub(super) decimal: Convention,
}

impl Fields<'_> {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.cell(self.columns.iter().position(|column| column.name == name)?)
    }

    fn cell(&self, index: usize) -> Option<&str> {
        let field = self.record.fields.get(index)?.trim();
        (!field.is_empty() && field != "-").then_some(field)
    }

    fn bad(&self, name: &str, cell: &str) -> NsysError {
        NsysError::BadNumber {
            line: self.record.line,
            column: name.to_owned(),
            cell: cell.chars().take(40).collect(),
        }
    }

    /// Returns a number in base units. Returns `None` if the column or its value is absent. `unit`
    /// is used if the column has no unit.
    fn scaled(
        &self,
        name: &str,
        quantity: Quantity,
        unit: Option<(f64, Quantity)>,
    ) -> Result<Option<f64>, NsysError> {
        let index = self.columns.iter().position(|column| column.name == name);
        let Some(index) = index else { return Ok(None) };
        let Some(cell) = self.cell(index) else { return Ok(None) };
        let line = self.record.line;
        let Some((scale, of)) = self.columns[index].unit.or(unit) else {
            return Err(NsysError::NoUnit { line, column: name.to_owned() });
        };
        if of != quantity {
            let what = quantity.name();
            return Err(NsysError::WrongUnit { line, column: name.to_owned(), what });
        }
        const NONE: [&str; 5] = ["nan", "n/a", "inf", "-nan", "-inf"];
        if NONE.iter().any(|none| cell.eq_ignore_ascii_case(none)) {
            return Ok(None);
        }
        let nothing = !cell.contains(|c: char| ('1'..='9').contains(&c));
        let whole = locale::is_whole(&self.columns[index]);
        let number = locale::number(cell, whole, self.decimal).map(|number| number * scale);
        let number = match number {
            // A nonzero number that underflows must not become zero.
            Some(number) if number.is_finite() && (number != 0.0 || nothing) => number,
            _ => return Err(self.bad(name, cell)),
        };
        // Activities may start before the trace's time origin.
        let impossible =
            (number < 0.0 && name != "start") || (quantity == Quantity::Percent && number > 100.1);
        match impossible {
            true => Err(NsysError::Impossible {
                line,
                column: name.to_owned(),
                cell: cell.chars().take(40).collect(),
                what: quantity.name(),
            }),
            false => Ok(Some(number)),
        }
    }

    fn time(&self, name: &str) -> Result<Option<f64>, NsysError> {
        self.scaled(name, Quantity::Time, None)
    }

    fn required(&self, name: &str, quantity: Quantity) -> Result<f64, NsysError> {
        self.scaled(name, quantity, None)?.ok_or_else(|| self.bad(name, ""))
    }

    fn whole<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, NsysError> {
        let Some(cell) = self.text(name) else { return Ok(None) };
        locale::count(cell, self.decimal).map(Some).ok_or_else(|| self.bad(name, cell))
    }

    /// Returns a row of a summary. `name` and `count` are the columns that contain the name and the
    /// number of occurrences.
    pub(super) fn row(
        &self,
        name: &str,
        count: &str,
        quantity: Quantity,
    ) -> Result<NsysRow, NsysError> {
        // In versions of 2020, only the column of totals has a unit.
        let total = self.columns.iter().find(|column| column.name == "total");
        let unit = total.and_then(|column| column.unit);
        Ok(NsysRow {
            name: operation(self.text(name).unwrap_or_default()).into_owned(),
            share_pct: self.scaled("time (%)", Quantity::Percent, None)?,
            total: self.required("total", quantity)?,
            count: self.whole(count)?.ok_or_else(|| self.bad(count, ""))?,
            mean: self.scaled("avg", quantity, unit)?,
            median: self.scaled("med", quantity, unit)?,
            min: self.scaled("min", quantity, unit)?,
            max: self.scaled("max", quantity, unit)?,
            std_dev: self.scaled("stddev", quantity, unit)?,
            grid: self.text("gridxyz").and_then(extent),
            block: self.text("blockxyz").and_then(extent),
        })
    }

    pub(super) fn event(&self) -> Result<TraceRow<'_>, NsysError> {
        let three = |names: [&str; 3]| -> Result<Option<[u32; 3]>, NsysError> {
            let [x, y, z] = names.map(|name| self.whole::<u32>(name));
            Ok(x?.zip(y?).zip(z?).map(|((x, y), z)| [x, y, z]))
        };
        Ok(TraceRow {
            name: operation(self.text("name").unwrap_or_default()),
            start: self.required("start", Quantity::Time)?,
            duration: self.required("duration", Quantity::Time)?,
            correlation: self.whole("corrid")?,
            grid: three(["grdx", "grdy", "grdz"])?,
            block: three(["blkx", "blky", "blkz"])?,
            registers: self.whole("reg/trd")?,
            bytes: self.scaled("bytes", Quantity::Bytes, None)?,
            throughput: self.scaled("throughput", Quantity::BytesPerSecond, None)?,
            device: self.text("device").unwrap_or_default(),
            stream: self.whole("strm")?,
        })
    }

    pub(super) fn launch(&self) -> Result<NsysLaunch, NsysError> {
        Ok(NsysLaunch {
            kernel: self.text("kernel name").unwrap_or_default().to_owned(),
            api: self.text("api name").unwrap_or_default().to_owned(),
            count: self.whole("count")?.ok_or_else(|| self.bad("count", ""))?,
            total: self.time("tavg")?,
            api_time: self.time("aavg")?,
            queue_time: self.time("qavg")?,
            kernel_time: self.time("kavg")?,
        })
    }
}

/// Returns the current name of an operation. Old versions shorten the names of copies.
fn operation(name: &str) -> Cow<'_, str> {
    const OLD: [(&str, &str); 5] = [
        ("HtoD]", "Host-to-Device]"),
        ("DtoH]", "Device-to-Host]"),
        ("DtoD]", "Device-to-Device]"),
        ("HtoH]", "Host-to-Host]"),
        ("PtoP]", "Peer-to-Peer]"),
    ];
    if let Some(kind) = name.strip_prefix("[CUDA memcpy ")
        && let Some((_, new)) = OLD.iter().find(|(old, _)| *old == kind)
    {
        return Cow::Owned(format!("[CUDA memcpy {new}"));
    }
    Cow::Borrowed(name)
}

/// Parses the extents of a grid or block, such as `16384 1 1`.
fn extent(text: &str) -> Option<[u32; 3]> {
    let mut parts = text.split_whitespace().map(|part| part.parse::<u32>().ok());
    let extent = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(extent)
}
