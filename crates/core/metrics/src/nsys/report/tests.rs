use proptest::prelude::*;

use super::super::{cause, timeline};
use super::*;
use warpgauge_model::Cause;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!(
            "../../../../../../tests/fixtures/profile/nsys/2025.3.1-",
            $name,
            ".txt"
        ))
    };
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= 1e-9 * expected.abs()
}

#[test]
fn real_summaries() {
    let report = parse_stats(fixture!("cuda_gpu_kern_sum")).unwrap();
    assert_eq!(report.kernels.len(), 5);
    let kernel = &report.kernels[1];
    assert_eq!(kernel.name, "vector_add(const float *, const float *, float *, int)");
    assert!(close(kernel.total, 128_800e-9) && close(kernel.mean.unwrap(), 64_400e-9));
    assert_eq!((kernel.count, kernel.share_pct), (2, Some(5.0)));
    assert_eq!(kernel.grid, None);
    assert_eq!(report.problems, []);

    let both = parse_stats(fixture!("all_quiet_forced")).unwrap();
    assert_eq!((both.kernels.len(), both.memory_time.len()), (5, 2));
    assert!(close(both.memory_time[0].total, 39_701_897e-9));

    let sizes = parse_stats(fixture!("cuda_gpu_mem_size_sum")).unwrap().memory_size;
    assert!(close(sizes[0].total, 134.218e6), "in bytes");
    assert_eq!((sizes[0].name.as_str(), sizes[0].count), ("[CUDA memset]", 2));
    let api = parse_stats(fixture!("cuda_api_sum")).unwrap().api;
    assert_eq!((api.len(), api[0].name.as_str(), api[0].count), (9, "cudaMalloc", 3));
}

#[test]
fn a_real_trace() {
    let report = parse_stats(fixture!("cuda_gpu_trace")).unwrap();
    assert_eq!(report.trace.len(), 9);
    let copy = report.trace.last().unwrap();
    assert!(close(copy.bytes.unwrap(), 67.109e6) && close(copy.throughput.unwrap(), 1677.722e6));
    assert_eq!(copy.grid, None);
    let kernel = &report.trace[4];
    assert_eq!((kernel.grid, kernel.block), (Some([64, 64, 1]), Some([32, 32, 1])));
    assert_eq!(
        (kernel.registers, kernel.stream, kernel.correlation),
        (Some(29), Some(7), Some(131))
    );
    assert_eq!(kernel.device, "NVIDIA H200 (0)");
    let time = timeline(report.trace.iter()).unwrap();
    assert!((time.span - (503_598_941 + 39_701_897 - 500_698_278) as f64 * 1e-9).abs() < 1e-12);
    assert!((time.kernels - 2_594_520e-9).abs() < 1e-12, "{}", time.kernels);
    assert_eq!(time.gaps, 8);
    assert!((time.longest_gap - 203_000e-9).abs() < 2e-6, "{}", time.longest_gap);

    let launches = parse_stats(fixture!("cuda_kern_exec_sum")).unwrap().launches;
    let vector_add = launches.iter().find(|l| l.kernel.starts_with("vector_add")).unwrap();
    assert_eq!((vector_add.count, vector_add.api.as_str()), (2, "cudaLaunchKernel"));
    assert!(close(vector_add.api_time.unwrap(), 54_904.5e-9));
    assert!(close(vector_add.queue_time.unwrap(), 58_425e-9));
    assert!(close(vector_add.total.unwrap(), 148_062.5e-9));
}

#[test]
fn remarks_say_why_there_is_no_table() {
    let report = parse_stats(fixture!("none")).unwrap();
    assert_eq!(report.kernels, []);
    assert_eq!(report.problems[0].code, "no_data");
    assert!(report.problems[0].reason.contains("does not contain CUDA kernel data"));
    assert_eq!(parse_stats(fixture!("small_app")), Err(NsysError::NoTable));
    let stale = "WARNING: x.sqlite: File is older than input file x.nsys-rep\nusage: nsys stats\n";
    assert_eq!(parse_stats(stale).unwrap().problems[0].code, "stale_export");
    let unknown = "ERROR: Report 'frobs' could not be found.\n";
    assert_eq!(parse_stats(unknown).unwrap().problems[0].code, "unknown_report");
    assert_eq!(cause(&format!("ERROR: odd\n{stale}")), Some(Cause::StaleExport));
    assert_eq!(cause("ERROR: odd\n"), Some(Cause::Unknown));
    assert_eq!(cause("WARNING: odd\nall is well, ERROR: is no mark here"), None);
}

