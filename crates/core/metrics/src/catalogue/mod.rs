//! The catalogue of device metrics: one table.
//!
//! An id means the same wherever the value comes from. Units are base units: bytes, seconds, Hz,
//! percent. Names of NVIDIA's metrics are those that Nsight Compute and CUPTI take; where a chip
//! has another name, [`ChipFormula::chips`] says which chips one is for.

mod table;

pub use table::CATALOGUE;

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct MetricInfo {
    /// Stable id.
    pub id: &'static str,
    /// Unit of the value.
    pub unit: MetricUnit,
    /// Where it belongs.
    pub group: MetricGroup,
    /// What it is.
    pub description: &'static str,
    /// How NVIDIA's tools tell it; the first that fits the chip. Empty: they do not.
    pub sources: &'static [ChipFormula],
    /// Where the CUDA Evaluation Server's responses have it.
    pub fields: &'static [MetricField],
}

impl MetricInfo {
    /// Whether a metric of NVIDIA's is a source of this one's whole value.
    pub fn has_source(&self, name: &str) -> bool {
        let is = |source: &ChipFormula| matches!(source.formula, Formula::Metric(metric) if metric == name);
        self.sources.iter().any(is)
    }

    /// The sources that a chip of this compute capability, times 10, has; best first.
    pub fn sources_for(
        &self,
        capability: u32,
    ) -> impl Iterator<Item = &'static ChipFormula> + use<> {
        self.sources.iter().filter(move |source| source.fits(capability))
    }
}

/// How NVIDIA's tools tell a metric.
#[derive(Debug, Clone, Copy)]
pub struct ChipFormula {
    /// First and last compute capability it is for, times 10.
    pub chips: (u32, u32),
    /// Whether it is only for chips that have memory of their own.
    pub discrete: bool,
    /// What to ask for.
    pub formula: Formula,
}

/// Compute capabilities, times 10, of chips that share the memory of their host.
const SHARES_MEMORY: [u32; 3] = [87, 110, 121];
/// That of a chip of which nothing is known: it may have any source.
const UNKNOWN: u32 = 0;
/// That of a chip that has no such metrics at all.
const NONE: u32 = 72;

impl ChipFormula {
    /// Whether chips of this compute capability, times 10, have it; 0 for a chip of which it is not
    /// known.
    pub fn fits(&self, capability: u32) -> bool {
        if capability == UNKNOWN {
            return true;
        }
        // Thor had the first number before CUDA 13.
        let capability = if capability == 101 { 110 } else { capability };
        let fits = (self.chips.0..=self.chips.1).contains(&capability) && capability != NONE;
        fits && !(self.discrete && SHARES_MEMORY.contains(&capability))
    }

    /// The metrics of NVIDIA's that it needs.
    pub fn names(&self) -> Vec<&'static str> {
        let Fraction { above, below } = self.formula.fraction();
        above.into_iter().chain(below).map(|(name, _)| name).collect()
    }
}

/// A weighted sum of NVIDIA's metrics.
pub type Terms = &'static [(&'static str, f64)];

/// A quotient whose divisor is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DividedByZero;

/// A value from NVIDIA's metrics.
#[derive(Debug, Clone, Copy)]
pub enum Formula {
    /// One of them.
    Metric(&'static str),
    /// The sum of some.
    Sum(&'static [&'static str]),
    /// A quotient times a number; undefined where the divisor is 0.
    Ratio(&'static str, &'static str, f64),
    /// A difference.
    Difference(&'static str, &'static str),
    /// The sum of some, each times a number.
    Weighted(Terms),
    /// A quotient of such sums; undefined where the divisor is 0.
    Quotient(Terms, Terms),
}

