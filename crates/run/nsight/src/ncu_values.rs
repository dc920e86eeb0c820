//! Extracts values from Nsight Compute's output, launch by launch.

use std::collections::BTreeSet;

use super::ncu::NcuOutput;
use warpgauge_metrics::CollectedMetrics;
use warpgauge_metrics::ncu::{NcuLog, parse_csv, parse_log};
use warpgauge_model::{Cause, Unavailable};

/// Returns the values of a profile of one launch, as input for the formulas of the metric
/// catalogue. `requested` contains the requested NVIDIA metrics.
///
/// # Errors
/// Fails if a table cannot be read or is missing, or if the profile has several launches.
pub fn collected(
    profiled: &NcuOutput,
    requested: &BTreeSet<&str>,
) -> Result<CollectedMetrics, Unavailable> {
    let mut all = collected_all(profiled, requested)?;
    if all.len() > 1 {
        let text = format!("one launch should have been profiled, but {} were", all.len());
        return Err(Cause::Unreadable.because(text));
    }
    let mut one = all.remove(0);
    one.conditions.passes = one.conditions.passes.or_else(|| passes(&parse_log(&profiled.log)));
    Ok(one)
}

/// Returns the values of each launch of a profile, for at least one launch. `requested` contains
/// the requested NVIDIA metrics.
///
/// # Errors
/// Fails if a table cannot be read, if there is none, or if tables belong to different launches.
pub fn collected_all(
    profiled: &NcuOutput,
    requested: &BTreeSet<&str>,
) -> Result<Vec<CollectedMetrics>, Unavailable> {
    let log = parse_log(&profiled.log);
    let mut all: Vec<CollectedMetrics> = Vec::new();
    for (part, table) in profiled.tables.iter().enumerate() {
        let report =
            parse_csv(table).map_err(|error| Cause::Unreadable.because(error.to_string()))?;
        let conditions = &profiled.conditions;
        let launches = report.kernels.iter();
        let launches: Vec<CollectedMetrics> = launches
            .map(|kernel| kernel.collected(&profiled.tool, conditions, requested, &log.unreadable))
            .collect();
        if launches.is_empty() {
            return Err(Cause::NoKernel.because("no launch was profiled"));
        }
        if part == 0 {
            all = launches;
            continue;
        }
        let names = |list: &[CollectedMetrics]| {
            list.iter().map(|one| one.kernel.clone()).collect::<Vec<_>>()
        };
        if names(&all) != names(&launches) {
            let text = "the runs for different metrics launched different kernels";
            return Err(Cause::Unreadable.because(text));
        }
        for (all, one) in all.iter_mut().zip(launches) {
            all.values.extend(one.values);
            all.missing.extend(one.missing);
            all.conditions.passes =
                all.conditions.passes.zip(one.conditions.passes).map(|(a, b)| a + b);
        }
    }
    if all.is_empty() {
        return Err(Cause::NoData.because("Nsight Compute returned no table"));
    }
    for one in &mut all {
        // A metric that is missing in one table may have a value in another.
        let values = &one.values;
        one.missing.retain(|name, _| !values.contains_key(name));
    }
    Ok(all)
}

/// Returns the number of passes in the log, summed over all kernels.
fn passes(log: &NcuLog) -> Option<u32> {
    let passes = log.kernels.iter().map(|(_, passes)| passes).sum::<u32>();
    (passes > 0).then_some(passes)
}
