use super::*;
use crate::select;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../../../tests/fixtures/profile/", $name))
    };
}

const FULL: &str = fixture!("ncu/2025.3.1-h200-raw_full_base.csv");

fn of(text: &str) -> Imported {
    import(text, &select(&[])).unwrap()
}

#[test]
fn a_page_of_several_kernels() {
    let Imported::Ncu { device_metrics: metrics, rules, notes, .. } = of(FULL) else { panic!() };
    assert_eq!(metrics.kernel, "5 kernels");
    assert_eq!((rules, notes), (Vec::new(), Vec::<String>::new()));
    assert_eq!(metrics.kernels.len(), 5);
    assert!(metrics.kernels[0].kernel.starts_with("matmul_tiled"), "the longest first");
    let vector_add = metrics.kernels.iter().find(|k| k.kernel.starts_with("vector_add")).unwrap();
    assert_eq!(vector_add.launches, 2);
    let value = |id: &str| vector_add.metrics[id].value.unwrap();
    assert!((value("duration") - (58_912.0 + 58_944.0) * 1e-9).abs() < 1e-15);
    let read = 134_227_968.0 + 134_229_248.0;
    assert!((value("dram_read_bytes") - read).abs() < 1.0);
    let written = 54_883_328.0 + 54_909_952.0;
    assert!((value("dram_bytes") - read - written).abs() < 1.0, "read and written");
    // The values are 100·54.40/67.33 and 100·55.75/67.24, with nearly equal weights.
    assert!((value("stall_long_scoreboard") - 81.86).abs() < 0.05);
    assert_eq!(value("registers_per_thread"), 16.0);
    // The set has operations per cycle, of which two decimals are left: 16 M additions a launch.
    let additions = 2.0 * f64::from(1 << 24);
    assert!((value("flop_count") / additions - 1.0).abs() < 1e-3, "{}", value("flop_count"));
    assert!((value("arithmetic_intensity") - additions / (read + written)).abs() < 1e-3);
}

#[test]
fn pages_with_labels_and_with_rules() {
    let text = fixture!("ncu/2025.3.1-h200-details_full.csv");
    let Imported::Ncu { device_metrics: metrics, rules, notes, .. } = of(text) else { panic!() };
    assert_eq!(notes, Vec::<String>::new());
    assert!(metrics.metrics["duration"].value.is_some());
    assert!(metrics.metrics["achieved_occupancy"].value.is_some());
    assert!(
        rules
            .iter()
            .any(|rule| rule.kernel.starts_with("vector_add") && rule.rule.name == "SOLBottleneck")
    );
}

#[test]
fn tables_and_logs_are_known_by_their_content() {
    let text = fixture!("nsys/2025.3.1-cuda_gpu_trace.txt");
    let Imported::Nsys { report, timelines } = of(text) else { panic!() };
    assert_eq!(report.trace.len(), 9);
    assert_eq!(timelines[0].device, "NVIDIA H200 (0)");
    assert!((timelines[0].utilisation_pct.unwrap() - 99.2).abs() < 1.0);
    let text = fixture!("sanitizer/2025.3.1-h200.txt");
    let Imported::Sanitizer(log) = of(text) else { panic!() };
    assert!(log.findings.iter().any(|finding| finding.check == "shared_race"));
    let json = serde_json::to_value(of(text)).unwrap();
    assert_eq!(json["kind"], "sanitizer");
}