/// The weighted sum that a formula is, and the one that it is divided by; empty if by none.
#[derive(Debug, Clone, PartialEq)]
pub struct Fraction {
    /// The sum.
    pub above: Vec<(&'static str, f64)>,
    /// What it is divided by.
    pub below: Vec<(&'static str, f64)>,
}

impl Formula {
    /// What it is made of.
    pub fn fraction(&self) -> Fraction {
        let (above, below) = match *self {
            Formula::Metric(name) => (vec![(name, 1.0)], Vec::new()),
            Formula::Sum(names) => (names.iter().map(|name| (*name, 1.0)).collect(), Vec::new()),
            Formula::Ratio(above, below, factor) => (vec![(above, factor)], vec![(below, 1.0)]),
            Formula::Difference(whole, part) => (vec![(whole, 1.0), (part, -1.0)], Vec::new()),
            Formula::Weighted(terms) => (terms.to_vec(), Vec::new()),
            Formula::Quotient(above, below) => (above.to_vec(), below.to_vec()),
        };
        Fraction { above, below }
    }

    /// The value, if all metrics that it needs have one and it is a finite number.
    pub fn evaluate(
        &self,
        value: &impl Fn(&str) -> Option<f64>,
    ) -> Option<Result<f64, DividedByZero>> {
        let Fraction { above, below } = self.fraction();
        let sum = |terms: &[(&'static str, f64)]| {
            terms.iter().map(|(name, weight)| Some(value(name)? * weight)).sum::<Option<f64>>()
        };
        let (dividend, divisor) = (sum(&above)?, sum(&below)?);
        let result = match below.is_empty() {
            true => dividend,
            false if divisor == 0.0 => return Some(Err(DividedByZero)),
            false => dividend / divisor,
        };
        result.is_finite().then_some(Ok(result))
    }
}

/// A field of the CUDA Evaluation Server's `device_metrics`.
#[derive(Debug, Clone, Copy)]
pub struct MetricField {
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
pub enum MetricUnit {
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

impl MetricUnit {
    /// As reports write it.
    pub fn name(self) -> &'static str {
        match self {
            MetricUnit::Percent => "%",
            MetricUnit::Bytes => "bytes",
            MetricUnit::BytesPerSecond => "bytes/s",
            MetricUnit::Seconds => "s",
            MetricUnit::Cycles => "cycles",
            MetricUnit::Instructions => "instructions",
            MetricUnit::InstructionsPerCycle => "instructions/cycle",
            MetricUnit::Warps => "warps",
            MetricUnit::Threads => "threads",
            MetricUnit::Registers => "registers",
            MetricUnit::Blocks => "blocks",
            MetricUnit::Requests => "requests",
            MetricUnit::Operations => "operations",
            MetricUnit::OperationsPerByte => "operations/byte",
            MetricUnit::OperationsPerSecond => "operations/s",
            MetricUnit::OperationsPerCycle => "operations/cycle",
            MetricUnit::BytesPerCycle => "bytes/cycle",
            MetricUnit::Hertz => "Hz",
            MetricUnit::Sectors => "sectors",
            MetricUnit::SectorsPerRequest => "sectors/request",
            MetricUnit::Wavefronts => "wavefronts",
            MetricUnit::Conflicts => "conflicts",
            MetricUnit::Waves => "waves",
            MetricUnit::Ratio => "ratio",
        }
    }
}

/// Groups of metrics; their names select all their metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say what they are")]
pub enum MetricGroup {
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

impl MetricGroup {
    /// As contracts name it.
    pub fn name(self) -> &'static str {
        match self {
            MetricGroup::SpeedOfLight => "speed_of_light",
            MetricGroup::Detailed => "detailed",
            MetricGroup::Memory => "memory",
            MetricGroup::Compute => "compute",
            MetricGroup::Pipeline => "pipeline",
            MetricGroup::Occupancy => "occupancy",
            MetricGroup::Stall => "stall",
            MetricGroup::Scheduler => "scheduler",
            MetricGroup::AccessPattern => "access_pattern",
            MetricGroup::Roofline => "roofline",
            MetricGroup::Timing => "timing",
            MetricGroup::Instructions => "instructions",
        }
    }
}

#[cfg(test)]
mod tests;
