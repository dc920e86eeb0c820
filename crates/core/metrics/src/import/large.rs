//! Imports raw pages of Nsight Compute that have too many cells for the memory.

use std::collections::{BTreeMap, BTreeSet};

use super::{ImportError, Imported, UNKNOWN, above_all, verdict};
use crate::ncu::{self, NcuCsvError, NcuKernel};
use crate::select::{Selection, select};
use crate::several::{LaunchFold, ProfiledLaunch};
use crate::types::Conditions;

/// Parses a page launch by launch, and keeps the metrics that the analyses use.
pub(super) fn ncu_page(text: &str, selection: &Selection) -> Result<Imported, ImportError> {
    let unreadable = ncu::parse_log(text).unreadable;
    let conditions = Conditions::default();
    let everything = select(&[]);
    let mut fold = LaunchFold::new(&everything);
    let mut firsts: BTreeMap<String, NcuKernel> = BTreeMap::new();
    let mut notes = ncu::each_launch(text, |kernel| {
        let collected =
            kernel.collected("Nsight Compute", &conditions, &BTreeSet::new(), &unreadable);
        let capability = kernel.capability.unwrap_or(UNKNOWN);
        let launch = ProfiledLaunch { collected: &collected, capability, launch: None };
        if !fold.add(&launch) {
            return Err(NcuCsvError::TooManyCells { line: 1 });
        }
        firsts.entry(kernel.name.clone()).or_insert(kernel);
        Ok(())
    })?;
    let mut metrics = fold.metrics().ok_or(NcuCsvError::NoKernels { line: 1 })?;
    let kernels: Vec<NcuKernel> = firsts.into_values().collect();
    let verdicts = verdict::verdicts(&metrics, &kernels);
    if let [only] = verdicts.as_slice() {
        metrics.roofline.clone_from(&only.roofline);
        metrics.advice.clone_from(&only.advice);
    }
    notes.extend(above_all(&metrics));
    if !selection.is_all() {
        let chosen = |id: &String| selection.metrics.iter().any(|info| info.id == id);
        metrics.metrics.retain(|id, _| chosen(id));
        metrics.kernels.iter_mut().for_each(|kernel| kernel.metrics.retain(|id, _| chosen(id)));
    }
    Ok(Imported::Ncu { device_metrics: Box::new(metrics), verdicts, rules: Vec::new(), notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str =
        include_str!("../../../../../tests/fixtures/profile/ncu/2025.3.1-h200-raw_full_base.csv");

    /// Launch by launch gives what all at once gives.
    #[test]
    fn a_large_page_is_read_as_a_small_one() {
        let selection = select(&[]);
        let Imported::Ncu { device_metrics: large, verdicts: a, .. } =
            ncu_page(PAGE, &selection).unwrap()
        else {
            panic!()
        };
        let Imported::Ncu { device_metrics: small, verdicts: b, .. } =
            super::super::import(PAGE, &selection).unwrap()
        else {
            panic!()
        };
        assert_eq!((large.kernel.as_str(), large.kernels.len()), ("5 kernels", 5));
        for (large, small) in large.kernels.iter().zip(&small.kernels) {
            assert_eq!((&large.kernel, large.launches), (&small.kernel, small.launches));
            for (id, metric) in &small.metrics {
                let other = &large.metrics[id];
                assert_eq!(metric.value.is_some(), other.value.is_some(), "{id}");
                let (a, b) = (metric.value.unwrap_or(0.0), other.value.unwrap_or(0.0));
                assert!((a - b).abs() <= 1e-9 * a.abs(), "{id}: {a} {b}");
            }
        }
        let bounds = |all: &[super::super::ImportedVerdict]| {
            all.iter().map(|one| (one.kernel.clone(), one.bound_by)).collect::<Vec<_>>()
        };
        assert_eq!(bounds(&a), bounds(&b));
    }
}
