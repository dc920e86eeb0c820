//! Values of a launch in numbered places, for pages whose launches are too many to keep a map of
//! each. The main type is [`PlacedLaunch`].

use std::sync::LazyLock;

use super::csv::NcuCsvError;
use super::derived;
use super::kernel::NcuKernel;

/// Names of all metrics with a place, sorted.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| derived::names().into_iter().collect());

/// Returns the place of a metric that analyses use; `None` for others.
pub(crate) fn place(name: &str) -> Option<usize> {
    NAMES.binary_search_by(|other| other.as_str().cmp(name)).ok()
}

/// Returns the metrics with their places.
pub(super) fn names() -> impl Iterator<Item = (usize, &'static str)> {
    NAMES.iter().map(String::as_str).enumerate()
}

/// Returns places without values.
pub(super) fn empty() -> Vec<f64> {
    vec![f64::NAN; NAMES.len()]
}

/// Returns the value in a place, if it has one.
pub(crate) fn at(values: &[f64], place: usize) -> Option<f64> {
    values.get(place).copied().filter(|value| !value.is_nan())
}

/// A launch of a page that is read launch by launch.
pub(crate) struct PlacedLaunch<'a> {
    pub(crate) kernel: &'a str,
    /// Compute capability times 10; 0 if it is not known.
    pub(crate) capability: u32,
    /// NVIDIA's metrics in base units, and those that follow from them, by their places. NaN means
    /// that there is no value.
    pub(crate) values: &'a [f64],
    /// Whether a launch of the page may have a value, by place.
    pub(crate) available: &'a [bool],
    /// Reads the launch with the reasons for missing values.
    pub(crate) whole: &'a dyn Fn() -> Result<NcuKernel, NcuCsvError>,
}
