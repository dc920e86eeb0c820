//! Imports raw pages of Nsight Compute whose rows are too many to be kept in memory.

use super::{ImportError, Imported, above_all, verdict};
use crate::ncu::{self, NcuCsvError};
use crate::select::{Selection, select};
use crate::several::{Folded, LaunchFold};

/// Parses a page launch by launch, and returns the selected metrics. Between launches it keeps only
/// sums and other small state.
pub(super) fn ncu_page(text: &str, selection: &Selection) -> Result<Imported, ImportError> {
    let everything = select(&[]);
    let mut fold = LaunchFold::new(&everything);
    let mut notes = ncu::each_launch(text, |launch| fold.add(launch))?;
    let folded = fold.finish().ok_or(NcuCsvError::NoKernels { line: 1 })?;
    let Folded { mut metrics, kernels, others } = folded;
    if others > 0 {
        notes.push(format!(
            "{others} launches are of further kernels, and count only in the metrics of all"
        ));
    }
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

    /// Compares the results of both imports of a page: launch by launch, and all launches at once.
    fn same(page: &str) -> (Imported, Imported) {
        let selection = select(&[]);
        let large = ncu_page(page, &selection).unwrap();
        let small = super::super::import(page, &selection).unwrap();
        let (Imported::Ncu { device_metrics: a, .. }, Imported::Ncu { device_metrics: b, .. }) =
            (&large, &small)
        else {
            panic!()
        };
        assert_eq!(a.kernel, b.kernel);
        let pages = std::iter::once((&a.metrics, &b.metrics)).chain(
            a.kernels.iter().zip(&b.kernels).map(|(a, b)| {
                assert_eq!((&a.kernel, a.launches), (&b.kernel, b.launches));
                (&a.metrics, &b.metrics)
            }),
        );
        for (a, b) in pages {
            for (id, metric) in b {
                let other = &a[id];
                assert_eq!(metric.reason, other.reason, "{id}");
                let (a, b) = (metric.value.unwrap_or(0.0), other.value.unwrap_or(0.0));
                assert!((a - b).abs() <= 1e-9 * a.abs(), "{id}: {a} {b}");
            }
        }
        (large, small)
    }

    #[test]
    fn a_large_page_is_read_as_a_small_one() {
        let (large, small) = same(PAGE);
        let (Imported::Ncu { verdicts: a, .. }, Imported::Ncu { verdicts: b, .. }) =
            (&large, &small)
        else {
            panic!()
        };
        let bounds = |all: &[super::super::ImportedVerdict]| {
            all.iter().map(|one| (one.kernel.clone(), one.bound_by)).collect::<Vec<_>>()
        };
        assert_eq!((bounds(a).len(), bounds(a)), (5, bounds(b)));
    }

    /// The page has launches of several chips, sizes that contradict their columns, cells without a
    /// number, and rates from which counts are derived.
    #[test]
    fn what_is_odd_in_a_large_page_is_read_as_in_a_small_one() {
        let names = [
            "gpu__time_duration.sum",
            "launch__block_size",
            "dram__bytes.sum.per_second",
            "dram__bytes_read.sum",
            "sm__inst_executed_pipe_tensor.sum",
            "smsp__cycles_elapsed.max",
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed",
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
            "lts__t_sector_hit_rate.pct",
        ];
        let head = format!("ID,Kernel Name,Block Size,Grid Size,CC,{}\n", names.join(","));
        let units = ",,,,,usecond,,Gbyte/s,Kbyte,inst,cycle,inst/cycle,sector,request,%\n";
        let rows = [
            "0,a,\"(32, 1, 1)\",\"(7, 2, 1)\",8.0,1.5,32,100.5,n/a,0,2000,1.25,64,16,50.5\n",
            "1,a,\"(64, 1, 1)\",\"(7, 2, 1)\",8.0,2.5,32,110.5,3.5,0,3000,2.25,96,16,60.5\n",
            "2,b,\"(32, 1, 1)\",\"(9, 1, 1)\",9.0,0.5,32,90.5,2.5,4,1000,1.75,0,0,150.5\n",
            "3,b,\"(32, 1, 1)\",\"(9, 1, 1)\",7.0,,32,80.5,word,0,1000,1.75,0,0,inf\n",
        ];
        for count in 1..=rows.len() {
            same(&format!("{head}{units}{}", rows[..count].concat()));
        }
    }
}
