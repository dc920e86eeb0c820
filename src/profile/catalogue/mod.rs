//! The catalogue of device metrics: one table.
//!
//! An id means the same wherever the value comes from. Units are base units: bytes, seconds, Hz,
//! percent. Names of NVIDIA's metrics are those that Nsight Compute and CUPTI take; where a chip
//! has another name, [`Source::chips`] says which chips one is for.

mod table;

pub use table::CATALOGUE;

/// One metric.
#[derive(Debug)]
pub struct MetricInfo {
    /// Stable id.
    pub id: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Where it belongs.
    pub group: Group,
    /// What it is.
    pub description: &'static str,
    /// How NVIDIA's tools tell it; the first that fits the chip. Empty: they do not.
    pub sources: &'static [Source],
    /// Where the CUDA Evaluation Server's responses have it.
    pub fields: &'static [Field],
}

impl MetricInfo {
    /// Whether a metric of NVIDIA's is a source of this one's whole value.
    pub fn has_source(&self, name: &str) -> bool {
        let is =
            |source: &Source| matches!(source.formula, Formula::Metric(metric) if metric == name);
        self.sources.iter().any(is)
    }

    /// The sources that a chip of this compute capability, times 10, has; best first.
    pub fn sources_for(&self, capability: u32) -> impl Iterator<Item = &'static Source> + use<> {
        self.sources.iter().filter(move |source| source.fits(capability))
    }
}

/// How NVIDIA's tools tell a metric.
#[derive(Debug)]
pub struct Source {
    /// First and last compute capability it is for, times 10.
    pub chips: (u32, u32),
    /// What to ask for.
    pub formula: Formula,
}

impl Source {
    /// Whether chips of this compute capability, times 10, have it.
    pub fn fits(&self, capability: u32) -> bool {
        (self.chips.0..=self.chips.1).contains(&capability)
    }

    /// The metrics of NVIDIA's that it needs.
    pub fn names(&self) -> Vec<&'static str> {
        let (above, below) = self.formula.terms();
        above.iter().chain(&below).map(|(name, _)| *name).collect()
    }
}

/// A weighted sum of NVIDIA's metrics.
pub type Terms = Vec<(&'static str, f64)>;

/// A quotient whose divisor is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DividedByZero;

/// A value from NVIDIA's metrics.
#[derive(Debug)]
pub enum Formula {
    /// One of them.
    Metric(&'static str),
    /// The sum of some.
    Sum(&'static [&'static str]),
    /// A quotient; undefined where the divisor is 0.
    Ratio(&'static str, &'static str),
    /// A difference.
    Difference(&'static str, &'static str),
    /// The sum of some, each times a number.
    Weighted(&'static [(&'static str, f64)]),
    /// A quotient of such sums; undefined where the divisor is 0.
    Quotient(&'static [(&'static str, f64)], &'static [(&'static str, f64)]),
}

impl Formula {
    /// The weighted sum that it is, and the one that it is divided by; empty if by none.
    pub fn terms(&self) -> (Terms, Terms) {
        let one = |name: &'static str| vec![(name, 1.0)];
        match self {
            Formula::Metric(name) => (one(name), Vec::new()),
            Formula::Sum(names) => (names.iter().map(|name| (*name, 1.0)).collect(), Vec::new()),
            Formula::Ratio(above, below) => (one(above), one(below)),
            Formula::Difference(whole, part) => (vec![(*whole, 1.0), (*part, -1.0)], Vec::new()),
            Formula::Weighted(terms) => (terms.to_vec(), Vec::new()),
            Formula::Quotient(above, below) => (above.to_vec(), below.to_vec()),
        }
    }

    /// The value, if all metrics that it needs have one and it is a finite number.
    pub fn evaluate(
        &self,
        value: &impl Fn(&str) -> Option<f64>,
    ) -> Option<Result<f64, DividedByZero>> {
        let sum = |terms: Terms| {
            terms.into_iter().map(|(name, weight)| Some(value(name)? * weight)).sum::<Option<f64>>()
        };
        let (above, below) = self.terms();
        let divided = !below.is_empty();
        let (above, below) = (sum(above)?, sum(below)?);
        let result = match divided {
            true if below == 0.0 => return Some(Err(DividedByZero)),
            true => above / below,
            false => above,
        };
        result.is_finite().then_some(Ok(result))
    }
}

