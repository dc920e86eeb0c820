//! A profiled launch in a report of Nsight Compute. The main type is [`NcuKernel`].

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::csv::Columns;
use super::derived;
use super::expected::Expected;
use crate::text::{Convention, OUT_OF_BOUNDS, Record, Unit, Value, unit, value};
use crate::types::{Conditions, MetricSource};
use crate::values::CollectedMetrics;

/// Metric that contains the number of passes.
pub(crate) const PASSES: &str = "profiler__replayer_passes";

pub(super) const BLOCK_SIZE: &str = "launch__block_size";
pub(super) const GRID_SIZE: &str = "launch__grid_size";

/// Columns that describe the kernel. All other columns of a raw page, except those of NVTX ranges,
/// contain metrics.
const DESCRIPTION: [&str; 13] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "API Call ID",
];

/// A profiled launch of a kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NcuKernel {
    /// Number that the tool assigned to the launch.
    pub id: String,
    /// Name of the kernel, in the form that the tool's options determine.
    pub name: String,
    /// Number of threads per block in x, y and z, if known.
    pub block: Option<[u32; 3]>,
    /// Number of blocks in x, y and z, if known.
    pub grid: Option<[u32; 3]>,
    /// Compute capability times 10, if known.
    pub capability: Option<u32>,
    /// Ordinal of the device, if known.
    pub device: Option<u32>,
    /// NVTX ranges that contain the launch, in the tool's format.
    pub ranges: Vec<String>,
    /// NVIDIA's metrics in base units (bytes, s, Hz, %, counts).
    pub values: BTreeMap<String, f64>,
    /// Metrics that have no value, with the reason.
    pub missing: BTreeMap<String, String>,
    /// Metrics with text values, e.g. `launch__func_cache_config`.
    pub texts: BTreeMap<String, String>,
    /// Findings of the rules of Nsight Compute. Only details pages contain them.
    pub rules: Vec<NcuRule>,
    /// Key that identifies the launch within the file. `None` if the page has no process numbers.
    pub(super) launch: Option<String>,
}

/// Result of storing a cell as the value of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Put {
    /// The value was stored.
    Done,
    /// The value is ambiguous.
    Ambiguous,
    /// The value does not fit the metric. The text is the reason.
    Refused(String),
}

/// Finding of a rule of Nsight Compute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NcuRule {
    pub section: String,
    pub name: String,
    /// Kind of the finding: `OPT`, `INF`, `WRN`, ….
    pub kind: String,
    pub description: String,
}

/// Returns whether a column describes the kernel. Columns of NVTX ranges contain colons, and metric
/// names do not.
pub(super) fn describes(column: &str) -> bool {
    DESCRIPTION.contains(&column) || is_range(column)
}

fn is_range(column: &str) -> bool {
    column.contains(":Push/Pop_Range:") || column.contains(":Start/Stop_Range:")
}

impl NcuKernel {
    /// Reads the description columns of a row.
    pub(super) fn of(columns: &Columns<'_>, record: &Record<'_>) -> Self {
        let field = |name: &str| columns.field(record, name).filter(|field| !field.is_empty());
        let range = |(name, field): (_, &Cow<'_, str>)| {
            (is_range(name) && !field.trim().is_empty()).then(|| field.trim().to_owned())
        };
        let launch = field("Process ID").map(|process| {
            let others = ["Host Name", "Process Name", "ID", "Kernel Name", "Context", "Stream"];
            let others = others.map(|name| field(name).unwrap_or_default());
            format!("{process}\u{1f}{}", others.join("\u{1f}"))
        });
        Self {
            launch,
            id: field("ID").unwrap_or_default().to_owned(),
            name: field("Kernel Name").unwrap_or_default().to_owned(),
            block: field("Block Size").and_then(extents),
            grid: field("Grid Size").and_then(extents),
            capability: field("CC").and_then(capability),
            device: field("Device").and_then(|device| device.parse().ok()),
            ranges: columns
                .names
                .iter()
                .map(|name| name.as_ref())
                .zip(&record.fields)
                .filter_map(range)
                .collect(),
            ..Self::default()
        }
    }

    /// Stores a cell as the value of a metric.
    pub(super) fn put(
        &mut self,
        name: &str,
        cell: &str,
        unit_text: &str,
        convention: Convention,
        expected: Expected,
    ) -> Put {
        let number = match value(cell, convention) {
            Value::Number(number) => number,
            Value::Missing(reason) => {
                self.missing.insert(name.to_owned(), reason.to_owned());
                return Put::Done;
            }
            Value::Text => {
                self.missing.remove(name);
                self.texts.insert(name.to_owned(), cell.trim().to_owned());
                return Put::Done;
            }
            Value::Ambiguous => return Put::Ambiguous,
        };
        let scaled = match in_base_units(number, unit(unit_text), unit_text, expected) {
            Ok(scaled) => scaled,
            Err(why) => return self.refuse(name, why),
        };
        // Several sections may contain the same metric, and only some of them may have its value.
        self.missing.remove(name);
        self.values.insert(name.to_owned(), scaled);
        Put::Done
    }

