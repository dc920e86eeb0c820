//! Imports raw pages of Nsight Compute whose rows are too many to be kept in memory.

use super::{ImportError, Imported, above_all, not_listed, verdict};
use crate::ncu::{self, NcuCsvError};
use crate::select::{Selection, select};
use crate::several::{Folded, LaunchFold};

/// Parses a page launch by launch, and returns the selected metrics. Between launches it keeps only
/// sums and other small state.
pub(super) fn ncu_page(text: &str, selection: &Selection) -> Result<Imported, ImportError> {
    let everything = select(&[]);
    let mut fold = LaunchFold::new(&everything);
    let mut notes = ncu::each_launch(text, |launch| fold.add(launch))?;
    if fold.needs_again() {
        ncu::each_launch(text, |launch| fold.add_again(launch))?;
    }
    let folded = fold.finish().ok_or(NcuCsvError::NoKernels { line: 1 })?;
    let Folded { mut metrics, kernels, launches, counted } = folded;
    notes.extend(not_listed(&metrics, launches));
    if !counted {
        notes.push(
            "there are too many kernels to count them all, and a kernel with many short launches \
             may be missing from the list"
                .to_owned(),
        );
    }
    let verdicts = verdict::verdicts(&metrics, &kernels);
    if let [only] = verdicts.as_slice() {
        metrics.roofline.clone_from(&only.roofline);
        metrics.advice.clone_from(&only.advice);
    }
    if !selection.is_all() {
        let chosen = |id: &String| selection.metrics.iter().any(|info| info.id == id);
        metrics.metrics.retain(|id, _| chosen(id));
        metrics.kernels.iter_mut().for_each(|kernel| kernel.metrics.retain(|id, _| chosen(id)));
    }
    notes.extend(above_all(&metrics));
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
        let (
            Imported::Ncu { device_metrics: a, notes: a_notes, .. },
            Imported::Ncu { device_metrics: b, notes: b_notes, .. },
        ) = (&large, &small)
        else {
            panic!()
        };
        assert_eq!((&a.kernel, a_notes), (&b.kernel, b_notes));
        assert_eq!((a.kernels.len(), a.kernels_left_out), (b.kernels.len(), b.kernels_left_out));
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

    /// The longest kernel comes last, and further launches of the others are between.
    #[test]
    fn of_very_many_kernels_the_longest_are_listed() {
        let head = "ID,Kernel Name,gpu__time_duration.sum,dram__bytes.sum\n,,ns,byte\n";
        for kernels in [100, 300, 700] {
            let row = |n: usize| format!("{n},k{:03},{}.5,{n}\n", n % kernels, 10 + n % kernels);
            let mut page: String = head.to_owned();
            page.extend((0..2 * kernels + 10).map(row));
            page.push_str("1,last,1000000,64\n2,last,1000000,64\n");
            let (large, _) = same(&page);
            let Imported::Ncu { device_metrics, notes, .. } = large else { panic!() };
            let first = &device_metrics.kernels[0];
            assert_eq!((first.kernel.as_str(), first.launches), ("last", 2));
            assert_eq!(device_metrics.kernel, format!("{} kernels", kernels + 1));
            if kernels == 700 {
                // Of the 1412 launches, `last` has two, and so have 199 others. Those that are not
                // listed include the ten kernels with a third launch.
                assert_eq!(device_metrics.kernels_left_out, Some(501));
                assert_eq!(
                    notes,
                    [
                        "501 kernels with 1012 launches are not listed, because their total times are \
                      shorter; the metrics of all kernels include them"
                    ]
                );
            }
        }
    }

    #[test]
    fn notes_of_a_selection_are_about_its_metrics() {
        let page = "ID,Kernel Name,gpu__time_duration.sum,\
                    dram__throughput.avg.pct_of_peak_sustained_elapsed\n,,ns,%\n0,k,5,120\n";
        for (ids, count) in [(vec![], 1), (vec!["duration"], 0)] {
            let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
            let large = ncu_page(page, &select(&ids)).unwrap();
            let small = super::super::import(page, &select(&ids)).unwrap();
            for imported in [large, small] {
                let Imported::Ncu { notes, .. } = imported else { panic!() };
                assert_eq!(notes.len(), count, "{notes:?}");
            }
        }
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
