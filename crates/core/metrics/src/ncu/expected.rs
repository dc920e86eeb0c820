//! Expected properties of NVIDIA's metrics, known before a page is parsed: the dimension of the
//! unit, and bounds of the value. The main type is [`Expected`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::catalogue::{CATALOGUE, Formula, MetricUnit};
use crate::text::Dimension;

/// Quantity that a metric measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Bytes,
    Frequency,
    ByteRate,
    Rate,
    /// A share of a total, which cannot exceed 100 %.
    Share,
    /// A rate as a percentage of the peak rate that the hardware can sustain.
    PeakShare,
    /// A count, a quotient of counts, or a value per cycle.
    Count,
}

/// Expected properties of a metric.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Expected {
    kind: Option<Kind>,
    /// Whether the value is always an integer.
    pub(super) whole: bool,
    /// Minimum and maximum value, if the hardware limits it.
    bounds: Option<(f64, f64)>,
    /// Whether a metric of the catalogue is computed from this metric.
    pub(super) used: bool,
}

/// Largest value that is accepted for a share, percent. A share whose counters are from different
/// passes may slightly exceed 100 %.
const MOST_OF_A_WHOLE: f64 = 110.0;
/// Largest value that is accepted for a rate, percent of the sustained peak. A rate may exceed the
/// sustained peak for a short time, but not by a factor of two.
const MOST_OF_A_PEAK: f64 = 200.0;

/// Metrics whose values are integers: threads, blocks, registers. A separator in such a value
/// always groups digits.
const WHOLE: [&str; 19] = [
    "launch__block_size",
    "launch__block_dim_x",
    "launch__block_dim_y",
    "launch__block_dim_z",
    "launch__cluster_size",
    "launch__grid_size",
    "launch__grid_dim_x",
    "launch__grid_dim_y",
    "launch__grid_dim_z",
    "launch__occupancy_limit_barriers",
    "launch__occupancy_limit_blocks",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_warps",
    "launch__registers_per_thread",
    "launch__registers_per_thread_allocated",
    "launch__sm_count",
    "launch__thread_count",
    "profiler__replayer_passes",
];

/// Limits of every chip: threads per block, and registers that an instruction can address.
const BOUNDS: [(&str, (f64, f64)); 3] = [
    ("launch__block_size", (1.0, 1024.0)),
    ("launch__registers_per_thread", (0.0, 255.0)),
    ("launch__registers_per_thread_allocated", (0.0, 256.0)),
];

/// NVIDIA's metrics that the catalogue uses. The kind is known for those that alone define a metric
/// of the catalogue.
static USED: LazyLock<BTreeMap<&'static str, Option<Kind>>> = LazyLock::new(|| {
    let mut used = BTreeMap::new();
    for source in CATALOGUE.iter().flat_map(|info| info.sources) {
        for name in source.names() {
            used.entry(name).or_insert_with(|| by_name(name));
        }
    }
    for info in CATALOGUE {
        for source in info.sources {
            if let Formula::Metric(name) = source.formula {
                used.insert(name, Some(by_unit(info.unit, name)));
            }
        }
    }
    used
});

/// Returns NVIDIA's metrics that the catalogue uses.
pub(super) fn used_names() -> impl Iterator<Item = &'static str> {
    USED.keys().copied()
}

/// Returns the expected properties of the metric of this name.
pub(super) fn expected(name: &str) -> Expected {
    let used = USED.get(name);
    Expected {
        kind: used.copied().unwrap_or_else(|| by_name(name)),
        whole: WHOLE.contains(&name),
        bounds: BOUNDS.iter().find(|(known, _)| *known == name).map(|(_, bounds)| *bounds),
        used: used.is_some(),
    }
}

fn by_unit(unit: MetricUnit, name: &str) -> Kind {
    match unit {
        MetricUnit::Seconds => Kind::Time,
        MetricUnit::Bytes => Kind::Bytes,
        MetricUnit::Hertz => Kind::Frequency,
        MetricUnit::BytesPerSecond => Kind::ByteRate,
        MetricUnit::OperationsPerSecond => Kind::Rate,
        MetricUnit::Percent => by_name(name).unwrap_or(Kind::Share),
        _ => Kind::Count,
    }
}

/// Returns the kind of a metric from the parts of its name; see "Metrics Decoder" in Nsight
/// Compute's documentation.
fn by_name(name: &str) -> Option<Kind> {
    let (base, suffix) = name.split_once('.').unwrap_or((name, ""));
    let counted = matches!(suffix, "sum" | "avg" | "min" | "max");
    let busy = ["cycles_active", "warps_active", "issue_active"];
    match () {
        () if suffix.contains("pct_of_peak") && busy.iter().any(|end| base.ends_with(end)) => {
            Some(Kind::Share)
        }
        () if suffix.contains("pct_of_peak") => Some(Kind::PeakShare),
        () if suffix == "pct" => Some(Kind::Share),
        () if suffix.ends_with("per_second") && base.ends_with("cycles_elapsed") => {
            Some(Kind::Frequency)
        }
        () if suffix.ends_with("per_second") && base.contains("bytes") => Some(Kind::ByteRate),
        () if suffix.ends_with("per_second") => Some(Kind::Rate),
        () if base.starts_with("gpu__time_") => Some(Kind::Time),
        () if counted && is_bytes(base) => Some(Kind::Bytes),
        () if counted
            && ["inst", "sectors", "requests", "cycles"]
                .iter()
                .any(|of| base.split('_').any(|part| part == *of)) =>
        {
            Some(Kind::Count)
        }
        () => None,
    }
}

