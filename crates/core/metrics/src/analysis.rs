//! Analyses a launch's metrics: the roofline, advice, and whether the profiled launch resembles the
//! timed ones.

use super::facts::{Facts, Values};
use super::types::DeviceMetrics;
use super::{advice, cross_check, roofline};

/// Adds the analyses to a report's metrics.
pub fn analyse(metrics: &mut DeviceMetrics, facts: &Facts<'_>) {
    let values = Values::new(&metrics.metrics);
    let roofline = roofline::roofline(values, facts);
    let advice = advice::advise(values, facts, roofline.as_ref());
    let cross_check = cross_check::cross_check(values, facts, metrics.conditions.as_ref());
    metrics.roofline = roofline;
    metrics.advice = advice;
    metrics.cross_check = cross_check;
}
