//! The catalogue of device metrics. The main type is [`MetricInfo`].
//!
//! An id has the same meaning for every source. Units are base units: bytes, seconds, Hz, percent.
//! Names of NVIDIA's metrics are those that Nsight Compute and CUPTI accept. If the name of a
//! metric depends on the chip, [`ChipFormula::chips`] gives the chips of each name.

mod table;

pub use table::CATALOGUE;

#[derive(Debug, Clone, Copy)]
pub struct MetricInfo {
    pub id: &'static str,
    pub unit: MetricUnit,
    pub group: MetricGroup,
    pub description: &'static str,
    /// Formulas from NVIDIA's metrics; the first one that applies to the chip is used. Empty if
    /// NVIDIA's tools do not report the metric.
    pub sources: &'static [ChipFormula],
    /// Fields of the CUDA Evaluation Server's responses that contain the metric.
    pub fields: &'static [MetricField],
}

impl MetricInfo {
    /// Returns whether an NVIDIA metric is by itself a source of this metric.
    pub fn has_source(&self, name: &str) -> bool {
        let is = |source: &ChipFormula| matches!(source.formula, Formula::Metric(metric) if metric == name);
        self.sources.iter().any(is)
    }

    /// Returns the sources for a chip of this compute capability (times 10), best first.
    pub fn sources_for(
        &self,
        capability: u32,
    ) -> impl Iterator<Item = &'static ChipFormula> + use<> {
        self.sources.iter().filter(move |source| source.fits(capability))
    }
}

/// Returns whether this program can read counters of a chip of this compute capability (times 10).
/// Pages of Nsight Compute from other chips can be imported.
pub fn has_counters(capability: u32) -> bool {
    capability == UNKNOWN || (capability >= VOLTA && capability != XAVIER)
}

/// Returns the current compute capability of a chip: that of Thor was 10.1 before CUDA 13, and is
/// 11.0 since.
fn same_chip(capability: u32) -> u32 {
    if capability == 101 { 110 } else { capability }
}

/// Computation of a metric from NVIDIA's metrics on some chips.
#[derive(Debug, Clone, Copy)]
pub struct ChipFormula {
    /// First and last compute capability (times 10) of the chips.
    pub chips: (u32, u32),
    /// Whether the formula applies only to chips with dedicated memory.
    pub discrete: bool,
    pub formula: Formula,
}

/// Compute capabilities (times 10) of chips that share the memory of their host.
const SHARES_MEMORY: [u32; 3] = [87, 110, 121];
/// Compute capability of an unknown chip. Every source of Volta or a later chip applies to it.
const UNKNOWN: u32 = 0;
/// Compute capability of Xavier, a Volta chip whose counters Nsight Compute can read and CUPTI
/// cannot.
const XAVIER: u32 = 72;
/// Compute capability of the first chip that CUPTI's Range Profiler supports.
const VOLTA: u32 = 70;

impl ChipFormula {
    /// Returns whether the formula applies to chips of this compute capability (times 10); 0 means
    /// unknown.
    pub fn fits(&self, capability: u32) -> bool {
        if capability == UNKNOWN {
            return self.has(capability);
        }
        let shares_memory = SHARES_MEMORY.contains(&same_chip(capability));
        self.has(capability) && !(self.discrete && shares_memory)
    }

    /// Returns whether the formula applies to chips of this compute capability (times 10),
    /// regardless of whether they have dedicated memory.
    pub fn has(&self, capability: u32) -> bool {
        let capability = match same_chip(capability) {
            UNKNOWN => return self.chips.1 >= VOLTA,
            XAVIER => VOLTA,
            // If Pascal has the metric, it has the same name as on Volta.
            1..VOLTA if self.chips.1 >= VOLTA => VOLTA,
            capability => capability,
        };
        (self.chips.0..=self.chips.1).contains(&capability)
    }

    /// Returns the NVIDIA metrics from which the formula computes the value.
    pub fn names(&self) -> Vec<&'static str> {
        let Fraction { above, below } = self.formula.fraction();
        above.into_iter().chain(below).map(|(name, _)| name).collect()
    }
}

/// A weighted sum of NVIDIA's metrics.
pub type Terms = &'static [(&'static str, f64)];

/// Error of a formula whose divisor is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DividedByZero;

/// Formula that computes a value from NVIDIA's metrics.
#[derive(Debug, Clone, Copy)]
pub enum Formula {
    /// The value of a single metric.
    Metric(&'static str),
    Sum(&'static [&'static str]),
    /// A quotient times a factor; undefined if the divisor is 0.
    Ratio(&'static str, &'static str, f64),
    /// The difference of two metrics.
    Difference(&'static str, &'static str),
    /// A weighted sum of metrics.
    Weighted(Terms),
    /// A quotient of weighted sums; undefined if the divisor is 0.
    Quotient(Terms, Terms),
}

/// A formula as a weighted sum divided by another. The divisor is empty if there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Fraction {
    /// Terms of the dividend.
    pub above: Vec<(&'static str, f64)>,
    /// Terms of the divisor.
    pub below: Vec<(&'static str, f64)>,
}

impl Formula {
    /// Returns the formula as a fraction.
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

    /// Evaluates the formula. Returns `None` if a metric has no value or the result is not finite.
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
    pub group: FieldGroup,
    pub name: &'static str,
    /// Factor that converts a value from the metric's unit to the field's.
    pub scale: f64,
}

/// Groups of the CUDA Evaluation Server's `device_metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Unit of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Returns the unit's name in reports.
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

/// Groups of metrics; a group's name selects all its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Returns the group's name in contracts.
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
