//! The values of what Nsight Compute wrote, launch by launch.

use std::collections::BTreeSet;

use super::ncu::NcuOutput;
use warpgauge_metrics::CollectedMetrics;
use warpgauge_metrics::ncu::{NcuLog, parse_csv, parse_log};
use warpgauge_model::{Cause, Unavailable};

/// The values of a profile, for the catalogue's formulas: those of one launch, since one was to be
/// seen. `requested`: NVIDIA's metrics that were asked for.
///
/// # Errors
/// A table that cannot be read, or that is not of one launch.
pub fn collected(
    profiled: &NcuOutput,
    requested: &BTreeSet<&str>,
) -> Result<CollectedMetrics, Unavailable> {
    let mut all = collected_all(profiled, requested)?;
    if all.len() > 1 {
        let text = format!("one launch was to be profiled, and {} were", all.len());
        return Err(Cause::Unreadable.because(text));
    }
    let mut one = all.remove(0);
    one.conditions.passes = one.conditions.passes.or_else(|| passes(&parse_log(&profiled.log)));
    Ok(one)
}

/// The values of each launch of a profile, at least one. `requested`: NVIDIA's metrics that were asked for.
///
/// # Errors
/// A table that cannot be read, none at all, or tables of different launches.
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
        return Err(Cause::NoData.because("Nsight Compute gave no table"));
    }
    for one in &mut all {
        // What one part was not asked for, another was.
        let values = &one.values;
        one.missing.retain(|name, _| !values.contains_key(name));
    }
    Ok(all)
}

/// Passes that the log tells, of all runs together.
fn passes(log: &NcuLog) -> Option<u32> {
    let passes = log.kernels.iter().map(|(_, passes)| passes).sum::<u32>();
    (passes > 0).then_some(passes)
}
