//! Identifies columns by their meaning, because their names differ between versions. The main type
//! is [`Column`].

use crate::text::Record;

/// Maximum number of columns of a table.
const MAX_COLUMNS: usize = 64;

/// Kind of a table. Its columns determine it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    /// Times of kernels, by name.
    Kernels,
    /// Times of copies and fills.
    MemoryTime,
    /// Sizes of copies and fills.
    MemorySize,
    /// Times of calls of the CUDA API.
    Api,
    /// Kernels, copies and possibly calls, each with its category.
    ByCategory,
    /// GPU activities, one row for each.
    Trace,
    /// Launches with the times of the call, the queue and the kernel.
    Launches,
    /// Any other table of Nsight Systems.
    Other,
}

/// Quantity that a column contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Time, converted to seconds.
    Time,
    Bytes,
    BytesPerSecond,
    Percent,
}

impl Quantity {
    /// Returns the quantity's name in error messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Quantity::Time => "time",
            Quantity::Bytes => "number of bytes",
            Quantity::BytesPerSecond => "number of bytes per second",
            Quantity::Percent => "percentage",
        }
    }
}

/// Column of a table: its meaning, and the factor of its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    /// Name without unit, in lower case: `avg`, `corrid`.
    pub(super) name: String,
    /// Factor that converts values to the base unit, and the quantity of the unit. `None` if the
    /// header has no unit.
    pub(super) unit: Option<(f64, Quantity)>,
}

impl Column {
    /// Sets the unit to the unit in the table's title, unless the header has a unit for this column
    /// or the column contains no times or sizes.
    pub(super) fn take_unit(&mut self, unit: (f64, Quantity)) {
        let has = ["total", "avg", "med", "min", "max", "stddev"].contains(&self.name.as_str());
        if has && self.unit.is_none() {
            self.unit = Some(unit);
        }
    }
}

/// Names of columns in several versions, each with the name that this module uses.
const SYNONYMS: [(&str, &str); 10] = [
    ("time(%)", "time (%)"),
    ("average", "avg"),
    ("minimum", "min"),
    ("maximum", "max"),
    ("median", "med"),
    ("total", "total"),
    ("total time", "total"),
    ("calls", "num calls"),
    ("stream", "strm"),
    ("thru", "throughput"),
];

/// Units of times, sizes and rates in headers.
const UNITS: [(&str, f64, Quantity); 30] = [
    ("ns", 1e-9, Quantity::Time),
    ("nsec", 1e-9, Quantity::Time),
    ("us", 1e-6, Quantity::Time),
    ("\u{b5}s", 1e-6, Quantity::Time),
    ("usec", 1e-6, Quantity::Time),
    ("ms", 1e-3, Quantity::Time),
    ("msec", 1e-3, Quantity::Time),
    ("s", 1.0, Quantity::Time),
    ("sec", 1.0, Quantity::Time),
    ("b", 1.0, Quantity::Bytes),
    ("byte", 1.0, Quantity::Bytes),
    ("bytes", 1.0, Quantity::Bytes),
    ("kb", 1e3, Quantity::Bytes),
    ("mb", 1e6, Quantity::Bytes),
    ("gb", 1e9, Quantity::Bytes),
    ("tb", 1e12, Quantity::Bytes),
    ("kib", 1024.0, Quantity::Bytes),
    ("mib", 1_048_576.0, Quantity::Bytes),
    ("gib", 1_073_741_824.0, Quantity::Bytes),
    ("b/s", 1.0, Quantity::BytesPerSecond),
    ("kb/s", 1e3, Quantity::BytesPerSecond),
    ("mb/s", 1e6, Quantity::BytesPerSecond),
    ("gb/s", 1e9, Quantity::BytesPerSecond),
    ("kib/s", 1024.0, Quantity::BytesPerSecond),
    ("mib/s", 1_048_576.0, Quantity::BytesPerSecond),
    ("gib/s", 1_073_741_824.0, Quantity::BytesPerSecond),
    ("kbps", 1e3, Quantity::BytesPerSecond),
    ("mbps", 1e6, Quantity::BytesPerSecond),
    ("gbps", 1e9, Quantity::BytesPerSecond),
    ("bytes/s", 1.0, Quantity::BytesPerSecond),
];

/// Columns that all summaries may have. A table with further columns is a summary only if they
/// belong to its kind.
const SUMMARY: [&str; 7] = ["time (%)", "total", "avg", "med", "min", "max", "stddev"];

/// Returns the columns of a header and the kind of its table. Returns `None` for any other record.
pub(super) fn header(record: &Record<'_>) -> Option<(Table, Vec<Column>)> {
    if record.broken || !(4..=MAX_COLUMNS).contains(&record.fields.len()) {
        return None;
    }
    let columns: Vec<Column> =
        record.fields.iter().map(|field| column(&field.trim().to_ascii_lowercase())).collect();
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    let all = |names: &[&str]| names.iter().all(|name| has(name));
    let summary = |own: &[&str]| {
        let known = |name: &str| SUMMARY.contains(&name) || own.contains(&name);
        has("total") && columns.iter().all(|column| known(&column.name))
    };
    let counts = has("count") || has("operations");
    let table = match () {
        () if all(&["start", "duration", "corrid", "name", "device", "strm"]) => Table::Trace,
        () if all(&["kernel name", "api name", "count", "kavg"]) => Table::Launches,
        () if all(&["instances", "name"])
            && summary(&["instances", "name", "gridxyz", "blockxyz"]) =>
        {
            Table::Kernels
        }
        () if all(&["instances", "category", "operation"])
            && summary(&["instances", "category", "operation"]) =>
        {
            Table::ByCategory
        }
        () if has("operation") && counts && summary(&["operation", "operations", "count"]) => {
            if has("time (%)") { Table::MemoryTime } else { Table::MemorySize }
        }
        () if all(&["num calls", "name"]) && summary(&["num calls", "name"]) => Table::Api,
        // The line consists of words, some of them with a unit.
        () if columns.iter().filter(|column| column.unit.is_some()).count() >= 2
            && record.fields.iter().all(|field| field.trim().parse::<f64>().is_err()) =>
        {
            Table::Other
        }
        () => return None,
    };
    Some((table, columns))
}

