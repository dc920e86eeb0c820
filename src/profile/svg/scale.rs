//! A logarithmic axis.

/// Most decades of an axis: what hostile counts could make it span otherwise.
const MAX_DECADES: i32 = 24;

/// From values to places, by whole decades.
pub(super) struct Scale {
    low: i32,
    high: i32,
    from: f64,
    to: f64,
}

impl Scale {
    /// An axis over the positive ones of `values`, between two places; `None` if there are none.
    pub(super) fn new(values: Vec<f64>, (from, to): (f64, f64)) -> Option<Self> {
        let positive = || values.iter().copied().filter(|v| v.is_finite() && *v > 0.0);
        let least = positive().min_by(f64::total_cmp)?;
        let most = positive().max_by(f64::total_cmp)?;
        let high = most.log10().ceil() as i32;
        // A value on a decade stands half way into the plot, not on its edge.
        let high = if most.log10() == f64::from(high) { high + 1 } else { high };
        let low = (least.log10().floor() as i32).max(high - MAX_DECADES);
        let low = if least.log10() == f64::from(low) { low - 1 } else { low };
        Some(Self { low, high, from, to })
    }

    pub(super) fn low(&self) -> f64 {
        10f64.powi(self.low)
    }

    pub(super) fn high(&self) -> f64 {
        10f64.powi(self.high)
    }

    /// Where a value stands; what is outside stands on the edge.
    pub(super) fn at(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(self.low), f64::from(self.high));
        let part = ((value.log10() - low) / (high - low)).clamp(0.0, 1.0);
        self.from + part * (self.to - self.from)
    }

    /// Exponents of the decades, and their places.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (i32, f64)> + '_ {
        (self.low..=self.high).map(|exponent| (exponent, self.at(10f64.powi(exponent))))
    }
}