/// A line break in a quoted name must not forge a row.
#[test]
fn a_quoted_name_may_have_line_breaks() {
    let text = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n\
                60.0,6000,6,1000.0,\"k\n50.0,1,1,1,evil\"\n40.0,4000,4,1000.0,m\n";
    let kernels = parse_stats(text).unwrap().kernels;
    let names: Vec<&str> = kernels.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["k\n50.0,1,1,1,evil", "m"]);
}

#[test]
fn tables_without_a_complete_row_are_errors() {
    let header = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n";
    let error = |text: &str| parse_stats(text).unwrap_err().to_string();
    let unquoted = error(&format!("{header}100.0,6,6,1.0,k(int, float)\n"));
    assert!(unquoted.starts_with("line 2: this row has 6 fields, but the table"), "{unquoted}");
    let comma = format!("{header}100.0,5,1,5.0,a\n\n{header}100,0,5,1,5,0,b\n");
    assert!(error(&comma).starts_with("line 5: this row has 7 fields"), "one of two tables");
    let some = parse_stats(&format!("{header}60.0,6,6,1.0,k(int, float)\n40.0,5,1,5.0,a\n"));
    let notes = some.unwrap().notes;
    assert!(notes[0].contains("has 6 fields, but the table of line 1 has 5 columns"), "{notes:?}");

    let cut = error(&format!("{header}100.0,6,\n"));
    assert!(cut.starts_with("line 2: this row is cut off"), "{cut}");
    let two = parse_stats(&format!("{header}100.0,5,1,5.0,a\n\n{header}100.0,5,\n")).unwrap();
    assert_eq!(two.kernels.len(), 1);
    assert!(two.notes.iter().any(|note| note.contains("not a complete row")), "{:?}", two.notes);
}

#[test]
fn a_row_without_a_name_is_cut_off() {
    let text = " Time (%)  Total Time (ns)  Instances  Avg (ns)  Name\n \
                --------  ---------------  ---------  --------  ----\n     \
                60.0                6          1       6.0  k\n     \
                40.0                4          1       4.\n";
    let report = parse_stats(text).unwrap();
    assert_eq!(report.kernels.len(), 1);
    assert!(report.notes[0].starts_with("line 4: `40.0"), "{:?}", report.notes);
}

#[test]
fn sizes_have_the_unit_of_the_title() {
    let sizes = "CUDA Memory Operation Statistics (by size in KiB):\n\n    \
                 Total     Operations   Average    Minimum    Maximum        Operation     \n \
                 -----------  ----------  ---------  ---------  ----------  ------------------\n \
                 491,520.000          60  8,192.000  4,096.000  12,288.000  [CUDA memcpy HtoD]\n";
    assert!(looks_like_stats(sizes));
    let size = &parse_stats(sizes).unwrap().memory_size[0];
    assert_eq!((size.total, size.mean), (503_316_480.0, Some(8_388_608.0)));
    // The unit of a title without a table is not that of the next table.
    let kernels = "CUDA Memory Operation Statistics (by size in KiB):\n\n\
                   CUDA Kernel Statistics:\n\n \
                   Time(%)  Total Time (ns)  Instances  Average  Name\n \
                   -------  ---------------  ---------  -------  ----\n   \
                   100.0                6          1      6.0  k\n";
    assert!(close(parse_stats(kernels).unwrap().kernels[0].mean.unwrap(), 6e-9));
}

