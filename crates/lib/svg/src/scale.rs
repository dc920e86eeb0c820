//! Scales, which convert values to positions on an axis. The main types are [`Linear`] and
//! [`Logarithmic`].

/// The maximum number of decades of an axis. Hostile counts could otherwise extend the axis
/// further.
const MAX_DECADES: i32 = 24;

/// A linear scale, from a range of values to a range of positions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    values: (f64, f64),
    places: (f64, f64),
}

impl Linear {
    /// Creates a scale that maps a range of values to a range of positions.
    pub fn new(values: (f64, f64), places: (f64, f64)) -> Self {
        Self { values, places }
    }

    /// Returns the position of a value. Values outside the range are placed at the edge. If the
    /// range is empty, its value is placed in the middle.
    pub fn at(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        let part = (value - low) / (high - low);
        let part = if part.is_nan() { 0.5 } else { part.clamp(0.0, 1.0) };
        self.places.0 + part * (self.places.1 - self.places.0)
    }

    /// Returns `count` equally spaced values, including both ends of the range, with their
    /// positions.
    pub fn ticks(&self, count: u32) -> impl Iterator<Item = (f64, f64)> + '_ {
        let (low, high) = self.values;
        let value = move |n: u32| low + f64::from(n) / f64::from(count.max(2) - 1) * (high - low);
        (0..count).map(move |n| (value(n), self.at(value(n))))
    }
}

/// A logarithmic scale between two powers of ten.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Logarithmic {
    low: i32,
    high: i32,
    places: (f64, f64),
}

impl Logarithmic {
    /// Creates a scale between two positions for the positive numbers in `values`. Returns `None`
    /// if there are none.
    pub fn new(values: &[f64], places: (f64, f64)) -> Option<Self> {
        let positive = || values.iter().copied().filter(|v| v.is_finite() && *v > 0.0);
        let least = positive().min_by(f64::total_cmp)?;
        let most = positive().max_by(f64::total_cmp)?;
        let high = most.log10().ceil() as i32;
        // If the largest value is a power of ten, a decade is added, so that the value is not on
        // the edge of the plot.
        let high = if most.log10() == f64::from(high) { high + 1 } else { high };
        let low = (least.log10().floor() as i32).max(high - MAX_DECADES);
        let low = if least.log10() == f64::from(low) { low - 1 } else { low };
        Some(Self { low, high, places })
    }

    pub fn low(&self) -> f64 {
        10f64.powi(self.low)
    }

    pub fn high(&self) -> f64 {
        10f64.powi(self.high)
    }

    /// Returns the position of a value. Values outside the range are placed at the edge.
    pub fn at(&self, value: f64) -> f64 {
        Linear::new((self.low.into(), self.high.into()), self.places).at(value.log10())
    }

    /// Returns the exponents of the decades, with their positions.
    pub fn ticks(&self) -> impl Iterator<Item = (i32, f64)> + '_ {
        (self.low..=self.high).map(|exponent| (exponent, self.at(10f64.powi(exponent))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_between_the_ends() {
        let axis = Linear::new((-1.0, 3.0), (100.0, 20.0));
        assert_eq!(
            [-5.0, -1.0, 1.0, 3.0, 9.0].map(|v| axis.at(v)),
            [100.0, 100.0, 60.0, 20.0, 20.0]
        );
        assert_eq!(axis.ticks(3).collect::<Vec<_>>(), [(-1.0, 100.0), (1.0, 60.0), (3.0, 20.0)]);
        assert_eq!(Linear::new((2.0, 2.0), (0.0, 10.0)).at(2.0), 5.0);
    }

    #[test]
    fn decades_are_equal_distances() {
        let axis = Logarithmic::new(&[0.5, 0.0, f64::NAN, 20.0], (0.0, 30.0)).expect("an axis");
        assert_eq!((axis.low(), axis.high()), (0.1, 100.0));
        let places = axis.ticks().map(|(exponent, at)| (exponent, at.round() as i32));
        assert_eq!(places.collect::<Vec<_>>(), [(-1, 0), (0, 10), (1, 20), (2, 30)]);
        assert_eq!((axis.at(0.0), axis.at(1e9)), (0.0, 30.0));
        assert!(Logarithmic::new(&[0.0, -1.0, f64::INFINITY], (0.0, 1.0)).is_none());
        let wide = Logarithmic::new(&[1e-300, 1e300], (0.0, 1.0)).expect("an axis");
        assert_eq!(wide.ticks().count() as i32, MAX_DECADES + 1);
    }
}