#[test]
fn a_tool_that_failed_says_why() {
    let error = |text: &str| import(text, &select(&[])).unwrap_err();
    let nothing = |text: &str| match error(text) {
        ImportError::Nothing(why) => why.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(nothing(fixture!("ncu/2025.3.1-h200-err_name.csv")), "no_kernel");
    assert_eq!(nothing(fixture!("ncu/2025.3.1-h200-err_metric.csv")), "unknown_metric");
    assert_eq!(nothing(fixture!("nsys/2025.3.1-none.txt")), "no_data");
    assert_eq!(error("hello"), ImportError::UnknownContent);
    assert_eq!(error(""), ImportError::UnknownContent);
}

/// Old versions write pages without the column of the compute capability.
#[test]
fn a_device_that_is_not_told() {
    let text = "\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"dram__bytes.sum\"\n\
                \"\",\"\",\"usecond\",\"Kbyte\"\n\"0\",\"k\",\"1.5\",\"2.5\"\n";
    let Imported::Ncu { device_metrics: metrics, .. } = of(text) else { panic!() };
    assert!((metrics.metrics["duration"].value.unwrap() - 1.5e-6).abs() < 1e-15);
    assert_eq!(metrics.metrics["dram_bytes"].value, Some(2500.0));
    let reason = metrics.metrics["l1_hit_rate"].reason.as_ref().unwrap();
    assert!(reason.ends_with("does not report l1tex__t_sector_hit_rate.pct"), "{reason}");
}

#[test]
fn files_of_windows() {
    let wide: Vec<u8> = [0xfeff_u16]
        .into_iter()
        .chain("\"ID\"é".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(decode(wide.clone()), "\"ID\"é");
    assert_eq!(decode(wide[2..].to_vec()), "\"ID\"é", "without the mark");
    assert_eq!(decode(b"a\rb\r".to_vec()), "a\nb\n", "lines of old systems");
    assert_eq!(decode(b"a\xffb".to_vec()), "a\u{fffd}b");
    assert!(is_ncu_report(b"NVR\0\x08") && !is_ncu_report(b"\"ID\""));
}

fn refusal(bytes: &[u8], name: &str) -> String {
    import_bytes(bytes.to_vec(), name, &select(&[])).unwrap_err().to_string()
}

/// Each refusal names the format and the one command that helps.
#[test]
fn formats_that_are_not_read() {
    let sqlite = refusal(b"SQLite format 3\0", "");
    assert!(sqlite.contains("`nsys stats --format csv FILE.sqlite`"), "{sqlite}");
    assert!(!sqlite.contains("force-export"), "nsys refuses it there: {sqlite}");
    for (bytes, name, part) in [
        (&b"\x1f\x8b\x08\0"[..], "a.csv.gz", "`gunzip FILE`"),
        (b"PK\x03\x04", "", "`unzip FILE`"),
        (b"NVR\0\x08", "", "`ncu --import FILE --csv --page raw --print-units base`"),
        (b"\x01\x02\0\x03", "r.nsys-rep", "a report of Nsight Systems; export"),
        (b"\x01\x02\0\x03", "r.qdrep", "`nsys stats --format csv --force-export=true FILE`"),
        (b"\x01\x02\0\x03", "", "no text"),
        (b"NVIDIA Tegra Profiler Report 1.\n\x0b", "", "a report of Nsight Systems; export"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a.csv", "`git lfs pull`"),
        (b"==12== NVPROF is profiling process 12, command: ./a\n", "", "output of nvprof"),
        (b"{\"schemaVersion\": 1, \"traceEvents\": []}", "", "Chrome's format"),
    ] {
        let why = refusal(bytes, name);
        assert!(why.contains(part), "{name} {why}");
    }
}

#[test]
fn tables_of_nsys_on_the_console_and_as_json() {
    let table = "\
Processing [r.sqlite] with [/o/nvtx_sum.py]...
SKIPPED: r.sqlite does not contain NV Tools Extension (NVTX) data.

Processing [r.sqlite] with [/o/cuda_gpu_kern_sum.py]...

 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)   StdDev (ns)            Name
 --------  ---------------  ---------  ---------  -----------  ------------------------
     91.0        3,512,190      1,002  1756095.0       1548.6  add(int, float *, float *)
      9.0           12,190          2  6095.0             1.5  b

";
    let Imported::Nsys { report, .. } = of(table) else { panic!() };
    let rows: Vec<(&str, u64)> =
        report.kernels.iter().map(|k| (k.name.as_str(), k.count)).collect();
    assert_eq!(rows, [("add(int, float *, float *)", 1002), ("b", 2)]);
    assert!((report.kernels[0].total - 3_512_190e-9).abs() < 1e-15);

    let json = "Processing [a.sqlite] with [cuda_gpu_kern_sum.py]...\n[\n  {\"Time (%)\": 100.0, \
                \"Total Time (ns)\": 36917512, \"Instances\": 424, \"Avg (ns)\": 87069.6, \
                \"Name\": \"k(float *)\"}\n]\nhello\n";
    let Imported::Nsys { report, .. } = of(json) else { panic!() };
    assert_eq!((report.kernels[0].name.as_str(), report.kernels[0].count), ("k(float *)", 424));
    assert!((report.kernels[0].total - 0.036_917_512).abs() < 1e-15);
    let cut = &json[..json.len() - 8];
    let Imported::Nsys { report, .. } = of(cut) else { panic!() };
    assert_eq!(report.kernels.len(), 1);
    assert!(report.notes[0].contains("cut off"), "{:?}", report.notes);
}

/// Versions of 2019 and 2020 have the unit in the title, or nowhere.
#[test]
fn old_tables_of_nsys() {
    let text = "\
CUDA Kernel Statistics (nanoseconds)

Time(%)      Total Time   Instances         Average         Minimum         Maximum  Name
-------  --------------  ----------  --------------  --------------  --------------  ----
  100.0         1234567           2        617283.5               1         1234566  k(int)

";
    let Imported::Nsys { report, .. } = of(text) else { panic!() };
    assert!((report.kernels[0].total - 1_234_567e-9).abs() < 1e-15);
    let sizes = "Total,Operations,Average,Minimum,Maximum,Operation\n\
                 2816.352,89,31.644,0.008,64.000,[CUDA memcpy DtoH]\n";
    let why = import(sizes, &select(&[])).unwrap_err().to_string();
    assert!(why.contains("gpumemsizesum without units"), "{why}");
}

#[test]
fn a_report_of_a_newer_nsys_is_named_as_such() {
    let text = "Generating SQLite file r.sqlite from r.nsys-rep\n\
                This report was exported in Nsight Systems version (2024.2.1.106-0), newer than \
                your current version (2023.4.4.54-0).\n\
                Please update your Nsight Systems to the latest version to view this report.\n\
                ERROR: Database file r.sqlite does not exist.\n";
    let ImportError::Nothing(why) = import(text, &select(&[])).unwrap_err() else { panic!() };
    assert_eq!(why.code, "newer_report");
    assert!(why.reason.contains("2024.2.1.106"), "{}", why.reason);
}

#[test]
fn progress_without_values_names_the_report() {
    let text = "==PROF== Connected to process 12 (/opt/k)\n\
                ==PROF== Profiling \"k\" - 0: 0%....50%....100% - 8 passes\n\
                ==PROF== Report: /tmp/x.ncu-rep\n";
    let why = import(text, &select(&[])).unwrap_err().to_string();
    assert!(
        why.contains("profiled 1 launches and wrote their values to `/tmp/x.ncu-rep`"),
        "{why}"
    );
}

#[test]
fn percentages_that_are_100_but_for_rounding_have_no_note() {
    let notes = |value: &str| {
        let page = format!(
            "ID,Kernel Name,dram__throughput.avg.pct_of_peak_sustained_elapsed\n,,%\n0,k,{value}\n"
        );
        let Imported::Ncu { notes, .. } = of(&page) else { panic!() };
        notes
    };
    for value in ["100", "100.0000001", "100.04"] {
        assert_eq!(notes(value), Vec::<String>::new(), "{value}");
    }
    assert!(notes("100.06")[0].contains("of k is 100.1 %, above 100"), "{:?}", notes("100.06"));
}

#[test]
fn a_failure_comes_before_a_warning() {
    let text = "==WARNING== Launching the workload is taking more time than expected.\n\
                ==ERROR== The application returned an error code (9).\n";
    let ImportError::Nothing(why) = import(text, &select(&[])).unwrap_err() else { panic!() };
    assert_eq!(why.code, "application_failed");
}

/// A chip before Volta: launch facts need no counter, and what stands in the file is read.
#[test]
fn a_page_of_pascal() {
    let text = "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"CC\",\
                \"gpu__time_duration.sum\",\"launch__registers_per_thread\",\
                \"sm__maximum_warps_per_active_cycle_pct\"\n\
                \"\",\"\",\"\",\"\",\"\",\"ns\",\"register/thread\",\"%\"\n\
                \"0\",\"k(int*)\",\"(512, 1, 1)\",\"(40448, 1, 1)\",\"6.1\",\"78626357888\",\"111\",\
                \"25\"\n";
    let Imported::Ncu { device_metrics: metrics, .. } = of(text) else { panic!() };
    let value = |id: &str| metrics.metrics[id].value;
    assert_eq!(value("duration"), Some(78.626_357_888));
    assert_eq!((value("block_size"), value("grid_size")), (Some(512.0), Some(40448.0)));
    assert_eq!(value("registers_per_thread"), Some(111.0));
    assert_eq!(value("theoretical_occupancy"), Some(25.0));
    let reason = metrics.metrics["l1_hit_rate"].reason.as_deref().unwrap();
    assert!(reason.contains("does not report"), "{reason}");
}

/// `--print-metric-name label-name`, and a row of a metric that is cut before its name.
#[test]
fn details_with_names_and_a_cut_row() {
    let head = "\"ID\",\"Kernel Name\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\
                \"Metric Value\"\n";
    let row = "\"0\",\"k\",\"S\",\"Duration (gpu__time_duration.sum)\",\"usecond\",\"10.50\"\n";
    let Imported::Ncu { device_metrics: metrics, notes, .. } =
        of(&format!("{head}{row}\"0\",\"k\",\"Occupancy\","))
    else {
        panic!()
    };
    assert_eq!(metrics.metrics["duration"].value, Some(10.5e-6));
    assert!(notes[0].contains("is cut off after 4 of 6 fields"), "{notes:?}");
}

/// Each device is counted once, however many there are, and the list of activities is bounded.
#[test]
fn traces_of_many_devices_and_many_activities() {
    let head = "Start (ns),Duration (ns),CorrId,Device,Strm,Name\n";
    let rows: String = (0..60_000).map(|n| format!("{},5,{n},d{n},7,k\n", 10 * n)).collect();
    let Imported::Nsys { report, timelines } = of(&format!("{head}{rows}")) else { panic!() };
    assert_eq!(timelines.len(), 1_000);
    assert_eq!(report.trace.len() as u64 + report.trace_left_out.unwrap_or(0), 60_000);
    assert!(report.notes.iter().any(|note| note.contains("60000 devices")), "{:?}", report.notes);
    let rows: String = (0..60_000).map(|n| format!("{},5,{n},d,7,k\n", 10 * n)).collect();
    let Imported::Nsys { report, timelines } = of(&format!("{head}{rows}")) else { panic!() };
    assert_eq!(report.trace_left_out, Some(10_000));
    assert!((timelines[0].timeline.busy - 60_000.0 * 5e-9).abs() < 1e-12, "of all of them");
}

/// The order of the rows does not matter, though that of a sorted trace needs no memory.
#[test]
fn a_trace_in_any_order_has_the_same_times() {
    let head = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,Device,Strm,Name\n";
    let row = |n: u64, device: u64| match n % 3 {
        0 => format!("{},{},{n},,,,d{device},7,[CUDA memset]\n", 100 * n, 37 * (n % 5)),
        _ => format!("{},{},{n},8,1,1,d{device},7,k\n", 100 * n, 60 * (n % 4)),
    };
    let times = |order: &[u64]| {
        let rows: String = order.iter().map(|n| row(*n, n % 2)).collect();
        let Imported::Nsys { timelines, .. } = of(&format!("{head}{rows}")) else { panic!() };
        timelines
    };
    let sorted: Vec<u64> = (0..200).collect();
    let mixed: Vec<u64> = (0..200).map(|n| n * 77 % 200).collect();
    let expected = times(&sorted);
    assert_eq!(expected.len(), 2);
    assert!(expected[0].timeline.kernels > 0.0 && expected[0].timeline.gaps > 0);
    for (a, b) in expected.iter().zip(times(&mixed)) {
        assert_eq!((&a.device, a.timeline.gaps), (&b.device, b.timeline.gaps));
        for (a, b) in [
            (a.timeline.span, b.timeline.span),
            (a.timeline.busy, b.timeline.busy),
            (a.timeline.kernels, b.timeline.kernels),
            (a.timeline.longest_gap, b.timeline.longest_gap),
        ] {
            assert!((a - b).abs() <= 1e-12 * a, "{a} {b}");
        }
    }
}

/// Files of all kinds, cut anywhere, and one behind the other.
#[test]
fn files_that_are_cut_anywhere() {
    let details = fixture!("ncu/2025.3.1-h200-details_full.csv");
    let table = "Processing [r.sqlite] with [/o/cuda_gpu_kern_sum.py]...\n\n \
                 Time (%)  Total Time (ns)  Instances  Avg (ns)  Name\n \
                 --------  ---------------  ---------  --------  ----\n    \
                 91.0        3,512,190      1,002    1756.0  k(é)\n\n[\n{\"Time (%)\": 9.0, \
                 \"Total Time (ns)\": 1, \"Instances\": 1, \"Avg (ns)\": 1, \"Name\": \"k\"}\n]\n";
    let console = "  k(é) (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 8.9\n    \
                   Section: Occupancy\n    ------ ---- -----\n    Achieved Occupancy % 61.25\n    \
                   ------ ---- -----\n    OPT   more\n          words\n";
    let source = "\"Kernel Name\",\"k\"\n\"#\",\"Address\",\"Source\",\"# Samples\"\n\
                  \"0\",\"0x1\",\"RET é\",\"7\"\n";
    let log = fixture!("sanitizer/2025.3.1-h200.txt");
    let trace = fixture!("nsys/2025.3.1-cuda_gpu_trace.txt");
    let selection = select(&["duration".to_owned()]);
    for text in [&details[..4_000], table, console, source, &log[..2_000], trace] {
        for cut in (0..text.len().min(1_000)).step_by(7) {
            let bytes = &text.as_bytes()[..text.len() - cut];
            let _ = import_bytes(bytes.to_vec(), "", &selection);
            if cut % 49 == 0 {
                let _ = import_bytes(text.as_bytes()[cut..].to_vec(), "", &selection);
                let both = [bytes, text.as_bytes()].concat();
                let _ = import_bytes(both, "", &selection);
                let wide = text[..].encode_utf16().flat_map(u16::to_le_bytes).skip(cut);
                let _ = import_bytes(wide.collect(), "", &selection);
            }
        }
    }
    let endless = "=".repeat(3 << 20) + &"\"ID\",".repeat(1 << 20);
    assert!(import_bytes(endless.into_bytes(), "", &selection).is_err());
}

#[test]
fn a_log_of_nsight_compute_without_launches_says_so() {
    let connected = "==PROF== Connected to process 7 (/usr/bin/app)\n\
                     ==PROF== Disconnected from process 7\n";
    let error_of = |text: &str| import(text, &select(&[])).unwrap_err().to_string();
    assert!(
        error_of(connected).starts_with("Nsight Compute connected to the program, but profiled")
    );
    let children = error_of(&format!(
        "{connected}==WARNING== No kernels were profiled.\n\
         ==WARNING== Profiling kernels launched by child processes requires the \
         --target-processes all option.\n"
    ));
    assert!(
        children.contains(
            "No kernels were profiled. Profiling kernels launched by child \
                           processes requires the --target-processes all option ("
        ),
        "{children}"
    );
}

#[test]
fn a_page_whose_only_row_is_cut_off_is_not_called_empty() {
    let error =
        import("ID,Kernel Name,a__b.sum\n,,ns\n\"0\",\"k\",\"10", &select(&[])).unwrap_err();
    assert!(error.to_string().contains("no complete row follows"), "{error}");
}

#[test]
fn findings_of_one_launch_are_not_those_of_several() {
    let rule = |cycles: u32, why: &str| {
        format!(
            "    OPT   Est. Speedup: 5%\n          On average, each warp of this workload spends \
             {cycles} cycles being stalled waiting for {why}.\n"
        )
    };
    let line = format!("    ----- {}\n", "-".repeat(40));
    let launch = format!(
        "  k (1, 1, 1)x(32, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: Occupancy
    ------------------ - -----
    Achieved Occupancy % 61.25
    ------------------ - -----

{}{line}{}
",
        rule(25, "LG"),
        rule(9, "a barrier")
    );
    for launches in [1, 2] {
        let Imported::Ncu { rules, .. } = of(&launch.repeat(launches as usize)) else { panic!() };
        let ends: Vec<(&str, u32)> = rules
            .iter()
            .map(|rule| (rule.rule.description.rsplit_once(" for ").unwrap().1, rule.launches))
            .collect();
        assert_eq!(ends, [("LG.", launches), ("a barrier.", launches)]);
    }
}