#[test]
fn a_report_that_ran_and_is_empty_is_not_to_be_run_again() {
    let table = "[3/5] Executing 'osrt_sum' stats report\n\n \
                 Time (%)  Total Time (ns)  Num Calls  Name\n \
                 --------  ---------------  ---------  ----\n    \
                 100.0                6          1  poll\n\n";
    let ran = "[4/5] Executing 'cuda_gpu_kern_sum' stats report\n\
               [5/5] Executing 'cuda_gpu_mem_time_sum' stats report\nGenerated:\n";
    let error = parse_stats(&format!("{table}{ran}")).unwrap_err().to_string();
    assert!(error.starts_with("`cuda_gpu_kern_sum` ran and found nothing"), "{error}");
    assert!(error.contains("--trace=cuda"), "{error}");
    let problems = parse_stats(ran).unwrap().problems;
    assert!(problems[0].reason.contains("`cuda_gpu_kern_sum` ran"), "{problems:?}");
    let cut = format!("{table}[4/5] Executing 'cuda_gpu_kern_sum' stats report\n");
    assert!(matches!(parse_stats(&cut), Err(NsysError::OtherTable { .. })), "its table may follow");
    let last = parse_stats(&format!("{cut}Generated:\n"));
    assert!(matches!(last, Err(NsysError::NothingTraced { .. })), "{last:?}");
    let skipped = "SKIPPED: x.sqlite does not contain CUDA kernel data.\n";
    assert!(parse_stats(skipped).unwrap().problems[0].reason.contains("--trace=cuda"));
}

/// In versions of 2020, the header contains only one unit of time.
#[test]
fn versions_of_2020() {
    let text = "Time(%),Total Time (ns),Instances,Average,Minimum,Maximum,Name\n\
                75.0,3000,2,1500.0,1000,2000,k(int)\n25.0,1000,1,1000.0,1000,1000,\"a, b\"\n";
    let kernels = parse_stats(text).unwrap().kernels;
    assert_eq!(kernels[1].name, "a, b");
    assert!(close(kernels[0].mean.unwrap(), 1500e-9) && close(kernels[0].max.unwrap(), 2000e-9));
    assert_eq!((kernels[0].median, kernels[0].std_dev), (None, None));
}

/// In version 2022.4, the table contains launch configurations, and copies have their old names.
#[test]
fn versions_of_2022() {
    let text = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),\
                StdDev (ns),GridXYZ,BlockXYZ,Name\n\
                100.0,5,1,5.0,5.0,5,5,0.0,16384    1    1, 256    1    1,k\n\n\
                Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),\
                Operation\n100.0,7,1,7.0,7.0,7,7,0.0,[CUDA memcpy HtoD]\n";
    let report = parse_stats(text).unwrap();
    assert_eq!(report.kernels[0].grid, Some([16384, 1, 1]));
    assert_eq!(report.kernels[0].block, Some([256, 1, 1]));
    assert_eq!(report.memory_time[0].name, "[CUDA memcpy Host-to-Device]");
}

/// Tables with the same columns are distinguished by their file, their report or their rows.
#[test]
fn tables_of_other_things() {
    let kernels = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n100.0,5,1,5.0,MPI_Send\n";
    assert!(parse_stats(kernels).unwrap().kernels.is_empty(), "no kernel is called so");
    let other = parse_stats_of(kernels, "report1_mpi_event_sum.csv").unwrap_err();
    assert!(matches!(&other, NsysError::OtherTable { line: 1, what } if what == "MPI"), "{other}");
    let system = "Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n100.0,5,1,5.0,poll\n";
    assert!(matches!(parse_stats(system), Err(NsysError::OtherTable { .. })));
    let named = parse_stats_of(&system.replace("poll", "x"), "r_cuda_api_sum.csv").unwrap();
    assert_eq!(named.api.len(), 1);
}

/// Calls of the operating system have the same columns as the CUDA API.
#[test]
fn reports_of_others_are_told_apart() {
    let rows = "Time (%),Total Time (ns),Num Calls,Avg (ns),Name\n100.0,5,1,5.0,poll\n\n";
    let text = format!(
        "Processing [x.sqlite] with [/opt/reports/osrt_sum.py]... \n{rows}\
         Processing [x.sqlite] with [/opt/reports/cuda_api_sum.py]... \n{}",
        rows.replace("poll", "cudaMalloc")
    );
    let api = parse_stats(&text).unwrap().api;
    assert_eq!(api.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["cudaMalloc"]);
}