/// Describes the content of an unsupported table, based on its columns.
pub(super) fn other(columns: &[Column]) -> &'static str {
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    match () {
        () if has("result") && has("corrid") => "calls of the CUDA API, one by one",
        () if has("range") || has("nvtx range") || has("rangeid") => "ranges (NVTX or graphics)",
        () if has("rank") || has("source") => "MPI",
        () if has("count") && has("name") => "activities of OpenACC, OpenMP or the like",
        () if has("api function") => "launches of kernels, one by one",
        () => "data with unknown columns",
    }
}

/// Returns the name of a column that occurs twice in a header.
pub(super) fn twice(columns: &[Column]) -> Option<&str> {
    let names = columns.iter().map(|column| column.name.as_str()).enumerate();
    let mut names = names.filter(|(_, name)| !name.is_empty());
    names.find_map(|(index, name)| {
        columns[..index].iter().any(|column| column.name == name).then_some(name)
    })
}

fn column(text: &str) -> Column {
    let known = |name: &str| {
        SYNONYMS.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| name).to_owned()
    };
    if text.starts_with("time (%)") || text.starts_with("time(%)") {
        return Column { name: known(text), unit: Some((1.0, Quantity::Percent)) };
    }
    // Traces of 2021 name the unit itself.
    if text == "bytes" {
        return Column { name: known(text), unit: Some((1.0, Quantity::Bytes)) };
    }
    // Old column names have no space before the unit.
    let unit = text.strip_suffix(')').and_then(|text| text.rsplit_once('('));
    let Some((name, unit)) = unit else { return Column { name: known(text), unit: None } };
    let known_unit = UNITS.iter().find(|(name, ..)| *name == unit.trim());
    let unit = known_unit.map(|(_, scale, quantity)| (*scale, *quantity));
    Column { name: known(name.trim()), unit }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Records;

    #[test]
    fn names_and_units_of_several_versions() {
        let of = |text: &str| {
            let column = column(&text.to_ascii_lowercase());
            (column.name, column.unit)
        };
        let time = |scale| Some((scale, Quantity::Time));
        assert_eq!(of("Total Time (ns)"), ("total".to_owned(), time(1e-9)));
        assert_eq!(of("Average"), ("avg".to_owned(), None));
        assert_eq!(of("Avg (us)"), ("avg".to_owned(), time(1e-6)));
        assert_eq!(of("Start(nsec)"), ("start".to_owned(), time(1e-9)));
        assert_eq!(of("Total (KiB)"), ("total".to_owned(), Some((1024.0, Quantity::Bytes))));
        let rate = Some((1e6, Quantity::BytesPerSecond));
        assert_eq!(of("Throughput (MB/s)"), ("throughput".to_owned(), rate));
        assert_eq!(of("Time(%)"), ("time (%)".to_owned(), Some((1.0, Quantity::Percent))));
        assert_eq!(of("Thru(MB/s)"), ("throughput".to_owned(), rate));
        assert_eq!(of("Bytes"), ("bytes".to_owned(), Some((1.0, Quantity::Bytes))));
        assert_eq!(of("Bytes (furlong)"), ("bytes".to_owned(), None));
        assert_eq!(of("Avg (furlong)"), ("avg".to_owned(), None));
    }

    /// The headers are from reports of several versions. Some of the reports are about activities
    /// of a GPU.
    #[test]
    fn tables_are_told_by_all_their_columns() {
        let times = "Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns)";
        let of = |text: &str| {
            let text = text.replace('~', times);
            let record = Records::new(&text).next().unwrap().unwrap();
            header(&record).map(|(table, _)| table)
        };
        for (text, table) in [
            ("Time (%),Total Time (ns),Instances,~,Name", Table::Kernels),
            ("Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name", Table::Kernels),
            ("Time (%),Total Time (ns),Instances,~,GridXYZ,BlockXYZ,Name", Table::Kernels),
            ("Time (%),Total Time (ns),Count,~,Operation", Table::MemoryTime),
            ("Time(%),Total Time (ns),Operations,Average,Operation", Table::MemoryTime),
            ("Total (MB),Count,Avg (MB),Operation", Table::MemorySize),
            ("Time (%),Total Time (ns),Num Calls,~,Name", Table::Api),
            ("Time (%),Total Time (ns),Instances,~,Category,Operation", Table::ByCategory),
            ("Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name", Table::Other),
            // These headers are from reports about OpenACC and OpenMP; MPI; NVTX, Direct3D, OpenGL
            // and Vulkan; and single calls of MPI.
            ("Time (%),Total Time (ns),Count,~,Name", Table::Other),
            ("Time (%),Total Time (ns),Instances,~,Source,Name", Table::Other),
            ("Time (%),Total Time (ns),Instances,~,Range", Table::Other),
            ("Time (%),Total Time (ns),Instances,~,Style,Range", Table::Other),
            ("Start (ns),End (ns),Duration (ns),Event,Pid,Tid,Tag,Rank", Table::Other),
            ("API Start (ns),API Dur (ns),Kernel Start (ns),Kernel Name", Table::Other),
        ] {
            assert_eq!(of(text), Some(table), "{text}");
        }
        assert_eq!(of("100.0,5,1,5.0,k"), None);
        assert_eq!(of("hello,1,2,3"), None);
    }
}
