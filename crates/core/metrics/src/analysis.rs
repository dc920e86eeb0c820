//! What follows from a launch's metrics: its roofline, what stands out, and whether the profiled
//! launch is the one that was timed.

use super::facts::{Facts, Values};
use super::types::DeviceMetrics;
use super::{advice, cross_check, roofline};

/// Puts the analyses into a report's metrics.
pub fn analyse(metrics: &mut DeviceMetrics, facts: &Facts<'_>) {
    let values = Values::new(&metrics.metrics);
    let roofline = roofline::roofline(values, facts);
    let advice = advice::advise(values, facts, roofline.as_ref());
    let cross_check = cross_check::cross_check(values, facts, metrics.conditions.as_ref());
    metrics.roofline = roofline;
    metrics.advice = advice;
    metrics.cross_check = cross_check;
}