#[test]
fn wrong_cells_are_named() {
    let of = |header: &str, row: &str| parse_stats(&format!("{header}\n{row}\n"));
    let header = "Time (%),Total Time (ns),Instances,Avg (ns),Name";
    let bad = of(header, "100.0,five,1,5.0,k").unwrap_err();
    assert_eq!(bad.to_string(), "line 2, total: `five` is not a number");
    assert!(of(header, "100.0,,1,5.0,k").is_err(), "an empty total is no zero");
    let unit = of("Time (%),Total Time (furlong),Instances,Avg (ns),Name", "100.0,5,1,5.0,k");
    assert!(matches!(unit, Err(NsysError::NoUnit { .. })));
    let program = of(header, "hello,1,2,3,4\n100.0,5,1,5.0,k").unwrap();
    assert_eq!(program.kernels.len(), 1, "a foreign line ends no table");
    assert!(
        program.notes[0].starts_with("line 2: `hello,1,2,3,4` is not a complete row"),
        "{program:?}"
    );
    for (header, row, why) in [
        (header, "100.0,-5,1,5.0,k", "line 2, total: `-5` cannot be a time"),
        (header, "250.0,5,1,5.0,k", "line 2, time (%): `250.0` cannot be a percentage"),
        (
            "Time (%),Total Time (MB),Instances,Avg (ns),Name",
            "100.0,5,1,5.0,k",
            "is not that of a time",
        ),
        ("Total (ns),Count,Avg (ns),Operation", "5,1,5.0,x", "is not that of a number of bytes"),
        ("Time (%),Total Time (ns),Instances,Name,Name", "100.0,5,1,k,k", "occurs twice"),
    ] {
        let error = of(header, row).unwrap_err().to_string();
        assert!(error.contains(why), "{why} in {error}");
    }
}

/// Empty lines, truncated lines, rows without a header, and tables of several runs all give notes.
#[test]
fn what_is_left_out_is_told() {
    let header = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n";
    let text = format!(
        "{header}40.0,5,1,5.0,a\n\n30.0,5,1,5.0,b\n20.0,5,\n\"10.0\",5,1,5.0,\"cut\n\
         10.0,5,1,5.0,c\n\n{header}100.0,5,1,5.0,d\nSKIPPED: nothing\n100.0,5,1,5.0,e\n"
    );
    let report = parse_stats(&text).unwrap();
    let names: String = report.kernels.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, "abcd");
    let said = [
        "line 4: rows after an empty line",
        "line 5: `20.0,5,` is not a complete row",
        "line 6: `\"10.0\",5,1,5.0,\"cut` is not a complete row",
        "line 9: there is another such table before",
        "line 12: `100.0,5,1,5.0,e` is not below a header",
    ];
    for (note, begins) in report.notes.iter().zip(said) {
        assert!(note.starts_with(begins), "{begins} in {note}");
    }
    assert_eq!(report.notes.len(), said.len(), "{:?}", report.notes);
}

#[test]
fn summaries_by_category_keep_kernels_and_copies_apart() {
    let text = "Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n\
                60.0,6,1,6.0,CUDA_KERNEL,k(int)\n30.0,3,1,3.0,MEMORY_OPER,[CUDA memset]\n\
                10.0,1,1,1.0,CUDA_API,cudaMalloc\n";
    let report = parse_stats(text).unwrap();
    let name = |rows: &[NsysRow]| rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>();
    assert_eq!(name(&report.kernels), ["k(int)"]);
    assert_eq!(name(&report.memory_time), ["[CUDA memset]"]);
    assert_eq!(name(&report.api), ["cudaMalloc"]);
}

proptest! {
    #[test]
    fn what_is_written_is_read(rows in prop::collection::vec(
        ("[a-z<>(*\"][a-z<>(), *\"]{0,15}", 1u64..1_000_000_000_000, 1u64..1_000_000), 1..20,
    )) {
        let mut text = "NOTICE: Existing SQLite export found: r1.sqlite\n\
                        Time (%),Total Time (ns),Instances,Avg (ns),Name\n".to_owned();
        for (name, total, count) in &rows {
            let name = name.replace('"', "\"\"");
            text.push_str(&format!("1.0,{total},{count},{}.5,\"{name}\"\n", total / count));
        }
        let read = parse_stats(&text).unwrap().kernels;
        prop_assert_eq!(read.len(), rows.len());
        for (row, (name, total, count)) in read.iter().zip(&rows) {
            prop_assert_eq!(&row.name, name.trim());
            prop_assert!(close(row.total, *total as f64 * 1e-9));
            prop_assert_eq!(row.count, *count);
        }
    }

    #[test]
    fn any_text_is_read(
        text in "(Time \\(%\\),Total Time \\(ns\\),Instances,Name\n)?[-0-9.,a\"\n]{0,60}",
    ) {
        if let Ok(report) = parse_stats(&text) {
            prop_assert!(report.kernels.iter().all(|row| row.total.is_finite()));
        }
    }
}
