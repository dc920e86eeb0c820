//! Columns by what they mean, whatever a version calls them.

use crate::profile::text::Record;

/// A table of which the columns tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// Kernels by name.
    Kernels,
    /// Copies and fillings, by time.
    MemoryTime,
    /// The same, by size.
    MemorySize,
    /// Calls of the API.
    Api,
    /// Each activity of the GPU.
    Trace,
    /// Launches: call, queue, kernel.
    Launches,
}

/// A column: what it means, and what its values are multiplied by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    /// Its name without unit, in small letters: `avg`, `corrid`.
    pub(super) name: String,
    /// To seconds, bytes or bytes per second; `None` if the header tells no unit.
    pub(super) scale: Option<f64>,
}

/// Names that versions use, and the one that is used here.
const SYNONYMS: [(&str, &str); 9] = [
    ("time(%)", "time (%)"),
    ("average", "avg"),
    ("minimum", "min"),
    ("maximum", "max"),
    ("median", "med"),
    ("total", "total"),
    ("total time", "total"),
    ("num calls", "count"),
    ("calls", "count"),
];

/// Units of times, sizes and rates in headers.
const UNITS: [(&str, f64); 30] = [
    ("ns", 1e-9),
    ("nsec", 1e-9),
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("usec", 1e-6),
    ("ms", 1e-3),
    ("msec", 1e-3),
    ("s", 1.0),
    ("sec", 1.0),
    ("b", 1.0),
    ("byte", 1.0),
    ("bytes", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("tb", 1e12),
    ("kib", 1024.0),
    ("mib", 1_048_576.0),
    ("gib", 1_073_741_824.0),
    ("b/s", 1.0),
    ("kb/s", 1e3),
    ("mb/s", 1e6),
    ("gb/s", 1e9),
    ("kib/s", 1024.0),
    ("mib/s", 1_048_576.0),
    ("gib/s", 1_073_741_824.0),
    ("kbps", 1e3),
    ("mbps", 1e6),
    ("gbps", 1e9),
    ("bytes/s", 1.0),
];

/// The columns of a header, and the table that they are of; `None` for anything else.
pub(super) fn header(record: &Record<'_>) -> Option<(Table, Vec<Column>)> {
    if record.fields.len() < 4 {
        return None;
    }
    let raw: Vec<String> =
        record.fields.iter().map(|field| field.trim().to_ascii_lowercase()).collect();
    let starts = ["time (%)", "time(%)", "total", "start", "pid"];
    if !starts.iter().any(|start| raw[0].starts_with(start)) {
        return None;
    }
    let columns: Vec<Column> = raw.iter().map(|name| column(name)).collect();
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    let table = match () {
        () if has("corrid") && has("duration") && has("name") => Table::Trace,
        () if has("kernel name") && has("api name") => Table::Launches,
        () if has("instances") && has("name") => Table::Kernels,
        () if has("operation") && has("time (%)") => Table::MemoryTime,
        () if has("operation") => Table::MemorySize,
        () if has("count") && has("time (%)") && has("name") => Table::Api,
        () => return None,
    };
    Some((table, columns))
}

fn column(text: &str) -> Column {
    let known = |name: &str| {
        SYNONYMS.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| name).to_owned()
    };
    if text.starts_with("time (%)") || text.starts_with("time(%)") {
        return Column { name: known(text), scale: Some(1.0) };
    }
    // The old names of columns have no space before the unit.
    let unit = text.strip_suffix(')').and_then(|text| text.rsplit_once('('));
    let Some((name, unit)) = unit else { return Column { name: known(text), scale: None } };
    let scale = UNITS.iter().find(|(name, _)| *name == unit.trim()).map(|(_, scale)| *scale);
    Column { name: known(name.trim()), scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_units_of_several_versions() {
        let of = |text: &str| {
            let column = column(&text.to_ascii_lowercase());
            (column.name, column.scale)
        };
        assert_eq!(of("Total Time (ns)"), ("total".to_owned(), Some(1e-9)));
        assert_eq!(of("Average"), ("avg".to_owned(), None));
        assert_eq!(of("Avg (us)"), ("avg".to_owned(), Some(1e-6)));
        assert_eq!(of("Start(nsec)"), ("start".to_owned(), Some(1e-9)));
        assert_eq!(of("Total (KiB)"), ("total".to_owned(), Some(1024.0)));
        assert_eq!(of("Throughput (MB/s)"), ("throughput".to_owned(), Some(1e6)));
        assert_eq!(of("Time(%)"), ("time (%)".to_owned(), Some(1.0)));
        assert_eq!(of("Avg (furlong)"), ("avg".to_owned(), None));
    }
}