fn is_bytes(base: &str) -> bool {
    base.contains("__bytes") || base.contains("_t_bytes") || base.ends_with("_bytes")
}

impl Expected {
    /// Returns a description of the expected unit if a unit does not fit the metric. Returns `None`
    /// if it does.
    pub(super) fn against_unit(&self, dimension: Dimension) -> Option<&'static str> {
        let (fits, what) = match self.kind? {
            Kind::Time => (dimension == Dimension::Time, "not a time"),
            Kind::Bytes => (dimension == Dimension::Bytes, "not a number of bytes"),
            Kind::Frequency => (dimension == Dimension::Frequency, "not a frequency"),
            Kind::ByteRate => {
                (dimension == Dimension::ByteRate, "not a number of bytes per second")
            }
            Kind::Rate => (
                matches!(dimension, Dimension::Rate | Dimension::Frequency),
                "not a number of events per second",
            ),
            Kind::Share | Kind::PeakShare => (dimension == Dimension::Percent, "not a percentage"),
            Kind::Count => (dimension == Dimension::Other, "not a unit for counts"),
        };
        (!fits).then_some(what)
    }

    /// Returns the reason why a value, in base units, is impossible for the metric. Returns `None`
    /// if it is possible.
    pub(super) fn against_value(&self, value: f64) -> Option<String> {
        let most = match self.kind {
            Some(Kind::Share) => MOST_OF_A_WHOLE,
            Some(Kind::PeakShare) => MOST_OF_A_PEAK,
            _ => f64::INFINITY,
        };
        let signed = self.kind.is_none() && !self.whole;
        match () {
            () if value < 0.0 && !signed => Some(format!("it is negative ({value})")),
            () if value > most => {
                Some(format!("{value} % exceeds the possible maximum (about {most} %)"))
            }
            () if self.whole && (value - value.round()).abs() > 1e-6 * value.abs().max(1.0) => {
                Some(format!("{value} is not a whole number"))
            }
            () => {
                let (least, most) = self.bounds?;
                let within = (least..=most).contains(&value);
                (!within).then(|| format!("{value} is not between {least} and {most}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::unit;

    #[test]
    fn units_are_those_of_the_metric() {
        for (name, right, wrong) in [
            ("gpu__time_duration.sum", "usecond", "cycle"),
            ("dram__cycles_elapsed.avg.per_second", "cycle/nsecond", "ns"),
            ("sm__cycles_elapsed.avg.per_second", "Ghz", "Gbyte/s"),
            ("dram__bytes.sum", "Mbyte", "%"),
            ("dram__bytes.sum.per_second", "Tbyte/s", "byte"),
            ("l1tex__t_sector_hit_rate.pct", "%", "sector"),
            ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", ""),
            ("launch__grid_size", "", "Mbyte"),
            ("launch__registers_per_thread", "register/thread", "byte/block"),
            ("launch__shared_mem_per_block_static", "Kbyte/block", "register/thread"),
            ("smsp__inst_executed.sum", "inst", "ns"),
            ("sm__warps_active.avg.per_cycle_active", "warp", "%"),
        ] {
            let against = |text| expected(name).against_unit(unit(text).unwrap().dimension);
            assert_eq!(against(right), None, "{name} in {right}");
            assert!(against(wrong).is_some(), "{name} in {wrong}");
        }
    }

    #[test]
    fn values_that_cannot_be() {
        for (name, right, wrong) in [
            ("gpu__time_duration.sum", 0.0, -1e-9),
            ("dram__bytes.sum", 1e12, -1.0),
            ("l1tex__t_sector_hit_rate.pct", 100.7, 250.0),
            ("sm__warps_active.avg.pct_of_peak_sustained_active", 100.0, 150.0),
            ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 120.0, 250.0),
            ("launch__block_size", 1024.0, 1.024),
            ("launch__block_size", 1.0, 2048.0),
            ("launch__registers_per_thread", 255.0, 33_554_432.0),
            ("launch__occupancy_limit_warps", 8.0, 8.5),
        ] {
            assert_eq!(expected(name).against_value(right), None, "{name} = {right}");
            assert!(expected(name).against_value(wrong).is_some(), "{name} = {wrong}");
        }
        assert_eq!(expected("device__attribute_host_numa_id").against_value(-1.0), None);
    }
}
