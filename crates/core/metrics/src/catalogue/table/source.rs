//! Constructors of a row's sources and fields.

use crate::catalogue::{ChipFormula, FieldGroup, Formula, MetricField, Terms};

pub(super) const fn at(group: FieldGroup, name: &'static str) -> MetricField {
    scaled(group, name, 1.0)
}

pub(super) const fn scaled(group: FieldGroup, name: &'static str, scale: f64) -> MetricField {
    MetricField { group, name, scale }
}

const fn of(formula: Formula) -> ChipFormula {
    ChipFormula { chips: (70, u32::MAX), discrete: false, formula }
}

pub(super) const fn metric(name: &'static str) -> ChipFormula {
    of(Formula::Metric(name))
}

pub(super) const fn sum(names: &'static [&'static str]) -> ChipFormula {
    of(Formula::Sum(names))
}

pub(super) const fn ratio(above: &'static str, below: &'static str) -> ChipFormula {
    of(Formula::Ratio(above, below, 1.0))
}

/// Returns the percentage of resident warps that waited, from the number of waiting warps per
/// issued instruction.
pub(super) const fn stalled(warps_per_issue: &'static str) -> ChipFormula {
    of(Formula::Ratio(warps_per_issue, "smsp__average_warp_latency_per_inst_issued.ratio", 100.0))
}

pub(super) const fn difference(whole: &'static str, part: &'static str) -> ChipFormula {
    of(Formula::Difference(whole, part))
}

pub(super) const fn weighted(terms: Terms) -> ChipFormula {
    of(Formula::Weighted(terms))
}

pub(super) const fn quotient(above: Terms, below: Terms) -> ChipFormula {
    of(Formula::Quotient(above, below))
}

impl ChipFormula {
    /// Restricts the formula to chips of these compute capabilities (times 10).
    pub(super) const fn on(self, first: u32, last: u32) -> Self {
        Self { chips: (first, last), ..self }
    }

    pub(super) const fn since(self, first: u32) -> Self {
        Self { chips: (first, self.chips.1), ..self }
    }

    pub(super) const fn until(self, last: u32) -> Self {
        Self { chips: (self.chips.0, last), ..self }
    }

    /// Restricts the source to chips with dedicated memory; other chips have no such counters.
    pub(super) const fn discrete(self) -> Self {
        Self { discrete: true, ..self }
    }
}