    /// Records that a metric has no value, with the reason.
    pub(super) fn refuse(&mut self, name: &str, why: String) -> Put {
        self.values.remove(name);
        self.missing.insert(name.to_owned(), why.clone());
        Put::Refused(why)
    }

    /// Removes all metrics except those that describe the device.
    pub(crate) fn device_alone(mut self) -> Self {
        let of_device =
            |name: &str| name.starts_with("device__attribute_") || name == "launch__sm_count";
        self.values.retain(|name, _| of_device(name));
        self.texts.retain(|name, _| of_device(name));
        self.missing.clear();
        self
    }

    /// Returns the total sizes of the block and the grid, computed from the columns that describe
    /// the launch.
    fn sizes(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let product = |extents: [u32; 3]| extents.iter().map(|&extent| f64::from(extent)).product();
        let sizes = [(BLOCK_SIZE, self.block.map(product)), (GRID_SIZE, self.grid.map(product))];
        sizes.into_iter().filter_map(|(name, size)| Some((name, size?)))
    }

    /// Removes metrics that contradict the columns that describe the launch. Returns these metrics
    /// and the reasons.
    pub(super) fn contradictions(&mut self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for (name, product) in self.sizes() {
            let Some(&value) = self.values.get(name) else { continue };
            if let Some(why) = contradicts(name, value, product) {
                self.refuse(name, why.clone());
                found.push((name, why));
            }
        }
        found
    }

    /// Returns the values for the catalogue's formulas, with a reason for every requested metric
    /// that is missing. `unreadable` contains the metrics that, according to the log, cannot be
    /// read on the device.
    pub fn collected(
        &self,
        tool: &str,
        conditions: &Conditions,
        requested: &BTreeSet<&str>,
        unreadable: &[String],
    ) -> CollectedMetrics {
        let mut missing = self.missing.clone();
        for (name, text) in &self.texts {
            missing.insert(name.clone(), format!("it is not a number but `{}`", short(text)));
        }
        for name in requested {
            if self.values.contains_key(*name) || missing.contains_key(*name) {
                continue;
            }
            let reason = match unreadable.iter().any(|refused| refused == name) {
                true => "the tool cannot read it on this device",
                false => {
                    "it was requested, but the tool left it out: it does not have this \
                          metric here"
                }
            };
            missing.insert((*name).to_owned(), reason.to_owned());
        }
        let mut values = self.values.clone();
        for (name, product) in self.sizes() {
            if !missing.contains_key(name) {
                values.entry(name.to_owned()).or_insert(product);
            }
        }
        derived::add(&mut values, &mut missing);
        let passes = self.values.get(PASSES).map(|passes| *passes as u32);
        CollectedMetrics {
            source: MetricSource::Ncu,
            tool: tool.to_owned(),
            kernel: self.name.clone(),
            values,
            missing,
            conditions: Conditions { passes: conditions.passes.or(passes), ..conditions.clone() },
            note: None,
        }
    }
}

/// Returns why a size contradicts the column that describes the launch. Returns `None` if they
/// agree.
pub(super) fn contradicts(name: &str, value: f64, product: f64) -> Option<String> {
    let column = if name == BLOCK_SIZE { "Block Size" } else { "Grid Size" };
    // Values in scaled units have six significant digits.
    ((value - product).abs() > 1e-5 * product)
        .then(|| format!("its value is {value}, but the column {column} gives {product}"))
}

/// Returns a value in base units, or why it does not fit the metric.
pub(super) fn in_base_units(
    number: f64,
    unit: Option<Unit>,
    unit_text: &str,
    expected: Expected,
) -> Result<f64, String> {
    let Some(unit) = unit else {
        return Err(format!("its unit `{}` is not known", short(unit_text)));
    };
    if let Some(what) = expected.against_unit(unit.dimension) {
        return Err(format!("its unit `{}` is {what}", short(unit_text)));
    }
    let scaled = number * unit.scale;
    // A nonzero number that underflows must not be stored as zero.
    if !scaled.is_finite() || (scaled == 0.0 && number != 0.0) {
        return Err(OUT_OF_BOUNDS.to_owned());
    }
    match expected.against_value(scaled) {
        Some(why) => Err(why),
        None => Ok(scaled),
    }
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Parses extents such as `(256, 1, 1)`. Digits may be grouped by any separator except a comma with
/// a space after it.
pub(super) fn extents(text: &str) -> Option<[u32; 3]> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let digits = |part: &str| {
        let mut digits = part.bytes().filter(u8::is_ascii_digit).peekable();
        digits.peek()?;
        digits.try_fold(0u32, |number, digit| {
            number.checked_mul(10)?.checked_add(u32::from(digit - b'0'))
        })
    };
    let mut parts = inner.split(", ").map(digits);
    let extents = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(extents)
}

/// Parses a compute capability, and returns it times 10: `9.0` as 90.
pub(super) fn capability(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(['.', ','])?;
    let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
    (major < 1000 && minor < 10).then_some(major * 10 + minor)
}