/// A field of the CUDA Evaluation Server's `device_metrics`.
#[derive(Debug)]
pub struct Field {
    /// Its group.
    pub group: FieldGroup,
    /// Its name.
    pub name: &'static str,
    /// What the value is multiplied by to have the field's unit.
    pub scale: f64,
}

/// Groups of the CUDA Evaluation Server's `device_metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say what they are")]
pub enum FieldGroup {
    SpeedOfLight,
    Detailed,
    Memory,
    Compute,
    Pipeline,
    Occupancy,
    Stall,
    Scheduler,
    AccessPattern,
    Roofline,
    Timing,
}

/// Units of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say what they are")]
pub enum Unit {
    Percent,
    Bytes,
    BytesPerSecond,
    Seconds,
    Cycles,
    Instructions,
    InstructionsPerCycle,
    Warps,
    Threads,
    Registers,
    Blocks,
    Requests,
    Operations,
    OperationsPerByte,
    OperationsPerSecond,
    OperationsPerCycle,
    BytesPerCycle,
    Hertz,
    Sectors,
    SectorsPerRequest,
    Wavefronts,
    Conflicts,
    Waves,
    Ratio,
}

impl Unit {
    /// As reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Percent => "%",
            Unit::Bytes => "bytes",
            Unit::BytesPerSecond => "bytes/s",
            Unit::Seconds => "s",
            Unit::Cycles => "cycles",
            Unit::Instructions => "instructions",
            Unit::InstructionsPerCycle => "instructions/cycle",
            Unit::Warps => "warps",
            Unit::Threads => "threads",
            Unit::Registers => "registers",
            Unit::Blocks => "blocks",
            Unit::Requests => "requests",
            Unit::Operations => "operations",
            Unit::OperationsPerByte => "operations/byte",
            Unit::OperationsPerSecond => "operations/s",
            Unit::OperationsPerCycle => "operations/cycle",
            Unit::BytesPerCycle => "bytes/cycle",
            Unit::Hertz => "Hz",
            Unit::Sectors => "sectors",
            Unit::SectorsPerRequest => "sectors/request",
            Unit::Wavefronts => "wavefronts",
            Unit::Conflicts => "conflicts",
            Unit::Waves => "waves",
            Unit::Ratio => "ratio",
        }
    }
}

/// Groups of metrics; their names select all their metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say what they are")]
pub enum Group {
    SpeedOfLight,
    Detailed,
    Memory,
    Compute,
    Pipeline,
    Occupancy,
    Stall,
    Scheduler,
    AccessPattern,
    Roofline,
    Timing,
    Instructions,
}

impl Group {
    /// As contracts name it.
    pub fn name(self) -> &'static str {
        match self {
            Group::SpeedOfLight => "speed_of_light",
            Group::Detailed => "detailed",
            Group::Memory => "memory",
            Group::Compute => "compute",
            Group::Pipeline => "pipeline",
            Group::Occupancy => "occupancy",
            Group::Stall => "stall",
            Group::Scheduler => "scheduler",
            Group::AccessPattern => "access_pattern",
            Group::Roofline => "roofline",
            Group::Timing => "timing",
            Group::Instructions => "instructions",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_and_fields_are_unique_and_described() {
        let mut ids = BTreeSet::new();
        let mut fields = BTreeSet::new();
        for info in CATALOGUE {
            assert!(ids.insert(info.id), "{} twice", info.id);
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(info.id.chars().all(plain), "{}", info.id);
            assert!(info.description.ends_with('.'), "{}", info.id);
            for field in info.fields {
                let path = format!("{:?}.{}", field.group, field.name);
                assert!(fields.insert(path.clone()), "{path} twice");
            }
        }
        // As many as the CUDA Evaluation Server's responses have numbers.
        assert_eq!(fields.len(), 6 + 6 + 6 + 11 + 6 + 8 + 4 + 3 + 8 + 4 + 3);
    }
}
