//! Evaluates formulas of the catalogue with values that are stored by place. The main type is
//! [`Plan`].

use super::is_count;
use crate::catalogue::{ChipFormula, Fraction};
use crate::ncu;
use crate::select::Selection;

/// Formulas that compute the selected metrics from the values of a launch on one chip.
pub(super) struct Plan {
    pub(super) metrics: Vec<MetricPlan>,
}

/// Formulas of a metric. The first formula whose values a launch has is used.
pub(super) struct MetricPlan {
    candidates: Vec<Placed>,
    /// Quotients of counts, which are computed from the sums of all launches.
    pub(super) quotients: Vec<Placed>,
}

/// Formula with two weighted sums of values, which are identified by their places: dividend and
/// divisor.
pub(super) struct Placed {
    above: Vec<(usize, f64)>,
    /// Empty if there is no divisor.
    below: Vec<(usize, f64)>,
}

impl Plan {
    /// Returns the plan for a chip with this compute capability (times 10).
    pub(super) fn of(selection: &Selection, capability: u32, available: &[bool]) -> Self {
        let metrics = selection.metrics.iter().map(|info| {
            let own = || info.sources_for(capability);
            // Formulas for dedicated memory do not apply to a chip that shares the memory of its
            // host. If the page has their values nevertheless, they are used.
            let unexpected = info.sources.iter().filter(|source| source.has(capability));
            let placed = |source: &ChipFormula| Placed::of(source.formula.fraction(), available);
            let counts = own().map(|source| source.formula.fraction()).filter(|fraction| {
                let mut names = fraction.above.iter().chain(&fraction.below);
                !fraction.below.is_empty() && names.all(|(name, _)| is_count(name))
            });
            MetricPlan {
                candidates: own().chain(unexpected).filter_map(placed).collect(),
                quotients: counts.filter_map(|counts| Placed::of(counts, available)).collect(),
            }
        });
        Self { metrics: metrics.collect() }
    }
}

impl MetricPlan {
    /// Returns the value that the formulas of the catalogue give.
    pub(super) fn value(&self, values: &[f64]) -> Option<f64> {
        for candidate in &self.candidates {
            let Some((dividend, divisor)) = candidate.parts(values) else { continue };
            let result = match candidate.below.is_empty() {
                true => dividend,
                // The first formula that has all values decides, even if its result is undefined.
                false if divisor == 0.0 => return None,
                false => dividend / divisor,
            };
            if result.is_finite() {
                return Some(result);
            }
        }
        None
    }
}

impl Placed {
    /// Returns the formula. Returns `None` if no launch of the page can have all of its values.
    fn of(fraction: Fraction, available: &[bool]) -> Option<Self> {
        let placed = |terms: Vec<(&'static str, f64)>| {
            let place = |(name, weight)| {
                let place = ncu::place(name).filter(|place| available[*place])?;
                Some((place, weight))
            };
            terms.into_iter().map(place).collect::<Option<Vec<(usize, f64)>>>()
        };
        Some(Self { above: placed(fraction.above)?, below: placed(fraction.below)? })
    }

    /// Returns dividend and divisor. Returns `None` if the launch lacks a value.
    pub(super) fn parts(&self, values: &[f64]) -> Option<(f64, f64)> {
        let sum = |terms: &[(usize, f64)]| {
            let term = |(place, weight): &(usize, f64)| Some(ncu::at(values, *place)? * weight);
            terms.iter().map(term).sum::<Option<f64>>()
        };
        Some((sum(&self.above)?, sum(&self.below)?))
    }
}
